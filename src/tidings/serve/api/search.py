"""Search over HTTP: one query language, highlighted snippets, facets, suggestions, and what is similar."""

from __future__ import annotations

import html
from functools import partial
from typing import Any

from tidings.model.clock import rfc3339
from tidings.model.errors import BadInput
from tidings.model.query import Query
from tidings.model.query_tree import AllOf, Compare, Part
from tidings.serve.api.card_search import ORDERS, AskedQuery, CardHit, CardSearch
from tidings.serve.api.collections import NULLABLE_INTEGER, NULLABLE_STRING, NULLABLE_TIME, Collections, missing
from tidings.serve.api.listings import Reader
from tidings.serve.api.suggestions import SUGGESTIONS_MAX, suggest
from tidings.serve.backend import Backend
from tidings.serve.http.operations import CURSOR, LIMIT, Call, Operation, Parameter, bad_input
from tidings.serve.http.replies import Encoded, Reply, answer

SIMILAR_MAX = 50
QUERY = Parameter(
    "q",
    'Words, "phrases", prefix*, -excluded, OR, parentheses, and qualifiers such as '
    "`title:rust type:story by:pg score:>100 after:7d`.",
    example="bitcoin -etf",
)
SHORTHANDS = (
    Parameter("type", "Only this type, as `type:` does."),
    Parameter("by", "Only this author, as `by:` does."),
    Parameter("min_score", "At least this score, as `score:>=` does.", "integer"),
    Parameter("since", "From this time on, as `after:` does.", "date"),
    Parameter("until", "Before this time, as `before:` does.", "date"),
)
ORDER = Parameter(
    "order", "The best first, the newest, or those with the highest score.", values=ORDERS, default=ORDERS[0]
)
FACETS = Parameter("facets", "Count all hits by type, pipeline, source and day.", "boolean", default=False)
EXPLAIN = Parameter("explain", "Tell with each hit how its rank came about.", "boolean", default=False)
PARAMETERS = (QUERY, *SHORTHANDS, ORDER, FACETS, EXPLAIN, LIMIT, CURSOR)
HIT: dict[str, Any] = {
    "type": "object",
    "properties": {
        "pipeline": {"type": "string"},
        "kind": {"type": "string"},
        "id": {"type": "string", "description": "The id of its card."},
        "title": {"type": "string"},
        "snippet": {"type": "string", "description": "HTML: escaped text, found words between `<mark>` and `</mark>`."},
        "passages": {
            "type": "object",
            "additionalProperties": {"type": "string"},
            "description": "The best passage of `title` and `text`, where a word was found; HTML as the snippet.",
        },
        "rank": {"type": "number"},
        "by": NULLABLE_STRING,
        "type": NULLABLE_STRING,
        "score": NULLABLE_INTEGER,
        "time": NULLABLE_TIME,
        "url": NULLABLE_STRING,
        "attributes": {"type": "object"},
        "explanation": {"type": "string", "description": "How the rank came about, with `explain=true`."},
    },
}
COUNTS = {"type": "object", "additionalProperties": {"type": "integer"}}
ANSWER: dict[str, Any] = {
    "type": "object",
    "properties": {
        "hits": {"type": "array", "items": HIT},
        "total": {"type": "integer"},
        "facets": {"type": "object", "additionalProperties": COUNTS, "description": "With `facets=true`."},
        "instead": {
            **NULLABLE_STRING,
            "description": "The words that were searched for instead, where those of the query found little.",
        },
        "warnings": {
            "type": "array",
            "items": {"type": "string"},
            "description": "What may be a slip: a misspelled qualifier, a value that nothing has.",
        },
        "next_cursor": NULLABLE_STRING,
    },
    "required": ["hits", "total", "instead", "warnings", "next_cursor"],
}
SUGGESTED: dict[str, Any] = {
    "type": "object",
    "properties": {"suggestions": {"type": "array", "items": {"type": "string"}}},
    "required": ["suggestions"],
}
SIMILAR: dict[str, Any] = {
    "type": "object",
    "properties": {"hits": {"type": "array", "items": HIT}},
    "required": ["hits"],
}


