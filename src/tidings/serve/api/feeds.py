"""Feeds of any search: RSS, Atom and JSON Feed, with full content and ids that stay."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from urllib.parse import urlencode
from uuid import NAMESPACE_URL, uuid5

from starlette.requests import Request

from tidings.model.errors import BadInput
from tidings.model.harmless import storable
from tidings.serve.api.card_search import CardHit, CardSearch
from tidings.serve.api.collections import Collections
from tidings.serve.api.feed_formats import (
    TYPES,
    WRITERS,
    FeedDocument,
    FeedDocumentEntry,
)
from tidings.serve.api.full_texts import IMAGES, ReadableText
from tidings.serve.api.readable_cards import ReadableCard, from_shelf
from tidings.serve.api.search import QUERY
from tidings.serve.backend import ReadBackend
from tidings.serve.http.operations import Call, Operation, Parameter, bad_input
from tidings.serve.http.replies import Encoded, Reply
from tidings.serve.markup import clean_html, lines, safe_url, tidy

ENTRIES_MAX = 200
EVERYTHING = "all"


class FeedRoutes:
    """Feeds of each pipeline, and one across them."""

    def __init__(self, backend: ReadBackend, collections: Collections, search: CardSearch) -> None:
        self._backend = backend
        self._collections = collections
        self._search = search

    def operations(self) -> list[Operation]:
        """Declare the routes."""
        limit = Parameter("limit", "How many at most.", "integer", minimum=1, maximum=ENTRIES_MAX, default=50)
        names = (*self._backend.pipelines, EVERYTHING)
        name = Parameter("pipeline", "A pipeline's name, or `all`.", place="path", values=names, example=names[0])
        return [
            Operation(
                "GET",
                f"/feeds/{{pipeline}}.{form}",
                "read",
                partial(self._feed, form),
                f"A feed of any search, as {form}",
                help="Newest first. Ids stay the same for ever; the entity tag changes only with the content.",
                tag="syndication",
                parameters=(name, QUERY, limit, IMAGES),
                answer={"type": "object"} if form == "json" else {"type": "string"},
                media_type=media_type,
                problems=(404,),
            )
            for form, media_type in TYPES.items()
        ]

    async def _feed(self, form: str, call: Call) -> Reply:
        # It is not kept in memory: the index follows the shelf, whose version does not tell how far.
        feed = await self.read(call.request, call["pipeline"], call["q"] or "", call["limit"], form, call["images"])
        media_type = TYPES[form] + ("" if form == "json" else "; charset=utf-8")
        return Reply(encoded=Encoded(WRITERS[form](feed), media_type))

    async def read(
        self, request: Request, pipeline: str, text: str, limit: int, form: str, images: bool = False
    ) -> FeedDocument:
        """Read what a feed tells."""
        within = None if pipeline == EVERYTHING else pipeline
        try:
            asked = self._search.parse(text, within)
            found = await self._search.find(asked, within, limit=limit, order="newest")
        except BadInput as error:
            raise bad_input(error, text, "query parameter q") from error
        base = f"{request.url.scheme}://{request.headers['host']}{self._backend.root_path}"
        # Readers keep what a feed once told; what its source has taken back is told only where it is asked for.
        told = [each for each in found.hits if not each.card.get("dead") or "dead:" in text]
        full = await self._full_texts(told, images=images)
        entries = [self._entry(base, each, full.get(each.entry.item or 0)) for each in told]
        title = self._backend.pipelines[pipeline].title if within is not None else "tidings"
        about = self._backend.pipelines[pipeline].about if within is not None else "Everything that is published."
        query_string = f"?{urlencode({'q': text})}" if text else ""
        return FeedDocument(
            id=urn_of("feed", pipeline, text),
            title=f"{title}: {storable(tidy(text, 200))}" if text else title,
            about=" ".join((about, *(storable(tidy(f"Note: {each}.", 500)) for each in asked.query.warnings))),
            home=f"{base}/pipelines/{pipeline}" if within is not None else f"{base}/",
            address=f"{base}/feeds/{pipeline}.{form}{query_string}",
            updated_ms=max((entry.at_ms for entry in entries), default=0),
            entries=entries,
        )

    async def _full_texts(self, told: Sequence[CardHit], *, images: bool) -> dict[int, ReadableText]:
        """Read what the accepted bodies hold of what is told."""
        items: dict[str, list[int]] = {}
        for each in told:
            if each.entry.item is not None:
                items.setdefault(each.hit.pipeline, []).append(each.entry.item)
        full: dict[int, ReadableText] = {}
        for pipeline, ids in items.items():
            full |= await self._collections.full_texts.read(pipeline, ids, images=images)
        return full

    def _entry(self, base: str, found: CardHit, full: ReadableText | None) -> FeedDocumentEntry:
        hit = found.hit
        reader = self._collections.reader_of_kind(hit.pipeline, hit.kind)
        html, summary, href = "", tidy(hit.snippet.replace("\x02", "").replace("\x03", ""), 1_000), f"{base}/"
        title = tidy(hit.title, 500)
        if reader is not None:
            readable_card = from_shelf(reader, found.entry, base, found.card)
            title, href = readable_card.title, readable_card.href
            html, summary = content_html(readable_card), readable_card.summary or summary
        return FeedDocumentEntry(
            id=urn_of(hit.pipeline, hit.kind, hit.key),
            url=safe_url(hit.url) or href,
            title=storable(title),
            html=storable(full.html if full is not None else html or str(lines(summary))),
            summary=storable(summary),
            author=storable(tidy(hit.author, 200)) if hit.author else None,
            at_ms=hit.time_ms,
            tags=tuple(storable(tidy(tag, 80)) for tag in (hit.pipeline, hit.type) if tag),
        )


def entry_of_card(card: ReadableCard) -> FeedDocumentEntry:
    """Make a feed's entry of a card alone, with the id it has in a feed of a search."""
    author = card[card.collection.author_field] if card.collection.author_field else None
    return FeedDocumentEntry(
        id=urn_of(card.pipeline, card.collection.kind, card.id),
        url=card.url or card.href,
        title=storable(card.title),
        html=storable(content_html(card) or str(lines(card.summary))),
        summary=storable(card.summary),
        author=storable(tidy(author, 200)) if author else None,
        at_ms=card.at or 0,
        tags=(storable(tidy(card.pipeline, 80)),),
    )


def content_html(card: ReadableCard) -> str:
    """Return everything a card has to read: the summary first, then the text."""
    pieces = [str(lines(card.summary))] if card.summary else []
    content = card.content
    if content is not None:
        text, is_html = content
        full = str(clean_html(text)) if is_html else str(lines(text))
        pieces = [full] if is_html or text == card.summary else [*pieces, full]
    steps = card[card.collection.steps_field] or [] if card.collection.steps_field else []
    if steps:
        pieces.append("<ol>" + "".join(f"<li>{clean_html(tidy(step))}</li>" for step in steps) + "</ol>")
    return "\n".join(pieces)


def urn_of(*name: str) -> str:
    """Make an id that stays the same for ever."""
    return uuid5(NAMESPACE_URL, "tidings:" + "\n".join(name)).urn
