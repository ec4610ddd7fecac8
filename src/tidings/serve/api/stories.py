"""Stories for programs: the newest, one, what changed, and the splits and joins of a person."""

from __future__ import annotations

from functools import partial
from typing import Any

import msgspec

from tidings.model.clock import rfc3339
from tidings.model.errors import BadInput
from tidings.model.stories import StoryRow, StoryViews
from tidings.serve.api.feed_formats import TYPES, WRITERS, FeedDocument, FeedDocumentEntry
from tidings.serve.api.feeds import urn_of
from tidings.serve.api.filters import read_number, read_story_place, write_cursor
from tidings.serve.api.story_cards import StoryCard, StoryCards, StoryTeller, ToldStory
from tidings.serve.backend import Backend
from tidings.serve.http.operations import CURSOR, LIMIT, Call, Operation, Parameter, RequestBody
from tidings.serve.http.problems import Problem
from tidings.serve.http.replies import Encoded, Reply, answer
from tidings.serve.http.request_bodies import read_object
from tidings.serve.markup import lines

STORY_ID = Parameter("id", "The story's number.", "integer", place="path", minimum=1, example=1)
SOURCES = Parameter(
    "sources", "Only stories that so many sources tell.", "integer", minimum=1, maximum=1_000, default=1
)
_AFTER = Parameter("after", "`next_cursor` of the page before; without it everything there is comes first.")
_NUMBERS = {"type": "array", "items": {"type": "integer", "minimum": 1}, "minItems": 1, "maxItems": 500}
EXAMPLE = StoryCard(
    id=52,
    title="The harbor tunnel opens",
    first_at="2026-01-01T08:00:00Z",
    last_at="2026-01-01T09:00:00Z",
    size=1,
    sources=["news.example"],
    summary="The harbor tunnel opened on Thursday.",
    sentiment_counts={"positive": 1},
    members=[
        StoryTeller(
            item=7, pipeline="feeds", collection="entries", id="e1", title="The harbor tunnel opens",
            url="https://news.example/tunnel", source="news.example", at="2026-01-01T08:00:00Z",
        )
    ],
)  # fmt: skip


class Split(msgspec.Struct, forbid_unknown_fields=True):
    """Which items tell something else."""

    items: list[int]


class Join(msgspec.Struct, forbid_unknown_fields=True):
    """Which stories tell the same."""

    stories: list[int]


