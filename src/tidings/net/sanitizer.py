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
_READING_TAGS = TAGS | {
    "h1", "h5", "h6", "hr", "img", "figure", "figcaption", "table", "thead", "tbody", "tfoot", "tr", "th", "td",
    "caption", "dl", "dt", "dd", "sub", "sup", "del", "ins", "kbd", "s", "u", "mark", "q", "cite", "small",
}  # fmt: skip
_READING = nh3.Cleaner(
    tags=set(_READING_TAGS),
    clean_content_tags=_DROPPED_WHOLE,
    attributes={"a": {"href"}, "img": {"src", "alt"}, "td": {"colspan", "rowspan"}, "th": {"colspan", "rowspan"}},
    url_schemes={"http", "https", "mailto"},
    url_relative="deny",
    link_rel="nofollow noopener",
    set_tag_attribute_values={"img": {"loading": "lazy", "referrerpolicy": "no-referrer"}},
)
_IMAGE = re.compile(r"""<img((?:\s[\w-]+="[^"]*")*)\s*/?>""")
_SOURCE = re.compile(r"""\ssrc="(https?://[^"]+)\"""")
_ALT = re.compile(r"""\salt="([^"]*)\"""")
_BARE = nh3.Cleaner(tags=set(), clean_content_tags=_DROPPED_WHOLE, attributes={}, link_rel=None)
_BLOCK_END = re.compile(r"</(?:p|div|li|h[1-6]|tr|blockquote|section|article|figure|pre|ul|ol)\s*>|<br\s*/?>", re.I)
_INLINE = re.compile(r"</?(?:a|b|i|em|strong|code)(?: [^>]*)?>")
_TAG = re.compile("<[^>]*>")


def safe_html(html: str) -> str:
    """Keep what a reader needs and nothing that acts: no images, scripts or styles. Cleaning twice changes nothing."""
    return _SAFE.clean(html) if "<" in html or "&" in html else html


def readable_html(html: str) -> str:
    """Keep what makes a text good to read, also tables and images by their address. Cleaning twice changes nothing."""
    return _IMAGE.sub(lambda found: found[0] if _SOURCE.search(found[1]) else "", _READING.clean(html))


def without_images(readable: str) -> str:
    """Put its description in the place of each image of what `readable_html` returned."""
    return _IMAGE.sub(_described, readable)


def image_count(readable: str) -> int:
    """Count the images of what `readable_html` returned."""
    return len(_IMAGE.findall(readable))


def _described(image: re.Match[str]) -> str:
    alt = _ALT.search(image[1])
    return f"<em>[image: {alt[1].strip()}]</em>" if alt and alt[1].strip() else ""


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
