"""The stories as a follower: it notes what tells something, and groups it when every pipeline has been followed.

Items are grouped in the order in which they came, and a batch of them by time. The order is kept, and with it all
that a decision depended on: a process that goes on after a kill, and a grouping from the beginning, come to the same
stories.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import msgspec

from tidings.follow.follower import FollowLoop
from tidings.follow.stories.copies import address_of, digest_of
from tidings.follow.stories.grouping import MEMBERS_MAX, WINDOW_MS, Grouping, Member, StoryItem
from tidings.follow.stories.terms import LEAD_CHARS, TITLE_CHARS
from tidings.model.changes import AcceptedCopy, Change, Copies, Unwritten
from tidings.model.contracts import Executor
from tidings.model.errors import StoreUnavailable
from tidings.model.pipeline import Pipeline
from tidings.model.publication import Collection as Published
from tidings.model.publication import Document
from tidings.model.stories import GroupedTelling, PlacedTelling, StoryGroups, StorySpan, Telling, WaitingTelling
from tidings.model.urls import public_host
from tidings.watch.logs import event

BATCH = 200
TURN_SECONDS, RENEW_SECONDS = 15.0, 5.0
TIDY_SECONDS = 3600.0
URL_CHARS_MAX = 2_000


class StoryFacts(msgspec.Struct, frozen=True, omit_defaults=True, array_like=True):
    """What an item is grouped by, as it was when it came."""

    title: str
    lead: str = ""
    url: str = ""
    language: str | None = None


_encode = msgspec.json.encode
_facts = msgspec.json.Decoder(StoryFacts).decode
_terms = msgspec.json.Decoder(dict[str, int]).decode


class Announcer(Protocol):
    """Tells people of stories that many tell."""

    def has_news(self) -> bool:
        """Tell whether a story changed since the last look."""
        ...

    def announce(self) -> None:
        """Tell of those that are to be told."""
        ...


@dataclass
class StoryFollower:
    """Notes what tells something, and keeps the groups."""

    groups: StoryGroups
    copies: Copies
    pipelines: Mapping[str, Pipeline]
    executor: Executor
    owner: str
    also: Collection[str] = ()
    """Pipelines that are grouped on request."""
    announcer: Announcer | None = None
    name: str = "stories"
    _grouping: Grouping | None = None
    _step: int = -1
    """The step of the groups that the grouping knows."""
    _turn_until: float = float("-inf")
    _tidy_at: float = field(default_factory=lambda: time.monotonic() + 60)

    def unwritten(self) -> Unwritten | None:
        """Tell of items that are noted and not grouped yet."""
        state = self.groups.state()
        return Unwritten(state.waiting, 0, "") if state.waiting else None

    async def is_our_turn(self) -> bool:
        """Tell whether this process groups; one does, so that none works in vain."""
        if time.monotonic() >= self._turn_until:
            turn_ms = round(TURN_SECONDS * 1000)
            if not await self.executor.write(self.groups.take_turn, self.owner, turn_ms):
                return False
            self._turn_until = time.monotonic() + RENEW_SECONDS
        return True

    async def leave(self) -> None:
        """Let another process go on at once; where that cannot be written, when the turn is over."""
        if self._turn_until == float("-inf"):
            return
        self._turn_until = float("-inf")
        with contextlib.suppress(StoreUnavailable):
            await self.executor.write(self.groups.leave_turn, self.owner)

    async def position(self, pipeline: str) -> str | None:
        """Return the cursor that was followed to."""
        return await self.executor.read(self.groups.position, pipeline)

    async def start_over(self, pipeline: str) -> None:
        """Follow a pipeline from the beginning; the order of what was grouped is kept."""
        await self.executor.write(self.groups.start_over, pipeline)

    async def follow(self, pipeline: str, changes: Sequence[Change], position: str) -> None:
        """Note what tells something now, and what does so no more."""
        declared = self.pipelines[pipeline]
        told = {c.name: c for c in declared.collections if self._is_told(pipeline, c)}
        items = {change.item: change for change in changes if change.item > 0}
        shown = [
            item
            for item, change in items.items()
            if change.value is not None and change.collection in told and _is_front(told[change.collection], change)
        ]
        copies = await self.executor.read(self.copies.accepted, shown)
        tellings = await asyncio.to_thread(
            self._tellings, declared, [(items[i], copies[i]) for i in shown if i in copies]
        )
        present = {telling.item for telling in tellings}
        gone = [item for item in items if item not in present]
        await self.executor.write(self.groups.take_in, pipeline, tellings, gone, position)

    def _is_told(self, pipeline: str, collection: Published) -> bool:
        return collection.stories == "always" or (collection.stories == "on request" and pipeline in self.also)

    def _tellings(self, pipeline: Pipeline, shown: Sequence[tuple[Change, AcceptedCopy]]) -> list[Telling]:
        found = (self._telling(pipeline, change, copy) for change, copy in shown)
        return [telling for telling in found if telling is not None]

    def _telling(self, pipeline: Pipeline, change: Change, copy: AcceptedCopy) -> Telling | None:
        try:
            searchable = pipeline.searchable(copy.kind, copy.key, bytes(copy.body))
        except Exception as error:  # noqa: BLE001  # one item must not stop the stories; it stands alone until mended
            event("tells no story", pipeline=pipeline.name, kind=copy.kind, key=copy.key, error=type(error).__name__)
            return None
        if searchable is None or not searchable[1].title.strip():
            return None
        document = searchable[1]
        url = document.url if document.url is not None and len(document.url) <= URL_CHARS_MAX else ""
        facts = StoryFacts(document.title[:TITLE_CHARS], document.text[:LEAD_CHARS], url, document.language)
        # A source that dates its news into the future would be ahead of everything for years.
        time_ms = min(document.time_ms, change.written_at) if document.time_ms > 0 else change.written_at
        source = _source(pipeline, change, document)
        return Telling(copy.id, pipeline.name, change.key, source, time_ms, _encode(facts), digest_of(document.text))

    async def group(self, stop: asyncio.Event | None = None) -> int:
        """Group all that waits; return how many items that were."""
        done = 0
        while not (stop is not None and stop.is_set()):
            state = await self.executor.read(self.groups.state)
            if not state.waiting and state.decision is None:
                break
            waiting = await self.executor.read(self.groups.waiting, BATCH, before=state.decision)
            if not waiting and state.decision is not None:
                await self.executor.write(self.groups.apply_decisions, state.decision)
                continue
            if self._grouping is None or self._step != state.step:
                self._grouping = await self._restored()
            # Another process may have written between the two reads: then the step is not the one that was seen, and
            # nothing is written.
            placed = await asyncio.to_thread(_placed, self._grouping, waiting, state.place)
            newest = max([state.place, *(each.place for each in placed)])
            self._step = state.step + 1
            if not await self.executor.write(self.groups.place, state.step, newest, placed):
                self._grouping = None
                continue
            done += len(placed)
        return done

    async def _restored(self) -> Grouping:
        rows, spans = await self.executor.read(self.groups.grouped, WINDOW_MS, MEMBERS_MAX)
        return await asyncio.to_thread(_restored, rows, spans)

    async def announce(self) -> None:
        """Let what is told of stories be told."""
        if self.announcer is not None and await self.executor.read(self.announcer.has_news):
            await self.executor.write(self.announcer.announce)

    async def tidy(self) -> None:
        """Forget what is long gone, now and then."""
        if time.monotonic() >= self._tidy_at:
            self._tidy_at = time.monotonic() + TIDY_SECONDS
            await self.executor.write(self.groups.tidy, WINDOW_MS)


class StoryLoop(FollowLoop):
    """Drives the follower: all pipelines first, then the groups, so that what is old news everywhere comes in order."""

    async def run(self, stop: asyncio.Event) -> None:
        """Follow until told to stop."""
        try:
            await super().run(stop)
        finally:
            await self._stories.leave()

    async def catch_up(self, stop: asyncio.Event | None = None) -> int:
        """Follow until nothing is left and all of it is grouped."""
        followed = await super().catch_up(stop)
        if await self._stories.is_our_turn():
            await self._stories.group(stop)
            await self._stories.announce()
            await self._stories.tidy()
        return followed

    @property
    def _stories(self) -> StoryFollower:
        assert isinstance(self.follower, StoryFollower)
        return self.follower


def _is_front(collection: Published, change: Change) -> bool:
    """Tell whether a card stands for itself; a reply tells no story of its own."""
    if collection.is_front is None and collection.relation is None:
        return True
    card = msgspec.json.decode(change.value or b"{}")
    return collection.is_front(card) if collection.is_front is not None else card.get("parent") is None


def _source(pipeline: Pipeline, change: Change, document: Document) -> str:
    """Name who tells it: the site; where people talk about pages of others, the place where they do."""
    if pipeline.collection(change.collection).relation is not None:
        return pipeline.title
    host, named = public_host(document.url or ""), document.attributes.get("source")
    # A bare address of a machine, as in the sample world, is nobody's name.
    if host and not host.replace(".", "").isdigit():
        return host
    return (named if isinstance(named, str) else "") or host or pipeline.title


def _placed(grouping: Grouping, waiting: Sequence[WaitingTelling], last: int) -> list[PlacedTelling]:
    placed = []
    for each in waiting:
        place = each.place
        if place is None:
            last += 1
            place = last
        facts = _facts(each.facts)
        item = StoryItem(
            place, each.time_ms, facts.title, facts.lead, facts.url, facts.language, each.digest, each.seen_ms or 0
        )
        member = grouping.place(item)
        placed.append(PlacedTelling(each.item, place, member.seen_ms, member.story, _encode(member.terms)))
    return placed


def _restored(rows: Sequence[GroupedTelling], spans: Mapping[int, StorySpan]) -> Grouping:
    grouping = Grouping()
    for row in rows:
        address, span = address_of(_facts(row.facts).url), spans[row.story]
        member = Member(row.place, row.story, row.time_ms, row.seen_ms, address, bytes(row.digest), _terms(row.terms))
        grouping.restore(member, first_ms=span.first_ms, last_ms=span.last_ms)
    return grouping
