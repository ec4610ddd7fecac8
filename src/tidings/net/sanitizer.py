"""Strangers' HTML made harmless: a safe subset of it, or its words alone."""

from __future__ import annotations

import re
from html import unescape

import nh3

TAGS = frozenset(
    {"p", "br", "a", "ul", "ol", "li", "blockquote", "code", "pre", "em", "strong", "i", "b", "h2", "h3", "h4"}
)
_DROPPED_WHOLE = {"script", "style", "template", "noscript", "svg", "math", "iframe", "object", "head", "title"}
_SAFE = nh3.Cleaner(
    tags=set(TAGS),
    clean_content_tags=_DROPPED_WHOLE,
    attributes={"a": {"href"}},
    url_schemes={"http", "https", "mailto"},
    url_relative="deny",
    link_rel="nofollow noopener",
)
_BARE = nh3.Cleaner(tags=set(), clean_content_tags=_DROPPED_WHOLE, attributes={}, link_rel=None)
_BLOCK_END = re.compile(r"</(?:p|div|li|h[1-6]|tr|blockquote|section|article|figure|pre|ul|ol)\s*>|<br\s*/?>", re.I)
_INLINE = re.compile(r"</?(?:a|b|i|em|strong|code)(?: [^>]*)?>")
_TAG = re.compile("<[^>]*>")


def safe_html(html: str) -> str:
    """Keep what a reader needs and nothing that acts: no images, scripts or styles. Cleaning twice changes nothing."""
    return _SAFE.clean(html) if "<" in html or "&" in html else html


def without_tags(html: str) -> str:
    """Keep the text, with its entities, so that it is still HTML. Cleaning twice changes nothing."""
    return _BARE.clean(html) if "<" in html or "&" in html else html


def lines_of(html: str) -> str:
    """Return the text of an HTML fragment (or of plain text), with a line end after each block."""
    return unescape(_BARE.clean(_BLOCK_END.sub("\n", html))) if "<" in html or "&" in html else html


def words_of(safe: str) -> str:
    """Return the words of what `safe_html` or `without_tags` returned; those leave four entities and whole tags."""
    if "<" in safe:
        safe = _TAG.sub(" ", _INLINE.sub("", safe))
    if "&" in safe:
        safe = safe.replace("&lt;", "<").replace("&gt;", ">").replace("&nbsp;", " ").replace("&amp;", "&")
    return safe.strip()
