"""Make foreign HTML harmless, and plain text of it."""

from __future__ import annotations

import re

import nh3

TAGS = {
    "p", "br", "a", "ul", "ol", "li", "blockquote", "code", "pre", "em", "strong", "i", "b", "h2", "h3", "h4",
}  # fmt: skip

_TEXT = nh3.Cleaner(
    tags=TAGS,
    attributes={"a": {"href"}},
    url_schemes={"http", "https", "mailto"},
    url_relative="deny",
    link_rel="nofollow noopener",
)
_TITLE = nh3.Cleaner(tags=set(), attributes={}, link_rel=None)
_TAG = re.compile("<[^>]*>")


def clean_text(html: str) -> str:
    """Keep the safe subset of a text's HTML. Cleaning twice changes nothing."""
    return _TEXT.clean(html) if "<" in html or "&" in html else html


def clean_title(html: str) -> str:
    """Keep the text of a title, with its entities. Cleaning twice changes nothing."""
    return _TITLE.clean(html) if "<" in html or "&" in html else html


def plain(clean: str) -> str:
    """Return the words of cleaned HTML. The cleaner leaves four entities and no `>` inside a tag."""
    if "<" in clean:
        clean = _TAG.sub(" ", clean)
    if "&" in clean:
        clean = clean.replace("&lt;", "<").replace("&gt;", ">").replace("&nbsp;", " ").replace("&amp;", "&")
    return clean.strip()
