"""What is read only when asked for: a range of ids, and everything that could not be read."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any

import msgspec

from tidings.model.errors import BadInput
from tidings.model.item import LOW
from tidings.model.pipeline import Page, Run
from tidings.pipelines.hacker_news.body import PIPELINE
from tidings.pipelines.hacker_news.client import Firebase
from tidings.pipelines.hacker_news.tour import Backfill, Tour, WalkCursor, paged, raise_slow_down

NAMED_MAX = 20
"""How many missing ids a report names; `--unread` lists all."""


async def backfill(api: Firebase, run: Run, cursor: WalkCursor | None, page_size: int) -> AsyncIterator[Page]:
    """Read a range of ids, page by page, then what could not be read of it once more.

    The same range asked for again goes on where it stopped; when it is through, only what is missing is read.
    """
    first, last = _range(run.options)
    newest = await api.newest_id()
    if newest < first:
        raise BadInput(f"there is nothing from {first} on: the newest item is {newest}")
    cursor = cursor or WalkCursor(start=0, walked=0)
    tour, end = Tour(api, cursor, run, newest, LOW), min(last, newest)
    for ids in paged(range(_next_of(cursor.backfill, first, last), end + 1), page_size):
        if not tour.unread.has_room(len(ids)):
            raise BadInput(f"too many ids are unread; `tidings discover {PIPELINE} --unread` asks for them again")
        read, through = await tour.read_new(ids)
        cursor.backfill = Backfill(first, last, through + 1, end)
        yield tour.page(read, run.mark)
        raise_slow_down(read)
    async for page in tour.retry(tour.unread.between(first, end), page_size, run.mark):
        yield page
    left = tour.unread.between(first, end)
    cursor.backfill = Backfill(first, last, end + 1, end) if left else None
    note = f"read from {first} to {end}"
    if left:
        note += f"; {_named(left)}; the same command asks for them again"
    yield Page((), cursor=msgspec.to_builtins(cursor), mark=run.mark, note=note)


async def read_unread(api: Firebase, run: Run, cursor: WalkCursor | None, page_size: int) -> AsyncIterator[Page]:
    """Ask for everything that could not be read; what fails once more has all its tries again."""
    cursor = cursor or WalkCursor(start=0, walked=0)
    tour = Tour(api, cursor, run, newest=cursor.walked)
    tour.unread.restart()
    async for page in tour.retry(list(map(int, cursor.unread)), page_size, run.mark):
        yield page
    note = _named(sorted(map(int, cursor.unread))) if cursor.unread else None
    yield Page((), cursor=msgspec.to_builtins(cursor), mark=run.mark, note=note)


def _next_of(unfinished: Backfill | None, first: int, last: int) -> int:
    """Return where to go on with a range: an unfinished one is known by its ends."""
    if unfinished is not None and (unfinished.first, unfinished.last) == (first, last):
        return unfinished.next
    return first


def _named(ids: Sequence[int]) -> str:
    """Say which ids are missing: the first few by name."""
    more = f" and {len(ids) - NAMED_MAX} more" if len(ids) > NAMED_MAX else ""
    count = "1 id" if len(ids) == 1 else f"{len(ids)} ids"
    return f"{count} could not be read: {', '.join(map(str, ids[:NAMED_MAX]))}{more}"


def _range(options: Any) -> tuple[int, int]:
    first, last = options.get("from"), options.get("to")
    if not isinstance(first, int) or not isinstance(last, int) or not 1 <= first <= last:
        raise BadInput(f"a backfill needs two ids, from 1 up and in order, not {first!r} and {last!r}")
    return first, last
