"""The Hacker News API as Firebase serves it: one request an item, answered with `null` where there is none."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from tidings.discover.strict_json import parse
from tidings.model.contracts import Fetcher
from tidings.model.errors import BadInput, SlowDown, TidingsError, Transient
from tidings.net.client import raise_for_status
from tidings.pipelines.hacker_news.body import Given
from tidings.pipelines.hacker_news.upload import given_of

Listing = Literal["topstories", "newstories", "beststories", "askstories", "showstories", "jobstories"]
LISTINGS: tuple[Listing, ...] = get_args(Listing)
LIST_NAMES: Mapping[Listing, str] = {
    "topstories": "top",
    "newstories": "new",
    "beststories": "best",
    "askstories": "ask",
    "showstories": "show",
    "jobstories": "job",
}
"""What readers call the lists."""
RETRIES = 2
"""Further requests made at once, both for errors and for answers that cannot be read."""
ITEM_SECONDS = 15.0
ANSWER_BYTES_MAX = 8 << 20


@dataclass(slots=True)
class ItemsRead:
    """What became of the ids asked for; every id is in exactly one of these."""

    items: list[Given] = field(default_factory=list)
    missing: list[int] = field(default_factory=list)
    """Answered with `null`."""
    failures: dict[int, TidingsError] = field(default_factory=dict)
    """Not answered, or with something that is not the item."""
    unasked: list[int] = field(default_factory=list)
    """Left out because the API asked us to slow down."""

    @property
    def slow_down(self) -> SlowDown | None:
        """Return what the API said when it asked us to slow down."""
        return next((error for error in self.failures.values() if isinstance(error, SlowDown)), None)

    @property
    def has_answers(self) -> bool:
        """Tell whether the API answered for any of the ids."""
        return bool(self.items or self.missing)


class Firebase:
    """Asks one base address, with so many requests for items at a time."""

    def __init__(
        self, base_url: str, fetcher: Fetcher, *, concurrency: int, item_seconds: float = ITEM_SECONDS
    ) -> None:
        self._base_url = base_url.rstrip("/")
        self._fetcher = fetcher
        self._places = asyncio.Semaphore(concurrency)
        self._item_seconds = item_seconds

    async def newest_id(self) -> int:
        """Return the greatest id given to an item so far."""
        newest = await self._get("maxitem")
        if not isinstance(newest, int) or newest < 1:
            raise Transient(f"maxitem answered {newest!r:.100}, which is no id")
        return newest

    async def listed(self, listing: Listing) -> list[int]:
        """Return the ids of a list, in its order."""
        return _ids(await self._get(listing), listing)

    async def updated(self) -> tuple[list[int], list[str]]:
        """Return the ids of items and the names of users that changed lately: a short window that moves by itself."""
        answer = await self._get("updates")
        ids = _ids(answer.get("items") if isinstance(answer, dict) else answer, "updates")
        names = answer.get("profiles") if isinstance(answer, dict) else None
        return ids, [name for name in names if isinstance(name, str)] if isinstance(names, list) else []

    async def user(self, name: str) -> Any:
        """Return what the API says of a user; None where there is no such one."""
        async with self._places, asyncio.timeout(self._item_seconds):
            return await self._get(f"user/{name}")

    async def read(self, ids: Sequence[int]) -> ItemsRead:
        """Ask for items, each by itself: one that fails is reported and costs the others nothing.

        Once the API asks us to slow down, no further request is sent.
        """
        read = ItemsRead()
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(self._read_one(number, read)) for number in ids]
        for number, task in zip(ids, tasks, strict=True):
            answer = task.result()
            if isinstance(answer, Given):
                read.items.append(answer)
            elif answer == "null":
                read.missing.append(number)
            elif answer == "unasked":
                read.unasked.append(number)
        return read

    async def is_answering(self, number: int) -> bool:
        """Tell whether the API answers for this id."""
        return (await self.read([number])).has_answers

    async def _read_one(self, number: int, read: ItemsRead) -> Given | Literal["null", "unasked", "failed"]:
        async with self._places:
            if read.slow_down is not None:
                return "unasked"
            try:
                # One limit for all tries together: an id that never answers must not hold up its page for minutes.
                async with asyncio.timeout(self._item_seconds):
                    return await self._item(number) or "null"
            except TimeoutError:
                read.failures[number] = Transient(f"no answer within {self._item_seconds:g} s")
            except TidingsError as error:
                read.failures[number] = error
            return "failed"

    async def _item(self, number: int) -> Given | None:
        value = await self._get(f"item/{number}")
        if value is None:
            return None
        given = given_of(value)
        if given.id != number:
            raise BadInput(f"the answer is item {given.id}")
        return given

    async def _get(self, path: str) -> Any:
        """Ask for a value. A proxy's page or a torn answer says nothing of the item, so it is asked for again."""
        for retries_left in range(RETRIES, -1, -1):
            answer = await self._fetcher.call("GET", f"{self._base_url}/{path}.json", retries=RETRIES)
            raise_for_status(answer, f"the Hacker News API ({path})")
            try:
                return parse(answer.body, size_bytes_max=ANSWER_BYTES_MAX)
            except BadInput as error:
                if not retries_left:
                    raise Transient(f"the Hacker News API ({path}) answered what we cannot read: {error}") from error
        raise AssertionError("unreachable: the last attempt returns or raises")


def _ids(answer: Any, what: str) -> list[int]:
    if not isinstance(answer, list):
        raise Transient(f"{what} answered no list of ids")
    return [each for each in answer if isinstance(each, int) and each > 0]
