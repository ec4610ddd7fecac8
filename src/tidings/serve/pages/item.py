"""One item on a page: what a reader sees of it on the left, its life on the right."""

from __future__ import annotations

from typing import Any

import msgspec

from tidings.model.history import came_past
from tidings.model.item_views import ItemRow, ItemView
from tidings.model.pipeline import Pipeline
from tidings.model.publication import DELIVERY
from tidings.serve.api.card_search import CardSearch
from tidings.serve.api.collections import Collections
from tidings.serve.api.full_texts import IMAGES, ReadableText
from tidings.serve.api.histories import Histories
from tidings.serve.api.listings import Reader
from tidings.serve.api.readable_cards import ReadableCard, from_shelf
from tidings.serve.api.story_cards import StoryCards
from tidings.serve.api.threads import ThreadPlace, read_thread
from tidings.serve.http.operations import Call, Parameter
from tidings.serve.http.problems import Problem
from tidings.serve.http.replies import CONTENT_SECURITY_POLICY, Reply
from tidings.serve.markup import tidy
from tidings.serve.pages.environment import CARD
from tidings.serve.pages.frame import Frame
from tidings.serve.pages.history_charts import HistoryChart, charts_of

COMMENTS_MAX = 1_500
"""How many comments one part of a thread has; what is above them is drawn again."""
NESTING_MAX = 100
"""Deeper comments are drawn side by side: browsers give up nesting at some hundreds of elements."""
SIMILAR_SHOWN = 5
OTHERS_SHOWN = 20
MEMBERS_SHOWN = 30
PART = Parameter("part", "Which part of a long thread.", "integer", minimum=1, maximum=1_000)


