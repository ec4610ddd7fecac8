"""A feed as bytes: RSS 2.0, Atom 1.0 and JSON Feed 1.1, harmless also to readers who take plain text for HTML.

Entries hold plain text, which may say `<script>` or `&lt;script&gt;` and mean just that. RSS does not tell readers
whether a text is HTML, and most take it for HTML: there it is escaped as HTML first, and then once more as XML. Atom
says of each text what it is. JSON Feed's title and summary are plain text by its specification, its content HTML.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import format_datetime
from html import escape, unescape
from urllib.parse import quote
from xml.etree import ElementTree

import msgspec

from tidings.model.clock import rfc3339

TYPES = {"rss": "application/rss+xml", "atom": "application/atom+xml", "json": "application/feed+json"}
_ATOM = "http://www.w3.org/2005/Atom"
_CONTENT = "http://purl.org/rss/1.0/modules/content/"
_DC = "http://purl.org/dc/elements/1.1/"
_TAG = re.compile("<[A-Za-z/!?]")
"""Where a browser sees the beginning of a tag; any other `<` is text."""
_URL_SAFE = "/%:@!$&'()*+,;=~-._?#[]"


@dataclass(frozen=True, slots=True)
class FeedDocumentEntry:
    """One entry, in no format yet. All is plain text but `html`, which is clean."""

    id: str
    url: str
    title: str
    html: str
    summary: str
    author: str | None
    at_ms: int
    tags: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FeedDocument:
    """A feed, in no format yet. All is plain text."""

    id: str
    title: str
    about: str
    home: str
    address: str
    updated_ms: int
    entries: Sequence[FeedDocumentEntry]


def is_markup(text: str) -> bool:
    """Tell whether a plain text would read as something else where it is taken for HTML: `<b>`, `&lt;`, not `R&D`."""
    return _TAG.search(text) is not None or unescape(text) != text


def as_html(text: str) -> str:
    """Return plain text that reads the same as HTML; what reads so anyway is left as it is, for those who take it."""
    return escape(text, quote=False) if is_markup(text) else text


def name(text: str) -> str:
    """Return a name or tag, which is plain text in every format, without what a careless reader takes for a tag."""
    return text.replace("<", "\u2039").replace(">", "\u203a")


def address(url: str) -> str:
    """Return an address without the characters that end an attribute or begin a tag."""
    return quote(url, safe=_URL_SAFE)


def write_rss(feed: FeedDocument) -> bytes:
    """Write RSS 2.0 with full content."""
    for prefix, space in (("atom", _ATOM), ("content", _CONTENT), ("dc", _DC)):
        ElementTree.register_namespace(prefix, space)
    root = ElementTree.Element("rss", version="2.0")
    channel = ElementTree.SubElement(root, "channel")
    _rss(channel, "title", as_html(feed.title))
    _rss(channel, "link", feed.home)
    _rss(channel, "description", escape(feed.about, quote=False))
    _rss(channel, "generator", "tidings")
    ElementTree.SubElement(channel, f"{{{_ATOM}}}link", href=feed.address, rel="self", type=TYPES["rss"])
    _rss(channel, "lastBuildDate", _mail_date(feed.updated_ms))
    for entry in feed.entries:
        item = ElementTree.SubElement(channel, "item")
        _rss(item, "title", as_html(entry.title))
        _rss(item, "link", address(entry.url))
        ElementTree.SubElement(item, "guid", isPermaLink="false").text = entry.id
        _rss(item, "pubDate", _mail_date(entry.at_ms))
        if entry.author:
            _rss(item, f"{{{_DC}}}creator", as_html(name(entry.author)))
        for tag in entry.tags:
            _rss(item, "category", as_html(name(tag)))
        _rss(item, "description", escape(entry.summary, quote=False))
        _rss(item, f"{{{_CONTENT}}}encoded", entry.html)
    return _document(root)


def write_atom(feed: FeedDocument) -> bytes:
    """Write Atom 1.0."""
    ElementTree.register_namespace("", _ATOM)
    root = ElementTree.Element(f"{{{_ATOM}}}feed")
    _atom(root, "id", feed.id)
    _said(root, "title", feed.title)
    _said(root, "subtitle", feed.about)
    _atom(root, "updated", rfc3339(feed.updated_ms))
    _atom(root, "link", None, rel="self", type=TYPES["atom"], href=feed.address)
    _atom(root, "link", None, rel="alternate", type="text/html", href=feed.home)
    _atom(root, "generator", "tidings")
    _atom(_atom(root, "author", None), "name", "tidings")
    for entry in feed.entries:
        node = _atom(root, "entry", None)
        _atom(node, "id", entry.id)
        _said(node, "title", entry.title)
        _atom(node, "link", None, rel="alternate", href=address(entry.url))
        _atom(node, "published", rfc3339(entry.at_ms))
        _atom(node, "updated", rfc3339(entry.at_ms))
        if entry.author:
            _atom(_atom(node, "author", None), "name", name(entry.author))
        for tag in entry.tags:
            _atom(node, "category", None, term=name(tag))
        if entry.summary:
            _said(node, "summary", entry.summary)
        _atom(node, "content", entry.html, type="html")
    return _document(root)


def write_json(feed: FeedDocument) -> bytes:
    """Write JSON Feed 1.1."""
    items = [
        {
            "id": entry.id,
            "url": address(entry.url),
            "title": entry.title,
            "content_html": entry.html,
            "summary": entry.summary,
            "date_published": rfc3339(entry.at_ms),
            "authors": [{"name": name(entry.author)}] if entry.author else [],
            "tags": [name(tag) for tag in entry.tags],
        }
        for entry in feed.entries
    ]
    return msgspec.json.encode(
        {
            "version": "https://jsonfeed.org/version/1.1",
            "title": feed.title,
            "description": feed.about,
            "home_page_url": feed.home,
            "feed_url": feed.address,
            "items": items,
        }
    )


def _rss(parent: ElementTree.Element, tag: str, text: str) -> None:
    ElementTree.SubElement(parent, tag).text = text


def _said(parent: ElementTree.Element, tag: str, text: str) -> None:
    """Write plain text as such, or as escaped HTML where a reader who does not ask for the type would see markup."""
    _atom(parent, tag, as_html(text), type="html" if is_markup(text) else "text")


def _atom(parent: ElementTree.Element, tag: str, text: str | None, **attributes: str) -> ElementTree.Element:
    node = ElementTree.SubElement(parent, f"{{{_ATOM}}}{tag}", attributes)
    node.text = text
    return node


def _document(root: ElementTree.Element) -> bytes:
    body: bytes = ElementTree.tostring(root, encoding="utf-8")
    return b'<?xml version="1.0" encoding="utf-8"?>\n' + body


def _mail_date(ms: int) -> str:
    return format_datetime(datetime.fromtimestamp(ms / 1000, UTC), usegmt=True)


WRITERS = {"rss": write_rss, "atom": write_atom, "json": write_json}
"""By the end of a feed's address."""
