"""Feeds that strangers serve: RSS, Atom and JSON Feed, asked for and read into one form."""

from __future__ import annotations

from tidings.discover.feed.entry import FeedEntry, ParsedFeed
from tidings.discover.feed.errors import NotAFeed
from tidings.discover.feed.links import find_feeds
from tidings.discover.feed.poll import FeedGone, FeedPlace, FeedPoll, known_addresses, poll_feed
from tidings.discover.feed.reader import next_check_seconds, parse_feed

__all__ = [
    "FeedEntry",
    "FeedGone",
    "FeedPlace",
    "FeedPoll",
    "NotAFeed",
    "ParsedFeed",
    "find_feeds",
    "known_addresses",
    "next_check_seconds",
    "parse_feed",
    "poll_feed",
]
