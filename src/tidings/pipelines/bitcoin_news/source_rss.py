"""News outlets' own feeds: no key, no credits. The addresses are configured, their content is a stranger's."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any
from urllib.parse import urlsplit

import msgspec

from tidings.discover.feed import FeedEntry, FeedGone, ParsedFeed, known_addresses, next_check_seconds, poll_feed
from tidings.model.contracts import Kit
from tidings.model.errors import BadInput
from tidings.model.item import Finding, Rejected
from tidings.model.pipeline import Page, Run, Schedule
from tidings.model.urls import canonical_url, public_host
from tidings.pipelines.bitcoin_news.body import PIPELINE, Sighting
from tidings.pipelines.bitcoin_news.client import read_all
from tidings.pipelines.bitcoin_news.sightings import (
    DESCRIPTION_CHARS_MAX,
    author_of,
    findings_of,
    real_text,
    title_of,
)

_NAME_END = re.compile(r"\s*(?::| [-–—|] |\.com\b).*$")


@dataclass(frozen=True)
class OutletFeed:
    """The source `bitcoin_news.rss.<outlet>`: one feed."""

    name: str
    url: str
    every_seconds: float
    keep_days: float

    @property
    def address(self) -> str:
        """What it is told apart by."""
        return canonical_url(self.url)

    def called(self, name: str) -> OutletFeed:
        """Return it under the name that the store gave it."""
        return replace(self, name=name)

    def places(self, cursor: Any) -> tuple[str, ...]:
        """Return the addresses that a kept cursor tells of."""
        return known_addresses(cursor)

    @property
    def schedule(self) -> Schedule:
        """When to ask."""
        return Schedule(every_seconds=self.every_seconds)

    async def pages(self, run: Run, kit: Kit) -> AsyncIterator[Page]:
        """Yield the feed as one page, or an empty one if it is the same as in the last completed run."""
        digest = run.mark if isinstance(run.mark, str) else ""
        try:
            poll = await poll_feed(kit, self.url, cursor=run.cursor, digest=digest, setting=f"{PIPELINE}.feeds")
        except FeedGone as gone:
            # The run fails visibly, and its page keeps what it learned: later runs fail without asking.
            yield Page((), cursor=msgspec.to_builtins(gone.place))
            raise
        findings: tuple[Finding, ...] = ()
        rejected: tuple[Rejected, ...] = ()
        if poll.feed is not None:
            reader = partial(sighting, outlet=outlet_name(poll.feed), now_ms=run.now_ms, listing=self.url)
            sightings, rejected = read_all(poll.feed.entries, reader)
            findings = await findings_of(sightings, kit.ledger, run.now_ms, self.keep_days)
        yield Page(
            findings,
            cursor=msgspec.to_builtins(poll.place),
            mark=poll.digest,
            rejected=rejected + poll.rejected,
            next_check_seconds=next_check_seconds(poll.feed, poll.response.headers, every_seconds=self.every_seconds),
            note=poll.note,
            incomplete=poll.incomplete,
        )


def sighting(entry: FeedEntry, outlet: str, now_ms: int, listing: str) -> Sighting:
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


def outlet_name(feed: ParsedFeed) -> str:
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
