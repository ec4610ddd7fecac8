"""Asks the portal's search service for everything open, forthcoming or closed early.

Its replicas order results differently, so a walk over the pages repeats some and loses others. We therefore walk again
in another order until as many references are known as the service says there are, or nothing new turns up.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from tidings.model.contracts import Fetcher, Kit
from tidings.model.errors import BadInput, SlowDown, Transient
from tidings.model.item import Finding, Rejected
from tidings.model.pipeline import Page, Run, Schedule
from tidings.pipelines.eu_funding.body import KIND, PIPELINE, Opportunity, Status, deadlines_ahead, fingerprint_of
from tidings.pipelines.eu_funding.client import ROWS_PER_PAGE, Order, PortalSearch, ResultPage
from tidings.pipelines.eu_funding.results import Row, identity_of, key_of, parse_row, version_of

WINDOW_ROWS = 10_000
"""The service answers no further than this."""
FAILED_PAGES_MAX = 3
UNDATED_MAX = ROWS_PER_PAGE
"""How many calls without a deadline are followed by name once they are listed no more."""

ORDERS: tuple[Order, ...] = (("startDate", "DESC"), None, ("startDate", "ASC"), ("deadlineDate", "ASC"), None)
"""Sorting drops results that lack the field: the second walk, unsorted, tells how many there really are."""
LATEST_DEADLINE: Order = ("deadlineDate", "DESC")


Rows = dict[tuple[str, str, str], Row]
"""Results by identity, so that the order of pages decides nothing."""


@dataclass(slots=True)
class Harvest:
    """What the walks brought in so far."""

    rows: Rows = field(default_factory=dict)
    total: int = 0
    requests: int = 0
    failures: list[Transient] = field(default_factory=list)

    def take(self, answer: ResultPage) -> int:
        """Add a page; return how many of its results were unknown."""
        self.total = max(self.total, answer.total)
        before = len(self.rows)
        for row in answer.rows:
            known = self.rows.setdefault(identity_of(row), row)
            if row != known and version_of(row) > version_of(known):
                self.rows[identity_of(row)] = row
        return len(self.rows) - before

    @property
    def is_complete(self) -> bool:
        """Tell whether as many results are known as the service counts."""
        return len(self.rows) >= self.total


@dataclass(frozen=True, slots=True)
class Portal:
    """The source: one run reads the whole listing."""

    search: PortalSearch
    pages_url: str
    schedule: Schedule
    walks_max: int = len(ORDERS)
    closed_pages: int = 2
    name: str = f"{PIPELINE}.portal"

    async def pages(self, run: Run, kit: Kit) -> AsyncIterator[Page]:
        """Yield everything found, in order of opening; fail after that if something could not be read."""
        listed = await self._listed(kit.fetcher)
        closed = Harvest() if run.is_first else await self._closed_early(kit.fetcher)
        found, rejected = self._read({**closed.rows, **listed.rows}, run)
        missing = {key: name for key, name in _undated_before(run.mark).items() if key not in dict(found)}
        if missing:
            await self._closed_by_name(kit.fetcher, closed, sorted(set(missing.values())))
            found, rejected = self._read({**closed.rows, **listed.rows}, run)
        undated = _undated(missing, found)
        note = f"{listed.requests + closed.requests} requests: {listed.total} listed, {len(listed.rows)} seen"
        findings = [_finding(key, each) for key, each in found]
        for start in range(0, max(len(findings), 1), ROWS_PER_PAGE):
            part = tuple(findings[start : start + ROWS_PER_PAGE])
            last = start + ROWS_PER_PAGE >= len(findings)
            mark = {"at": run.now_ms, "found": len(findings), **undated} if last else None
            yield Page(part, mark=mark, rejected=rejected if start == 0 else (), note=f"{note}, {len(found)} current")
        failures = [*([] if listed.is_complete else listed.failures), *closed.failures]
        if failures:
            raise failures[0]

    async def _listed(self, fetcher: Fetcher) -> Harvest:
        """Walk the open and forthcoming results in one order after another until the count agrees."""
        harvest = Harvest()
        barren_walks = 0
        for number, order in enumerate(ORDERS[: self.walks_max]):
            new = await self._walk(fetcher, harvest, order, may_stop=number > 0)
            barren_walks = 0 if new else barren_walks + 1
            if (number > 0 and harvest.is_complete) or barren_walks == 2:
                break
        return harvest

    async def _walk(self, fetcher: Fetcher, harvest: Harvest, order: Order, *, may_stop: bool) -> int:
        new = 0
        for number in range(1, WINDOW_ROWS // ROWS_PER_PAGE + 1):
            try:
                answer = await self._page(fetcher, harvest, ("forthcoming", "open"), order, number)
            except SlowDown:
                raise
            except Transient as failure:
                # Later pages and walks may still bring what this one holds; a portal that is down brings nothing.
                harvest.failures.append(failure)
                if not harvest.rows or len(harvest.failures) > FAILED_PAGES_MAX:
                    raise
                continue
            new += harvest.take(answer)
            done = not answer.rows or number * ROWS_PER_PAGE >= answer.total
            if done or (may_stop and harvest.is_complete):
                break
        return new

    async def _closed_early(self, fetcher: Fetcher) -> Harvest:
        """Ask for calls that closed before their deadline, which sort first; the other searches just omit them."""
        harvest = Harvest()
        for number in range(1, self.closed_pages + 1):
            try:
                answer = await self._page(fetcher, harvest, ("closed",), LATEST_DEADLINE, number)
            except Transient as failure:
                harvest.failures.append(failure)
                break
            harvest.take(answer)
            if number * ROWS_PER_PAGE >= answer.total:
                break
        return harvest

    async def _closed_by_name(self, fetcher: Fetcher, harvest: Harvest, identifiers: list[str]) -> None:
        """Ask by name whether calls that state no deadline, and are listed no more, are closed.

        The search for early ends sorts by deadline, and so leaves them out. Not to be listed is no proof: walks lose
        results.
        """
        try:
            harvest.take(await self._page(fetcher, harvest, ("closed",), None, 1, identifiers))
        except Transient as failure:
            harvest.failures.append(failure)

    async def _page(
        self,
        fetcher: Fetcher,
        harvest: Harvest,
        statuses: tuple[Status, ...],
        order: Order,
        number: int,
        identifiers: Sequence[str] = (),
    ) -> ResultPage:
        if harvest.requests:
            await asyncio.sleep(self.search.pause_seconds)
        harvest.requests += 1
        return await self.search.page(fetcher, statuses, order, number, identifiers)

    def _read(self, rows: Rows, run: Run) -> tuple[list[tuple[str, Opportunity]], tuple[Rejected, ...]]:
        """Read the rows, fold languages and doubles, leave out what closed long ago."""
        parsed: list[Opportunity] = []
        rejected: list[Rejected] = []
        for line, identity in enumerate(sorted(rows), 1):
            try:
                parsed.append(
                    parse_row(rows[identity], pages_url=self.pages_url, now_ms=run.now_ms, is_baseline=run.is_first)
                )
            except BadInput as reason:
                rejected.append(Rejected(line, str(reason)))
        # Folded first: where the current database says that a call is over, an old row of it must not stand in for it.
        calls = folded(parsed, self.search.language)
        # What closes when its deadlines are over closes by our own clock; only an early end is news from the portal.
        found = [(key, each) for key, each in calls.items() if not _ended_as_foreseen(each, run.now_ms)]
        return sorted(found, key=lambda pair: (pair[1].opening or "", pair[0])), tuple(rejected)


def folded(opportunities: Iterable[Opportunity], language: str) -> dict[str, Opportunity]:
    """Keep one of each call: the wanted language before others, the current database before the old one.

    The order of the rows decides nothing, as the replicas give them in any; the last part of `rank` only breaks ties.
    """

    def rank(one: Opportunity) -> tuple[bool, str, bool, str, bytes]:
        return one.language != language, one.language, one.is_legacy, one.reference, msgspec.json.encode(one)

    best: dict[str, Opportunity] = {}
    for each in sorted(opportunities, key=rank):
        best.setdefault(key_of(each), each)
    current = {each.identifier for each in best.values() if each.type == "grant" and not each.is_legacy}
    return {
        key: each
        for key, each in best.items()
        if not (each.is_legacy and each.type == "grant" and each.identifier in current)
    }


def _ended_as_foreseen(call: Opportunity, now_ms: int) -> bool:
    return call.status == "closed" and bool(call.deadlines) and not deadlines_ahead(call, now_ms)


def _undated(missing: Mapping[str, str], found: Iterable[tuple[str, Opportunity]]) -> dict[str, dict[str, str]]:
    """Return what the mark keeps of calls without a deadline: key and identifier of those not known to be closed."""
    calls = dict(missing)
    for key, each in found:
        calls.pop(key, None)
        if not each.deadlines and each.status != "closed":
            calls[key] = each.identifier
    return {"undated": dict(sorted(calls.items())[:UNDATED_MAX])} if calls else {}


def _undated_before(mark: object) -> dict[str, str]:
    """Read that part of the last completed run's mark; earlier versions wrote none."""
    calls = mark.get("undated") if isinstance(mark, dict) else None
    return {str(key): str(name) for key, name in calls.items()} if isinstance(calls, dict) else {}


def _finding(key: str, opportunity: Opportunity) -> Finding:
    return Finding(PIPELINE, KIND, key, fingerprint_of(opportunity), msgspec.json.encode(opportunity))
