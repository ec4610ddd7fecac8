"""A mirror: follows the stream of changes and copies cards and id indexes to a target, seldom and in batches."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice

import msgspec

from tidings.follow.mirrors.budget import WriteBudget
from tidings.follow.mirrors.catalog import Catalog, decoded, digest, encoded
from tidings.follow.mirrors.names import MirroredPipeline, names_for
from tidings.follow.mirrors.pipeline_copy import PipelineCopy, WaitingCard
from tidings.follow.mirrors.target import Target, WrittenByAnother
from tidings.model.changes import Change, Unwritten
from tidings.model.clock import Clock
from tidings.model.errors import TidingsError, Transient
from tidings.watch.logs import Seldom, event

TICK_SECONDS = 1.0
RETRY_SECONDS_MAX = 300.0
SPENT_MS = 60_000
"""How long a spent budget is not asked again."""
CONFIRM_MS = 30_000
"""How long the stream must have been quiet before what it did not show again is withdrawn."""

RenderAnswers = Callable[[Catalog, Target], Awaitable[Mapping[str, bytes]]]
"""Makes the API's own answers of what a catalog lists, by path, for a target that is read without us."""


@dataclass(frozen=True, slots=True)
class MirrorPace:
    """How seldom is written, and how much is held."""

    card_seconds: float = 300
    """A card is written so long after its first change that was not written, with all changes since."""
    index_seconds: float = 600
    """The least time between two writes of an id index."""
    newest: int = 2_000
    """How many cards of a collection are held, the newest."""


