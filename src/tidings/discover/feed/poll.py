"""Asks for one feed: conditionally, at the address it moved to, and through the site that announces it."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b

import msgspec

from tidings.discover.feed.entry import ParsedFeed
from tidings.discover.feed.errors import NotAFeed
from tidings.discover.feed.links import find_feeds
from tidings.discover.feed.reader import FeedReading, read_feed
from tidings.model.contracts import Extractor, Fetcher, Kit
from tidings.model.errors import Misconfigured, Permanent
from tidings.model.item import Rejected
from tidings.model.urls import public_host, shown_url, web_address
from tidings.model.web import Response

ACCEPT = (
    "application/rss+xml, application/atom+xml, application/feed+json, application/xml;q=0.9, text/xml;q=0.9, "
    "application/json;q=0.8, text/html;q=0.7, */*;q=0.1"
)
GONE = 410
CANDIDATES_MAX = 5
BYTES_MAX = 20 * 1024 * 1024
"""A feed may be as large as that even where its server does not compress."""


class FeedPlace(msgspec.Struct, frozen=True, omit_defaults=True):
    """Where a feed really is: it moved for good, or the configured address is a site that announces it."""

    configured: str = ""
    url: str = ""
    announced: bool = False
    gone: bool = False
    """It answered 410: it is not asked again until the settings give another address."""


class FeedGone(Misconfigured):
    """A feed is gone for good. Keep `place` as the cursor, so that the next run knows without asking."""

    def __init__(self, place: FeedPlace, setting: str) -> None:
        super().__init__(f"{shown_url(place.url)} answered {GONE}: the feed is gone for good; remove it from {setting}")
        self.place = place


@dataclass(frozen=True, slots=True)
class FeedPoll:
    """What one look at a feed brought."""

    response: Response
    place: FeedPlace
    digest: str
    """Of the answer; the next look compares with it."""
    feed: ParsedFeed | None
    """None where the answer is the same as in the last completed run."""

    @property
    def note(self) -> str | None:
        """Say what an operator may want to know of this look."""
        if self.feed is None:
            return "not changed"
        notes = []
        if self.place.announced:
            notes.append(f"the site announces {public_host(self.place.url)}'s feed")
        elif self.place.url != self.place.configured:
            notes.append(f"moved to {public_host(self.place.url)}")
        if self.feed.flaw:
            notes.append(f"not well-formed: {self.feed.flaw}")
        if self.feed.repeated:
            notes.append(f"{self.feed.repeated} entries stand in it more than once")
        return "; ".join(notes)[:300] or None

    @property
    def incomplete(self) -> str | None:
        """Say what stands in the feed and was not read."""
        return f"left out: {self.feed.left_out}" if self.feed is not None and self.feed.left_out else None

    @property
    def rejected(self) -> tuple[Rejected, ...]:
        """Name the entries that have nothing to show."""
        empty = self.feed.empty if self.feed is not None else ()
        return tuple(Rejected(place, "the entry has neither words nor an address nor an id") for place in empty)


async def poll_feed(kit: Kit, url: str, *, cursor: object, digest: str, setting: str) -> FeedPoll:
    """Ask for the feed configured as `url` and read it, unless its answer has the `digest` of the last completed run.

    `cursor` is the place an earlier poll returned, as builtins. Raise NotAFeed for what is none, and FeedGone
    naming the `setting` where the feed is gone for good; a place that is known to be gone is not asked.
    """
    start = _place(cursor, url)
    if start.gone:
        raise FeedGone(start, setting)
    response, place, is_site = await _fetch(kit.fetcher, start, setting)
    # A 304 does not prove that the stored copy was read: the run that fetched it may have died before its commit. So
    # the digest of the last completed run decides.
    found = _digest(response)
    if found == digest:
        return FeedPoll(response, place, found, None)
    try:
        feed = await _parsed(kit.extractor, response)
    except NotAFeed as error:
        if digest and not is_site:
            # This address gave a feed before. Now it gives a block page, and what that links to is not ours.
            raise
        feed, response, place = await _announced(kit, url, response, error)
    return FeedPoll(response, place, _digest(response), feed)


def _kept(cursor: object) -> FeedPlace:
    try:
        return msgspec.convert(cursor or {}, FeedPlace)
    except msgspec.ValidationError:
        return FeedPlace()


def known_addresses(cursor: object) -> tuple[str, ...]:
    """Return the canonical addresses that a kept place tells of: the configured one, and where the feed really is."""
    place = _kept(cursor)
    return tuple(address for url in (place.configured, place.url) if (address := web_address(url)))


def _place(cursor: object, url: str) -> FeedPlace:
    place = _kept(cursor)
    # Another address in the settings ends what was learned of the old one.
    return place if place.url and place.configured == url else FeedPlace(url, url)


async def _fetch(fetcher: Fetcher, place: FeedPlace, setting: str) -> tuple[Response, FeedPlace, bool]:
    """Ask for the feed; tell also whether the site was asked instead, because what it announced is gone."""
    try:
        response = await fetcher.page(place.url, accept=ACCEPT, max_bytes=BYTES_MAX, conditional=True)
    except Permanent as error:
        if place.announced and error.status is not None:
            response, place, _ = await _fetch(fetcher, FeedPlace(place.configured, place.configured), setting)
            return response, place, True
        if error.status == GONE:
            raise FeedGone(msgspec.structs.replace(place, gone=True), setting) from error
        raise
    moved = response.permanently_moved_to
    return response, FeedPlace(place.configured, moved, place.announced) if moved else place, False


async def _announced(kit: Kit, url: str, site: Response, trouble: NotAFeed) -> tuple[ParsedFeed, Response, FeedPlace]:
    """Read the first feed that a site announces and that is one."""
    for address in find_feeds(site.body, site.url)[:CANDIDATES_MAX]:
        try:
            response = await kit.fetcher.page(address, accept=ACCEPT, max_bytes=BYTES_MAX, conditional=True)
            feed = await _parsed(kit.extractor, response)
        except (NotAFeed, Permanent):
            continue
        return feed, response, FeedPlace(url, response.permanently_moved_to or address, announced=True)
    raise trouble


async def _parsed(extractor: Extractor, response: Response) -> ParsedFeed:
    content_type = response.headers.get("content-type")
    reading = await extractor.apart(FeedReading, read_feed, response.body, content_type, response.url)
    if reading.feed is None:
        raise NotAFeed(reading.trouble or f"{shown_url(response.url)} holds no feed that could be read")
    return reading.feed


def _digest(response: Response) -> str:
    return blake2b(response.body, digest_size=16).hexdigest()