class ItemPage:
    """Draws items, published or not."""

    def __init__(
        self, frame: Frame, collections: Collections, search: CardSearch, histories: Histories, stories: StoryCards
    ) -> None:
        self._frame = frame
        self._backend = frame.backend
        self._collections = collections
        self._search = search
        self._histories = histories
        self.stories = stories

    async def show(self, call: Call, reader: Reader | None, card: ReadableCard | None, view: ItemView | None) -> Reply:
        """Show an item: what a reader sees on the left, its life on the right."""
        thread, part = None, call.values.get(PART.name) or 1
        if reader is not None and card is not None and reader.collection.relation is not None:
            thread = await read_thread(self._backend.executor, self._backend.links, reader, card.id)
        reading = await self._reading(call, view) if card is not None else None
        await self.stories.note([card] if card is not None else [])
        pipeline = self._backend.pipelines.get(reader.pipeline if reader else view.item.pipeline if view else "")
        reply = await self._frame.page(
            call,
            "item.html",
            reading=reading,
            has_images=bool(call.values.get(IMAGES.name)),
            pipeline=pipeline,
            collection=reader.collection if reader is not None else None,
            card_template=self._frame.environment.template_of(reader.collection, CARD) if reader is not None else "",
            card=card,
            name=self.name_of(view.item) if view is not None else "",
            view=view,
            legs=legs_of(view) if view is not None else [],
            comments=self._walk(reader, thread, part) if thread is not None and reader is not None else [],
            part=part,
            parts=-(-thread.below // COMMENTS_MAX) if thread is not None else 0,
            comments_max=COMMENTS_MAX,
            thread=thread,
            parent=thread.card.get("parent") if thread is not None else None,
            options=await self._options(reader, card),
            charts=await self._charts(reader, card),
            members=await self._members(reader, card),
            others=await self._others(card),
            similar=await self._similar(view) if card is not None and view is not None else [],
            relatives=self._relatives(view, is_thread=thread is not None) if view is not None else [],
            notice=_notice(view),
            replay_states=_replay_states(pipeline, view),
            body_text=_pretty(view.accepted if view.accepted is not None else view.body) if view is not None else None,
        )
        if reading is not None and call.values.get(IMAGES.name):
            # Who asks for the images of one page lets the browser fetch them for that page.
            reply.headers["Content-Security-Policy"] = CONTENT_SECURITY_POLICY.replace(
                "img-src 'self'", "img-src 'self' https: http:"
            )
        return reply

    async def _reading(self, call: Call, view: ItemView | None) -> ReadableText | None:
        """Return all there is to read of an item; where it may not be republished, only operators get it."""
        if view is None:
            return None
        found = await self._collections.full_texts.read(
            view.item.pipeline,
            [view.item.id],
            images=bool(call.values.get(IMAGES.name)),
            for_operator=self._frame.access.is_allowed(call.caller, "operate"),
        )
        return found.get(view.item.id)

    async def _others(self, card: ReadableCard | None) -> list[ReadableCard]:
        """Return what else tells the story of a card."""
        if card is None or card.story is None or self._backend.stories is None:
            return []
        row = await self._backend.executor.read(self._backend.stories.story, card.story.story)
        told = await self.stories.told([row] if row is not None else [], self._backend.root_path)
        others = [each for story in told for each in story.shown if each.href != card.href]
        return others[:OTHERS_SHOWN]

    def _relatives(self, view: ItemView, *, is_thread: bool) -> list[tuple[str, str, str | None]]:
        """Return what an item belongs to and what belongs to it: a word, a name, and where it is shown."""
        children = [] if is_thread else view.children[:20]
        named = [("part of", each) for each in view.parents[:5]] + [("has", each) for each in children]
        return [(word, each, self.href_of(view.item.pipeline, each)) for word, each in named]

    async def _charts(self, reader: Reader | None, card: ReadableCard | None) -> list[HistoryChart]:
        """Draw how a card went, where that is kept."""
        if reader is None or card is None:
            return []
        lists = self._backend.pipelines[reader.pipeline].lists
        return charts_of(await self._histories.read(reader, card.id), reader.collection.tracked, lists)

    async def _members(self, reader: Reader | None, card: ReadableCard | None) -> list[ReadableCard]:
        """Return the newest of what belongs to a card by a search, such as what a user wrote."""
        if reader is None or card is None or not reader.collection.members_query:
            return []
        query = self._search.parse(reader.collection.members_query.format(id=card.id), reader.pipeline)
        found = await self._search.find(query, reader.pipeline, limit=MEMBERS_SHOWN, order="newest")
        readers = ((each, self._collections.reader_of_kind(each.hit.pipeline, each.hit.kind)) for each in found.hits)
        root = self._backend.root_path
        return [from_shelf(other, each.entry, root, each.card) for each, other in readers if other is not None]

    async def _similar(self, view: ItemView) -> list[ReadableCard]:
        """Return the cards that have the most in common with an item's."""
        try:
            found = await self._search.similar(view.item.pipeline, view.item.kind, view.item.key, SIMILAR_SHOWN)
        except Problem:
            return []  # The search is busy; the item itself can be shown.
        readers = ((each, self._collections.reader_of_kind(each.hit.pipeline, each.hit.kind)) for each in found)
        root = self._backend.root_path
        return [from_shelf(reader, each.entry, root, each.card) for each, reader in readers if reader is not None]

    def name_of(self, row: ItemRow) -> str:
        """Return what an item is called in lists."""
        return tidy(row.title, 120) or tidy(row.key, 120)

    def href_of(self, pipeline: str, name: str) -> str | None:
        """Return the page of an item named by a link; where its key is not its card's id, that page leads on."""
        kind, _, key = name.partition(":")
        reader = self._collections.reader_of_kind(pipeline, kind)
        if reader is None:
            return None
        return ReadableCard(pipeline, reader.collection, key, {}, root=self._backend.root_path).href

    async def _options(self, reader: Reader | None, card: ReadableCard | None) -> list[ReadableCard]:
        """Return the cards that are shown inside a card, such as a poll's options, in order."""
        field = reader.collection.options_field if reader is not None else None
        if reader is None or card is None or field is None:
            return []
        ids = [str(each) for each in card[field] or []]
        entries = await reader.many(ids)
        return [from_shelf(reader, entries[each], "", card_id=each) for each in ids if each in entries]

    def _walk(self, reader: Reader, root: ThreadPlace, part: int) -> list[tuple[str, ThreadPlace, ReadableCard | None]]:
        """Lay one part of a tree out as steps that open and close places, so that no depth is too deep."""
        steps: list[tuple[str, ThreadPlace, ReadableCard | None]] = []
        waiting: list[tuple[str, ThreadPlace]] = [("open", child) for child in reversed(root.children)]
        at, first = 0, (part - 1) * COMMENTS_MAX
        while waiting:
            what, place = waiting.pop()
            if what == "close":
                steps.append((what, place, None))
                continue
            if at + place.below < first or at >= first + COMMENTS_MAX:
                at += 1 + place.below
                continue
            at += 1
            card = ReadableCard(reader.pipeline, reader.collection, place.id, place.card, root=self._backend.root_path)
            steps.append((what, place, card))
            if place.depth < NESTING_MAX:
                waiting.append(("close", place))
            else:
                steps.append(("close", place, None))
            waiting += [("open", child) for child in reversed(place.children)]
        return steps


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


def _notice(view: ItemView | None) -> dict[str, Any] | None:
    """Return the notice a delivery carries."""
    found = view.body.get("notice") if view is not None and isinstance(view.body, dict) else None
    return found if isinstance(found, dict) else None


def _replay_states(pipeline: Pipeline | None, view: ItemView | None) -> list[str]:
    """Return where an item may begin again; a notice that was sent is never sent again by replay."""
    if pipeline is None or view is None or view.item.kind == DELIVERY:
        return []
    workflow = pipeline.workflows.get(view.item.kind)
    if workflow is None:
        return []
    way_out = [state for state in workflow.states if workflow.automatic_from(state)]
    return [state for state in way_out if came_past(workflow, state, view.item.state, view.life)]


def _pretty(body: Any) -> str:
    return msgspec.json.format(msgspec.json.encode(body), indent=2).decode()[:60_000]
