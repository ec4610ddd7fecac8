"""Search over HTTP: one query language, highlighted snippets, and shorthand parameters for the usual qualifiers."""

from __future__ import annotations

import html
from dataclasses import replace
from typing import Any

from tidings.model.clock import rfc3339
from tidings.model.contracts import Hit
from tidings.model.errors import BadInput
from tidings.model.query import Qualifier, Query, parse
from tidings.serve.collections import NULLABLE_INTEGER, NULLABLE_STRING, NULLABLE_TIME
from tidings.serve.filters import read_number, write_cursor
from tidings.serve.operations import CURSOR, LIMIT, Call, Operation, Parameter, bad_input
from tidings.serve.parts import Parts
from tidings.serve.problems import Problem
from tidings.serve.replies import Reply, answer

OFFSET_MAX = 10_000
QUERY = Parameter(
    "q",
    'Words, "phrases", -excluded words and qualifiers such as `type:story by:pg score:>100 before:2026-01-01`.',
    example="bitcoin -etf",
)
SHORTHANDS = (
    Parameter("type", "Only this type, as `type:` does."),
    Parameter("by", "Only this author, as `by:` does."),
    Parameter("min_score", "At least this score, as `score:>=` does.", "integer"),
    Parameter("since", "From this time on, as `after:` does.", "date"),
    Parameter("until", "Before this time, as `before:` does.", "date"),
)
ORDER = Parameter("order", "Best first, or newest first.", values=("best", "newest"), default="best")
HIT: dict[str, Any] = {
    "type": "object",
    "properties": {
        "pipeline": {"type": "string"},
        "kind": {"type": "string"},
        "id": {"type": "string"},
        "title": {"type": "string"},
        "snippet": {"type": "string", "description": "HTML: escaped text, found words between `<mark>` and `</mark>`."},
        "rank": {"type": "number"},
        "by": NULLABLE_STRING,
        "type": NULLABLE_STRING,
        "score": NULLABLE_INTEGER,
        "time": NULLABLE_TIME,
        "url": NULLABLE_STRING,
        "attributes": {"type": "object"},
    },
}
ANSWER: dict[str, Any] = {
    "type": "object",
    "properties": {
        "hits": {"type": "array", "items": HIT},
        "total": {"type": "integer"},
        "warnings": {"type": "array", "items": {"type": "string"}},
        "next_cursor": NULLABLE_STRING,
    },
    "required": ["hits", "total", "warnings", "next_cursor"],
}


class Search:
    """The search of each pipeline, and the one across them."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    def operations(self) -> list[Operation]:
        """Declare the routes."""
        across = Operation(
            "GET",
            "/api/v1/search",
            "read",
            self._across,
            "Search across pipelines",
            help="The qualifier `pipeline:` narrows it to one.",
            tag="search",
            parameters=(QUERY, *SHORTHANDS, ORDER, LIMIT, CURSOR),
            answer=ANSWER,
        )
        return [across, *(self._declare(name) for name in self._parts.pipelines)]

    def _declare(self, pipeline: str) -> Operation:
        async def search(call: Call) -> Reply:
            return await self._search(call, pipeline)

        return Operation(
            "GET",
            f"/api/v1/{pipeline}/search",
            "read",
            search,
            f"Search {self._parts.pipelines[pipeline].title}",
            tag=pipeline,
            parameters=(QUERY, *SHORTHANDS, ORDER, LIMIT, CURSOR),
            answer=ANSWER,
        )

    async def _across(self, call: Call) -> Reply:
        return await self._search(call, None)

    async def _search(self, call: Call, pipeline: str | None) -> Reply:
        query = ask(call)
        offset = read_number(call["cursor"]) or 0
        if not 0 <= offset <= OFFSET_MAX:
            raise Problem(400, f"A search shows its first {OFFSET_MAX:,} hits.", where="query parameter cursor")
        hits, total = await self._parts.executor.read(
            self._parts.index.search,
            query,
            pipeline=pipeline,
            limit=call["limit"],
            offset=offset,
            newest=call["order"] == "newest",
        )
        following = offset + len(hits)
        has_more = bool(hits) and following < min(total, OFFSET_MAX)
        return answer(
            {
                "hits": [hit_values(hit) for hit in hits],
                "total": total,
                "warnings": [],
                "next_cursor": write_cursor(following) if has_more else None,
            }
        )


def ask(call: Call) -> Query:
    """Parse what was asked, shorthand parameters included."""
    text = call["q"] or ""
    try:
        query = parse(text)
    except BadInput as error:
        raise bad_input(error, text, "query parameter q") from error
    return replace(query, qualifiers=(*query.qualifiers, *_shorthands(call)))


def _shorthands(call: Call) -> list[Qualifier]:
    asked: list[Qualifier] = []
    if call["type"]:
        asked.append(Qualifier("type", "=", call["type"]))
    if call["by"]:
        asked.append(Qualifier("by", "=", call["by"]))
    if call["min_score"] is not None:
        asked.append(Qualifier("score", ">=", float(call["min_score"])))
    if call["since"] is not None:
        asked.append(Qualifier("time", ">=", float(call["since"])))
    if call["until"] is not None:
        asked.append(Qualifier("time", "<", float(call["until"])))
    return asked


def hit_values(hit: Hit) -> dict[str, Any]:
    """Return a hit as JSON values."""
    return {
        "pipeline": hit.pipeline,
        "kind": hit.kind,
        "id": hit.key,
        "title": hit.title,
        "snippet": marked(hit.snippet),
        "rank": round(hit.rank, 6),
        "by": hit.author,
        "type": hit.type,
        "score": hit.score,
        "time": rfc3339(hit.time_ms) if hit.time_ms else None,
        "url": hit.url,
        "attributes": dict(hit.attributes),
    }


def marked(snippet: str) -> str:
    """Return a snippet as HTML: everything is escaped first, then the found words are marked."""
    safe = html.escape(snippet)
    if safe.count("\x02") != safe.count("\x03"):
        return safe.replace("\x02", "").replace("\x03", "")
    return safe.replace("\x02", "<mark>").replace("\x03", "</mark>")
