"""The HTML inside a feed: made harmless, or turned to plain text."""

from __future__ import annotations

import re
from html import escape, unescape

from tidings.model.urls import web_address
from tidings.net.sanitizer import lines_of, readable_html

HTML_CHARS_MAX = 100_000
TEXT_CHARS_MAX = 20_000

_HEADLINE = re.compile(r"\s*<h[12]>(.{0,2000}?)</h[12]>\s*", re.DOTALL)
_SPACE = re.compile(r"[^\S\n]+")
_LINES = re.compile(r"\s*\n\s*")
_APPEARED = re.compile(r"\s*The post [^\n]{1,300}? (?:appeared first on|first appeared on) [^\n]{1,120}$")
_ADDRESS = re.compile(
    r"""(<(?:a\b[^>]{0,300}?\bhref|img\b[^>]{0,1000}?\bsrc)\s*=\s*)("[^"]{0,2000}"|'[^']{0,2000}')""", re.IGNORECASE
)
_IMAGE = re.compile(r"""<img\b[^>]{0,1000}?\bsrc\s*=\s*["']([^"'\s>]{1,2000})["']""", re.IGNORECASE)


def clean_html(html: str, base: str) -> str:
    """Keep what a reader needs and nothing that acts: no scripts, no styles. Links and images get whole addresses."""
    return readable_html(
        _ADDRESS.sub(lambda match: match[1] + _absolute(match[2], base), html[:HTML_CHARS_MAX])
    ).strip()


def without_headline(html: str, title: str) -> str:
    """Drop a first heading that only says the title again, as pages begin."""
    found = _HEADLINE.match(html)
    is_same = found is not None and one_line(found[1], HTML_CHARS_MAX).casefold() == title.casefold()
    return html[found.end() :] if found is not None and is_same else html


def paragraphs(text: str) -> str:
    """Write plain text as HTML, a paragraph for each line that says something."""
    return "\n".join(f"<p>{escape(line.strip(), quote=False)}</p>" for line in text.splitlines() if line.strip())


def plain_text(html: str, limit: int = TEXT_CHARS_MAX) -> str:
    """Return the words of an HTML fragment (or of plain text), one line a block, at most `limit` characters."""
    text = lines_of(html[: limit * 10])[: limit * 2]
    text = _LINES.sub("\n", _SPACE.sub(" ", text)).strip()
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


def _absolute(quoted: str, base: str) -> str:
    target = unescape(quoted[1:-1])
    if target.lower().startswith("mailto:"):
        return quoted
    address = web_address(target, base)
    return '"' + address.replace("&", "&amp;").replace('"', "%22") + '"' if address else '""'
