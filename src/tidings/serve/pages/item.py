"""One item on a page: what a reader sees of it on the left, its life on the right."""

from __future__ import annotations

from typing import Any

import msgspec

from tidings.model.history import came_past
from tidings.model.pipeline import Pipeline
from tidings.model.views import ItemRow, ItemView
from tidings.serve.collections import Collections
from tidings.serve.operations import Call
from tidings.serve.pages.frame import Frame
from tidings.serve.pages.now import DELIVERY
from tidings.serve.pages.suits import Shape, suit_of
from tidings.serve.pages.wording import tidy, words_of
from tidings.serve.reading import Reader
from tidings.serve.replies import Reply
from tidings.serve.threads import Place, read_thread

COMMENTS_MAX = 1_500


class ItemPage:
    """Draws items, published or not."""

    def __init__(self, frame: Frame, collections: Collections) -> None:
        self._frame = frame
        self._parts = frame.parts
        self._collections = collections

    async def show(self, call: Call, reader: Reader | None, shape: Shape | None, view: ItemView | None) -> Reply:
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
            name=self.name_of(view.item) if view is not None else "",
            view=view,
            legs=legs_of(view) if view is not None else [],
            comments=self._walk(reader, thread) if thread is not None and reader is not None else [],
            hidden=max(0, thread.below - COMMENTS_MAX) if thread is not None else 0,
            thread=thread,
            parent=thread.card.get("parent") if thread is not None else None,
            options=await self._options(reader, shape),
            relatives=self._relatives(view, is_thread=thread is not None) if view is not None else [],
            notice=_notice(view),
            replay_states=_replay_states(pipeline, view),
            body_text=_pretty(view.accepted if view.accepted is not None else view.body) if view is not None else None,
        )

    def _relatives(self, view: ItemView, *, is_thread: bool) -> list[tuple[str, str, str | None]]:
        """Return what an item belongs to and what belongs to it: a word, a name, and where it is shown."""
        children = [] if is_thread else view.children[:20]
        named = [("part of", each) for each in view.parents[:5]] + [("has", each) for each in children]
        return [(word, each, self.href_of(view.item.pipeline, each)) for word, each in named]

    def name_of(self, row: ItemRow) -> str:
        """Return what an item is called in lists: its title, or else its first words, which a thread keeps as HTML."""
        reader = self._collections.reader_of_kind(row.pipeline, row.kind)
        is_html = reader is not None and suit_of(reader.collection) == "thread"
        return (words_of(row.title, 120) if is_html else tidy(row.title, 120)) or tidy(row.key, 120)

    def href_of(self, pipeline: str, name: str) -> str | None:
        """Return the page of an item named by a link; where its key is not its card's id, that page leads on."""
        kind, _, key = name.partition(":")
        reader = self._collections.reader_of_kind(pipeline, kind)
        if reader is None:
            return None
        return Shape(pipeline, reader.collection, key, {}, root=self._parts.root_path).href

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
