"""What operators do: manual transitions, revival, replay. Each records its actor and ends every lease."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from tidings.model.attempt import Attempt, relate
from tidings.model.changes import AcceptedCopy
from tidings.model.course import ask_by_hand, by_hand
from tidings.model.errors import BadInput
from tidings.model.history import came_past
from tidings.model.item import ByHand, Item, Lease
from tidings.model.item_views import Replayed
from tidings.model.pipeline import Deliver, Pipeline, no_deliveries
from tidings.model.publication import DELIVERY
from tidings.model.query import Query, parse
from tidings.model.query_match import matches
from tidings.model.vocabulary import no_field, vocabulary_of
from tidings.model.workflow import Workflow
from tidings.store.db.database import Database, Tx
from tidings.store.items import journal
from tidings.store.items.births import workflow_of
from tidings.store.items.claims import accepted_bodies, read_bodies
from tidings.store.items.restarts import begin_again
from tidings.store.items.settle import settle
from tidings.store.operator.price import Price, price_of
from tidings.store.pauses import PauseStore
from tidings.store.source_list import SourceList
from tidings.store.sources import ScheduleStore

REPLAY_BATCH = 500
LIFE_ROWS_MAX = 10_000


class Place(NamedTuple):
    """Where an item stands."""

    id: int
    kind: str
    key: str
    state: str


class DeadItem(NamedTuple):
    """An item that may be revived."""

    id: int
    pipeline: str
    kind: str
    state: str
    token: int


class Revived(NamedTuple):
    """An item that is due again."""

    id: int
    state: str
    token: int


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
            found = tx.row(Item, "locked_item", id=item)
            if found is None:
                raise BadInput(f"there is no item {item}")
            # The item is locked since it was read, so that no worker settles it between the look and the move.
            attempt = self._attempt(tx, found)
            ask_by_hand(attempt, name)
            relate(attempt, accepted_bodies(tx, found.pipeline, attempt.needs))
            settlement = by_hand(attempt, name, ByHand(found.lease_token, actor, reason))
            if not settle(self._database, self._pipelines, [settlement]).done:
                raise BadInput("the item changed at this very moment; look at it again and repeat")
        self._on_work()

    def _attempt(self, tx: Tx, item: Item) -> Attempt:
        """Prepare an attempt at an item as it is seen now, leased or not."""
        pipeline = self._pipelines.get(item.pipeline)
        if pipeline is None:
            raise BadInput(f"no pipeline {item.pipeline!r} is declared here")
        workflow = pipeline.workflows.get(item.kind)
        if workflow is None:
            raise BadInput(f"no kind {item.kind!r} of {item.pipeline} is declared here")
        accepted = item.accepted_revision if item.accepted_revision != item.revision else None
        revisions = [(item.id, revision) for revision in (item.revision, accepted) if revision is not None]
        bodies = read_bodies(tx, revisions)
        now: int = tx.value("now")
        lease = Lease(
            id=item.id,
            pipeline=item.pipeline,
            kind=item.kind,
            key=item.key,
            state=item.state,
            lane=item.lane,
            token=item.lease_token,
            attempts=item.attempts,
            revision=item.revision,
            priority=item.priority,
            granted_at=now,
            lease_until=now,
            failing_since=item.failing_since,
            lost_leases=item.lost_leases,
            state_since=item.state_since,
            body=bodies.get((item.id, item.revision), b"null"),
            accepted=bodies.get((item.id, accepted)) if accepted is not None else None,
        )
        return Attempt(lease, workflow.work(lease), workflow, pipeline, self._deliver)

    def revive(
        self, *, item: int | None = None, pipeline: str | None = None, cause: str | None = None, actor: str
    ) -> int:
        """Bring dead letters back where they stand; parked items only by their cause, a rejected one only by its id."""
        with self._database.transaction() as tx:
            dead = tx.rows(DeadItem, "dead_items", id=item, pipeline=pipeline, cause=cause)
            revived = self._revive(tx, dead, actor)
        self._on_work()
        return revived

    def _revive(self, tx: Tx, dead: Sequence[DeadItem], actor: str) -> int:
        """Make items due where they stand; one at a dead end begins again."""
        here, again = [], []
        for item in dead:
            workflow = workflow_of(self._pipelines, item.pipeline, item.kind)
            if workflow is None:
                continue
            if workflow.automatic_from(item.state):
                here.append((item.id, item.token, workflow.lane_of(item.state)))
            else:
                again.append((item.id, workflow.start))
        revived = tx.returning(Revived, "revive_items", sorted(here))
        journal.write(
            tx,
            [
                journal.Entry(each.id, "revived", each.token, 0, each.state, each.state, "revived", actor=actor)
                for each in revived
            ],
        )
        return len(revived) + sum(
            begin_again(tx, self._pipelines, item, start, actor, "revived") for item, start in again
        )

    def replay(
        self,
        pipeline: str,
        *,
        state: str | None,
        query: str | None = None,
        keys: Sequence[tuple[str, str]] | None = None,
        actor: str,
        dry_run: bool,
        item: int | None = None,
    ) -> Replayed:
        """Process items again from a state (default: the start), where they came past it.

        Only those that match a query, or that `keys` (kind and key) name, where either is given.
        """
        declared = self._pipelines.get(pipeline)
        if declared is None:
            raise BadInput(f"there is no pipeline {pipeline!r}; known: {', '.join(self._pipelines)}")
        kinds = {
            kind: workflow
            for kind, workflow in declared.workflows.items()
            if kind != DELIVERY and (state is None or state in workflow.states)
        }
        if not kinds:
            raise BadInput(f"{pipeline} has no state {state!r}")
        beginnings = dict.fromkeys(each for workflow in kinds.values() for each in _beginnings(workflow))
        if state is not None and state not in beginnings:
            raise BadInput(f"nothing begins from {state!r}; begin from {', '.join(beginnings)}")
        wanted = None if keys is None else set(keys)
        meant = self._meant(declared, query) if query else None
        replayed = skipped = after = 0
        price = Price()
        while True:
            with self._database.transaction() as tx:
                # A transaction for each page: it locks what it restarts, and workers go on in between.
                rows = tx.rows(Place, "items_after", pipeline=pipeline, after=after, limit=REPLAY_BATCH)
                if meant is not None:
                    wanted = _matching(tx, declared, meant, rows)
                for place in rows:
                    if place.kind not in kinds or (item is not None and place.id != item):
                        continue
                    if wanted is not None and (place.kind, place.key) not in wanted:
                        continue
                    workflow = kinds[place.kind]
                    begins = state or workflow.start
                    if not _came_past(tx, workflow, begins, place):
                        skipped += 1
                    elif dry_run:
                        replayed, price = replayed + 1, price.plus(price_of(tx, place.id, workflow))
                    elif begin_again(tx, self._pipelines, place.id, begins, actor, "replayed"):
                        replayed += 1
            if len(rows) < REPLAY_BATCH:
                break
            after = rows[-1].id
        self._on_work()
        return Replayed(replayed, skipped, *price)

    def _meant(self, pipeline: Pipeline, text: str) -> Query:
        """Parse which items are meant; a slip that a search would only warn of is refused, since it chooses others."""
        vocabulary = vocabulary_of([pipeline])
        with self._database.reading() as tx:
            query = parse(text, vocabulary, now_ms=tx.value("now"))
        for warning in query.warnings:
            raise BadInput(warning)
        for name in query.unknown_names:
            raise BadInput(no_field(name, pipeline.name, vocabulary))
        return query


def _beginnings(workflow: Workflow) -> list[str]:
    """Return the states that lead on. Put into one that ends, an item would only forget why it stands there."""
    return [state for state in workflow.states if state not in workflow.failures and workflow.automatic_from(state)]


def _matching(tx: Tx, pipeline: Pipeline, query: Query, places: Sequence[Place]) -> set[tuple[str, str]]:
    """Choose the items that a query means, by what the search would know of them."""
    copies = tx.returning(AcceptedCopy, "accepted_copies", [(place.id,) for place in places])
    documents = ((copy, pipeline.searchable(copy.kind, copy.key, bytes(copy.body))) for copy in copies)
    return {
        (copy.kind, copy.key)
        for copy, found in documents
        if found is not None and matches(query, found[1], pipeline.name)
    }


class PartSwitches:
    """Pauses and resumes pipelines, sources and channels, and makes sources due, where there are such."""

    def __init__(
        self,
        pipelines: Mapping[str, Pipeline],
        *,
        pauses: PauseStore,
        schedules: ScheduleStore,
        source_list: SourceList,
        channels: Mapping[str, str],
    ) -> None:
        self._pipelines = pipelines
        self._pauses = pauses
        self._schedules = schedules
        self._source_list = source_list
        self._channels = channels

    def pause(self, part: str, *, reason: str) -> None:
        """Stop a part without losing anything."""
        self._check_part(part)
        self._pauses.pause(part, reason)

    def resume(self, part: str) -> None:
        """Start it again."""
        self._check_part(part)
        self._pauses.resume(part)

    def check_now(self, source: str) -> None:
        """Make a source due at once."""
        if not self._schedules.check_now(source):
            raise BadInput(f"there is no source {source!r}")

    def _check_part(self, part: str) -> None:
        sort, _, name = part.partition(":")
        known = {
            "pipeline": list(self._pipelines),
            "source": list(self._source_list.current()),
            "channel": list(self._channels),
        }
        if sort not in known:
            raise BadInput(f"{part!r} names no part; use pipeline:NAME, source:NAME or channel:NAME")
        if name not in known[sort]:
            raise BadInput(f"there is no {sort} {name!r}; known: {', '.join(known[sort]) or 'none'}")


def _came_past(tx: Tx, workflow: Workflow, state: str, place: Place) -> bool:
    """Tell whether an item has made the steps before a state; beginning again there would otherwise skip them."""
    if workflow.leads_through(state, place.state):
        return True
    return came_past(workflow, state, place.state, journal.life(tx, place.id, LIFE_ROWS_MAX))
