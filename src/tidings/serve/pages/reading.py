"""Pages one reads: a pipeline's collections in their suits, one card with its thread and life line, and the search."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any

import msgspec
from markupsafe import Markup

from tidings.model.contracts import Hit
from tidings.model.errors import BadInput
from tidings.model.publication import Collection
from tidings.model.query import parse
from tidings.model.views import ItemView
from tidings.serve.collections import Collections, missing
from tidings.serve.filters import UNKNOWN, parameter_of, predicate, read_number, read_position, write_cursor
from tidings.serve.operations import CURSOR, Call, Operation, Parameter
from tidings.serve.pages.charts import Bar, stacked_bars
from tidings.serve.pages.frame import Frame
from tidings.serve.pages.now import is_root
from tidings.serve.pages.suits import Shape, suit_of
from tidings.serve.problems import Problem
from tidings.serve.reading import Listing, Reader
from tidings.serve.replies import Reply
from tidings.serve.searching import OFFSET_MAX, marked
from tidings.serve.threads import Place, read_thread

PAGE = 40
COMMENTS_MAX = 1_500
HOUR_MS = 3_600_000
SENTIMENTS = ("positive", "neutral", "negative", UNKNOWN)


class Reading:
    """Lists, cards, threads, search."""

    def __init__(self, frame: Frame, collections: Collections) -> None:
        self._frame = frame
        self._parts = frame.parts
        self._collections = collections

    def operations(self) -> list[Operation]:
        """Declare the routes."""
        declared = [
            self._page("/search", self._search, (Parameter("q", "Query"), Parameter("pipeline", "Pipeline"), CURSOR)),
            self._page("/pipelines/{pipeline}", self._pipeline),
        ]
        for reader in self._collections.readers.values():
            collection = reader.collection
            base = f"/pipelines/{reader.pipeline}/{collection.name}"
            filters = tuple(parameter_of(each) for each in collection.filters)
            show_all = Parameter("all", "Replies too", "boolean", default=False)
            declared.append(self._page(base, partial(self._list, reader), (*filters, show_all, CURSOR)))
            declared.append(self._page(f"{base}/{{id:path}}", partial(self._one, reader)))
        return declared

    def _page(self, path: str, handler: Any, parameters: tuple[Parameter, ...] = ()) -> Operation:
        return Operation("GET", path, "read", handler, "Page", parameters=parameters, is_page=True, any_query=True)

    async def _pipeline(self, call: Call) -> Reply:
        pipeline = self._parts.pipelines.get(call["pipeline"])
        if pipeline is None or not pipeline.collections:
            raise Problem(404, "No such pipeline.", helps="The rail on the left names them all.")
        first = f"{self._parts.root_path}/pipelines/{pipeline.name}/{pipeline.collections[0].name}"
        return Reply(b"", 303, None, {"Location": first})

    async def _list(self, reader: Reader, call: Call) -> Reply:
        collection, suit = reader.collection, suit_of(reader.collection)
        wanted = predicate(collection, call.values)
        if suit == "thread" and wanted is None and not call["all"]:
            wanted = is_root
        listing = await reader.page(wanted, PAGE, read_position(call["cursor"]))
        values = {each.name: call.request.query_params.get(each.name) for each in collection.filters}
        return await self._frame.page(
            call,
            "collection.html",
            pipeline=self._parts.pipelines[reader.pipeline],
            collection=collection,
            suit=suit,
            shapes=self._shapes(reader, listing),
            listing=listing,
            values=values,
            is_filtered=any(values.values()),
            tabs=tabs_of(collection, listing.counts, values),
            chart=await self._chart(reader, suit),
            next_cursor=write_cursor(*listing.next_after) if listing.next_after is not None else None,
            has_cursor=call["cursor"] is not None,
            show_all=call["all"],
        )

    def _shapes(self, reader: Reader, listing: Listing) -> list[Shape]:
        root = self._parts.root_path
        return [
            Shape(
                reader.pipeline,
                reader.collection,
                reader.id_of(each.entry.key),
                each.card,
                sort=each.entry.sort,
                root=root,
            )
            for each in listing.shown
        ]

    async def _chart(self, reader: Reader, suit: str) -> Markup:
        held = await reader.held() if suit == "news" else None
        if held is None or len(held.shown) < 5:
            return Markup("")
        shapes = [Shape(reader.pipeline, reader.collection, "", each.card, sort=each.entry.sort) for each in held.shown]
        moods = [(shape.at or 0, str(shape["sentiment"] or UNKNOWN)) for shape in shapes]
        return stacked_bars(mood_bars(moods, self._parts.clock.now_ms()), SENTIMENTS, "Sentiment over time")

    async def _one(self, reader: Reader, call: Call) -> Reply:
        read, desk = self._parts.executor.read, self._parts.desk
        entry = await reader.one(call["id"])
        view = await read(desk.find, reader.pipeline, reader.collection.kind, call["id"])
        if entry is None:
            if view is None:
                raise missing(reader.collection)
            return Reply(b"", 303, None, {"Location": f"{self._parts.root_path}/items/{view.item.id}"})
        card = msgspec.json.decode(entry.value)
        shape = Shape(reader.pipeline, reader.collection, call["id"], card, sort=entry.sort, root=self._parts.root_path)
        return await self.show_item(call, reader, shape, view)

    async def show_item(self, call: Call, reader: Reader | None, shape: Shape | None, view: ItemView | None) -> Reply:
        """Show an item: what a reader sees on the left, its life on the right."""
        thread = None
        if reader is not None and shape is not None and reader.collection.relation is not None:
            thread = await read_thread(self._parts.executor, self._parts.links, reader, shape.id)
        pipeline = self._parts.pipelines.get(reader.pipeline if reader else view.item.pipeline if view else "")
        return await self._frame.page(
            call,
            "item.html",
            pipeline=pipeline,
            collection=reader.collection if reader is not None else None,
            suit=shape.suit if shape is not None else "plain",
            shape=shape,
            view=view,
            legs=legs_of(view) if view is not None else [],
            comments=self._walk(reader, thread) if thread is not None and reader is not None else [],
            hidden=max(0, thread.below - COMMENTS_MAX) if thread is not None else 0,
            thread=thread,
            options=await self._options(reader, shape),
            replay_states=_replay_states(pipeline, view),
            body_text=_pretty(view.accepted if view.accepted is not None else view.body) if view is not None else None,
        )

    async def _options(self, reader: Reader | None, shape: Shape | None) -> list[Shape]:
        """Return a poll's options, in order."""
        parts = [str(each) for each in (shape["parts"] or [])] if shape is not None else []
        if reader is None or not parts:
            return []
        entries = await reader.many(parts)
        return [
            Shape(reader.pipeline, reader.collection, each, msgspec.json.decode(entries[each].value))
            for each in parts
            if each in entries
        ]

    def _walk(self, reader: Reader, root: Place) -> list[tuple[str, Place, Shape | None]]:
        """Lay a tree out as steps that open and close places, so that no depth is too deep."""
        steps: list[tuple[str, Place, Shape | None]] = []
        waiting: list[tuple[str, Place]] = [("open", child) for child in reversed(root.children)]
        opened = 0
        while waiting:
            what, place = waiting.pop()
            if what == "close":
                steps.append((what, place, None))
                continue
            if opened >= COMMENTS_MAX:
                continue
            opened += 1
            shape = Shape(reader.pipeline, reader.collection, place.id, place.card, root=self._parts.root_path)
            steps.append((what, place, shape))
            waiting.append(("close", place))
            waiting += [("open", child) for child in reversed(place.children)]
        return steps

    async def _search(self, call: Call) -> Reply:
        text, within = (call["q"] or "").strip(), call["pipeline"] or None
        if within is not None and within not in self._parts.pipelines:
            within = None
        offset = min(max(read_number(call["cursor"]) or 0, 0), OFFSET_MAX)
        hits: list[Hit] = []
        total, trouble, pointer = 0, None, None
        if text:
            try:
                query = parse(text)
                hits, total = await self._parts.executor.read(
                    self._parts.index.search, query, pipeline=within, limit=PAGE, offset=offset
                )
            except BadInput as error:
                trouble, pointer = str(error), error.position
        following = offset + len(hits)
        return await self._frame.page(
            call,
            "search.html",
            q=text,
            within=within,
            hits=[self._found(hit) for hit in hits],
            total=total,
            trouble=trouble,
            pointer=pointer,
            offset=offset,
            next_cursor=write_cursor(following) if hits and following < min(total, OFFSET_MAX) else None,
        )

    def _found(self, hit: Hit) -> dict[str, Any]:
        reader = self._collections.reader_of_kind(hit.pipeline, hit.kind)
        collection = reader.collection if reader is not None else None
        card = {"title": hit.title, "text": hit.snippet.replace("\x02", "").replace("\x03", "")}
        shape = Shape(hit.pipeline, collection, hit.key, card, root=self._parts.root_path) if collection else None
        if collection is not None and shape is not None and collection.title_field != "title":
            shape = Shape(
                hit.pipeline, collection, hit.key, {collection.title_field: hit.title}, root=self._parts.root_path
            )
        return {"hit": hit, "shape": shape, "snippet": marked(hit.snippet)}


