"""The HTML inside a feed: made harmless, or turned to plain text."""

from __future__ import annotations

import re
from html import unescape

import nh3

from tidings.model.errors import BadInput
from tidings.model.urls import canonical_url

TAGS = frozenset(
    {"p", "br", "a", "ul", "ol", "li", "blockquote", "code", "pre", "em", "strong", "i", "b", "h2", "h3", "h4"}
)
HTML_CHARS_MAX = 200_000
TEXT_CHARS_MAX = 20_000

_DROPPED_WHOLE = {"script", "style", "template", "noscript", "svg", "math", "iframe", "object", "head", "title"}
_CLEANER = nh3.Cleaner(
    tags=set(TAGS),
    clean_content_tags=_DROPPED_WHOLE,
    attributes={"a": {"href"}},
    url_schemes={"http", "https", "mailto"},
    link_rel="noopener noreferrer nofollow",
    url_relative="deny",
)
_STRIPPER = nh3.Cleaner(tags=set(), clean_content_tags=_DROPPED_WHOLE, attributes={}, link_rel=None)
_BLOCK_END = re.compile(r"</(?:p|div|li|h[1-6]|tr|blockquote|section|article|figure|pre|ul|ol)\s*>|<br\s*/?>", re.I)
_SPACE = re.compile(r"[^\S\n]+")
_LINES = re.compile(r"\s*\n\s*")
_APPEARED = re.compile(r"\s*The post [^\n]{1,300}? (?:appeared first on|first appeared on) [^\n]{1,120}$")
_HREF = re.compile(r"""(<a\b[^>]{0,300}?\bhref\s*=\s*)("[^"]{0,2000}"|'[^']{0,2000}')""", re.IGNORECASE)
_IMAGE = re.compile(r"""<img\b[^>]{0,1000}?\bsrc\s*=\s*["']([^"'\s>]{1,2000})["']""", re.IGNORECASE)


def clean_html(html: str, base: str) -> str:
    """Keep what a reader needs and nothing that acts: no images, scripts, styles; links absolute."""
    html = _HREF.sub(lambda match: match[1] + _absolute(match[2], base), html[:HTML_CHARS_MAX])
    return _CLEANER.clean(html).strip()


def plain_text(html: str, limit: int = TEXT_CHARS_MAX) -> str:
    """Return the words of an HTML fragment (or of plain text), one line a block, at most `limit` characters."""
    if "<" in html or "&" in html:
        html = unescape(_STRIPPER.clean(_BLOCK_END.sub("\n", html[: limit * 10])))
    text = _LINES.sub("\n", _SPACE.sub(" ", html[: limit * 2])).strip()
    return shorten(_APPEARED.sub("", text), limit)


def one_line(html: str, limit: int) -> str:
    """Return plain text without line breaks: a title, a name."""
    return shorten(" ".join(plain_text(html, limit * 2).split()), limit)


def shorten(text: str, limit: int) -> str:
    """Cut at a word and say so."""
    if len(text) <= limit:
        return text
    cut = text[: limit - 1]
    return (cut[: max(cut.rfind(" "), limit // 2)]).rstrip() + "…"


def first_image(html: str, base: str) -> str | None:
    """Return the first image a fragment shows."""
    match = _IMAGE.search(html[:HTML_CHARS_MAX])
    return web_address(unescape(match[1]), base) if match else None


def web_address(url: object, base: str) -> str | None:
    """Return the canonical form of what should be an http address, or None."""
    if not isinstance(url, str) or not url.strip():
        return None
    try:
        return canonical_url(url, base)
    except BadInput:
        return None


def _absolute(quoted: str, base: str) -> str:
    target = unescape(quoted[1:-1])
    if target.lower().startswith("mailto:"):
        return quoted
    address = web_address(target, base)
    return '"' + address.replace("&", "&amp;").replace('"', "%22") + '"' if address else '""'
