"""What operators do: manual transitions, revival, replay. Each records its actor and ends every lease."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from tidings.model.byhand import perform_by_hand
from tidings.model.errors import BadInput
from tidings.model.history import came_past
from tidings.model.item import Item, ref
from tidings.model.pipeline import Deliver, Pipeline, no_deliveries
from tidings.model.views import Replayed
from tidings.model.workflow import Workflow
from tidings.store.adopting import Ended, Held, begin_waiting
from tidings.store.awaiting import begin_again, wake_for
from tidings.store.database import Database, Row, Tx
from tidings.store.effects import Parent, bear_children
from tidings.store.links import replace_links
from tidings.store.shelving import put_presentations
from tidings.store.steps import keep, recall

REPLAY_BATCH = 500
LIFE_ROWS_MAX = 10_000


class Place(NamedTuple):
    """Where an item stands."""

    id: int
    kind: str
    key: str
    state: str


class Operations:
    """The operators' writes."""

    def __init__(
        self,
        database: Database,
        pipelines: Mapping[str, Pipeline],
        *,
        on_work: Callable[[], None] = lambda: None,
        deliver: Deliver = no_deliveries,
    ) -> None:
        self._database = database
        self._pipelines = pipelines
        self._on_work = on_work
        self._deliver = deliver

    def transition(self, item: int, name: str, *, actor: str, reason: str) -> None:
        """Perform a manual transition on what is there now."""
        with self._database.transaction() as tx:
            row = tx.one("item_for_update", id=item)
            if row is None:
                raise BadInput(f"there is no item {item}")
            found = Item(*row)
            self._move(tx, found, name, actor, reason)
        self._on_work()

    def _move(self, tx: Tx, item: Item, name: str, actor: str, reason: str) -> None:
        pipeline = self._pipelines.get(item.pipeline)
        if pipeline is None:
            raise BadInput(f"nobody here knows the pipeline {item.pipeline!r}")
        now = tx.one("now")
        assert now is not None
        body, accepted = _bodies(tx, item)
        move = perform_by_hand(
            pipeline, item, body, accepted, name, now_ms=now[0], reason=reason, deliver=self._deliver
        )
        rows = tx.many(
            "move_by_hand",
            [
                (
                    item.id, item.lease_token, item.state, move.state, move.standing, move.lane, move.due_at,
                    move.error, move.error[:160] if move.error else None, int(move.publishes), None,
                )
            ],
        )  # fmt: skip
        if not rows:
            raise BadInput("the item changed at this very moment; look at it again and repeat")
        steps = keep([move.step])
        tx.many(
            "insert_journal",
            [
                (
                    item.id,
                    "manual",
                    item.lease_token + 1,
                    0,
                    item.state,
                    move.state,
                    "manual",
                    reason[:500],
                    actor,
                    steps,
                )
            ],
        )
        if move.body is not None:
            tx.many("replace_body", [(item.id, item.revision, move.body)])
        if move.links is not None:
            replace_links(tx, [(item.pipeline, ref(item.kind, item.key), move.links, True)])
        if move.publishes:
            put_presentations(tx, pipeline, [(item.id, item.kind, item.key, item.revision, move.presentation)])
            tx.many("drop_other_bodies", [(item.id,)])
            wake_for(tx, self._pipelines, item.pipeline, [(item.kind, item.key)])
        bear_children(tx, self._pipelines, [Parent(item.pipeline, item.kind, item.key, move.children)])
        ended = Ended(item.pipeline, item.kind, move.state, move.standing, Held(*rows[0]))
        begin_waiting(tx, self._pipelines, [ended])

    def revive(
        self, *, item: int | None = None, pipeline: str | None = None, cause: str | None = None, actor: str
    ) -> int:
        """Bring dead letters back where they stand; parked items only by their cause, or as a rejected one by name."""
        standings = "('dead', 'parked')" if cause is not None else "('dead')"
        if item is not None:
            standings = "('dead', 'parked', 'rejected')"
        sql = f"SELECT id, pipeline, kind, state, lease_token FROM items WHERE standing IN {standings}"  # noqa: S608
        values: dict[str, object] = {}
        for name, value in (("id", item), ("pipeline", pipeline), ("cause", cause)):
            if value is not None:
                sql += f" AND {name} = :{name}"
                values[name] = value
        with self._database.transaction() as tx:
            revived = self._revive(tx, tx.sql(sql, values), actor)
        self._on_work()
        return revived

    def _revive(self, tx: Tx, rows: Sequence[Row], actor: str) -> int:
        """Make items due where they stand; one at a dead end begins again."""
        here, anew = [], []
        for item, pipeline, kind, state, token in rows:
            declared = self._pipelines.get(pipeline)
            workflow = declared.workflows.get(kind) if declared else None
            if workflow is None:
                continue
            if workflow.automatic_from(state):
                here.append((item, token, workflow.lane_of(state)))
            else:
                anew.append((item, workflow.start))
        revived = tx.many("revive_item", here) if here else []
        if revived:
            tx.many("insert_journal", [(i, "revived", t, 0, s, s, "revived", None, actor, None) for i, s, t in revived])
        return len(revived) + sum(
            begin_again(tx, self._pipelines, item, start, actor, "revived") for item, start in anew
        )

    def replay(
        self,
        pipeline: str,
        *,
        state: str | None,
        keys: Sequence[tuple[str, str]] | None,
        actor: str,
        dry_run: bool,
        item: int | None = None,
    ) -> Replayed:
        """Process items again from a state (default: the start), where they came past it."""
        declared = self._pipelines.get(pipeline)
        if declared is None:
            raise BadInput(f"there is no pipeline {pipeline!r}; known: {', '.join(self._pipelines)}")
        kinds = {
            k: w for k, w in declared.workflows.items() if k != "delivery" and (state is None or state in w.states)
        }
        if not kinds:
            raise BadInput(f"{pipeline} has no state {state!r}")
        wanted = None if keys is None else set(keys)
        replayed = skipped = after = 0
        while True:
            with self._database.transaction() as tx:
                rows = [
                    Place(*row) for row in tx.all("items_after", pipeline=pipeline, after=after, limit=REPLAY_BATCH)
                ]
                for place in rows:
                    if place.kind not in kinds or (item is not None and place.id != item):
                        continue
                    if wanted is not None and (place.kind, place.key) not in wanted:
                        continue
                    workflow = kinds[place.kind]
                    begins = state or workflow.start
                    if not _came_past(tx, workflow, begins, place):
                        skipped += 1
                    elif dry_run or begin_again(tx, self._pipelines, place.id, begins, actor, "replayed"):
                        replayed += 1
            if len(rows) < REPLAY_BATCH:
                break
            after = rows[-1].id
        self._on_work()
        return Replayed(replayed, skipped)


def _came_past(tx: Tx, workflow: Workflow, state: str, place: Place) -> bool:
    """Tell whether an item may begin again in a state: to skip steps it has never made would publish it unmade."""
    if workflow.leads_through(state, place.state):
        return True
    rows = tx.all("life", item=place.id, limit=LIFE_ROWS_MAX)
    return came_past(workflow, state, place.state, [told for row in rows for told in recall(row)])


def _bodies(tx: Tx, item: Item) -> tuple[bytes, bytes | None]:
    asked = [(item.id, item.revision)]
    if item.accepted_revision is not None and item.accepted_revision != item.revision:
        asked.append((item.id, item.accepted_revision))
    bodies = {revision: bytes(body) for _, revision, body in tx.many("read_bodies", asked)}
    accepted = bodies.get(item.accepted_revision) if item.accepted_revision != item.revision else None
    return bodies.get(item.revision, b"null"), accepted
