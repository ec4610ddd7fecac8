"""Reads any feed (RSS, Atom, JSON Feed) that strangers may serve; what cannot be read is refused with a reason.

Nothing here touches the network: the bytes are given, and neither entities nor addresses in them are ever loaded.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tidings.discover.feed.entry import ParsedFeed, seconds
from tidings.discover.feed.errors import NotAFeed
from tidings.discover.feed.json_feed import parse_json_feed
from tidings.discover.feed.text import decode
from tidings.discover.feed.xml_feed import parse_xml_feed
from tidings.model.urls import shown_url


@dataclass(frozen=True, slots=True)
class FeedReading:
    """What came of reading: a feed, or why it is none."""

    feed: ParsedFeed | None = None
    trouble: str | None = None


def read_feed(body: bytes, content_type: str | None, url: str) -> FeedReading:
    """Read a feed or say why that cannot be done; made to be called in a child process."""
    try:
        return FeedReading(parse_feed(body, content_type, url))
    except NotAFeed as error:
        return FeedReading(trouble=str(error))


def parse_feed(body: bytes, content_type: str | None, url: str) -> ParsedFeed:
    """Read a feed, or raise NotAFeed saying why it is none. `url` is where it came from and resolves relative links.

    It may take seconds on hostile input: call it in a child process.
    """
    text = decode(body, content_type)
    if not text.strip():
        raise NotAFeed(f"{shown_url(url)} answered with an empty body, not a feed")
    if text.lstrip("\ufeff \t\r\n").startswith(("{", "[")):
        return parse_json_feed(text, url)
    return parse_xml_feed(text, url)


def next_check_seconds(
    feed: ParsedFeed | None, headers: Mapping[str, str], *, every_seconds: float, at_most_seconds: float = 4 * 3600.0
) -> float | None:
    """Bound the outlet's wishes: never sooner than our own rhythm, never so late that entries fall out of the feed.

    Return None where our own rhythm is as good as any.
    """
    wishes = [feed.next_check_seconds if feed else None, _max_age(headers.get("cache-control", ""))]
    wish = max((w for w in wishes if w), default=0.0)
    bounded = min(wish, max(at_most_seconds, every_seconds))
    return bounded if bounded > every_seconds else None


def _max_age(cache_control: str) -> float | None:
    for part in cache_control.lower().split(","):
        name, _, value = part.strip().partition("=")
        if name == "max-age":
            return seconds(value, 1)
    return None
