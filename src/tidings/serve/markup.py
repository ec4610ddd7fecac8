"""Foreign text and addresses made harmless, for pages and feeds."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import quote

import nh3
from markupsafe import Markup, escape

from tidings.model.harmless import HIDDEN, visible
from tidings.model.urls import browser_address, link_address, public_host

_REFERENCED = re.compile(f"\r|{HIDDEN.pattern}")
"""What a browser would drop or change on the way through a form."""
_CLEANER = nh3.Cleaner(
    tags={"p", "br", "a", "ul", "ol", "li", "blockquote", "code", "pre", "em", "strong", "i", "b", "h2", "h3", "h4"},
    attributes={"a": {"href"}},
    url_schemes={"http", "https"},
    link_rel="noopener noreferrer nofollow ugc",
)
_TAG = re.compile("<[^>]{0,2000}>")
_BLOCK = re.compile("<(?:p|ul|ol|li|blockquote|pre|h[234])[> ]")
_INLINE = re.compile(r"</?(?:a|b|i|em|strong|code)(?:\s[^>]{0,2000})?>")
"""What stands within a line and parts no words."""


def tidy(text: Any, length_max: int = 2_000) -> str:
    """Return foreign text without control characters and direction changes, cut to a length."""
    clean = visible("" if text is None else str(text))
    return clean if len(clean) <= length_max else clean[: length_max - 1] + "…"


def visible_value(value: Any) -> Any:
    """Keep invisible characters out of whatever a template writes; markup of ours passes."""
    return visible(value) if type(value) is str else value


def exactly(value: Any) -> Markup:
    """Write a value that comes back to us in a form: nothing dropped, invisible characters as references."""
    text = str(escape(value))
    return Markup(_REFERENCED.sub(lambda found: f"&#{ord(found[0])};", text))  # noqa: S704  # just escaped


def clean_html(html: Any) -> Markup:
    """Return foreign HTML reduced to the safe subset; words before the first paragraph become one."""
    clean = _CLEANER.clean(tidy(html, 200_000))
    block = _BLOCK.search(clean)
    lead, rest = (clean[: block.start()], clean[block.start() :]) if block else (clean, "")
    return Markup(f"<p>{lead}</p>{rest}" if lead.strip() else rest)  # noqa: S704  # it was just cleaned


def words_of(html: Any, length_max: int = 400) -> str:
    """Return the words of foreign HTML."""
    bare = _TAG.sub(" ", _INLINE.sub("", _CLEANER.clean(tidy(html, 20_000))))
    for entity, character in (("&lt;", "<"), ("&gt;", ">"), ("&nbsp;", " "), ("&quot;", '"'), ("&amp;", "&")):
        bare = bare.replace(entity, character)
    return tidy(" ".join(bare.split()), length_max)


def safe_url(url: Any) -> str | None:
    """Return a web address that may stand in a link, spelled as a browser would send it, or None."""
    return link_address(browser_address(url)) if isinstance(url, str) else None


def host_of(url: str | None) -> str | None:
    """Return the host of an address, as people say it; a loopback address says nothing."""
    host = public_host(url or "")
    return tidy(host, 80) if host and not host.startswith("127.") else None


def segment(text: Any) -> str:
    """Quote a value for use in an address; slashes stay."""
    return quote(str(text), safe="/:@!$'()*+,;=~-._")


def marked_text(html: str) -> Markup:
    """Pass on a snippet that `api.search.marked` has escaped."""
    return Markup(visible(html))  # noqa: S704  # escaped there, marks added behind


def coded(text: Any) -> Markup:
    """Return plain text with what stands between backticks as code."""
    return Markup(re.sub("`([^`]+)`", r"<code>\1</code>", str(escape(tidy(text)))))  # noqa: S704  # just escaped


def lines(text: Any) -> Markup:
    """Return plain text with its paragraphs kept."""
    parts = [part.strip() for part in re.split(r"\n\s*\n", tidy(text, 50_000)) if part.strip()]
    return Markup("").join(Markup("<p>{}</p>").format(escape(part)) for part in parts)