class Mirror:
    """One mirror: the only writer of its target. It satisfies `model.changes.Follower`."""

    def __init__(
        self,
        name: str,
        target: Target,
        pipelines: Sequence[MirroredPipeline],
        *,
        budget: WriteBudget,
        clock: Clock,
        pace: MirrorPace | None = None,
        answers: RenderAnswers | None = None,
    ) -> None:
        self.name = name
        self.target = target
        self.names = names_for(target)
        self._plans = {plan.name: plan for plan in pipelines}
        self._budget, self._clock, self._pace = budget, clock, pace or MirrorPace()
        self.answers = answers
        self._copies: dict[str, PipelineCopy] = {}
        self._left_behind: set[str] = set()
        self._is_writer: bool | None = None
        """None: nobody has asked yet."""
        self._rests_until = 0
        # The stream is followed by one task and the target written by another: neither may see the copy half changed.
        self._lock = asyncio.Lock()
        self._seldom = Seldom(60)
        self._trouble: Unwritten | None = None

    @property
    def pipelines(self) -> list[str]:
        """Which pipelines it follows."""
        return list(self._plans)

    async def is_our_turn(self) -> bool:
        """Tell whether this process writes the mirror. No once after another one did: its position counts then."""
        async with self._lock:
            await self._become_writer()
            if self._left_behind:
                self._left_behind.clear()
                return False
            return bool(self._is_writer)

    async def position(self, pipeline: str) -> str | None:
        """Return the cursor it has followed to, or None if it starts from nothing."""
        async with self._lock:
            await self._become_writer()
            self._left_behind.discard(pipeline)
            await self._forget_if_gone(pipeline)
            return (await self._copy(pipeline)).position

    async def _forget_if_gone(self, pipeline: str) -> None:
        """Believe the target, not our memory of it: a server may have begun empty, or another process have written."""
        copy = self._copies.get(pipeline)
        if (
            copy is not None
            and copy.tag is not None
            and await self.target.tag(self.names.catalog(pipeline)) != copy.tag
        ):
            event("mirror changed behind our back", follower=self.name, pipeline=pipeline, at=self.target.place)
            self._copies.pop(pipeline)

    async def follow(self, pipeline: str, changes: Sequence[Change], position: str) -> None:
        """Take in changes. They are durable once the catalog is written; until then the position stays behind them.

        A process that is not the writer lets them pass; when it becomes the writer it raises once, so that its caller
        asks for the position where the writer before it stopped.
        """
        async with self._lock:
            if pipeline in self._left_behind:
                raise Transient(f"{self.name}: follow it again from the position it gives")
            if self._is_writer:
                (await self._copy(pipeline)).take(changes, position, self._clock.now_ms())

    def unwritten(self) -> Unwritten | None:
        """Tell how many cards wait for a target that fails, and since when it does."""
        waiting = sum(len(copy.waiting) for copy in self._copies.values())
        return self._trouble._replace(changes=waiting) if self._trouble else None

    async def start_over(self, pipeline: str) -> None:
        """Forget the position; what was written stays for readers until the stream has shown what there still is."""
        async with self._lock:
            if self._is_writer:
                copy = await self._copy(pipeline)
                copy.start_over(await self._stored(copy.plan), self._clock.now_ms())

    async def run(self, stop: asyncio.Event) -> None:
        """Write what is due until `stop` is set; a target that fails is tried again later, and nothing waits for it."""
        wait = TICK_SECONDS
        while not stop.is_set():
            try:
                await self.flush()
                wait, self._trouble = TICK_SECONDS, None
            except Exception as error:  # noqa: BLE001  # a loop outlives every surprise
                told = str(error) if isinstance(error, TidingsError) else f"{type(error).__name__}: {error}"
                self._seldom.event("mirror not written", follower=self.name, at=self.target.place, error=told)
                since = self._trouble.since_ms if self._trouble else self._clock.now_ms()
                self._trouble = Unwritten(0, since, told)
                wished = error.retry_after_seconds if isinstance(error, Transient) else None
                wait = min(RETRY_SECONDS_MAX, max(wait * 2, wished or 0))
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(wait):
                    await stop.wait()

    async def flush(self, *, at_once: bool = False) -> None:
        """Write what is due; or all that waits, `at_once`, within the budget."""
        async with self._lock:
            await self._become_writer()
            if not self._is_writer:
                return
            for pipeline in list(self._copies):
                await self._flush_copy(self._copies[pipeline], at_once)

    async def make_right(self, pipeline: str, wanted: Sequence[Change], *, wrong: Collection[str]) -> int:
        """Bring the target to all that is `wanted`, knowing which keys are wrong; return how many cards must wait.

        It may be done while another process writes the mirror: that one finds the catalog replaced, and follows again
        from the position in it, which stays what it was.
        """
        async with self._lock:
            copy, now = await self._copy(pipeline), self._clock.now_ms()
            position = copy.position
            copy.start_over(await self._stored(copy.plan), now)
            copy.distrust(wrong)
            copy.take(wanted, position, now)
            await self._flush_copy(copy, at_once=True)
            return len(copy.waiting)

    async def _flush_copy(self, copy: PipelineCopy, at_once: bool) -> None:
        now = self._clock.now_ms()
        if now < self._rests_until and not at_once:
            return
        await self._put_cards(copy, copy.due(now, 0 if at_once else round(self._pace.card_seconds * 1000)), now)
        if at_once or copy.is_index_due(now, round(self._pace.index_seconds * 1000)):
            if at_once or (copy.changed_at is not None and now - copy.changed_at >= CONFIRM_MS):
                copy.withdraw_unconfirmed(now)
            try:
                await self._put_index(copy, now)
            except WrittenByAnother:
                self._let_go(copy.plan.name)
                raise
        # Last, after the lists that no longer name these cards.
        await self._delete(copy)

    async def _put_cards(self, copy: PipelineCopy, due: Sequence[WaitingCard], now: int) -> None:
        kept_back = self._budget.for_indexes(self._pace.index_seconds, self._index_writes())
        rest = iter(due)
        while batch := list(islice(rest, self.target.batch_max)):
            allowed = await self._budget.take_writes(len(batch), kept_back=kept_back)
            written = {card.key: card for card in batch[:allowed]}
            # Before the write: if it is cut off, these cards may or may not stand in the target.
            copy.note_attempt(written.keys())
            failed = await self.target.put_many({key: card.value for key, card in written.items()}) if written else ()
            copy.note_written([card for key, card in written.items() if key not in failed], now)
            # Those that were taken are noted above, and only the others are written again.
            if failed:
                raise Transient(f"{len(failed)} of {len(written)} cards were not taken")
            if allowed < len(batch):
                self._rest(copy, now)
                return

    async def _put_index(self, copy: PipelineCopy, now: int) -> None:
        """Write id indexes and catalog, then remove what they no longer list: no reader finds an id without a card."""
        catalog = copy.next_catalog(now)
        values = self._indexes(copy.plan, catalog)
        catalog.index_digests = {key: digest(value) for key, value in values.items()}
        changed = {key: value for key, value in values.items() if copy.catalog.index_digests.get(key) != digest(value)}
        rendered = await self.answers(catalog, self.target) if self.answers is not None else {}
        needed = len(rendered) + len(changed) + 1
        if not await self._budget.take_all(needed):
            self._rest(copy, now)
            return
        # Before the catalog, which names them: a crash in between leaves lists that are newer than the catalog says,
        # and the next catalog writes them again.
        for part in (rendered, changed):
            if part and await self.target.put_many(part):
                raise Transient("an index was not taken")
        key = self.names.catalog(copy.plan.name)
        copy.note_catalog(catalog, await self.target.replace(key, encoded(catalog), copy.tag))

    def _rest(self, copy: PipelineCopy, now: int) -> None:
        """Ask the spent budget only once in a while: each question is a write to the store."""
        self._rests_until = now + SPENT_MS
        waiting = len(copy.waiting)
        self._seldom.event("mirror's budget is spent", follower=self.name, waiting=waiting, pipeline=copy.plan.name)

    async def _delete(self, copy: PipelineCopy) -> None:
        keys = sorted(copy.removable)
        keys = keys[: await self._budget.take_deletes(len(keys))] if keys else []
        if keys:
            await self.target.delete_many(keys)
            copy.note_removed(keys)

    def _indexes(self, plan: MirroredPipeline, catalog: Catalog) -> dict[str, bytes]:
        """Return the id indexes by key: plain lists of ids, newest first."""
        chosen = plan.collections.values()
        return {self.names.index(each): msgspec.json.encode(catalog.listing(each.name)) for each in chosen}

    def _index_writes(self) -> int:
        return sum(1 + len(plan.collections) for plan in self._plans.values())

    async def _become_writer(self) -> None:
        """Take or keep the right to write; where it comes from another process, what that one wrote counts."""
        was_writer, self._is_writer = self._is_writer, await self.target.hold()
        if self._is_writer and was_writer is False:
            for pipeline in self._plans:
                self._let_go(pipeline)
        elif was_writer and not self._is_writer:
            event("mirror is written by another process", follower=self.name, at=self.target.place)
            for pipeline in list(self._copies):
                self._let_go(pipeline)

    def _let_go(self, pipeline: str) -> None:
        self._copies.pop(pipeline, None)
        self._left_behind.add(pipeline)

    async def _copy(self, pipeline: str) -> PipelineCopy:
        copy = self._copies.get(pipeline)
        if copy is None:
            key = self.names.catalog(pipeline)
            # The tag is read first: where the catalog changes in between, the write that follows is refused.
            tag = await self.target.tag(key)
            catalog = decoded(pipeline, (await self.target.get_many([key])).get(key))
            plan = self._plans[pipeline]
            key_of, now = partial(self.names.card, pipeline), self._clock.now_ms()
            copy = PipelineCopy(plan, catalog, tag, key_of, newest=self._pace.newest, now=now)
            if catalog.position is None or copy.lacks_a_collection:
                copy.start_over(await self._stored(plan), now)
            self._copies[pipeline] = copy
        return copy

    async def _stored(self, plan: MirroredPipeline) -> set[str]:
        """Return the keys of all cards in the target, whether the catalog lists them or not."""
        found: set[str] = set()
        for collection in plan.collections.values():
            found |= await self.target.keys(self.names.cards(plan.name, collection))
        return found
