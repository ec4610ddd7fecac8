"""Finds the feeds a web page announces."""

from __future__ import annotations

import re
from html import unescape

from tidings.model.urls import web_address

FEEDS_MAX = 20
PAGE_CHARS_MAX = 1024 * 1024

_FEED_TYPES = frozenset(
    {
        "application/rss+xml",
        "application/atom+xml",
        "application/rdf+xml",
        "application/feed+json",
        "application/json",
        "text/xml",
        "application/xml",
    }
)
_TAG = re.compile(r"<(link|a|base)\s([^<>]{1,4000})>", re.IGNORECASE)
_ATTRIBUTE = re.compile(r"""([a-zA-Z-]{2,20})\s*=\s*("[^"]*"|'[^']*'|[^\s"'>]+)""")
_LOOKS_LIKE_FEED = re.compile(r"(?:^|[/._-])(?:rss|atom|feeds?|index\.xml)(?:[/._-]|$)")


def find_feeds(html: bytes | str, url: str) -> list[str]:
    """Return the addresses of a page's feeds, announced ones first, then links that look like one; at most 20."""
    text = html.decode("utf-8", "replace") if isinstance(html, bytes) else html
    text = _without_comments(text[:PAGE_CHARS_MAX])
    base, announced, guessed = url, [], []
    for tag in _TAG.finditer(text):
        attributes = {name.lower(): unescape(value.strip("\"'")) for name, value in _ATTRIBUTE.findall(tag[2])}
        href = attributes.get("href", "")
        name = tag[1].lower()
        if name == "base":
            base = web_address(href, url) or base
        elif name == "link" and _announces(attributes):
            announced.append(href)
        elif name == "a" and _LOOKS_LIKE_FEED.search(href.partition("?")[0].lower()):
            guessed.append(href)
    addresses = (web_address(href, base) for href in (announced or guessed))
    return list(dict.fromkeys(address for address in addresses if address))[:FEEDS_MAX]


def _announces(attributes: dict[str, str]) -> bool:
    relations = attributes.get("rel", "").lower().split()
    kind = attributes.get("type", "").partition(";")[0].strip().lower()
    return "feed" in relations or ("alternate" in relations and kind in _FEED_TYPES)


def _without_comments(text: str) -> str:
    """Drop comments in one pass; an unclosed one hides the rest."""
    pieces = []
    position = 0
    while (start := text.find("<!--", position)) != -1:
        pieces.append(text[position:start])
        end = text.find("-->", start + 4)
        if end == -1:
            return "".join(pieces)
        position = end + 3
    return "".join([*pieces, text[position:]])
