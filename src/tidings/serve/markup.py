"""Foreign text and addresses made harmless, for pages and feeds."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import quote, urlsplit

import nh3
from markupsafe import Markup, escape

_INVISIBLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060\u2066-\u2069\ufeff]")
"""Control characters, and what turns the direction of a line around."""
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
_URL_LENGTH_MAX = 2_000


def tidy(text: Any, length_max: int = 2_000) -> str:
    """Return foreign text without control characters and direction changes, cut to a length."""
    clean = _INVISIBLE.sub("", "" if text is None else str(text))
    return clean if len(clean) <= length_max else clean[: length_max - 1] + "…"


def visible(value: Any) -> Any:
    """Keep invisible characters out of whatever a template writes; markup of ours passes."""
    return _INVISIBLE.sub("", value) if type(value) is str else value


def exactly(value: Any) -> Markup:
    """Write a value that comes back to us in a form: nothing dropped, invisible characters as references."""
    text = str(escape(value))
    return Markup(_INVISIBLE.sub(lambda found: f"&#{ord(found[0])};", text))  # noqa: S704  # just escaped


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
    """Return a web address that may stand in a link, or None."""
    if not isinstance(url, str) or len(url) > _URL_LENGTH_MAX or _INVISIBLE.search(url):
        return None
    try:
        parts = urlsplit(url.strip())
    except ValueError:
        return None
    return url.strip() if parts.scheme in ("http", "https") and parts.netloc else None


def host_of(url: str | None) -> str | None:
    """Return the host of an address, as people say it; a loopback address says nothing."""
    if url is None:
        return None
    try:
        host = urlsplit(url).hostname
    except ValueError:
        return None
    return tidy(host.removeprefix("www."), 80) if host and not host.startswith("127.") else None


def segment(text: Any) -> str:
    """Quote a value for use in an address; slashes stay."""
    return quote(str(text), safe="/:@!$'()*+,;=~-._")


def marked_text(html: str) -> Markup:
    """Pass on a snippet that `api.search.marked` has escaped."""
    return Markup(_INVISIBLE.sub("", html))  # noqa: S704  # escaped there, marks added behind


def coded(text: Any) -> Markup:
    """Return plain text with what stands between backticks as code."""
    return Markup(re.sub("`([^`]+)`", r"<code>\1</code>", str(escape(tidy(text)))))  # noqa: S704  # just escaped


def lines(text: Any) -> Markup:
    """Return plain text with its paragraphs kept."""
    parts = [part.strip() for part in re.split(r"\n\s*\n", tidy(text, 50_000)) if part.strip()]
    return Markup("").join(Markup("<p>{}</p>").format(escape(part)) for part in parts)
