"""Ranked lists: cards in the order their source has them now, as data and as feeds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import msgspec

from tidings.model.clock import rfc3339
from tidings.model.contracts import ShelfEntry
from tidings.model.pipeline import Pipeline
from tidings.model.publication import Collection, RankedList
from tidings.serve.api.collections import NULLABLE_STRING, NULLABLE_TIME, Collections
from tidings.serve.api.feed_formats import TYPES, WRITERS, FeedDocument
from tidings.serve.api.feeds import ENTRIES_MAX, entry_of_card, urn_of
from tidings.serve.api.filters import read_number, write_cursor
from tidings.serve.api.listings import Reader
from tidings.serve.api.readable_cards import ReadableCard, from_shelf
from tidings.serve.backend import ReadBackend
from tidings.serve.http.operations import CURSOR, LIMIT_MAX, Call, Operation, Parameter
from tidings.serve.http.problems import Problem
from tidings.serve.http.replies import Encoded, Reply

DEFAULT_LIMIT = 50


@dataclass(frozen=True, slots=True)
class RankedPlace:
    """One place of a list; a card that is not here (yet, or any more) leaves its place to the source's."""

    rank: int
    id: str
    entry: ShelfEntry | None


@dataclass(frozen=True, slots=True)
class RankedPage:
    """A part of a list, and what is to be said about the whole."""

    places: Sequence[RankedPlace]
    total: int
    updated_at: int | None
    """When the order changed last; None where no source has reported one yet."""
    next_after: int | None


class RankedLists:
    """All lists of all pipelines."""

    def __init__(self, backend: ReadBackend, collections: Collections) -> None:
        self._backend = backend
        self._collections = collections

    def operations(self) -> list[Operation]:
        """Declare the routes."""
        declared: list[Operation] = []
        for pipeline in self._backend.pipelines.values():
            if pipeline.lists:
                declared.append(self._data(pipeline))
                declared += [self._feed_of(pipeline, form) for form in TYPES]
        return declared

    def _data(self, pipeline: Pipeline) -> Operation:
        limit = Parameter("limit", "How many at most.", "integer", minimum=1, maximum=LIMIT_MAX, default=DEFAULT_LIMIT)
        return Operation(
            "GET",
            f"/api/v1/{pipeline.name}/lists/{{list}}",
            "read",
            partial(self._show, pipeline),
            "Read a list as it ranks now",
            help="Ranks are the source's own. A place whose card is not here, because it was withdrawn or is not read "
            "yet, has none and keeps its rank. `updated_at` is when the order changed last, null before the source was "
            "asked. A later page belongs to the order of its own moment.",
            tag=pipeline.name,
            parameters=(list_parameter(pipeline), limit, CURSOR),
            answer=_schema(pipeline),
            example=_example(self._reader(pipeline, pipeline.lists[0]).collection, pipeline.lists[0]),
            problems=(404,),
        )

    def _feed_of(self, pipeline: Pipeline, form: str) -> Operation:
        limit = Parameter("limit", "How many at most.", "integer", minimum=1, maximum=ENTRIES_MAX, default=30)
        return Operation(
            "GET",
            f"/feeds/{pipeline.name}/lists/{{list}}.{form}",
            "read",
            partial(self._feed, pipeline, form),
            f"A feed of a list as it ranks now, as {form}",
            help="In the order of the list; what is not here, dead or deleted is left out. Ids are those of the other "
            "feeds.",
            tag="syndication",
            parameters=(list_parameter(pipeline), limit),
            answer={"type": "object"} if form == "json" else {"type": "string"},
            media_type=TYPES[form],
            problems=(404,),
        )

    async def _show(self, pipeline: Pipeline, call: Call) -> Reply:
        ranked = list_of(pipeline, call["list"])
        reader = self._reader(pipeline, ranked)

        async def make() -> Encoded:
            page = await self.read(pipeline, ranked, call["limit"], _after(call["cursor"]))
            return Encoded(_encode(ranked, reader.collection, page))

        scope = call.request.scope
        key = (scope["path"], scope["query_string"])
        return Reply(encoded=await self._collections.hot.get(key, pipeline.name, scope["route"].path, make))

    async def _feed(self, pipeline: Pipeline, form: str, call: Call) -> Reply:
        ranked = list_of(pipeline, call["list"])
        request, root = call.request, self._backend.root_path
        base = f"{request.url.scheme}://{request.headers['host']}{root}"
        page = await self.read(pipeline, ranked, LIMIT_MAX)
        alive = [card for card in self.cards(pipeline, ranked, page, base) if card is not None and not card.is_gone]
        entries = [entry_of_card(card) for card in alive[: call["limit"]]]
        feed = FeedDocument(
            id=urn_of("list", pipeline.name, ranked.name),
            title=f"{pipeline.title}: {ranked.title}",
            about=pipeline.about,
            home=f"{base}/pipelines/{pipeline.name}/lists/{ranked.name}",
            address=f"{base}/feeds/{pipeline.name}/lists/{ranked.name}.{form}",
            updated_ms=page.updated_at or 0,
            entries=entries,
        )
        media_type = TYPES[form] + ("" if form == "json" else "; charset=utf-8")
        return Reply(encoded=Encoded(WRITERS[form](feed), media_type))

    async def read(self, pipeline: Pipeline, ranked: RankedList, limit: int, after: int = 0) -> RankedPage:
        """Read a part of a list, behind a rank."""
        kept = await self._backend.executor.read(self._backend.shelf.get, pipeline.name, ranked.key)
        ids = [str(each) for each in msgspec.json.decode(kept.value)["ids"]] if kept is not None else []
        chosen = ids[after : after + limit]
        entries = await self._reader(pipeline, ranked).many(chosen)
        places = [RankedPlace(after + n, each, entries.get(each)) for n, each in enumerate(chosen, 1)]
        end = after + len(chosen)
        updated_at = kept.written_at if kept is not None else None
        return RankedPage(places, len(ids), updated_at, end if end < len(ids) else None)

    def cards(self, pipeline: Pipeline, ranked: RankedList, page: RankedPage, root: str) -> list[ReadableCard | None]:
        """Make the cards of a page ready for people, place by place."""
        reader = self._reader(pipeline, ranked)
        return [
            None if place.entry is None else from_shelf(reader, place.entry, root, card_id=place.id)
            for place in page.places
        ]

    def _reader(self, pipeline: Pipeline, ranked: RankedList) -> Reader:
        return self._collections.readers[pipeline.name, ranked.collection]


