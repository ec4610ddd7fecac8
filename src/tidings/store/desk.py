"""The desk: everything an operator can see and do, for the command line and the dashboard alike."""

from __future__ import annotations

from collections.abc import Mapping

from tidings.model.errors import BadInput
from tidings.model.pipeline import Pipeline
from tidings.model.query import parse
from tidings.model.views import DeadGroup, Event, ItemView, Replayed
from tidings.store.database import Database
from tidings.store.glance import Glance
from tidings.store.index import SearchIndex
from tidings.store.ledgers import Ledgers
from tidings.store.lifelines import Lifelines
from tidings.store.operating import Operations
from tidings.store.retention import RetentionStore
from tidings.store.schedules import ScheduleStore


class StoreDesk:
    """Looking is done by `Glance` and `Lifelines`, writing by `Operations`; this is the counter in front of them."""

    def __init__(
        self,
        database: Database,
        pipelines: Mapping[str, Pipeline],
        *,
        glance: Glance,
        lifelines: Lifelines,
        ledgers: Ledgers,
        schedules: ScheduleStore,
        index: SearchIndex,
        operations: Operations,
        retention: RetentionStore,
        channels: Mapping[str, str],
    ) -> None:
        self._database = database
        self._pipelines = pipelines
        self._ledgers = ledgers
        self._schedules = schedules
        self._index = index
        self._operations = operations
        self._retention = retention
        self._channels = channels
        self.status = glance.status
        self.sources = glance.sources
        self.channels = glance.channels
        self.alerts = glance.alerts
        self.points = glance.points
        self.items = lifelines.items
        self.item = lifelines.item
        self.find = lifelines.find
        self.deliveries = lifelines.deliveries

    def transition(self, item: int, name: str, *, actor: str, reason: str) -> ItemView:
        """Perform a manual transition; raise BadInput where it is not allowed."""
        self._operations.transition(item, name, actor=actor, reason=reason)
        view = self.item(item)
        assert view is not None
        return view

    def replay(
        self, pipeline: str, *, state: str | None, query: str | None, actor: str, dry_run: bool, item: int | None = None
    ) -> Replayed:
        """Process items again from a state, where they came past it."""
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

    def check_now(self, source: str) -> None:
        """Make a source due at once."""
        if not self._schedules.check_now(source):
            raise BadInput(f"there is no source {source!r}")

    def events(self, *, after: int, limit: int = 200) -> list[Event]:
        """Return what happened after an event id, oldest first; `after` -1 returns only the newest event."""
        with self._database.reading() as tx:
            rows = tx.all("last_event") if after < 0 else tx.all("events_after", after=after, limit=limit)
        names = ("id", "at", "pipeline", "kind", "key", "what", "from_state", "to_state", "item")
        return [Event(**dict(zip(names, row, strict=True))) for row in rows]

    def scope_of(self, token: str) -> str | None:
        """Return the scope of a live token, or None."""
        return self._ledgers.scope_of(token)

    def use_token(self, token: str) -> None:
        """Note that a token was used just now."""
        self._ledgers.use_token(token)

    def has_tokens(self) -> bool:
        """Tell whether any live token exists."""
        return any(token.revoked_at is None for token in self._ledgers.tokens())
