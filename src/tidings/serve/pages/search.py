"""The search as a page: one field, the hits with the found words marked, counts that narrow, and how to ask."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tidings.model.errors import BadInput
from tidings.model.vocabulary import Vocabulary
from tidings.serve.api.card_search import ORDERS, CardHit, CardSearch, FoundCards
from tidings.serve.api.collections import Collections
from tidings.serve.api.readable_cards import from_shelf
from tidings.serve.api.search import marked
from tidings.serve.api.suggestions import SUGGESTIONS_MAX, suggest
from tidings.serve.http.operations import CURSOR, Call, Operation, Parameter
from tidings.serve.http.problems import Problem
from tidings.serve.http.replies import Reply, answer
from tidings.serve.pages.frame import Frame, page_at

PAGE = 40
FACET_VALUES_MAX = 8
QUERY, PIPELINE, ORDER = Parameter("q", "Query"), Parameter("pipeline", "Pipeline"), Parameter("order", "Order")


@dataclass(frozen=True, slots=True)
class NarrowLink:
    """A value that some hits share, how many do, and the query that asks for them alone."""

    value: str
    count: int
    query: str


class SearchPage:
    """The search of everything, or of one pipeline."""

    def __init__(self, frame: Frame, collections: Collections, search: CardSearch) -> None:
        self._frame = frame
        self._backend = frame.backend
        self._collections = collections
        self._search = search

    def operations(self) -> list[Operation]:
        """Declare the routes."""
        return [
            page_at("/search", self._show, (QUERY, PIPELINE, ORDER, CURSOR)),
            page_at("/search/suggestions", self._suggestions, (QUERY, PIPELINE)),
        ]

    async def _show(self, call: Call) -> Reply:
        text, within = (call["q"] or "").strip(), self._within(call)
        order = call["order"] if call["order"] in ORDERS else ORDERS[0]
        found = FoundCards()
        warnings: tuple[str, ...] = ()
        trouble, pointer = None, None
        if text:
            try:
                asked = self._search.parse(text, within, call["cursor"])
                warnings = asked.query.warnings
                is_first = call["cursor"] is None
                found = await self._search.find(asked, within, limit=PAGE, order=order, with_facets=is_first)
            except BadInput as error:
                trouble, pointer = str(error), error.position
            except Problem as problem:
                trouble = f"{problem.detail} {problem.helps}"
        return await self._frame.page(
            call,
            "search.html",
            q=text,
            within=within,
            order=order,
            orders=ORDERS,
            found=found,
            hits=[self._shown(each) for each in found.hits],
            facets=narrow_links(text, found.facets, self._search.vocabulary(within)),
            warnings=warnings,
            trouble=trouble,
            pointer=pointer,
            has_cursor=call["cursor"] is not None,
        )

    async def _suggestions(self, call: Call) -> Reply:
        """Tell the script of the search field how the query may go on."""
        found = await suggest(self._search, call["q"] or "", self._within(call), SUGGESTIONS_MAX)
        return answer({"suggestions": found})

    def _within(self, call: Call) -> str | None:
        return call["pipeline"] if call["pipeline"] in self._backend.pipelines else None

    def _shown(self, found: CardHit) -> dict[str, Any]:
        hit = found.hit
        reader = self._collections.reader_of_kind(hit.pipeline, hit.kind)
        card = from_shelf(reader, found.entry, self._backend.root_path, found.card) if reader is not None else None
        text = hit.snippet.replace("\x02", "").replace("\x03", "")
        says_more = text.strip(" …") != hit.title.strip()
        return {"hit": hit, "card": card, "snippet": marked(hit.snippet) if says_more else ""}


def narrow_links(
    text: str, facets: Mapping[str, Mapping[str, int]], vocabulary: Vocabulary
) -> dict[str, list[NarrowLink]]:
    """Return what a search may be narrowed by; a facet with a single value would narrow nothing."""
    links = {}
    for facet, counts in facets.items():
        named = [(value, count) for value, count in counts.items() if value]
        if len(named) > 1:
            links[facet] = [
                NarrowLink(value, count, f"{text} {_condition(facet, value, vocabulary)}")
                for value, count in named[:FACET_VALUES_MAX]
            ]
    return links


def _condition(facet: str, value: str, vocabulary: Vocabulary) -> str:
    """Write what asks for one value of a facet. A source is an outlet's name, or else the site of the address."""
    if facet != "source":
        return _qualifier("time" if facet == "day" else facet, value)
    has_source = "source" in vocabulary.attributes - vocabulary.absent
    names = [name for name, may_be in (("source", has_source), ("site", "." in value or not has_source)) if may_be]
    written = " OR ".join(_qualifier(name, value) for name in names)
    return f"({written})" if len(names) > 1 else written


def _qualifier(name: str, value: str) -> str:
    plain = value.replace('"', " ")
    return f'{name}:"{plain}"' if plain.split() != [plain] or plain[0] in "<>(" else f"{name}:{plain}"
