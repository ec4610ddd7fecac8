"""Read and star marks and saved searches over HTTP, of the reader whose token asks."""

from __future__ import annotations

import re
from functools import partial
from typing import Any

import msgspec

from tidings.model.errors import BadInput
from tidings.model.marks import MARKED_MAX, SEARCHES_MAX, SavedSearch
from tidings.serve.api.card_search import CardSearch
from tidings.serve.api.feed_formats import TYPES, WRITERS
from tidings.serve.api.feeds import EVERYTHING, FeedRoutes
from tidings.serve.api.filters import read_position, write_cursor
from tidings.serve.api.reading import SHOWS, ReadingEntry, ReadingList, ReadingView
from tidings.serve.backend import Backend
from tidings.serve.http.access import Access
from tidings.serve.http.operations import CURSOR, LIMIT, Call, Operation, Parameter, RequestBody, bad_input
from tidings.serve.http.problems import Problem
from tidings.serve.http.replies import Encoded, Reply, answer
from tidings.serve.http.request_bodies import read_object

NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,59}")
ITEM = Parameter("item", "The number of an item.", "integer", place="path", minimum=1, example=1)
SEARCH = Parameter(
    "name", "A name of a-z, 0-9, - and _.", place="path", pattern=f"^{NAME.pattern}$", form="a-z, 0-9, - and _",
    length_max=60, example="fees",
)  # fmt: skip


class MarkChange(msgspec.Struct, frozen=True):
    """Which marks to set; an absent one stays as it is."""

    read: bool | None = None
    starred: bool | None = None


class ManyMarks(msgspec.Struct, frozen=True):
    """Marks of many items at once."""

    items: list[int]
    read: bool | None = None
    starred: bool | None = None


class SearchText(msgspec.Struct, frozen=True):
    """What a saved search asks."""

    query: str
    title: str = ""
    pipeline: str | None = None


class MarkView(msgspec.Struct, frozen=True):
    """How an item is marked."""

    item: int
    read: bool
    starred: bool


class Marked(msgspec.Struct, frozen=True):
    """How many items were marked."""

    marked: int


READ_ENTRY: dict[str, Any] = {
    "type": "object",
    "properties": {
        "item": {"type": "integer"},
        "pipeline": {"type": "string"},
        "collection": {"type": "string"},
        "id": {"type": "string"},
        "read": {"type": "boolean"},
        "starred": {"type": "boolean"},
        "card": {"type": "object"},
    },
}
READ_PAGE: dict[str, Any] = {
    "type": "object",
    "properties": {
        "entries": {"type": "array", "items": READ_ENTRY},
        "next_cursor": {"anyOf": [{"type": "string"}, {"type": "null"}]},
    },
    "required": ["entries", "next_cursor"],
}
SEARCHES: dict[str, Any] = {
    "type": "object",
    "properties": {"searches": {"type": "array", "items": SavedSearch}},
    "required": ["searches"],
}


