"""The Hacker News API as Firebase serves it: one request an item, answered with `null` where there is none."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar, get_args

from tidings.discover.strict_json import parse
from tidings.model.contracts import Fetcher
from tidings.model.errors import BadInput, SlowDown, Transient
from tidings.model.item import Rejected
from tidings.net.client import raise_for_status
from tidings.pipelines.hacker_news.admit import given_of
from tidings.pipelines.hacker_news.item import Given

T = TypeVar("T")
Listing = Literal["topstories", "newstories", "beststories", "askstories", "showstories", "jobstories"]
LISTINGS: tuple[Listing, ...] = get_args(Listing)
RETRIES = 2
ANSWER_BYTES_MAX = 8 << 20
FAILED_SHARE_MAX = 0.5
"""When more of a page's requests fail, the service is in trouble, and so is the page."""


@dataclass(slots=True)
class Read:
    """What became of the ids asked for."""

    items: list[Given] = field(default_factory=list)
    rejected: list[Rejected] = field(default_factory=list)
    missing: list[int] = field(default_factory=list)
    """Answered with `null`."""
    failed: list[int] = field(default_factory=list)
    """Not answered."""


class Firebase:
    """Asks one base address, with so many requests at a time."""

    def __init__(self, base_url: str, fetcher: Fetcher, *, concurrency: int) -> None:
        self._base_url = base_url.rstrip("/")
        self._fetcher = fetcher
        self._places = asyncio.Semaphore(concurrency)

    async def newest_id(self) -> int:
        """Return the greatest id given to an item so far."""
        newest = await self._get("maxitem")
        if not isinstance(newest, int) or newest < 1:
            raise Transient(f"maxitem answered {newest!r:.100}, which is no id")
        return newest

    async def listed(self, listing: Listing) -> list[int]:
        """Return the ids of a list, in its order."""
        return _ids(await self._get(listing), listing)

    async def updated(self) -> list[int]:
        """Return the ids of items that changed lately: a short window that moves on by itself."""
        answer = await self._get("updates")
        return _ids(answer.get("items") if isinstance(answer, dict) else answer, "updates")

    async def read(self, ids: Iterable[int], *, all_or_none: bool = False) -> Read:
        """Ask for items. Single failures are reported; where most (or, if asked so, any) fail, the error is raised."""
        wanted = list(ids)
        read = Read()
        answers = await _all(self._item(number) for number in wanted)
        errors = []
        for number, answer in zip(wanted, answers, strict=True):
            if isinstance(answer, Given):
                read.items.append(answer)
            elif answer is None:
                read.missing.append(number)
            elif isinstance(answer, BadInput):
                read.rejected.append(Rejected(number, f"item {number}: {answer}"))
            else:
                errors.append(answer)
                read.failed.append(number)
        if errors and (all_or_none or len(errors) > FAILED_SHARE_MAX * len(wanted)):
            raise errors[0]
        return read

    async def _item(self, number: int) -> Given | BadInput | Transient | None:
        try:
            value = await self._get(f"item/{number}")
            if value is None:
                return None
            given = given_of(value)
        except SlowDown:
            raise
        except (BadInput, Transient) as error:
            return error
        return given if given.id == number else BadInput(f"the answer is item {given.id}")

    async def _get(self, path: str) -> Any:
        async with self._places:
            answer = await self._fetcher.call("GET", f"{self._base_url}/{path}.json", retries=RETRIES)
        raise_for_status(answer, f"the Hacker News API ({path})")
        try:
            return parse(answer.body, size_bytes_max=ANSWER_BYTES_MAX)
        except BadInput as error:
            # A proxy's page or a torn answer heals; it says nothing of the item.
            raise Transient(f"the Hacker News API ({path}) answered what we cannot read: {error}") from error


async def _all(calls: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """Await side by side; where one raises, the others are called off before its error goes on."""
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(call) for call in calls]
    except ExceptionGroup as errors:
        raise errors.exceptions[0] from None
    return [task.result() for task in tasks]


def _ids(answer: Any, what: str) -> list[int]:
    if not isinstance(answer, list):
        raise Transient(f"{what} answered no list of ids")
    return [each for each in answer if isinstance(each, int) and each > 0]
