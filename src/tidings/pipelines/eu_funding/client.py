"""Asks the portal's search service, and reads its answers page by page."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import msgspec

from tidings.model.contracts import Fetcher
from tidings.model.errors import SlowDown, Transient
from tidings.net.client import FormPart, raise_for_status
from tidings.pipelines.eu_funding.body import Status
from tidings.pipelines.eu_funding.programmes import CODES_OF_STATUS, TYPE_CODES
from tidings.pipelines.eu_funding.results import Row

SEARCH_PATH = "/search-api/prod/rest/search"
ROWS_PER_PAGE = 100
TYPES = ("grant", "call", "cascade")
Order = tuple[str, str] | None


@dataclass(frozen=True, slots=True)
class PortalSearch:
    """How to ask the service."""

    base_url: str
    api_key: str = "SEDIA"
    language: str = "en"
    pause_seconds: float = 1.0
    """Between requests; the service states no limit, its users keep to one a second."""
    tries: int = 3

    async def page(
        self,
        fetcher: Fetcher,
        statuses: Iterable[Status],
        order: Order,
        number: int,
        identifiers: Sequence[str] = (),
    ) -> ResultPage:
        """Ask for one page of results, of some identifiers or all, more than once where that may help."""
        form = self._form(statuses, order, identifiers)
        for left in reversed(range(self.tries)):
            try:
                return await self._ask(fetcher, form, number)
            except SlowDown:
                raise
            except Transient:
                if not left:
                    raise
            await asyncio.sleep(self.pause_seconds)
        raise AssertionError("unreachable: the last try returns or raises")

    async def _ask(self, fetcher: Fetcher, form: list[FormPart], number: int) -> ResultPage:
        params = {"apiKey": self.api_key, "text": "***", "pageSize": str(ROWS_PER_PAGE), "pageNumber": str(number)}
        url = f"{self.base_url.rstrip('/')}{SEARCH_PATH}"
        response = await fetcher.call("POST", url, params=params, data=form)
        raise_for_status(response, "the funding portal's search")
        return parse_answer(response.body)

    def _form(self, statuses: Iterable[Status], order: Order, identifiers: Sequence[str]) -> list[FormPart]:
        codes = [code for code, name in TYPE_CODES.items() if name in TYPES]
        status_codes = [CODES_OF_STATUS[status] for status in statuses]
        terms = {"type": codes, "status": status_codes, **({"identifier": list(identifiers)} if identifiers else {})}
        query = {"bool": {"must": [{"terms": {name: values}} for name, values in terms.items()]}}
        fields: dict[str, object] = {"query": query, "languages": [self.language]}
        if order is not None:
            fields["sort"] = {"field": order[0], "order": order[1]}
        # Each part must say it is JSON: a body that is JSON as a whole is ignored.
        return [FormPart(name, msgspec.json.encode(value), "application/json") for name, value in fields.items()]


@dataclass(frozen=True, slots=True)
class ResultPage:
    """One page of search results, and how many there are in all."""

    total: int
    rows: tuple[Row, ...]


def parse_answer(body: bytes) -> ResultPage:
    """Read a search answer; anything else with status 200 is trouble that may pass."""
    try:
        found = msgspec.json.decode(body)
        return ResultPage(int(found["totalResults"]), tuple(row for row in found["results"] if isinstance(row, dict)))
    except (msgspec.DecodeError, UnicodeDecodeError, KeyError, TypeError, ValueError, RecursionError):
        raise Transient("the funding portal answered with something that is no search result") from None
