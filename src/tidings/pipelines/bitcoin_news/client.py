"""What the keyed providers have in common: credits, untrusted answers, and the walk down their pages."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol, TypeVar

import msgspec

from tidings.model.clock import seconds_left_in_day
from tidings.model.contracts import Kit
from tidings.model.errors import BadInput, SlowDown, Transient
from tidings.model.item import Rejected
from tidings.model.pipeline import Page, Run
from tidings.model.web import Response
from tidings.pipelines.bitcoin_news.body import Sighting
from tidings.pipelines.bitcoin_news.sightings import findings_of

Record = TypeVar("Record")


class ReadRecord(Protocol):
    """Reads one record, or raises BadInput."""

    def __call__(self, record: Any, now_ms: int) -> Sighting:
        """Return what the record says."""


MARK_IDS = 50
"""How many of a run's newest ids the next run compares with: some of them may be withdrawn by then."""


def json_object(response: Response, who: str) -> dict[str, Any]:
    """Decode an answer that should be a JSON object; a gateway's HTML or an empty body is trouble that passes."""
    body = response.body.lstrip(b"\xef\xbb\xbf \t\r\n")
    if not body:
        raise Transient(f"{who} answered {response.status} with an empty body")
    try:
        decoded = msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError) as error:
        kind = "HTML" if body.startswith(b"<") else "something that is no JSON"
        message = f"{who} answered {response.status} with {kind}: a gateway or a block page stands between"
        raise Transient(message) from error
    if not isinstance(decoded, dict):
        raise Transient(f"{who} answered {response.status} with JSON that is no object")
    return decoded


def records(answer: dict[str, Any], who: str) -> list[Any]:
    """Return the answer's list of articles; its absence is an error even where the status says success."""
    results = answer.get("results")
    if not isinstance(results, list):
        raise Transient(f"{who} claims success but lists no results")
    return results


def known_ids(mark: Any) -> frozenset[str]:
    """Read the ids a source kept of its last completed run; anything unexpected counts as none."""
    return frozenset(i for i in mark if isinstance(i, str)) if isinstance(mark, list | tuple) else frozenset()


def identity(record: Any, names: tuple[str, ...]) -> str:
    """Return a record's id, or its address where it has none."""
    values = (record.get(name) for name in names) if isinstance(record, dict) else ()
    return str(next((value for value in values if value), ""))[:200]


class Walk:
    """One run down a provider's pages, until one holds something the last completed run had seen."""

    def __init__(self, run: Run, kit: Kit, keep_days: float, names: tuple[str, ...], read: ReadRecord) -> None:
        self._run, self._kit, self._keep_days, self._names = run, kit, keep_days, names
        self._read = partial(read, now_ms=run.now_ms)
        self._known, self._ids = known_ids(run.mark), list[str]()
        self.meets_known = False

    async def page(self, listed: list[Any], credits_spent: int) -> Page:
        """Make a page of what a provider listed."""
        # Articles that arrive between two pages push others down: an id may come twice.
        here = [record for record in listed if identity(record, self._names) not in self._ids]
        ids = [identity(record, self._names) for record in here]
        self._ids += ids
        self.meets_known = not self._known.isdisjoint(ids)
        sightings, rejected = read_all(here, self._read)
        findings = await findings_of(sightings, self._kit.ledger, self._run.now_ms, self._keep_days)
        mark = self._ids[:MARK_IDS] or self._run.mark
        return Page(findings, mark=mark, rejected=rejected, credits=credits_spent)


def cut_off(page: Page, number: int, max_pages: int) -> Page:
    """Mark a page that has more behind it, if it is the last one that is read."""
    if number < max_pages:
        return page
    return replace(page, incomplete=f"max_pages = {max_pages} were read, and there are more")


def read_all(
    found: Iterable[Record], read: Callable[[Record], Sighting]
) -> tuple[list[Sighting], tuple[Rejected, ...]]:
    """Turn records into sightings; a record that cannot be one is named and harms no other."""
    sightings, rejected = [], []
    for number, record in enumerate(found, 1):
        try:
            sightings.append(read(record))
        except BadInput as error:
            rejected.append(Rejected(number, str(error)))
    return sightings, tuple(rejected)


@dataclass(slots=True)
class Charge:
    """One request's cost: one credit, unless the provider turns out not to have taken it."""

    spent: int = 1


@asynccontextmanager
async def one_credit(kit: Kit, source: str, per_day: int) -> AsyncIterator[Charge]:
    """Reserve a credit of the day's budget for one request, and settle what it really cost."""
    budget = f"credits:{source}"
    if not await kit.ledger.reserve(budget, 1, per_day):
        raise SlowDown(
            f"{source} has used its budget of {per_day} credits for today; the rest comes tomorrow",
            retry_after_seconds=seconds_left_in_day(kit.clock.now_ms()),
        )
    charge = Charge()
    try:
        yield charge
    finally:
        await kit.ledger.settle(budget, 1, charge.spent)