class MarkRoutes:
    """Marks, the reading list and saved searches."""

    def __init__(
        self, backend: Backend, access: Access, reading: ReadingList, search: CardSearch, feeds: FeedRoutes
    ) -> None:
        self._backend, self._access = backend, access
        self._reading, self._search, self._feeds = reading, search, feeds

    def operations(self) -> list[Operation]:
        """Declare the routes."""
        show = Parameter("show", "Which entries.", values=SHOWS, default="unread")
        view = Parameter("view", "`all`, `pipeline:NAME` or `search:NAME`.", default="all", length_max=100)
        limit = Parameter("limit", "How many at most.", "integer", minimum=1, maximum=200, default=50)
        mark, search = MarkChange(read=True), SearchText("fees -etf", "Fees")
        example = MarkView(1, read=True, starred=False)
        return [
            Operation(
                "GET", "/api/v1/reading", "read", self._list, "What there is to read",
                help="Newest first, with the marks of the token's reader.", tag="reading",
                parameters=(view, show, limit, CURSOR), answer=READ_PAGE, problems=(404,),
            ),
            Operation(
                "GET", "/api/v1/marks/{item}", "read", self._one, "How an item is marked", tag="reading",
                parameters=(ITEM,), answer=MarkView, example=example, problems=(404,),
            ),
            Operation(
                "PUT", "/api/v1/marks/{item}", "reader", self._mark, "Mark an item", tag="reading",
                help="Read, unread, starred or not; what is left out stays as it is.", parameters=(ITEM,),
                body=RequestBody(MarkChange, mark), answer=MarkView, example=example, problems=(404,),
            ),
            Operation(
                "POST", "/api/v1/marks", "reader", self._mark_many, "Mark many items", tag="reading",
                body=RequestBody(ManyMarks, ManyMarks([1], read=True)), answer=Marked, example=Marked(1),
            ),
            Operation(
                "GET", "/api/v1/searches", "read", self._searches, "Saved searches", tag="reading", answer=SEARCHES,
            ),
            Operation(
                "PUT", "/api/v1/searches/{name}", "reader", self._save, "Save a search", tag="reading",
                parameters=(SEARCH,), body=RequestBody(SearchText, search), answer=SavedSearch,
                example=SavedSearch(name="fees", title="Fees", query="fees -etf"), problems=(409,),
            ),
            Operation(
                "DELETE", "/api/v1/searches/{name}", "reader", self._forget, "Forget a saved search", tag="reading",
                parameters=(SEARCH,), answer=SavedSearch, problems=(404,),
            ),
            *(
                Operation(
                    "GET", f"/feeds/searches/{{name}}.{form}", "read", partial(self._feed, form),
                    f"A feed of a saved search, as {form}", tag="syndication", parameters=(SEARCH, LIMIT),
                    answer={"type": "object"} if form == "json" else {"type": "string"}, media_type=media_type,
                    problems=(404,),
                )
                for form, media_type in TYPES.items()
            ),
        ]  # fmt: skip

    async def _list(self, call: Call) -> Reply:
        person = await self._access.reader_of(call.caller)
        view = await self.view(person, call["view"])
        try:
            page = await self._reading.page(person, view, call["show"], call["limit"], read_position(call["cursor"]))
        except BadInput as error:
            raise bad_input(error, view.query, "the saved search") from error
        cursor = write_cursor(*page.next_after) if page.next_after is not None else None
        return answer({"entries": [_entry_values(each) for each in page.entries], "next_cursor": cursor})

    async def view(self, person: str, name: str) -> ReadingView:
        """Return a view by its name; 404 where there is none."""
        views = {each.name: each for each in self._reading.views(await self._reading.searches(person))}
        if name not in views:
            raise Problem(
                404, "There is no such view.", where="query parameter view", helps=f"Known: {', '.join(views)}."
            )
        return views[name]

    async def _one(self, call: Call) -> Reply:
        return answer(await self._marked(await self._access.reader_of(call.caller), call["item"]))

    async def _marked(self, person: str, item: int) -> MarkView:
        found = await self._reading.items(person, [item])
        if not found:
            raise Problem(404, "Nothing to read has this number.", where="path parameter item")
        return MarkView(item, found[0].is_read, found[0].starred_at is not None)

    async def _mark(self, call: Call) -> Reply:
        change = await read_object(call.request, MarkChange)
        if change.read is None and change.starred is None:
            raise Problem(
                400, "The body names no mark.", where="body", helps='Send {"read": true} or {"starred": true}.'
            )
        person = await self._access.reader_of(call.caller)
        await self._marked(person, call["item"])
        await self._reading.mark(person, [call["item"]], read=change.read, starred=change.starred)
        return answer(await self._marked(person, call["item"]))

    async def _mark_many(self, call: Call) -> Reply:
        change = await read_object(call.request, ManyMarks)
        if len(change.items) > MARKED_MAX or not all(0 < item < 2**63 for item in change.items):
            raise Problem(400, f"items must be up to {MARKED_MAX:,} numbers of items.", where="body")
        person = await self._access.reader_of(call.caller)
        marked = await self._reading.mark(person, change.items, read=change.read, starred=change.starred)
        return answer(Marked(marked))

    async def _searches(self, call: Call) -> Reply:
        return answer({"searches": await self._reading.searches(await self._access.reader_of(call.caller))})

    async def _save(self, call: Call) -> Reply:
        text = await read_object(call.request, SearchText)
        person = await self._access.reader_of(call.caller)
        return answer(await self.save(person, call["name"], text))

    async def save(self, person: str, name: str, text: SearchText) -> SavedSearch:
        """Keep a search that can be parsed."""
        if text.pipeline is not None and text.pipeline not in self._backend.pipelines:
            known = ", ".join(self._backend.pipelines)
            raise Problem(400, "pipeline is none of ours.", where="body", helps=f"Known: {known}.")
        if not 0 < len(text.query) <= 1_000 or len(text.title) > 120 or "\0" in text.query + text.title:
            raise Problem(400, "query needs 1 to 1,000 characters, title at most 120.", where="body")
        try:
            self._search.parse(text.query, text.pipeline)
        except BadInput as error:
            raise bad_input(error, text.query, "body") from error
        saved = SavedSearch(
            name=name, title=text.title.strip() or text.query[:120], query=text.query, pipeline=text.pipeline
        )
        if not await self._backend.executor.write(self._backend.marks.put_search, person, saved):
            raise Problem(409, f"There are {SEARCHES_MAX} saved searches; forget one first.")
        return saved

    async def _forget(self, call: Call) -> Reply:
        person = await self._access.reader_of(call.caller)
        found = await self._search_named(person, call["name"])
        await self._backend.executor.write(self._backend.marks.delete_search, person, found.name)
        return answer(found)

    async def _search_named(self, person: str, name: str) -> SavedSearch:
        found = next((each for each in await self._reading.searches(person) if each.name == name), None)
        if found is None:
            raise Problem(404, "There is no saved search of this name.", helps="GET /api/v1/searches names them.")
        return found

    async def _feed(self, form: str, call: Call) -> Reply:
        person = await self._access.reader_of(call.caller)
        found = await self._search_named(person, call["name"])
        limit = min(call["limit"], 200)
        feed = await self._feeds.read(call.request, found.pipeline or EVERYTHING, found.query, limit, form)
        return Reply(encoded=Encoded(WRITERS[form](feed), TYPES[form] + ("" if form == "json" else "; charset=utf-8")))


def _entry_values(entry: ReadingEntry) -> dict[str, Any]:
    return {
        "item": entry.item,
        "pipeline": entry.reader.pipeline,
        "collection": entry.reader.collection.name,
        "id": entry.reader.id_of(entry.shown.entry.key),
        "read": entry.is_read,
        "starred": entry.starred_at is not None,
        "card": entry.shown.card,
    }