def tabs_of(
    collection: Collection, counts: Mapping[str, Mapping[str, int]], values: Mapping[str, Any]
) -> dict[str, Any] | None:
    """Offer the first filter whose values are counted as a row of links."""
    for each in collection.filters:
        counted = counts.get(f"{each.field}_counts")
        if each.comparison == "is" and counted and 1 < len(counted) <= 8 and each.field in collection.facet_values:
            offered = [(value, number) for value, number in counted.items() if not each.values or value in each.values]
            return {"name": each.name, "chosen": values.get(each.name), "offered": offered, "field": each.field}
    return None


def mood_bars(moods: Sequence[tuple[int, str]], now_ms: int) -> list[Bar]:
    """Count sentiments per hour over the last day; per day where the news is older than that."""
    recent = [mood for mood in moods if now_ms - mood[0] < 24 * HOUR_MS]
    size = HOUR_MS if len(recent) * 2 >= len(moods) else 24 * HOUR_MS
    bars = 24 if size == HOUR_MS else 30
    first = (now_ms // size - bars + 1) * size
    stacks: list[dict[str, int]] = [{} for _ in range(bars)]
    for at, mood in moods:
        place = (at - first) // size
        if 0 <= place < bars:
            name = mood if mood in SENTIMENTS else UNKNOWN
            stacks[place][name] = stacks[place].get(name, 0) + 1
    return [Bar(_bar_label(first + index * size, size), stack) for index, stack in enumerate(stacks)]


def _bar_label(at: int, size: int) -> str:
    moment = datetime.fromtimestamp(at / 1000, UTC)
    return f"{moment:%H}:00" if size == HOUR_MS else f"{moment.day} {moment:%b}"


def legs_of(view: ItemView) -> list[dict[str, Any]]:
    """Return the life line's rows, newest first, each with the time since the one before."""
    legs = []
    before: int | None = None
    for step in view.life:
        legs.append(
            {
                "step": step,
                "since": None if before is None else max(0, step.at - before) / 1000,
                "tone": _tone(step.ended, step.kind),
            }
        )
        before = step.at
    return legs[::-1]


def _tone(ended: str, kind: str) -> str:
    if ended in ("dead", "failed"):
        return "bad"
    if ended in ("retried", "postponed") or kind == "swept":
        return "wait"
    if ended in ("parked", "rejected"):
        return "parked"
    return "good" if ended in ("advanced", "born", "published", "sent") else "plain"


def _replay_states(pipeline: Any, view: ItemView | None) -> list[str]:
    if pipeline is None or view is None:
        return []
    workflow = pipeline.workflows.get(view.item.kind)
    return [state for state in workflow.states if workflow.automatic_from(state)] if workflow is not None else []


def _pretty(body: Any) -> str:
    return msgspec.json.format(msgspec.json.encode(body), indent=2).decode()[:60_000]