class StoryRoutes:
    """The routes of stories."""

    def __init__(self, backend: Backend, cards: StoryCards) -> None:
        self._backend = backend
        self._cards = cards

    def operations(self) -> list[Operation]:
        """Declare the routes; none where nothing is grouped."""
        if self._backend.stories is None:
            return []
        return [
            _get("", self._list, "List stories", (SOURCES, LIMIT, CURSOR), _page("stories", StoryCard),
                 "What more than one item tells, the newest news first."),
            _get("/changes", self._changes, "What changed of stories", (_AFTER, LIMIT), _page("changes", None),
                 "In order. `story` is null when nothing tells it any more. Ask again with `next_cursor` as `after`."),
            _get("/{id}", self._one, "Read one story", (STORY_ID,), StoryCard, "Also of one that a single item tells."),
            _post("/{id}/split", self._split, "Say that some items tell something else", _body("items"), "story"),
            _post("/{id}/join", self._join, "Say that other stories tell the same", _body("stories"), "moved"),
            *(
                Operation(
                    "GET", f"/feeds/stories.{form}", "read", partial(self._feed, form), f"A feed of stories, as {form}",
                    help="One entry for each story, with who tells it.", tag="syndication", parameters=(SOURCES, LIMIT),
                    answer={"type": "object"} if form == "json" else {"type": "string"}, media_type=media_type,
                )
                for form, media_type in TYPES.items()
            ),
        ]  # fmt: skip

    @property
    def _stories(self) -> StoryViews:
        assert self._backend.stories is not None
        return self._backend.stories

    async def page(
        self, sources: int, limit: int, cursor: str | None, root: str = ""
    ) -> tuple[list[ToldStory], str | None]:
        """Return the stories behind a cursor, and the next one."""
        after = read_story_place(cursor)
        rows = await self._backend.executor.read(self._stories.newest, limit, sources=sources, after=after)
        following = write_cursor(rows[-1].last_ms, rows[-1].id) if len(rows) == limit else None
        return await self._cards.told(rows, root), following

    async def one(self, story: int, root: str = "") -> ToldStory:
        """Return a story, or say that there is none."""
        row = await self._backend.executor.read(self._stories.story, story)
        told = await self._cards.told([row] if row is not None else [], root)
        if not told:
            raise Problem(
                404, "No such story.", helps="It may be part of another one now: GET /api/v1/stories lists them."
            )
        return told[0]

    async def _list(self, call: Call) -> Reply:
        told, cursor = await self.page(call["sources"], call["limit"], call["cursor"])
        return answer({"stories": [each.card for each in told], "next_cursor": cursor})

    async def _one(self, call: Call) -> Reply:
        return answer((await self.one(call["id"])).card)

    async def _changes(self, call: Call) -> Reply:
        after, limit = read_number(call["after"]) or 0, call["limit"]
        rows = await self._backend.executor.read(self._stories.changed, max(0, after), limit)
        told = {each.card.id: each.card for each in await self._cards.told([row for row in rows if row.size])}
        return answer({
            "changes": [_change(row, told.get(row.id)) for row in rows],
            "next_cursor": write_cursor(rows[-1].version if rows else max(0, after)),
            "has_more": len(rows) >= limit,
        })  # fmt: skip

    async def _split(self, call: Call) -> Reply:
        body = await read_object(call.request, Split)
        members = (await self.one(call["id"])).card.members
        if stray := sorted(set(body.items) - {each.item for each in members}):
            raise Problem(409, f"Item {stray[0]} does not tell this story.")
        story = await self._decide(self._stories.split, body.items, actor=call.caller.name)
        return answer({"story": story})

    async def _join(self, call: Call) -> Reply:
        body = await read_object(call.request, Join)
        await self.one(call["id"])
        return answer(
            {"moved": await self._decide(self._stories.join, call["id"], body.stories, actor=call.caller.name)}
        )

    async def _decide(self, act: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return await self._backend.executor.write(act, *args, **kwargs)
        except BadInput as error:
            raise Problem(409, f"{error}".rstrip(".").capitalize() + ".") from error

    async def _feed(self, form: str, call: Call) -> Reply:
        request = call.request
        base = f"{request.url.scheme}://{request.headers['host']}{self._backend.root_path}"
        rows = await self._backend.executor.read(self._stories.newest, call["limit"], sources=call["sources"])
        told = await self._cards.told(rows, base)
        times = {row.id: row for row in rows}
        entries = [_entry(base, each, times[each.card.id]) for each in told]
        feed = FeedDocument(
            id=urn_of("feed", "stories", str(call["sources"])),
            title="Stories",
            about="What several sources tell, once.",
            home=f"{base}/stories",
            address=f"{base}/feeds/stories.{form}?sources={call['sources']}",
            updated_ms=max((entry.at_ms for entry in entries), default=0),
            entries=entries,
        )
        media_type = TYPES[form] + ("" if form == "json" else "; charset=utf-8")
        return Reply(encoded=Encoded(WRITERS[form](feed), media_type))


def _entry(base: str, told: ToldStory, row: StoryRow) -> FeedDocumentEntry:
    card = told.card
    tellers = "\n".join(f"{each.source}: {each.title}" for each in card.members[:20])
    return FeedDocumentEntry(
        id=urn_of("story", str(card.id)),
        url=f"{base}/stories/{card.id}",
        title=card.title,
        html=str(lines(card.summary)) + str(lines(tellers)),
        summary=card.summary,
        author=None,
        at_ms=row.first_ms,
        tags=tuple(dict.fromkeys(each.pipeline for each in card.members)),
    )


def _change(row: StoryRow, card: StoryCard | None) -> dict[str, Any]:
    return {"id": row.id, "at": rfc3339(row.changed_at), "story": card}


def _page(name: str, card: type | None) -> dict[str, Any]:
    entries = {"type": "object"} if card is not None else {
        "type": "object",
        "required": ["id", "at", "story"],
        "properties": {
            "id": {"type": "integer"},
            "at": {"type": "string", "format": "date-time"},
            "story": {"type": ["object", "null"]},
        },
    }  # fmt: skip
    cursor = {"type": ["string", "null"]}
    properties = {name: {"type": "array", "items": entries}, "next_cursor": cursor, "has_more": {"type": "boolean"}}
    return {"type": "object", "required": [name, "next_cursor"], "properties": properties}


def _get(path: str, handler: Any, summary: str, parameters: tuple[Parameter, ...], shape: Any, text: str) -> Operation:
    example = EXAMPLE if shape is StoryCard else None
    return Operation(
        "GET", f"/api/v1/stories{path}", "read", handler, summary, help=text, tag="stories", parameters=parameters,
        answer=shape, example=example, problems=(404,) if "{id}" in path else (),
    )  # fmt: skip


def _post(path: str, handler: Any, summary: str, body: RequestBody, name: str) -> Operation:
    shape = {"type": "object", "required": [name], "properties": {name: {"type": "integer"}}}
    return Operation(
        "POST", f"/api/v1/stories{path}", "operate", handler, summary, tag="stories", parameters=(STORY_ID,), body=body,
        help="It is kept when everything is grouped again, and teaches nobody anything.",
        answer=shape, problems=(404, 408, 409, 413, 415, 507),
    )  # fmt: skip


def _body(name: str) -> RequestBody:
    schema = {"type": "object", "required": [name], "properties": {name: _NUMBERS}, "additionalProperties": False}
    return RequestBody(schema, {name: [7]})
