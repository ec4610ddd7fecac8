"""Feeds of any search: RSS, Atom and JSON Feed, with full content and ids that stay."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any
from urllib.parse import urlencode
from uuid import NAMESPACE_URL, uuid5

import msgspec
from starlette.requests import Request

from tidings.model.contracts import Hit
from tidings.model.errors import BadInput
from tidings.model.query import parse
from tidings.serve.collections import Collections
from tidings.serve.feed_formats import TYPES, Entry, Feed, readable, write_atom, write_json, write_rss
from tidings.serve.operations import Call, Operation, Parameter, bad_input
from tidings.serve.pages.suits import Shape
from tidings.serve.pages.wording import clean_html, lines, safe_url, tidy
from tidings.serve.parts import Parts
from tidings.serve.replies import Encoded, Reply
from tidings.serve.searching import QUERY

ENTRIES_MAX = 200
EVERYTHING = "all"
_WRITERS = {"rss": write_rss, "atom": write_atom, "json": write_json}


class Feeds:
    """Feeds of each pipeline, and one across them."""

    def __init__(self, parts: Parts, collections: Collections) -> None:
        self._parts = parts
        self._collections = collections

    def operations(self) -> list[Operation]:
        """Declare the routes."""
        limit = Parameter("limit", "How many at most.", "integer", minimum=1, maximum=ENTRIES_MAX, default=50)
        names = (*self._parts.pipelines, EVERYTHING)
        known = Parameter("pipeline", "A pipeline's name, or `all`.", place="path", values=names, example=names[0])
        return [
            Operation(
                "GET",
                f"/feeds/{{pipeline}}.{form}",
                "read",
                partial(self._feed, form),
                f"A feed of any search, as {form}",
                help="Newest first. Ids stay the same for ever; the entity tag changes only with the content.",
                tag="syndication",
                parameters=(known, QUERY, limit),
                answer={"type": "object"} if form == "json" else {"type": "string"},
                media_type=media_type,
                problems=(404,),
            )
            for form, media_type in TYPES.items()
        ]

    async def _feed(self, form: str, call: Call) -> Reply:
        async def make() -> Encoded:
            feed = await self.read(call.request, call["pipeline"], call["q"] or "", call["limit"], form)
            return Encoded(_WRITERS[form](feed), TYPES[form] + ("" if form == "json" else "; charset=utf-8"))

        if call["pipeline"] == EVERYTHING:
            return Reply(encoded=await make())
        # Documents commit with cards, so the shelf's version tells both. The feed names its own host.
        scope = call.request.scope
        key = (f"{scope['path']} at {call.request.headers['host']}", scope["query_string"])
        return Reply(encoded=await self._collections.hot.get(key, call["pipeline"], scope["route"].path, make))

    async def read(self, request: Request, pipeline: str, text: str, limit: int, form: str) -> Feed:
        """Read what a feed tells."""
        try:
            query = parse(text)
        except BadInput as error:
            raise bad_input(error, text, "query parameter q") from error
        within = None if pipeline == EVERYTHING else pipeline
        hits, _ = await self._parts.executor.read(
            self._parts.index.search, query, pipeline=within, limit=limit, newest=True
        )
        base = f"{request.url.scheme}://{request.headers['host']}{self._parts.root_path}"
        entries = await self._entries(base, hits)
        title = self._parts.pipelines[pipeline].title if within is not None else "tidings"
        about = self._parts.pipelines[pipeline].about if within is not None else "Everything that is published."
        asked = f"?{urlencode({'q': text})}" if text else ""
        return Feed(
            id=_urn("feed", pipeline, text),
            title=f"{title}: {readable(tidy(text, 200))}" if text else title,
            about=about,
            home=f"{base}/pipelines/{pipeline}" if within is not None else f"{base}/",
            address=f"{base}/feeds/{pipeline}.{form}{asked}",
            updated_ms=max((entry.at_ms for entry in entries), default=0),
            entries=entries,
        )

    async def _entries(self, base: str, hits: Sequence[Hit]) -> list[Entry]:
        cards = await self._cards(hits)
        return [self._entry(base, hit, cards.get((hit.pipeline, hit.kind, hit.key))) for hit in hits]

    async def _cards(self, hits: Sequence[Hit]) -> dict[tuple[str, str, str], Any]:
        wanted: dict[tuple[str, str], list[str]] = {}
        for hit in hits:
            wanted.setdefault((hit.pipeline, hit.kind), []).append(hit.key)
        cards: dict[tuple[str, str, str], Any] = {}
        for (pipeline, kind), keys in wanted.items():
            reader = self._collections.reader_of_kind(pipeline, kind)
            for key, entry in (await reader.many(keys)).items() if reader is not None else ():
                cards[pipeline, kind, key] = msgspec.json.decode(entry.value)
        return cards

    def _entry(self, base: str, hit: Hit, card: Any) -> Entry:
        reader = self._collections.reader_of_kind(hit.pipeline, hit.kind)
        html, summary, href = "", tidy(hit.snippet.replace("\x02", "").replace("\x03", ""), 1_000), f"{base}/"
        title = tidy(hit.title, 500)
        if reader is not None:
            shape = Shape(
                hit.pipeline, reader.collection, hit.key, card or {reader.collection.title_field: hit.title}, root=base
            )
            title, href = shape.title, shape.href
            html, summary = _content(shape), shape.summary or summary
        return Entry(
            id=_urn(hit.pipeline, hit.kind, hit.key),
            url=safe_url(hit.url) or href,
            title=readable(title),
            html=readable(html or str(lines(summary))),
            summary=readable(summary),
            author=readable(tidy(hit.author, 200)) if hit.author else None,
            at_ms=hit.time_ms,
            tags=tuple(readable(tidy(tag, 80)) for tag in (hit.pipeline, hit.type) if tag),
        )


def _content(shape: Shape) -> str:
    """Return everything a card has to read: the summary first, then the text."""
    pieces = [str(lines(shape.summary))] if shape.summary else []
    content = shape.content
    if content is not None:
        text, is_html = content
        full = str(clean_html(text)) if is_html else str(lines(text))
        pieces = [full] if is_html or text == shape.summary else [*pieces, full]
    steps = shape["first_steps"] or []
    if steps:
        pieces.append("<ol>" + "".join(f"<li>{clean_html(tidy(step))}</li>" for step in steps) + "</ol>")
    return "\n".join(pieces)


def _urn(*name: str) -> str:
    return uuid5(NAMESPACE_URL, "tidings:" + "\n".join(name)).urn