class SearchRoutes:
    """The search of each pipeline, and the one across them."""

    def __init__(self, backend: Backend, collections: Collections, search: CardSearch) -> None:
        self._backend = backend
        self._collections = collections
        self._search = search

    def operations(self) -> list[Operation]:
        """Declare the routes."""
        return [
            self._declare(None, "/api/v1/search", "Search across pipelines", "search"),
            self._suggest(),
            *(
                self._declare(name, f"/api/v1/{name}/search", f"Search {pipeline.title}", name)
                for name, pipeline in self._backend.pipelines.items()
            ),
            *(self._similar_to(reader) for reader in self._collections.readers.values()),
        ]

    def _declare(self, pipeline: str | None, path: str, summary: str, tag: str) -> Operation:
        help_text = "The qualifier `pipeline:` narrows it to one." if pipeline is None else ""
        handler = partial(self._find, pipeline)
        return Operation(
            "GET", path, "read", handler, summary, help=help_text, tag=tag, parameters=PARAMETERS, answer=ANSWER
        )

    def _suggest(self) -> Operation:
        names = tuple(self._backend.pipelines)
        return Operation(
            "GET",
            "/api/v1/suggest",
            "read",
            self._suggestions,
            "Suggest how a query may go on",
            help="Each suggestion is a whole query: what was typed, its last word completed.",
            tag="search",
            parameters=(
                Parameter("q", "What was typed so far.", example="bitc"),
                Parameter("pipeline", "Only from this pipeline.", values=names),
                Parameter(
                    "limit", "How many at most.", "integer", minimum=1, maximum=SUGGESTIONS_MAX, default=SUGGESTIONS_MAX
                ),
            ),
            answer=SUGGESTED,
        )

    def _similar_to(self, reader: Reader) -> Operation:
        collection = reader.collection
        return Operation(
            "GET",
            f"/api/v1/{reader.pipeline}/{collection.name}/{{id:path}}/similar",
            "read",
            partial(self._similar, reader),
            f"Find what is similar to one {collection.singular}",
            help="More like this: what shares the words that are rare elsewhere.",
            tag=reader.pipeline,
            parameters=(
                Parameter("id", f"The {collection.singular}'s id; it may hold slashes.", place="path", example="1"),
                Parameter("limit", "How many at most.", "integer", minimum=1, maximum=SIMILAR_MAX, default=10),
            ),
            answer=SIMILAR,
            problems=(404,),
        )

    async def _find(self, pipeline: str | None, call: Call) -> Reply:
        try:
            asked = self._ask(call, pipeline)
            found = await self._search.find(
                asked,
                pipeline,
                limit=call["limit"],
                order=call["order"],
                with_facets=call["facets"],
                explain=call["explain"],
            )
        except BadInput as error:
            raise bad_input(error, call["q"], "query string") from error
        facets = {"facets": found.facets} if call["facets"] else {}
        return answer(
            {
                "hits": [hit_values(each) for each in found.hits],
                "total": found.total,
                **facets,
                "instead": found.instead,
                "warnings": asked.query.warnings,
                "next_cursor": found.next_cursor,
            }
        )

    def _ask(self, call: Call, pipeline: str | None) -> AskedQuery:
        """Parse what was asked, shorthand parameters included."""
        asked = self._search.parse(call["q"] or "", pipeline, call["cursor"])
        doubt = self._search.vocabulary(pipeline).doubt("type", call["type"] or None)
        warnings = (*asked.query.warnings, *(() if doubt is None else (doubt,)))
        return asked._replace(query=Query(_all_of(asked.query.root, _shorthands(call)), warnings))

    async def _suggestions(self, call: Call) -> Reply:
        found = await suggest(self._search, call["q"] or "", call["pipeline"], call["limit"])
        return answer({"suggestions": found})

    async def _similar(self, reader: Reader, call: Call) -> Reply:
        entry = await reader.one(call["id"])
        if entry is None and (namesake := await reader.one(f"{call['id']}/similar")) is not None:
            return Reply(encoded=Encoded(namesake.value))  # A repository may be called `similar`.
        view = None
        if entry is not None and entry.item is not None:
            view = await self._backend.executor.read(self._backend.item_views.item, entry.item)
        if view is None:
            raise missing(reader.collection)
        hits = await self._search.similar(reader.pipeline, view.item.kind, view.item.key, call["limit"])
        return answer({"hits": [hit_values(each) for each in hits]})


def _all_of(root: Part, more: list[Compare]) -> Part:
    if not more:
        return root
    return AllOf((*(root.parts if isinstance(root, AllOf) else (root,)), *more))


def _shorthands(call: Call) -> list[Compare]:
    asked: list[Compare] = []
    if call["type"]:
        asked.append(Compare("type", "=", call["type"]))
    if call["by"]:
        asked.append(Compare("by", "=", call["by"]))
    if call["min_score"] is not None:
        asked.append(Compare("score", ">=", float(call["min_score"])))
    if call["since"] is not None:
        asked.append(Compare("time", ">=", float(call["since"])))
    if call["until"] is not None:
        asked.append(Compare("time", "<", float(call["until"])))
    return asked


def hit_values(found: CardHit) -> dict[str, Any]:
    """Return a hit as JSON values."""
    hit = found.hit
    explained = {"explanation": hit.explanation} if hit.explanation is not None else {}
    return {
        "pipeline": hit.pipeline,
        "kind": hit.kind,
        "id": found.id,
        "title": hit.title,
        "snippet": marked(hit.snippet),
        "passages": {name: marked(passage) for name, passage in hit.passages.items()},
        "rank": round(hit.rank, 6),
        "by": hit.author,
        "type": hit.type,
        "score": hit.score,
        "time": rfc3339(hit.time_ms) if hit.time_ms else None,
        "url": hit.url,
        "attributes": dict(hit.attributes),
        **explained,
    }


def marked(snippet: str) -> str:
    """Return a snippet as HTML: everything is escaped first, then the found words are marked."""
    safe = html.escape(snippet)
    if safe.count("\x02") != safe.count("\x03"):
        return safe.replace("\x02", "").replace("\x03", "")
    return safe.replace("\x02", "<mark>").replace("\x03", "</mark>")
