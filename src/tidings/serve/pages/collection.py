"""A pipeline's collections as pages: the list of cards, and one card with its thread and life line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any

from markupsafe import Markup

from tidings.model.publication import Collection
from tidings.serve.api.collections import Collections, missing
from tidings.serve.api.filters import parameter_of, predicate, read_position, write_cursor
from tidings.serve.api.full_texts import IMAGES
from tidings.serve.api.listings import Reader
from tidings.serve.api.readable_cards import from_shelf
from tidings.serve.api.story_cards import once
from tidings.serve.api.threads import front_of
from tidings.serve.api.wishes import busy
from tidings.serve.http.operations import CURSOR, Call, Operation, Parameter
from tidings.serve.http.problems import Problem
from tidings.serve.http.replies import Reply
from tidings.serve.pages.charts import HOUR_MS, Bar, stacked_bars
from tidings.serve.pages.environment import ROW
from tidings.serve.pages.frame import Frame, page_at
from tidings.serve.pages.item import PART, ItemPage

PAGE = 40
CHARTED_MIN = 5
"""A chart of fewer cards says nothing."""


class CollectionPages:
    """Lists, cards, threads."""

    def __init__(self, frame: Frame, collections: Collections, item: ItemPage) -> None:
        self._frame = frame
        self._item = item
        self._backend = frame.backend
        self._collections = collections

    def operations(self) -> list[Operation]:
        """Declare the routes."""
        declared = [page_at("/pipelines/{pipeline}", self._pipeline)]
        for reader in self._collections.readers.values():
            collection = reader.collection
            base = f"/pipelines/{reader.pipeline}/{collection.name}"
            filters = tuple(parameter_of(each) for each in collection.filters)
            show_all = Parameter("all", "Replies too", "boolean", default=False)
            declared.append(page_at(base, partial(self._list, reader), (*filters, show_all, CURSOR)))
            declared.append(page_at(f"{base}/{{id:path}}", partial(self._one, reader), (PART, IMAGES)))
        return declared

    async def _pipeline(self, call: Call) -> Reply:
        pipeline = self._backend.pipelines.get(call["pipeline"])
        if pipeline is None or not pipeline.collections:
            raise Problem(404, "No such pipeline.", helps="The rail on the left names them all.")
        asked = call.request.query_params
        # Who names a filter means the collection that has it; lists have none.
        meant = next((c for c in pipeline.collections if any(f.name in asked for f in c.filters)), None)
        place = f"lists/{pipeline.lists[0].name}" if pipeline.lists else pipeline.collections[0].name
        if meant is not None:
            place = f"{meant.name}?{asked}"
        first = f"{self._backend.root_path}/pipelines/{pipeline.name}/{place}"
        return Reply(b"", 303, None, {"Location": first})

    async def _list(self, reader: Reader, call: Call) -> Reply:
        collection = reader.collection
        wanted = predicate(collection, call.values)
        if collection.relation is not None and wanted is None and not call["all"]:
            wanted = front_of(collection)
        listing = await reader.page(wanted, PAGE, read_position(call["cursor"]))
        shown = [from_shelf(reader, each.entry, self._backend.root_path, each.card) for each in listing.shown]
        await self._item.stories.note(shown)
        values = {each.name: call.request.query_params.get(each.name) for each in collection.filters}
        return await self._frame.page(
            call,
            "collection.html",
            pipeline=self._backend.pipelines[reader.pipeline],
            collection=collection,
            row_template=self._frame.environment.template_of(collection, ROW),
            cards=shown if any(values.values()) else once(shown),
            listing=listing,
            values=values,
            is_filtered=any(values.values()),
            tabs=tabs_of(collection, listing.counts, values),
            chart=await self._chart(reader),
            next_cursor=write_cursor(*listing.next_after) if listing.next_after is not None else None,
            has_cursor=call["cursor"] is not None,
            show_all=call["all"],
        )

    async def _chart(self, reader: Reader) -> Markup:
        chart = reader.collection.chart
        held = await reader.held() if chart is not None else None
        if chart is None or held is None or len(held.shown) < CHARTED_MIN:
            return Markup("")
        cards = [from_shelf(reader, each.entry, "", each.card) for each in held.shown]
        points = [(card.at or 0, str(card[chart.field])) for card in cards]
        values = tuple(chart.values)
        return stacked_bars(bars_over_time(points, values, self._backend.clock.now_ms()), values, chart.title)

    async def _one(self, reader: Reader, call: Call) -> Reply:
        read, item_views = self._backend.executor.read, self._backend.item_views
        entry = await reader.one(call["id"])
        if entry is not None and entry.item is not None:
            view = await read(item_views.item, entry.item)
        else:
            view = await read(item_views.find, reader.pipeline, reader.collection.kind, call["id"])
        await self._collections.desk.renew(reader, entry)
        if entry is None:
            if view is None:
                return await self._wish(reader, call)
            return Reply(b"", 303, None, {"Location": f"{self._backend.root_path}/items/{view.item.id}"})
        card = from_shelf(reader, entry, self._backend.root_path, card_id=call["id"])
        return await self._item.show(call, reader, card, view)

    async def _wish(self, reader: Reader, call: Call) -> Reply:
        """Have a card fetched, where its collection takes wishes; the page asks again by itself."""
        state = await self._collections.desk.state(reader, call["id"])
        if state is None or state == "unknown":
            raise missing(reader.collection)
        if state != "waiting":
            raise busy(reader, state)
        pipeline = self._backend.pipelines[reader.pipeline]
        return await self._frame.page(
            call, "fetching.html", status=202, pipeline=pipeline, collection=reader.collection, name=call["id"]
        )


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


def bars_over_time(points: Sequence[tuple[int, str]], values: Sequence[str], now_ms: int) -> list[Bar]:
    """Count values per hour over the last day; per day where most cards are older than that."""
    recent = [point for point in points if now_ms - point[0] < 24 * HOUR_MS]
    size = HOUR_MS if len(recent) * 2 >= len(points) else 24 * HOUR_MS
    oldest = min((at for at, _ in points), default=now_ms)
    # A month of days at most, and hardly more of them than there are cards.
    bars = 24 if size == HOUR_MS else max(14, min(30, now_ms // size - oldest // size + 1))
    first = (now_ms // size - bars + 1) * size
    stacks: list[dict[str, int]] = [{} for _ in range(bars)]
    for at, value in points:
        place = (at - first) // size
        if 0 <= place < bars:
            name = value if value in values else values[-1]
            stacks[place][name] = stacks[place].get(name, 0) + 1
    return [Bar(_bar_label(first + index * size, size), stack) for index, stack in enumerate(stacks)]


def _bar_label(at: int, size: int) -> str:
    moment = datetime.fromtimestamp(at / 1000, UTC)
    return f"{moment:%H}:00" if size == HOUR_MS else f"{moment.day} {moment:%b}"
