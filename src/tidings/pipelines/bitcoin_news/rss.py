"""News outlets' own feeds: no key, no credits. The addresses are configured, their content is a stranger's."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b
from typing import Any
from urllib.parse import urlsplit

from tidings.discover.feed import Entry, Feed, next_check_seconds, parse_feed
from tidings.model.contracts import Kit
from tidings.model.errors import BadInput, Misconfigured, Permanent
from tidings.model.pipeline import Page, Run, Schedule
from tidings.model.urls import public_host
from tidings.model.web import Response
from tidings.pipelines.bitcoin_news.answers import read_all
from tidings.pipelines.bitcoin_news.article import PIPELINE, Sighting
from tidings.pipelines.bitcoin_news.normalize import (
    DESCRIPTION_CHARS_MAX,
    author_of,
    findings_of,
    real_text,
    title_of,
)

ACCEPT = "application/rss+xml, application/atom+xml, application/feed+json, application/xml;q=0.9, text/xml;q=0.9"
GONE = 410
_NAME_END = re.compile(r"\s*(?::| [-–—|] |\.com\b).*$")


@dataclass(frozen=True)
class Outlet:
    """The source `bitcoin_news.rss.<outlet>`: one feed."""

    name: str
    url: str
    every_seconds: float
    keep_days: float

    @property
    def schedule(self) -> Schedule:
        """When to ask."""
        return Schedule(every_seconds=self.every_seconds)

    async def pages(self, run: Run, kit: Kit) -> AsyncIterator[Page]:
        """Yield the feed as one page, or an empty one if it is the same as in the last completed run."""
        cursor = run.cursor if isinstance(run.cursor, dict) else {}
        response = await self._fetch(_moved(cursor, self.url), kit)
        digest = blake2b(response.body, digest_size=16).hexdigest()
        moved = response.permanently_moved_to
        if moved:
            cursor = {"configured": self.url, "moved_to": moved}
        # A stored copy that was fetched but never committed must still be read: the digest decides, not the 304.
        if run.mark == digest:
            wait = next_check_seconds(None, response.headers, every_seconds=self.every_seconds)
            yield Page((), cursor=cursor or None, mark=digest, next_check_seconds=wait, note="not changed")
            return
        feed = await asyncio.to_thread(parse_feed, response.body, response.headers.get("content-type"), response.url)
        reading = partial(sighting, outlet=outlet_name(feed), now_ms=run.now_ms, listing=self.url)
        sightings, rejected = read_all(feed.entries, reading)
        yield Page(
            await findings_of(sightings, kit.ledger, run.now_ms, self.keep_days),
            cursor=cursor or None,
            mark=digest,
            rejected=rejected,
            next_check_seconds=next_check_seconds(feed, response.headers, every_seconds=self.every_seconds),
            note=f"moved to {public_host(moved)}" if moved else None,
        )

    async def _fetch(self, url: str, kit: Kit) -> Response:
        try:
            return await kit.fetcher.page(url, accept=ACCEPT, conditional=True)
        except Permanent as error:
            if error.status == GONE:
                raise Misconfigured(f"{error}: the feed is gone for good; remove it from {PIPELINE}.feeds") from error
            raise


def _moved(cursor: dict[str, Any], configured: str) -> str:
    """Return the address the feed moved to for good, unless the settings have changed since."""
    target = cursor.get("moved_to")
    return target if isinstance(target, str) and cursor.get("configured") == configured else configured


def sighting(entry: Entry, outlet: str, now_ms: int, listing: str) -> Sighting:
    """Read one entry, or raise BadInput."""
    description = real_text(entry.summary_text, DESCRIPTION_CHARS_MAX)
    title = title_of(entry.title, outlet) or title_of((description or "")[:120], None)
    if entry.url is None or title is None:
        raise BadInput(f"entry {entry.id[:100]} has no {'web address' if entry.url is None else 'words'}")
    return Sighting(
        provider="rss",
        provider_id=entry.id[:200],
        link=entry.url,
        title=title,
        seen_ms=now_ms,
        listing=listing,
        description=description,
        source=outlet or None,
        author=author_of(entry.author),
        image=entry.image,
        language=(entry.language or "").partition("-")[0] or None,
        categories=entry.categories,
        published_ms=entry.published_ms,
    )


def outlet_name(feed: Feed) -> str:
    """Return what people call the outlet: the feed's title up to its explanation."""
    return (_NAME_END.sub("", feed.title).strip() or public_host(feed.home or feed.url))[:100]


def source_names(urls: Sequence[str]) -> list[str]:
    """Name each feed after its host, and by its path too where one host has several."""
    hosts = [public_host(url) for url in urls]
    shared = {host for host, count in Counter(hosts).items() if count > 1}
    names: list[str] = []
    for host, url in zip(hosts, urls, strict=True):
        name = f"{PIPELINE}.rss.{host}{_path(url) if host in shared else ''}"
        names.append(name if name not in names else f"{name}-{len(names)}")
    return names


def _path(url: str) -> str:
    parts = urlsplit(url)
    return re.sub(r"[^a-z0-9]+", "-", f"{parts.path}-{parts.query}".lower()).rstrip("-")
