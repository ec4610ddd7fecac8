"""Pages one reads: a pipeline's collections in their suits, one card with its thread and life line, and the search."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any

from markupsafe import Markup

from tidings.model.contracts import Hit
from tidings.model.errors import BadInput
from tidings.model.publication import Collection
from tidings.model.query import parse
from tidings.serve.collections import Collections, missing
from tidings.serve.filters import UNKNOWN, parameter_of, predicate, read_number, read_position, write_cursor
from tidings.serve.operations import CURSOR, Call, Operation, Parameter
from tidings.serve.pages.charts import HOUR_MS, Bar, stacked_bars
from tidings.serve.pages.frame import Frame, page_at
from tidings.serve.pages.item import ItemPage
from tidings.serve.pages.now import is_root
from tidings.serve.pages.suits import Shape, shape_of, suit_of
from tidings.serve.problems import Problem
from tidings.serve.reading import Reader
from tidings.serve.replies import Reply
from tidings.serve.searching import OFFSET_MAX, marked

PAGE = 40
SENTIMENTS = ("positive", "neutral", "negative", UNKNOWN)


class Reading:
    """Lists, cards, threads, search."""

    def __init__(self, frame: Frame, collections: Collections, item: ItemPage) -> None:
        self._frame = frame
        self._item = item
        self._parts = frame.parts
        self._collections = collections

    def operations(self) -> list[Operation]:
        """Declare the routes."""
        declared = [
            page_at("/search", self._search, (Parameter("q", "Query"), Parameter("pipeline", "Pipeline"), CURSOR)),
            page_at("/pipelines/{pipeline}", self._pipeline),
        ]
        for reader in self._collections.readers.values():
            collection = reader.collection
            base = f"/pipelines/{reader.pipeline}/{collection.name}"
            filters = tuple(parameter_of(each) for each in collection.filters)
            show_all = Parameter("all", "Replies too", "boolean", default=False)
            declared.append(page_at(base, partial(self._list, reader), (*filters, show_all, CURSOR)))
            declared.append(page_at(f"{base}/{{id:path}}", partial(self._one, reader)))
        return declared

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
            shapes=[shape_of(reader, each.entry, self._parts.root_path, each.card) for each in listing.shown],
            listing=listing,
            values=values,
            is_filtered=any(values.values()),
            tabs=tabs_of(collection, listing.counts, values),
            chart=await self._chart(reader, suit),
            next_cursor=write_cursor(*listing.next_after) if listing.next_after is not None else None,
            has_cursor=call["cursor"] is not None,
            show_all=call["all"],
        )

    async def _chart(self, reader: Reader, suit: str) -> Markup:
        held = await reader.held() if suit == "news" else None
        if held is None or len(held.shown) < 5:
            return Markup("")
        shapes = [shape_of(reader, each.entry, "", each.card) for each in held.shown]
        moods = [(shape.at or 0, str(shape["sentiment"] or UNKNOWN)) for shape in shapes]
        return stacked_bars(mood_bars(moods, self._parts.clock.now_ms()), SENTIMENTS, "Sentiment over time")

    async def _one(self, reader: Reader, call: Call) -> Reply:
        read, desk = self._parts.executor.read, self._parts.desk
        entry = await reader.one(call["id"])
        if entry is not None and entry.item is not None:
            view = await read(desk.item, entry.item)
        else:
            view = await read(desk.find, reader.pipeline, reader.collection.kind, call["id"])
        if entry is None:
            if view is None:
                raise missing(reader.collection)
            return Reply(b"", 303, None, {"Location": f"{self._parts.root_path}/items/{view.item.id}"})
        shape = shape_of(reader, entry, self._parts.root_path, card_id=call["id"])
        return await self._item.show(call, reader, shape, view)

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
        says_more = card["text"].strip(" …") != hit.title.strip()
        return {"hit": hit, "shape": shape, "snippet": marked(hit.snippet) if says_more else ""}


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
    oldest = min((at for at, _ in moods), default=now_ms)
    # A month of days at most, and hardly more of them than there is news.
    bars = 24 if size == HOUR_MS else max(14, min(30, now_ms // size - oldest // size + 1))
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
