"""Asks the portal's search service for everything open, forthcoming or closed early.

Its replicas order results differently, so a walk over the pages repeats some and loses others. We therefore walk again
in another order until as many references are known as the service says there are, or nothing new turns up.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass, field

import msgspec

from tidings.model.contracts import Fetcher, Kit
from tidings.model.errors import BadInput, SlowDown, Transient
from tidings.model.item import Finding, Rejected
from tidings.model.pipeline import Page, Run, Schedule
from tidings.net.client import Part, raise_for_status
from tidings.pipelines.eu_funding.opportunity import KIND, Opportunity, Status, deadlines_ahead, fingerprint_of
from tidings.pipelines.eu_funding.portal import Answer, Row, key_of, parse_answer, parse_row
from tidings.pipelines.eu_funding.programmes import CODES_OF_STATUS, TYPE_CODES

SEARCH_PATH = "/search-api/prod/rest/search"
ROWS_PER_PAGE = 100
WINDOW_ROWS = 10_000
"""The service answers no further than this."""
TYPES = ("grant", "call", "cascade")
FAILED_PAGES_MAX = 3

Order = tuple[str, str] | None
ORDERS: tuple[Order, ...] = (("startDate", "DESC"), None, ("startDate", "ASC"), ("deadlineDate", "ASC"), None)
"""Sorting drops results that lack the field: the second walk, unsorted, tells how many there really are."""
LATEST_DEADLINE: Order = ("deadlineDate", "DESC")


@dataclass(frozen=True, slots=True)
class Search:
    """How to ask the service."""

    base_url: str
    api_key: str = "SEDIA"
    language: str = "en"
    pause_seconds: float = 1.0
    """Between requests; the service states no limit, its users keep to one a second."""
    tries: int = 3

    async def page(self, fetcher: Fetcher, statuses: Iterable[Status], order: Order, number: int) -> Answer:
        """Ask for one page of results, more than once where that may help."""
        for left in reversed(range(self.tries)):
            try:
                return await self._ask(fetcher, statuses, order, number)
            except SlowDown:
                raise
            except Transient:
                if not left:
                    raise
            await asyncio.sleep(self.pause_seconds)
        raise AssertionError("unreachable: the last try returns or raises")

    async def _ask(self, fetcher: Fetcher, statuses: Iterable[Status], order: Order, number: int) -> Answer:
        params = {"apiKey": self.api_key, "text": "***", "pageSize": str(ROWS_PER_PAGE), "pageNumber": str(number)}
        response = await fetcher.call(
            "POST", f"{self.base_url.rstrip('/')}{SEARCH_PATH}", params=params, data=self._form(statuses, order)
        )
        raise_for_status(response, "the funding portal's search")
        return parse_answer(response.body)

    def _form(self, statuses: Iterable[Status], order: Order) -> list[Part]:
        codes = [code for code, name in TYPE_CODES.items() if name in TYPES]
        status_codes = [CODES_OF_STATUS[status] for status in statuses]
        query = {"bool": {"must": [{"terms": {"type": codes}}, {"terms": {"status": status_codes}}]}}
        asked: dict[str, object] = {"query": query, "languages": [self.language]}
        if order is not None:
            asked["sort"] = {"field": order[0], "order": order[1]}
        # Each part must say it is JSON: a body that is JSON as a whole is ignored.
        return [Part(name, msgspec.json.encode(value), "application/json") for name, value in asked.items()]


@dataclass(slots=True)
class Harvest:
    """What the walks brought in so far."""

    rows: dict[str, Row] = field(default_factory=dict)
    total: int = 0
    requests: int = 0
    failures: list[Transient] = field(default_factory=list)

    def take(self, answer: Answer) -> int:
        """Add a page; return how many of its results were unknown."""
        self.total = max(self.total, answer.total)
        before = len(self.rows)
        for number, row in enumerate(answer.rows):
            self.rows.setdefault(str(row.get("reference") or f"page {self.requests} row {number}"), row)
        return len(self.rows) - before

    @property
    def is_complete(self) -> bool:
        """Tell whether as many results are known as the service counts."""
        return len(self.rows) >= self.total


@dataclass(frozen=True, slots=True)
class Portal:
    """The source: one run reads the whole listing."""

    search: Search
    pages_url: str
    schedule: Schedule
    walks_max: int = len(ORDERS)
    closed_pages: int = 2
    name: str = "eu_funding.portal"

    async def pages(self, run: Run, kit: Kit) -> AsyncIterator[Page]:
        """Yield everything found, in order of opening; fail after that if something could not be read."""
        listed = await self._listed(kit.fetcher)
        closed = Harvest() if run.is_first else await self._closed_early(kit.fetcher)
        found, rejected = self._read({**closed.rows, **listed.rows}.values(), run)
        note = f"{listed.requests + closed.requests} requests: {listed.total} listed, {len(listed.rows)} seen"
        findings = [_finding(key, each) for key, each in found]
        for start in range(0, max(len(findings), 1), ROWS_PER_PAGE):
            part = tuple(findings[start : start + ROWS_PER_PAGE])
            last = start + ROWS_PER_PAGE >= len(findings)
            mark = {"at": run.now_ms, "found": len(findings)} if last else None
            yield Page(part, mark=mark, rejected=rejected if start == 0 else (), note=f"{note}, {len(found)} current")
        missing = [*([] if listed.is_complete else listed.failures), *closed.failures]
        if missing:
            raise missing[0]

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
        """Ask what was closed before its deadline, which sorts first: it merely vanishes from the others."""
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

    async def _page(
        self, fetcher: Fetcher, harvest: Harvest, statuses: tuple[Status, ...], order: Order, number: int
    ) -> Answer:
        if harvest.requests:
            await asyncio.sleep(self.search.pause_seconds)
        harvest.requests += 1
        return await self.search.page(fetcher, statuses, order, number)

    def _read(self, rows: Iterable[Row], run: Run) -> tuple[list[tuple[str, Opportunity]], tuple[Rejected, ...]]:
        """Read the rows, fold languages and doubles, leave out what closed long ago."""
        parsed: list[Opportunity] = []
        rejected: list[Rejected] = []
        for line, row in enumerate(rows, 1):
            try:
                parsed.append(parse_row(row, pages_url=self.pages_url, now_ms=run.now_ms, is_baseline=run.is_first))
            except BadInput as reason:
                rejected.append(Rejected(line, str(reason)))
        # What closes when its deadlines are over closes by our own clock; only an early end is news from the portal.
        current = [each for each in parsed if each.status != "closed" or deadlines_ahead(each, run.now_ms)]
        found = folded(current, self.search.language)
        return sorted(found.items(), key=lambda pair: (pair[1].opening or "", pair[0])), tuple(rejected)


def folded(opportunities: Iterable[Opportunity], language: str) -> dict[str, Opportunity]:
    """Keep one of each call: the wanted language before others, the current database before the old one."""
    best: dict[str, Opportunity] = {}
    for each in sorted(opportunities, key=lambda one: (one.language != language, one.language, one.reference)):
        best.setdefault(key_of(each), each)
    current = {each.identifier for each in best.values() if each.type == "grant" and not each.is_legacy}
    return {
        key: each
        for key, each in best.items()
        if not (each.is_legacy and each.type == "grant" and each.identifier in current)
    }


def _finding(key: str, opportunity: Opportunity) -> Finding:
    return Finding("eu_funding", KIND, key, fingerprint_of(opportunity), msgspec.json.encode(opportunity))
