"""A tour: one run through the live API, with what it asked for, what it noted, and the cursor that it leaves behind."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import msgspec

from tidings.model.errors import BadInput
from tidings.model.item import NORMAL, Rejected
from tidings.model.pipeline import Page, Run
from tidings.pipelines.hacker_news.client import Firebase, ItemsRead
from tidings.pipelines.hacker_news.rereads import RereadPlan, Rereads
from tidings.pipelines.hacker_news.unread import Unread, UnreadIds
from tidings.pipelines.hacker_news.upload import finding_of

AGAIN_MAX = 1_000
CONTROLS = 3
"""When no id of a page is answered, so many that were answered before tell whether the whole API is in trouble."""


class Backfill(msgspec.Struct, omit_defaults=True):
    """A range of ids to read, as it was asked for, the next one, and where it ends: nothing is above the newest."""

    first: int
    last: int
    next: int
    end: int


class WalkCursor(msgspec.Struct, omit_defaults=True):
    """How far we are. Every id from `start` to `walked` has been asked for."""

    start: int
    walked: int
    again: dict[str, int] = {}
    """Ids that answered `null`, with the number of runs that asked."""
    unread: dict[str, Unread] = {}
    """Ids that could not be read."""
    backfill: Backfill | None = None
    rereads: RereadPlan = msgspec.field(default_factory=RereadPlan)


@dataclass(slots=True)
class Tour:
    """One run: how far it is, what it has asked for, and which older relatives it came across."""

    api: Firebase
    cursor: WalkCursor
    run: Run
    newest: int
    priority: int = NORMAL
    seen: set[int] = field(default_factory=set)
    relatives: dict[int, None] = field(default_factory=dict)
    profiles: list[str] = field(default_factory=list)
    """The users that `updates` named."""
    reread: int = 0
    """How many items this run has read again."""

    @property
    def unread(self) -> UnreadIds:
        """The ids that could not be read, for this run's time."""
        return UnreadIds(self.cursor.unread, self.run.now_ms)

    @property
    def rereads(self) -> Rereads:
        """What is to be read again, for this run's time."""
        return Rereads(self.cursor.rereads, self.cursor.start, self.cursor.walked, self.run.now_ms)

    async def read_new(self, ids: list[int]) -> tuple[ItemsRead, int]:
        """Ask for ids in order that were never asked for; return the last one behind which nothing is left to ask.

        Where none of them is answered, older ids tell whether it is them or the whole API. If it is the API, the error
        is raised and nothing is noted: the same ids are read again when it has recovered.
        """
        read = await self.read(ids)
        return read, min(read.unasked) - 1 if read.unasked else ids[-1]

    async def read(self, ids: Sequence[int]) -> ItemsRead:
        """Ask for ids; raise where it is not them but the whole API that does not answer."""
        read = await self.api.read(ids)
        if read.failures and not read.has_answers and read.slow_down is None and not await self._is_sound(min(ids)):
            raise read.failures[min(read.failures)]
        return read

    def page(self, read: ItemsRead, mark: Any = None) -> Page:
        """Note what became of each id, then make a page of it; the notes are kept together with the findings."""
        unread, rejected = self.unread, []
        self.seen.update(item.id for item in read.items)
        self.seen.update((*read.missing, *read.failures))
        for item in read.items:
            self.cursor.again.pop(str(item.id), None)
            named = (item.parent, item.poll, *(item.parts or ()), *(item.kids or ()))
            older = (n for n in named if n is not None and 0 < n < self.cursor.start)
            self.relatives |= {n: None for n in older if str(n) not in self.cursor.unread}
        unread.forget((*(item.id for item in read.items), *read.missing))
        for number, error in sorted(read.failures.items()):
            self.cursor.again.pop(str(number), None)
            if isinstance(error, BadInput) and str(number) not in self.cursor.unread:
                rejected.append(Rejected(number, f"item {number}: {error}"))
            rejected += unread.count_try(number, str(error))
        return Page(
            tuple(finding_of(given, "FIREBASE", self.priority) for given in read.items),
            cursor=msgspec.to_builtins(self.cursor),
            mark=mark,
            rejected=tuple(rejected),
        )

    def ask_again(self, missing: Iterable[int], tries: int) -> None:
        """Remember ids without an item for later runs, up to a bound.

        Old ones too: after hours away the walk comes by them for the first time, and one `null` may be a slip.
        """
        for number in islice(missing, AGAIN_MAX - len(self.cursor.again)):
            self.cursor.again.setdefault(str(number), tries)

    async def retry(self, ids: Iterable[int], page_size: int, mark: Any = None) -> AsyncIterator[Page]:
        """Ask again for ids that could not be read; whatever fails here was known to fail and stops nothing."""
        for some in paged(ids, page_size):
            read = await self.api.read(some)
            self.ask_again(read.missing, tries=1)
            yield self.page(read, mark)
            raise_slow_down(read)

    async def _is_sound(self, below: int) -> bool:
        """Ask for ids that were not in trouble before; one answer is enough."""
        older = (number for number in range(below - 1, 0, -1) if str(number) not in self.cursor.unread)
        for number in islice(older, CONTROLS):
            if await self.api.is_answering(number):
                return True
        return False


def raise_slow_down(read: ItemsRead) -> None:
    """Pass a rate limit on, after the page was yielded: what was read before it is kept."""
    if read.slow_down is not None:
        raise read.slow_down


def paged(ids: Iterable[int], size: int) -> Iterator[list[int]]:
    """Part ids into lists of so many."""
    rest = iter(ids)
    while some := list(islice(rest, size)):
        yield some
