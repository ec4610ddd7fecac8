"""The reading view: one list over everything, a pipeline or a search, the item beside it, and marks."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlencode

from tidings.model.errors import BadInput
from tidings.model.marks import MARKED_MAX
from tidings.serve.api.card_search import CardSearch
from tidings.serve.api.feeds import content_html
from tidings.serve.api.filters import read_position, write_cursor
from tidings.serve.api.full_texts import IMAGES
from tidings.serve.api.marks import NAME, MarkRoutes, SearchText
from tidings.serve.api.readable_cards import ReadableCard
from tidings.serve.api.reading import COUNTED_MAX, SHOWS, ReadingEntry, ReadingList, ReadingPage, ReadingView
from tidings.serve.api.story_cards import StoryCards, once
from tidings.serve.http.operations import CURSOR, Call, Operation, Parameter
from tidings.serve.http.problems import Problem
from tidings.serve.http.replies import CONTENT_SECURITY_POLICY, Reply
from tidings.serve.http.request_bodies import read_form
from tidings.serve.markup import clean_html
from tidings.serve.pages.buttons import check_form, go
from tidings.serve.pages.frame import Frame, page_at

PAGE = 40
VIEW, SHOW = Parameter("view", "View", length_max=100), Parameter("show", "Which")
QUERY = Parameter("q", "Query", length_max=1_000)
ITEM = Parameter("item", "Item", "integer", minimum=1)
UNDO = Parameter("undo", "Items that were just marked", length_max=1_500)
_NUMBERS = re.compile(r"[0-9]{1,18}(?:,[0-9]{1,18})*")


class ReadPage:
    """What there is to read."""

    def __init__(
        self, frame: Frame, reading: ReadingList, search: CardSearch, marks: MarkRoutes, stories: StoryCards
    ) -> None:
        self._frame, self._reading, self._search, self._marks, self._stories = frame, reading, search, marks, stories
        self._backend = frame.backend

    def operations(self) -> list[Operation]:
        """Declare the routes."""
        acts = {"marks": self._mark, "all": self._read_all, "searches": self._save, "forget": self._forget}
        return [
            page_at("/read", self._show, (VIEW, SHOW, QUERY, ITEM, UNDO, IMAGES, CURSOR)),
            *(Operation("POST", f"/read/{name}", "reader", act, "Mark", is_page=True) for name, act in acts.items()),
        ]

    async def _show(self, call: Call) -> Reply:
        person = await self._frame.access.reader_of(call.caller)
        views = self._reading.views(await self._reading.searches(person))
        query = (call["q"] or "").strip()
        view = self._view(call, views, query)
        show = call["show"] if call["show"] in SHOWS else SHOWS[0]
        page, trouble = ReadingPage((), None), None
        try:
            page = await self._reading.page(person, view, show, PAGE, read_position(call["cursor"]))
        except BadInput as error:
            trouble = str(error)
        item = await self._item(person, call["item"])
        address = {"view": None if query or view.name == "all" else view.name, "q": query, "show": show}
        counts = await self._counts(person, views)
        has_images = bool(call.values.get(IMAGES.name))
        reply = await self._frame.page(
            call,
            "read.html",
            views=views,
            view=view,
            counts=counts,
            counted_max=COUNTED_MAX,
            shows=SHOWS,
            show=show,
            q=query,
            address={name: value for name, value in address.items() if not (name == "show" and value == "unread")},
            entries=await self._told_once(page, show),
            items_here=[each.item for each in page.entries],
            next_cursor=write_cursor(*page.next_after) if page.next_after is not None else None,
            cursor=call["cursor"],
            item=item,
            trouble=trouble,
            undo=call["undo"] if call["undo"] and _NUMBERS.fullmatch(call["undo"]) else None,
            may_mark=self._frame.access.is_allowed(call.caller, "reader"),
            has_images=has_images,
            **(await self._body(item, images=has_images)),
        )
        if item is not None and has_images:
            # Who asks for the images of one page lets the browser fetch them for that page.
            policy = CONTENT_SECURITY_POLICY.replace("img-src 'self'", "img-src 'self' https:")
            reply.headers["Content-Security-Policy"] = policy
        return reply

    async def _told_once(self, page: ReadingPage, show: str) -> list[tuple[ReadingEntry, ReadableCard]]:
        """Pair entries with their cards; one of a story stands for the others, but what was starred is all shown."""
        cards = [each.card(self._backend.root_path) for each in page.entries]
        await self._stories.note(cards)
        shown = {id(card) for card in (cards if show == "starred" else once(cards))}
        return [(each, card) for each, card in zip(page.entries, cards, strict=True) if id(card) in shown]

    def _view(self, call: Call, views: Sequence[ReadingView], query: str) -> ReadingView:
        if query:
            return ReadingView("query", query, None, query)
        named = {each.name: each for each in views}
        if (call["view"] or "all") not in named:
            raise Problem(404, "There is no such list.", helps="/read names them all.")
        return named[call["view"] or "all"]

    async def _counts(self, person: str, views: Sequence[ReadingView]) -> dict[str, int]:
        counts = {}
        for view in views:
            try:
                counts[view.name] = await self._reading.count(person, view)
            except BadInput:
                counts[view.name] = 0  # A saved search whose pipeline is off by now.
        return counts

    async def _item(self, person: str, item: int | None) -> ReadingEntry | None:
        if item is None:
            return None
        found = await self._reading.items(person, [item])
        if not found:
            raise Problem(404, "This is not here any more.", helps="Its source may have taken it back.")
        return found[0]

    async def _body(self, item: ReadingEntry | None, *, images: bool) -> dict[str, Any]:
        """Return what the page of an item shows besides its card: its text, and where it is discussed."""
        if item is None:
            return {"card": None, "text": "", "discussion": None, "images": 0}
        card = item.card(self._backend.root_path)
        discussion = card.href if item.reader.collection.relation is not None else await self._discussion(card.url)
        full = (await self._reading.texts([item], images=images)).get(item.item)
        text = full.markup if full is not None else clean_html(content_html(card))
        return {"card": card, "text": text, "discussion": discussion, "images": full.images if full is not None else 0}

    async def _discussion(self, url: str | None) -> str | None:
        """Return the thread about an address, where a pipeline with threads has one."""
        threaded = [each for each in self._reading.readers if each.collection.relation is not None]
        if url is None or not threaded or '"' in url:
            return None
        reader = threaded[0]
        try:
            asked = self._search.parse(f'url:"{url}"', reader.pipeline)
            found = await self._search.find(asked, reader.pipeline, limit=5, order="score")
        except (BadInput, Problem):
            return None  # An address that cannot be asked for, or a busy search: the item is shown without.
        same = (each for each in found.hits if each.hit.url == url)
        first = next(same, None)
        base = f"{self._backend.root_path}/pipelines/{reader.pipeline}/{reader.collection.name}"
        return f"{base}/{first.id}" if first is not None else None

    async def _mark(self, call: Call) -> Reply:
        form = await self._form(call)
        items = form.get("items", "")
        if not _NUMBERS.fullmatch(items) or items.count(",") >= MARKED_MAX:
            raise Problem(400, "These are no items.")
        person = await self._frame.access.reader_of(call.caller)
        marked = [int(each) for each in items.split(",")]
        read, starred = _choice(form.get("read")), _choice(form.get("starred"))
        count = await self._reading.mark(person, marked, read=read, starred=starred)
        back = _without(form.get("back", "/read"), "undo")
        if form.get("undoable") and read:
            back = f"{back}{'&' if '?' in back else '?'}{urlencode({'undo': items})}"
            return go(self._backend.root_path, back, f"marked.{count}")
        return go(self._backend.root_path, back, f"marked.{count}" if len(marked) > 1 else "noted")

    async def _read_all(self, call: Call) -> Reply:
        form = await self._form(call)
        person = await self._frame.access.reader_of(call.caller)
        view = await self._marks.view(person, form.get("view", "all"))
        at = form.get("at", "")
        at_ms = int(at) if at.isascii() and at.isdigit() and len(at) < 15 else None
        await self._reading.read_everything(person, view, at_ms)
        return go(self._backend.root_path, form.get("back", "/read"), "all_read")

    async def _save(self, call: Call) -> Reply:
        form = await self._form(call)
        person = await self._frame.access.reader_of(call.caller)
        query = form.get("query", "")
        name = re.sub(r"[^a-z0-9]+", "-", (form.get("title") or query).lower()).strip("-")[:60] or "search"
        if not NAME.fullmatch(name):
            name = "search"
        await self._marks.save(person, name, SearchText(query, form.get("title", "")))
        return go(self._backend.root_path, f"/read?{urlencode({'view': f'search:{name}'})}", "saved")

    async def _forget(self, call: Call) -> Reply:
        form = await self._form(call)
        person = await self._frame.access.reader_of(call.caller)
        await self._backend.executor.write(self._backend.marks.delete_search, person, form.get("name", ""))
        return go(self._backend.root_path, "/read", "forgotten")

    async def _form(self, call: Call) -> dict[str, str]:
        form = await read_form(call.request)
        check_form(self._frame, call, form)
        return form


def _choice(text: str | None) -> bool | None:
    return {"true": True, "false": False}.get(text or "")


def _without(address: str, name: str) -> str:
    path, _, query = address.partition("?")
    kept = "&".join(pair for pair in query.split("&") if pair and pair.partition("=")[0] not in (name, "told"))
    return f"{path}?{kept}" if kept else path
