"""What the Google Reader API calls streams, items and subscriptions, in terms of reading lists."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from tidings.model.errors import BadInput
from tidings.model.harmless import storable
from tidings.model.marks import SavedSearch
from tidings.serve.api.collections import Collections
from tidings.serve.api.feeds import content_html
from tidings.serve.api.full_texts import ReadableText
from tidings.serve.api.reading import ReadingEntry, ReadingList, ReadingView
from tidings.serve.markup import tidy

STATE = "user/-/state/com.google/"
LABEL = "user/-/label/"
LONG_ID = "tag:google.com,2005:reader/item/"
SAVED, PIPELINES = "Saved searches", "Pipelines"
_USER = re.compile(r"user/[^/]+/")
_HEX = re.compile(r"[0-9a-f]{1,16}")
_DECIMAL = re.compile(r"-?[0-9]{1,19}")


@dataclass(frozen=True, slots=True)
class Subscription:
    """Something that clients show as a feed: a pipeline, one feed of a pipeline, or a saved search."""

    id: str
    folder: str
    view: ReadingView

    def values(self, base: str) -> dict[str, Any]:
        """Return it as JSON values."""
        return {
            "id": self.id,
            "title": self.view.title,
            "categories": [{"id": LABEL + self.folder, "label": self.folder, "type": "folder"}],
            "url": f"{base}/read?view={self.view.name}",
            "htmlUrl": f"{base}/read?view={self.view.name}",
            "iconUrl": f"{base}/favicon.ico",
        }


@dataclass(frozen=True, slots=True)
class ItemStream:
    """A stream as a list: what it is over, and which entries of it belong."""

    views: Sequence[ReadingView]
    state: str = ""
    """read, starred, unread; empty: all."""


class Subscriptions:
    """All that one reader sees as subscriptions."""

    def __init__(self, reading: ReadingList, collections: Collections) -> None:
        self._reading = reading
        self._collections = collections

    async def all(self, searches: Sequence[SavedSearch]) -> list[Subscription]:
        """Return a pipeline, or each of its feeds where it has many, and saved searches."""
        found: list[Subscription] = []
        for view in self._reading.views(searches):
            if view.name.startswith("search:"):
                found.append(Subscription(f"feed/{view.name}", SAVED, view))
            elif view.pipeline is not None:
                feeds = await self._feeds_of(view.pipeline)
                found += [Subscription(f"feed/{each.name}", view.title, each) for each in feeds]
                if not feeds:
                    found.append(Subscription(f"feed/{view.name}", PIPELINES, view))
        return found

    async def _feeds_of(self, pipeline: str) -> list[ReadingView]:
        """Return the feeds of a pipeline that counts them, each as a search for its name."""
        own = [each for each in self._reading.readers if each.pipeline == pipeline]
        readers = [each for each in own if "feed" in each.collection.facets]
        names: list[str] = []
        for reader in readers:
            page = await reader.page(None, 1, None)
            names += [name for name in page.counts.get("feed_counts", {}) if name != "unknown" and '"' not in name]
        return [ReadingView(f"{pipeline}:{name}", name, pipeline, f'feed:"{name}"') for name in names]


def stream_of(name: str, subscriptions: Sequence[Subscription]) -> ItemStream | None:
    """Return the stream that a client names; None for one that we do not have."""
    name = _USER.sub("user/-/", unquote(name), count=1)
    if name.startswith(STATE):
        state = name.removeprefix(STATE)
        everything = [ReadingView("all", "Everything")]
        known = {"reading-list": "", "read": "read", "starred": "starred", "kept-unread": "unread", "fresh": "unread"}
        return ItemStream(everything, known[state]) if state in known else None
    if name.startswith(LABEL):
        label = name.removeprefix(LABEL)
        views = [each.view for each in subscriptions if each.folder == label]
        return ItemStream(views) if views else None
    views = [each.view for each in subscriptions if each.id == name]
    return ItemStream(views) if views else None


def item_of(text: str) -> int:
    """Return the number of an item from any of the forms in which clients write it."""
    bare = text.strip().removeprefix(LONG_ID)
    is_long = bare != text.strip() or len(bare) == 16
    if is_long and _HEX.fullmatch(bare):
        return int(bare, 16)
    if _DECIMAL.fullmatch(bare):
        return int(bare) % 2**64
    raise BadInput("an item id must be decimal, or hexadecimal behind tag:google.com,2005:reader/item/")


def long_id(item: int) -> str:
    """Return the long form of an item's id."""
    return f"{LONG_ID}{item:016x}"


def states_of(entry: ReadingEntry) -> list[str]:
    """Return the states of an item, as categories."""
    states = [STATE + "reading-list"]
    if entry.is_read:
        states.append(STATE + "read")
    if entry.starred_at is not None:
        states.append(STATE + "starred")
    return states


def subscription_of(entry: ReadingEntry, subscriptions: Sequence[Subscription]) -> Subscription:
    """Return where an item comes from: its feed, or its pipeline."""
    feed = entry.shown.card.get("feed")
    names = [f"feed/{entry.reader.pipeline}:{feed}", f"feed/pipeline:{entry.reader.pipeline}"]
    known = {each.id: each for each in subscriptions}
    found = next((known[name] for name in names if name in known), None)
    view = ReadingView(f"pipeline:{entry.reader.pipeline}", entry.reader.collection.title, entry.reader.pipeline)
    return found or Subscription(names[1], PIPELINES, view)


def item_values(
    entry: ReadingEntry, base: str, subscriptions: Sequence[Subscription], full: ReadableText | None = None
) -> dict[str, Any]:
    """Return an item as JSON values."""
    card = entry.card(base)
    origin = subscription_of(entry, subscriptions)
    url = card.url or card.href
    content = storable(full.html if full is not None else content_html(card))
    author = card[card.collection.author_field] if card.collection.author_field else card["author"] or card["by"]
    at_ms = card.at or entry.shown.entry.written_at
    return {
        "id": long_id(entry.item),
        "crawlTimeMsec": str(entry.shown.entry.written_at),
        "timestampUsec": str(entry.shown.entry.written_at * 1000),
        "published": at_ms // 1000,
        "updated": at_ms // 1000,
        "title": storable(card.title),
        "author": storable(tidy(author, 200)) if author else "",
        "canonical": [{"href": url}],
        "alternate": [{"href": url, "type": "text/html"}],
        "summary": {"direction": "ltr", "content": content},
        "content": {"direction": "ltr", "content": content},
        "categories": [*states_of(entry), LABEL + origin.folder],
        "origin": {
            "streamId": origin.id,
            "title": origin.view.title,
            "htmlUrl": f"{base}/read?view={origin.view.name}",
        },
    }