def list_of(pipeline: Pipeline, name: str) -> RankedList:
    """Return a list that the address names; the parameter has been checked."""
    return next(each for each in pipeline.lists if each.name == name)


def list_parameter(pipeline: Pipeline) -> Parameter:
    """Declare which lists a pipeline has."""
    names = tuple(each.name for each in pipeline.lists)
    return Parameter("list", "Which list.", place="path", values=names, example=names[0])


def _after(cursor: str | None) -> int:
    rank = read_number(cursor) or 0
    if rank < 0:
        raise Problem(400, "cursor is none of ours.", where="query parameter cursor")
    return rank


def _encode(ranked: RankedList, collection: Collection, page: RankedPage) -> bytes:
    head = msgspec.json.encode({"list": ranked.name, "title": ranked.title})[1:-1]
    places = b",".join(_encode_place(collection, place) for place in page.places)
    rest: dict[str, Any] = {
        "total": page.total,
        "missing": sum(place.entry is None for place in page.places),
        "updated_at": rfc3339(page.updated_at),
        "next_cursor": None if page.next_after is None else write_cursor(page.next_after),
    }
    return b'{%s,"%s":[%s],%s' % (head, collection.name.encode(), places, msgspec.json.encode(rest)[1:])


def _encode_place(collection: Collection, place: RankedPlace) -> bytes:
    card = b"null" if place.entry is None else place.entry.value
    return b'{"rank":%d,"id":%s,"%s":%s}' % (
        place.rank,
        msgspec.json.encode(place.id),
        collection.singular.encode(),
        card,
    )


def _schema(pipeline: Pipeline) -> dict[str, Any]:
    collection = pipeline.collection(pipeline.lists[0].collection)
    place = {
        "rank": {"type": "integer", "minimum": 1},
        "id": {"type": "string"},
        collection.singular: {"anyOf": [collection.card, {"type": "null"}]},
    }
    properties: dict[str, Any] = {
        "list": {"type": "string", "enum": [each.name for each in pipeline.lists]},
        "title": {"type": "string"},
        collection.name: {
            "type": "array",
            "items": {"type": "object", "properties": place, "required": list(place)},
        },
        "total": {"type": "integer", "description": "How many places the list has."},
        "missing": {"type": "integer", "description": "How many places of this page have no card here."},
        "updated_at": NULLABLE_TIME,
        "next_cursor": NULLABLE_STRING,
    }
    return {"type": "object", "properties": properties, "required": list(properties)}


def _example(collection: Collection, ranked: RankedList) -> dict[str, Any] | None:
    if collection.example is None:
        return None
    card_id = str(getattr(collection.example, "id", "1"))
    return {
        "list": ranked.name,
        "title": ranked.title,
        collection.name: [{"rank": 1, "id": card_id, collection.singular: collection.example}],
        "total": 1,
        "missing": 0,
        "updated_at": "2026-01-31T12:00:00.000Z",
        "next_cursor": None,
    }
