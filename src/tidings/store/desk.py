"""The desk: everything an operator can see and do, for the command line and the dashboard alike."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Mapping
from typing import Any

import msgspec

from tidings.model.clock import rfc3339
from tidings.model.errors import BadInput
from tidings.model.item import Item, ref
from tidings.model.pipeline import Pipeline, Schedule
from tidings.model.query import parse
from tidings.model.views import (
    AlertView,
    ChannelView,
    DeadGroup,
    DeliveryView,
    Event,
    IntakeView,
    ItemRow,
    ItemView,
    PipelineView,
    Point,
    RunView,
    SourceView,
    StatusView,
    StepView,
)
from tidings.store.database import Database, Row
from tidings.store.index import SearchIndex
from tidings.store.intake import IntakeLog
from tidings.store.items import ItemStore
from tidings.store.ledgers import Ledgers
from tidings.store.links import LinkStore
from tidings.store.operating import Operations
from tidings.store.retention import RetentionStore
from tidings.store.schedules import ScheduleRow, ScheduleStore

HOUR_MS = 3_600_000
COUNT_SECONDS = 1.0
SILENT_FACTOR = 5
_LIST_FIELDS = (
    "i.id, i.pipeline, i.kind, i.key, i.state, i.standing, i.attempts, i.due_at, i.lease_until, i.last_error, i.cause, "
    "i.revision, i.created_at, i.changed_at, b.body"
)


class StoreDesk:
    """Reads for people; writes go through `Operations`."""

    def __init__(
        self,
        database: Database,
        pipelines: Mapping[str, Pipeline],
        *,
        items: ItemStore,
        intake: IntakeLog,
        links: LinkStore,
        ledgers: Ledgers,
        schedules: ScheduleStore,
        index: SearchIndex,
        operations: Operations,
        retention: RetentionStore,
        channels: Mapping[str, str],
    ) -> None:
        self._database = database
        self._pipelines = pipelines
        self._items = items
        self._intake = intake
        self._links = links
        self._ledgers = ledgers
        self._schedules = schedules
        self._index = index
        self._operations = operations
        self._retention = retention
        self._channels = channels
        self._counted: tuple[float, list[Row]] = (float("-inf"), [])

    def status(self) -> StatusView:
        """Return everything at a glance."""
        with self._database.reading() as tx:
            row = tx.one("now")
        assert row is not None
        counts = self._counts()
        paused = self._ledgers.pauses()
        budgets = self._ledgers.today()
        sources = self.sources()
        names = sorted({*self._pipelines, *(row[0] for row in counts)})
        views = {
            name: self._pipeline(name, [r for r in counts if r[0] == name], paused, budgets, sources, row[0])
            for name in names
        }
        return StatusView(views, self.alerts(), row[0], sorted(paused))

    def _counts(self) -> list[Row]:
        """Count items by state; a big table is counted at most once a second."""
        at, rows = self._counted
        if time.monotonic() - at > COUNT_SECONDS or len(rows) == 0:
            started = time.monotonic()
            with self._database.reading() as tx:
                rows = tx.all("count_items")
            if time.monotonic() - started > 0.02:
                self._counted = (time.monotonic(), rows)
        return rows

    def _pipeline(
        self,
        name: str,
        counts: list[Row],
        paused: Mapping[str, str],
        budgets: list[Any],
        sources: list[SourceView],
        now: int,
    ) -> PipelineView:
        states: dict[str, int] = defaultdict(int)
        kinds: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
        standings: dict[str, int] = defaultdict(int)
        deliveries: dict[str, int] = defaultdict(int)
        declared = self._pipelines.get(name)
        for kind, workflow in declared.workflows.items() if declared else ():
            for state in workflow.states:
                kinds[kind][state] = 0
                if kind != "delivery":
                    states[state] = 0
        for _, kind, state, standing, count, _, _, _ in counts:
            kinds[kind][state] += count
            standings[standing] += count
            if kind == "delivery":
                deliveries[state if standing != "dead" else "dead"] += count
            else:
                states[state] += count
        unmerged, checkpoint, total = self._intake.totals(name)
        with self._database.reading() as tx:
            oldest = tx.one("oldest_due", pipeline=name)
        writes = next((b.spent for b in budgets if b.name == f"shelf_writes:{name}"), 0)
        mine = [s for s in sources if s.pipeline == name]
        return PipelineView(
            states=dict(states),
            kinds={kind: dict(of) for kind, of in kinds.items()},
            standings=dict(standings),
            due=sum(row[6] or 0 for row in counts),
            leased=sum(row[5] for row in counts),
            parked=standings.get("parked", 0),
            rejected=standings.get("rejected", 0),
            dead_letters=standings.get("dead", 0),
            oldest_due_seconds=round(oldest[0] / 1000, 1) if oldest and oldest[0] is not None else None,
            intake=IntakeView(unmerged, checkpoint, total),
            settled_last_hour=round(sum(p.value for p in self.points(f"settled:{name}", since_ms=now - HOUR_MS))),
            published_last_hour=round(sum(p.value for p in self.points(f"finished:{name}", since_ms=now - HOUR_MS))),
            last_processed_at=max((row[7] for row in counts), default=None),
            last_discovery_at=max((s.last_success_at for s in mine if s.last_success_at), default=None),
            deliveries=dict(deliveries),
            shelf_writes_today=writes,
            shelf_writes_limit=declared.shelf_writes_per_day if declared else None,
            paused=f"pipeline:{name}" in paused,
            sources=mine,
            budgets=[b for b in budgets if name in b.name],
        )

    def items(
        self,
        *,
        pipeline: str | None = None,
        kind: str | None = None,
        state: str | None = None,
        standing: str | None = None,
        limit: int = 50,
        before: int | None = None,
    ) -> list[ItemRow]:
        """List items, newest first, with ids below `before`."""
        where = ["i.id < :before"]
        values: dict[str, Any] = {"before": before if before is not None else 1 << 62, "limit": limit}
        for name, value in (("pipeline", pipeline), ("kind", kind), ("state", state), ("standing", standing)):
            if value is not None:
                where.append(f"i.{name} = :{name}")
                values[name] = value
        sql = (
            f"SELECT {_LIST_FIELDS} FROM items i LEFT JOIN bodies b ON b.item = i.id AND b.revision = i.revision "  # noqa: S608
            f"WHERE {' AND '.join(where)} ORDER BY i.id DESC LIMIT :limit"
        )
        with self._database.reading() as tx:
            return [_item_row(row) for row in tx.sql(sql, values)]

    def item(self, item: int) -> ItemView | None:
        """Return one item, whole."""
        found = self._items.get(item)
        return self._whole(found) if found else None

    def find(self, pipeline: str, kind: str, key: str) -> ItemView | None:
        """Return one item, whole, by its name."""
        found = self._items.find(pipeline, kind, key)
        return self._whole(found) if found else None

    def _whole(self, item: Item) -> ItemView:
        body = self._items.body(item.id, item.revision) or b"null"
        accepted = self._items.body(item.id, item.accepted_revision) if item.accepted_revision is not None else None
        relatives = self._links.relatives(item.pipeline, item.ref)
        declared = self._pipelines.get(item.pipeline)
        workflow = declared.workflows.get(item.kind) if declared else None
        rows = [
            (
                item.id, item.pipeline, item.kind, item.key, item.state, item.standing, item.attempts, item.due_at,
                item.lease_until, item.last_error, item.cause, item.revision, item.created_at, item.changed_at, body,
            )
        ]  # fmt: skip
        life = [
            StepView(
                at=r.at,
                kind=r.kind,
                attempt=r.attempt,
                from_state=r.from_state,
                to_state=r.to_state,
                ended=r.ended,
                error=r.error,
                actor=r.actor,
                steps=r.steps,
                token=r.token,
            )
            for r in self._items.life(item.id)
        ]
        children = [child for _, child, parent in relatives if parent == item.ref]
        return ItemView(
            item=_item_row(rows[0]),
            body=msgspec.json.decode(body),
            accepted=msgspec.json.decode(accepted) if accepted is not None else None,
            accepted_revision=item.accepted_revision,
            waiting_revision=item.waiting_revision,
            life=life,
            deliveries=[d for c in children if c.startswith("delivery:") and (d := self._delivery(item.pipeline, c))],
            parents=[parent for _, child, parent in relatives if child == item.ref],
            children=[child for child in children if not child.startswith("delivery:")],
            transitions=[t.name for t in workflow.by_hand_from(item.state)] if workflow else [],
            waits_for=self._waits_for(item),
        )

    def _waits_for(self, item: Item) -> str:
        declared = self._pipelines.get(item.pipeline)
        workflow = declared.workflows.get(item.kind) if declared else None
        if workflow is None or item.state not in workflow.states:
            return "Nobody here knows its kind or state; deploy the same version everywhere."
        if item.lease_until is not None:
            return f"A worker holds it until {rfc3339(item.lease_until)}."
        if item.standing == "dead":
            cause = item.cause or "no cause noted"
            return f"It is a dead letter: {cause}. `tidings dead revive {item.id}` brings it back."
        if item.standing == "rejected":
            return f"It was rejected on purpose: {item.cause}."
        names = " or ".join(t.name for t in workflow.next_from(item.state))
        if item.due_at is not None:
            parked = "It is parked; next try" if item.standing == "parked" else "Next:"
            return f"{parked} {names}, due {rfc3339(item.due_at)}."
        if item.state in workflow.terminal:
            return "Nothing: it is finished."
        if item.standing == "parked":
            return f"A person: it is parked ({item.cause}). `tidings dead revive {item.id}` lets it go on."
        return "A person: " + (", ".join(t.name for t in workflow.by_hand_from(item.state)) or "nothing is possible")

    def transition(self, item: int, name: str, *, actor: str, reason: str) -> ItemView:
        """Perform a manual transition; raise BadInput where it is not allowed."""
        self._operations.transition(item, name, actor=actor, reason=reason)
        view = self.item(item)
        assert view is not None
        return view

    def replay(
        self, pipeline: str, *, state: str | None, query: str | None, actor: str, dry_run: bool, item: int | None = None
    ) -> int:
        """Process items again from a state; return how many."""
        keys = None
        if query:
            hits, _ = self._index.search(parse(query), pipeline=pipeline, limit=100_000)
            keys = [(hit.kind, hit.key) for hit in hits]
        return self._operations.replay(pipeline, state=state, keys=keys, actor=actor, dry_run=dry_run, item=item)

    def dead_letters(self) -> list[DeadGroup]:
        """Return dead letters grouped by cause."""
        with self._database.reading() as tx:
            rows = tx.all("dead_letters")
            groups = []
            for pipeline, kind, state, cause, count, first, last, sample in rows:
                key = tx.sql("SELECT key FROM items WHERE id = :id", {"id": sample})[0][0]
                groups.append(
                    DeadGroup(
                        pipeline=pipeline,
                        kind=kind,
                        state=state,
                        cause=cause,
                        count=count,
                        first_at=first,
                        last_at=last,
                        sample_id=sample,
                        sample_key=key,
                    )
                )
        return groups

    def revive(
        self, *, item: int | None = None, pipeline: str | None = None, cause: str | None = None, actor: str
    ) -> int:
        """Bring dead letters back: one, those of a cause, or all."""
        return self._operations.revive(item=item, pipeline=pipeline, cause=cause, actor=actor)

    def purge(self, *, item: int | None = None, pipeline: str | None = None, cause: str | None = None) -> int:
        """Bury dead letters for good; tombstones stay."""
        return self._retention.purge(item=item, pipeline=pipeline, cause=cause)

    def pause(self, part: str, *, reason: str) -> None:
        """Stop a part without losing anything."""
        self._check_part(part)
        self._ledgers.pause(part, reason)

    def resume(self, part: str) -> None:
        """Start it again."""
        self._check_part(part)
        self._ledgers.resume(part)

    def _check_part(self, part: str) -> None:
        sort, _, name = part.partition(":")
        known = {
            "pipeline": list(self._pipelines),
            "source": [s.name for p in self._pipelines.values() for s in p.sources],
            "channel": list(self._channels),
        }
        if sort not in known:
            raise BadInput(f"{part!r} names no part; use pipeline:NAME, source:NAME or channel:NAME")
        if name not in known[sort]:
            raise BadInput(f"there is no {sort} {name!r}; known: {', '.join(known[sort]) or 'none'}")

    def sources(self) -> list[SourceView]:
        """Return every source and its health."""
        stored = {row.source: row for row in self._schedules.all()}
        paused = self._ledgers.pauses()
        now = self._ledgers.now_ms()
        return [
            self._source(s.name, p.name, s.schedule, stored.get(s.name), paused, now)
            for p in self._pipelines.values()
            for s in p.sources
        ]

    def _source(
        self, name: str, pipeline: str, schedule: Schedule, row: ScheduleRow | None, paused: Mapping[str, str], now: int
    ) -> SourceView:
        runs = self._schedules.runs(name, 10)
        if row is None:
            return SourceView(name=name, pipeline=pipeline, health="waiting", schedule=describe(schedule))
        return SourceView(
            name=name,
            pipeline=pipeline,
            health=_health(name, pipeline, row, runs, paused, now),
            schedule=describe(schedule),
            last_success_at=row.last_success_at,
            last_new_at=row.last_new_at,
            next_check_at=row.next_at,
            failures=row.failures,
            error=row.last_error,
            last_run=runs[0] if runs else None,
            credits_today=sum(r.credits for r in runs if r.started_at >= now - now % 86_400_000),
        )

    def check_now(self, source: str) -> None:
        """Make a source due at once."""
        if not self._schedules.check_now(source):
            raise BadInput(f"there is no source {source!r}")

    def deliveries(self, *, limit: int = 50, channel: str | None = None) -> list[DeliveryView]:
        """List notices, newest first."""
        rows = self.items(kind="delivery", limit=limit if channel is None else limit * 4)
        found = [d for row in rows if (d := self._delivery(row.pipeline, ref("delivery", row.key)))]
        return [d for d in found if channel in (None, d.channel)][:limit]

    def _delivery(self, pipeline: str, name: str) -> DeliveryView | None:
        item = self._items.find(pipeline, "delivery", name.partition(":")[2])
        if item is None:
            return None
        body = msgspec.json.decode(self._items.body(item.id, item.revision) or b"{}")
        life = self._items.life(item.id)
        ambiguous = sum(1 for r in life if r.ended == "lost" or (r.error or "").startswith("ambiguous"))
        return DeliveryView(
            id=item.id,
            pipeline=pipeline,
            key=item.key,
            channel=str(body.get("channel", "?")),
            title=str((body.get("notice") or {}).get("title", item.key)),
            parent=str(body.get("parent", "")),
            state=item.state,
            standing=item.standing,
            attempts=item.attempts,
            ambiguous=ambiguous,
            due_at=item.due_at,
            sent_at=body.get("sent_at"),
            message_id=body.get("message_id"),
            answer=body.get("answer"),
            last_error=item.last_error,
            created_at=item.created_at,
        )

    def channels(self) -> list[ChannelView]:
        """Return the channels and their limiters."""
        paused = self._ledgers.pauses()
        views = []
        for name, kind in self._channels.items():
            recent, not_before = self._ledgers.limiter(f"channel:{name}")
            views.append(
                ChannelView(
                    name=name,
                    kind=kind,
                    paused=f"channel:{name}" in paused,
                    reason=paused.get(f"channel:{name}"),
                    not_before_ms=not_before,
                    sent_last_minute=recent,
                    waiting=self._waiting_for(name),
                )
            )
        return views

    def _waiting_for(self, channel: str) -> int:
        # A delivery's key begins with its channel's name.
        with self._database.reading() as tx:
            rows = tx.sql(
                "SELECT count(*) FROM items WHERE kind = 'delivery' AND standing IN ('open', 'parked') "
                "AND key >= :prefix AND key < :prefix_end",
                {"prefix": f"{channel}/", "prefix_end": f"{channel}0"},
            )
        return int(rows[0][0])

    def alerts(self, *, all_of_them: bool = False) -> list[AlertView]:
        """Return the firing alerts, or the recent history too."""
        with self._database.reading() as tx:
            rows = tx.all("recent_alerts" if all_of_them else "firing_alerts")
        names = ("name", "subject", "message", "help", "value", "threshold", "fired_at", "cleared_at")
        return [AlertView(**dict(zip(names, row[:8], strict=True))) for row in rows]

    def points(self, series: str, *, since_ms: int) -> list[Point]:
        """Return a series of low-resolution history; what workers count each for themselves is added up."""
        with self._database.reading() as tx:
            if series.startswith(("settled:", "finished:")):
                asked = {"prefix": f"{series}:", "prefix_end": f"{series};", "since": since_ms}
                return [Point(at, float(value)) for at, value in tx.all("counted_since", **asked)]
            if series.startswith("found:"):
                rows = tx.all("found_since", source=series.removeprefix("found:"), since=since_ms)
            else:
                rows = tx.all("samples", series=series, since=since_ms)
            return [Point(at, float(value)) for at, value in rows]

    def events(self, *, after: int, limit: int = 200) -> list[Event]:
        """Return what happened after an event id, oldest first; `after` -1 returns only the newest event."""
        with self._database.reading() as tx:
            rows = tx.all("last_event") if after < 0 else tx.all("events_after", after=after, limit=limit)
        names = ("id", "at", "pipeline", "kind", "key", "what", "from_state", "to_state", "item")
        return [Event(**dict(zip(names, row, strict=True))) for row in rows]

    def scope_of(self, token: str) -> str | None:
        """Return the scope of a live token, or None."""
        return self._ledgers.scope_of(token)

    def has_tokens(self) -> bool:
        """Tell whether any live token exists."""
        return any(token.revoked_at is None for token in self._ledgers.tokens())


def describe(schedule: Schedule) -> str:
    """Say in words when a source is asked."""
    if schedule.cron is not None:
        return f"cron {schedule.cron}"
    seconds = schedule.every_seconds or 0
    for size, name in ((3600, "h"), (60, "min")):
        if seconds >= size and seconds % size == 0:
            return f"every {seconds / size:g} {name}"
    return f"every {seconds:g} s"


def _health(
    name: str, pipeline: str, row: ScheduleRow, runs: list[RunView], paused: Mapping[str, str], now: int
) -> Any:
    if f"source:{name}" in paused or f"pipeline:{pipeline}" in paused:
        return "paused"
    if row.lease_until is not None and row.lease_until > now:
        return "running"
    if row.failures:
        return "failing"
    if row.last_success_at is None:
        return "waiting"
    return "silent" if is_silent(row, runs, now) else "healthy"


def is_silent(row: ScheduleRow, runs: list[RunView], now: int) -> bool:
    """Tell whether a source has brought nothing new for much longer than is its own habit."""
    with_new = [r.started_at for r in runs if r.new]
    if row.last_new_at is None or len(with_new) < 3:
        return False
    rhythm = (with_new[0] - with_new[-1]) / (len(with_new) - 1)
    return now - row.last_new_at > max(SILENT_FACTOR * rhythm, 6 * HOUR_MS)


def _item_row(row: Row) -> ItemRow:
    names = (
        "id", "pipeline", "kind", "key", "state", "standing", "attempts", "due_at", "lease_until", "last_error",
        "cause", "revision", "created_at", "changed_at",
    )  # fmt: skip
    return ItemRow(**dict(zip(names, row[:14], strict=True)), title=_title(row[14], row[3]))


def _title(body: bytes | None, key: str) -> str:
    try:
        decoded = msgspec.json.decode(bytes(body)) if body else {}
    except msgspec.DecodeError:
        return key
    if not isinstance(decoded, dict):
        return key
    notice = decoded.get("notice")
    found = decoded.get("title") or decoded.get("full_name") or (notice or {}).get("title") or decoded.get("text")
    return str(found)[:200] if found else key
