"""The read API: every declared collection becomes a list, a card by id and, where it is threaded, a thread."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import msgspec

from tidings.model.clock import rfc3339
from tidings.model.item_views import ItemView
from tidings.model.pipeline import Pipeline
from tidings.model.publication import Collection
from tidings.serve.api.announcements import AnnouncedShelf
from tidings.serve.api.filters import parameter_of, predicate, read_position, write_cursor
from tidings.serve.api.full_texts import HELP as FULL_HELP
from tidings.serve.api.full_texts import IMAGES, SCHEMA, FullTexts, with_full_text
from tidings.serve.api.listings import Reader, encode_listing
from tidings.serve.api.thread_news import HELP as NEWS_HELP
from tidings.serve.api.thread_news import PROPERTIES, SINCE, example_of, tell_news
from tidings.serve.api.threads import NODES_MAX, encode_thread, join_listing, read_card, read_thread
from tidings.serve.api.wishes import WAITING_HELP, WAITING_SCHEMA, WishDesk, busy, waiting_reply
from tidings.serve.backend import ReadBackend
from tidings.serve.http.hot_answers import HotAnswers
from tidings.serve.http.operations import CURSOR, LIMIT_MAX, Call, Operation, Parameter
from tidings.serve.http.problems import Problem
from tidings.serve.http.replies import Encoded, Reply

NULLABLE_INTEGER = {"anyOf": [{"type": "integer"}, {"type": "null"}]}
NULLABLE_STRING = {"anyOf": [{"type": "string"}, {"type": "null"}]}
NULLABLE_TIME = {"anyOf": [{"type": "string", "format": "date-time"}, {"type": "null"}]}


class Collections:
    """All collections of all pipelines."""

    def __init__(self, backend: ReadBackend) -> None:
        self._backend = backend
        self.desk = WishDesk(backend)
        self.full_texts = FullTexts(backend)
        self.hot = HotAnswers(backend.executor, backend.shelf, list(backend.pipelines), observe=backend.observe_answer)
        shelf = AnnouncedShelf(backend.shelf, backend.pipelines)
        self.readers: dict[tuple[str, str], Reader] = {
            (name, each.name): Reader(
                backend.executor, shelf, self.hot.freshness[name], name, each, partial(self.hot.forget, name)
            )
            for name, pipeline in backend.pipelines.items()
            for each in pipeline.collections
        }

    def reader_of_kind(self, pipeline: str, kind: str) -> Reader | None:
        """Return the reader of the collection that shows a kind."""
        for (name, _), reader in self.readers.items():
            if name == pipeline and reader.collection.kind == kind:
                return reader
        return None

    def card_id_of(self, view: ItemView) -> str:
        """Return the id of an item's card, which its presenter chooses; most use the item's key."""
        pipeline = self._backend.pipelines.get(view.item.pipeline)
        present = pipeline.presenters.get(view.item.kind) if pipeline is not None else None
        if pipeline is None or present is None or view.accepted is None:
            return view.item.key
        form = pipeline.workflows[view.item.kind].body
        try:
            body = msgspec.convert(view.accepted, form) if form is not None else view.accepted
            shown = present(view.item.key, body)
        except msgspec.ValidationError:
            return view.item.key
        return shown.id if shown is not None else view.item.key

    def operations(self) -> list[Operation]:
        """Declare the routes."""
        declared: list[Operation] = []
        for (name, _), reader in self.readers.items():
            declared += self._declare(self._backend.pipelines[name], reader)
        return declared

    def _declare(self, pipeline: Pipeline, reader: Reader) -> list[Operation]:
        collection = reader.collection
        base = f"/api/v1/{pipeline.name}/{collection.name}"
        card_id = Parameter(
            "id", f"The {collection.singular}'s id; it may hold slashes.", place="path", example=_id(collection)
        )
        declared = [
            Operation(
                "GET",
                base,
                "read",
                partial(self._list, reader),
                f"List {collection.title.lower()}",
                help=_about(pipeline, collection),
                tag=pipeline.name,
                parameters=(*(parameter_of(each) for each in collection.filters), limit_of(collection), CURSOR),
                answer=listing_schema(collection),
                example=_list_example(collection),
            )
        ]
        if collection.relation is not None:
            declared.append(
                Operation(
                    "GET",
                    f"{base}/{{id}}/thread",
                    "read",
                    partial(self._thread, reader),
                    f"Read a whole thread of {collection.title.lower()}",
                    help="The card with `children`, nested, in the order the source gives. A place whose item has no "
                    "card is `{id, missing: true, children}`; deleted and dead ones are marked as such. A thread of "
                    f"more than {NODES_MAX:,} places says `truncated: true`, and so does each place with kids that "
                    "were left out; its own thread holds them." + NEWS_HELP,
                    tag=pipeline.name,
                    parameters=(card_id, SINCE),
                    answer={
                        "type": "object",
                        "properties": {**PROPERTIES, "children": {"type": "array", "items": {"type": "object"}}},
                    },
                    example=example_of(collection.example),
                    problems=(404,),
                )
            )
        is_full = self.full_texts.are_given(pipeline.name, collection.kind)
        declared.append(
            Operation(
                "GET",
                f"{base}/{{id:path}}",
                "read",
                partial(self._one, reader),
                f"Read one {collection.singular}",
                help=(WAITING_HELP if collection.wishable else "") + (FULL_HELP if is_full else ""),
                tag=pipeline.name,
                parameters=(card_id, IMAGES) if is_full else (card_id,),
                answer={"allOf": [collection.card, SCHEMA]} if is_full else collection.card,
                accepted=WAITING_SCHEMA if collection.wishable else None,
                example=collection.example,
                problems=(404,),
            )
        )
        return declared

    async def _list(self, reader: Reader, call: Call) -> Reply:
        async def make() -> Encoded:
            collection = reader.collection
            wanted = predicate(collection, call.values)
            listing = await reader.page(wanted, call["limit"], read_position(call["cursor"]))
            listing = await join_listing(self._backend.executor, self._backend.links, reader, listing)
            cursor = write_cursor(*listing.next_after) if listing.next_after is not None else None
            return Encoded(encode_listing(collection, listing, cursor, rfc3339(listing.updated_at)))

        return await self._kept(reader, call, make)

    async def _one(self, reader: Reader, call: Call) -> Reply:
        async def make() -> Encoded:
            card = await read_card(self._backend.executor, self._backend.links, reader, call["id"])
            if card is None:
                raise missing(reader.collection)
            return Encoded(await self._in_full(reader, call, card))

        if self.desk.takes(reader):
            entry = await reader.one(call["id"])
            if entry is None:
                return await self._wish(reader, call["id"])
            await self.desk.renew(reader, entry)
        return await self._kept(reader, call, make)

    async def _in_full(self, reader: Reader, call: Call, card: bytes) -> bytes:
        """Return a card with its full text, where that is given to readers."""
        if not self.full_texts.are_given(reader.pipeline, reader.collection.kind):
            return card
        entry = await reader.recent(call["id"])
        item = entry.item if entry is not None else None
        if item is None:
            return card
        full = await self.full_texts.read(reader.pipeline, [item], images=call["images"])
        return with_full_text(card, full[item]) if item in full else card

    async def _wish(self, reader: Reader, card_id: str) -> Reply:
        state = await self.desk.state(reader, card_id)
        if state == "waiting":
            return waiting_reply(card_id)
        raise missing(reader.collection) if state is None or state == "unknown" else busy(reader, state)

    async def _thread(self, reader: Reader, call: Call) -> Reply:
        async def make() -> Encoded:
            root = await read_thread(self._backend.executor, self._backend.links, reader, call["id"])
            if root is None:
                raise missing(reader.collection)
            tell_news(root, call["since"])
            return Encoded(encode_thread(root))

        return await self._kept(reader, call, make)

    async def _kept(self, reader: Reader, call: Call, make: Callable[[], Awaitable[Encoded]]) -> Reply:
        scope = call.request.scope
        key = (scope["path"], scope["query_string"])
        return Reply(encoded=await self.hot.get(key, reader.pipeline, scope["route"].path, make))


def missing(collection: Collection) -> Problem:
    """Say that there is no such card."""
    return Problem(
        404,
        f"No such {collection.singular} is published.",
        where="path parameter id",
        helps=f"The list of {collection.name} tells which there are; one that is still worked on appears later.",
    )


def limit_of(collection: Collection) -> Parameter:
    """Declare how many cards a list gives. A list that is bounded by its id index comes whole."""
    default = LIMIT_MAX if collection.id_index else 50
    return Parameter("limit", "How many at most.", "integer", minimum=1, maximum=LIMIT_MAX, default=default)


def listing_schema(collection: Collection) -> dict[str, Any]:
    """Describe the one shape of all lists."""
    counts = {f"{facet}_counts": _counts_schema(collection, facet) for facet in collection.facets}
    properties: dict[str, Any] = {
        collection.name: {"type": "array", "items": collection.card},
        "total": {**NULLABLE_INTEGER, "description": "How many fit; null where telling would mean reading everything."},
        **counts,
        "updated_at": NULLABLE_TIME,
        "warnings": {"type": "array", "items": {"type": "string"}},
        "next_cursor": NULLABLE_STRING,
    }
    return {"type": "object", "properties": properties, "required": list(properties)}


def _counts_schema(collection: Collection, facet: str) -> dict[str, Any]:
    declared = {value: {"type": "integer"} for value in collection.facet_values.get(facet, ())}
    return {"type": "object", "properties": declared, "additionalProperties": {"type": "integer"}}


def _about(pipeline: Pipeline, collection: Collection) -> str:
    sentences = ["Newest first, from the shelf."]
    if names := " and ".join(f"`{facet}_counts`" for facet in collection.facets):
        sentences.append(f"{names} count over the whole collection, whatever the filters.")
    if collection.kind in pipeline.announce:
        sentences.append("`announced` tells on which channels and when each was announced.")
    return " ".join(sentences)


def _id(collection: Collection) -> str:
    value = getattr(collection.example, "id", None)
    return str(value) if value is not None else "1"


def _list_example(collection: Collection) -> dict[str, Any] | None:
    if collection.example is None:
        return None
    counts = {
        f"{facet}_counts": dict.fromkeys(collection.facet_values.get(facet, ()), 0) for facet in collection.facets
    }
    ends: dict[str, Any] = {"updated_at": "2026-01-31T12:00:00.000Z", "warnings": [], "next_cursor": None}
    return {collection.name: [collection.example], "total": 1, **counts, **ends}
