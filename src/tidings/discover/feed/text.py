"""From a feed's bytes to harmless text: one encoding, no DTD, no control characters, everything bounded."""

from __future__ import annotations

import codecs
import re
from html.entities import html5

from tidings.discover.feed.errors import NotAFeed
from tidings.discover.feed.spans import keep_newest
from tidings.model.harmless import storable
from tidings.model.urls import shown_url

CHARS_MAX = 20 * 1024 * 1024
"""No less than the most bytes that are fetched."""
HEAD_CHARS = 64 * 1024

_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_SAFE_CODECS = re.compile(
    r"utf-(8|16|32)|ascii|iso8859|cp(125|874|866|437|850|932|949|950|936)|koi8|gb|big5|euc|shift_jis|iso2022|mac-|tis|latin"
)
_STATEFUL = ("iso2022", "utf-16", "utf-32")
_DECLARED = re.compile(rb"""^\s*<\?xml[^>]{0,200}?\bencoding\s*=\s*["']([A-Za-z0-9._:-]{1,40})["']""")
_CHARSET = re.compile(r"""charset\s*=\s*["']?([A-Za-z0-9._:-]{1,40})""", re.IGNORECASE)
_HTML = re.compile(r"<!doctype\s+html|<html[\s>]", re.IGNORECASE)
_ROOT = re.compile(r"<(?:[\w.-]{1,20}:)?(rss|feed|rdf|channel)(?=[\s>/])", re.IGNORECASE)
_NAMED = re.compile(r"&([A-Za-z][A-Za-z0-9]{1,31});")
# An outlet writes an empty `dc:description` behind its full `description`; the parser would let the last one win.
_EMPTY = re.compile(
    r"<((?:dc:|itunes:|media:)?(?:description|summary|subtitle)|content:encoded)\s*(?:/>|>\s*</\1\s*>)", re.IGNORECASE
)


def decode(body: bytes, content_type: str | None) -> str:
    """Decode by byte-order mark, then by what the bytes prove, then by what was claimed; never fail."""
    for bom, name in _BOMS:
        if body.startswith(bom):
            return body[len(bom) :].decode(name, "replace")
    if body[:2] == b"<\x00" or body[:2] == b"\x00<":
        return body.decode("utf-16-le" if body[0] else "utf-16-be", "replace")
    claims = [claim for claim in (_header_charset(content_type), _declared_charset(body)) if claim]
    stateful = [claim for claim in claims if claim.startswith(_STATEFUL)]
    # Long text that is valid UTF-8 is UTF-8, whatever is claimed; only 7-bit encodings can look like it by accident.
    for name in [*stateful, "utf-8", *claims]:
        try:
            return body.decode(name)
        except UnicodeDecodeError:
            continue
    mostly_utf8 = body.decode("utf-8", "replace")
    if claims in ([], ["utf-8"], ["utf-8", "utf-8"]) and mostly_utf8.count("\ufffd") * 1000 < len(body):
        return mostly_utf8
    return body.decode("cp1252", "replace")


def without_surprises(text: str, url: str) -> tuple[str, str | None]:
    """Return XML that is safe to parse, and what was left out of it; or raise NotAFeed.

    Where there is more than the parser may be given, the newest entries stay.
    """
    cut = f"everything behind {CHARS_MAX:,} characters of {len(text):,}" if len(text) > CHARS_MAX else None
    text = storable(text[:CHARS_MAX])
    head = text[:HEAD_CHARS]
    root = _ROOT.search(head)
    if _HTML.search(head, 0, root.start() if root else len(head)):
        raise NotAFeed(f"{shown_url(url)} answered with an HTML page, not a feed: it is blocked, gone or never was one")
    if root is None:
        raise NotAFeed(f"{shown_url(url)} answered with something that is no RSS, Atom or JSON feed")
    # Everything before the root goes: XML declaration, DTD with its entities, stylesheets, a server's warnings.
    text = _NAMED.sub(_character, _EMPTY.sub("", text[root.start() :]))
    safe, left_out = keep_newest(text, shown_url(url))
    return safe, "; ".join(part for part in (left_out, cut) if part) or None


def too_many(found: int, kept: int) -> str | None:
    """Say how many entries were left to lie because there were too many."""
    return f"the {found - kept:,} oldest of {found:,} entries" if found > kept else None


def _character(match: re.Match[str]) -> str:
    """Spell an HTML entity as its character; the five that XML knows stay, for they keep the markup apart."""
    if match[1] in ("amp", "lt", "gt", "quot", "apos", "AMP", "LT", "GT", "QUOT"):
        return match[0].lower()
    character = html5.get(f"{match[1]};", match[0])
    return character if character[0] not in "<>" else match[0]


def _header_charset(content_type: str | None) -> str | None:
    match = _CHARSET.search(content_type or "")
    return _codec(match[1]) if match else None


def _declared_charset(body: bytes) -> str | None:
    match = _DECLARED.match(body[:400])
    return _codec(match[1].decode("ascii")) if match else None


def _codec(label: str) -> str | None:
    """Return Python's name for a text encoding of the web; Latin-1 means Windows-1252 there."""
    try:
        name = codecs.lookup(label).name
    except LookupError:
        return None
    if not _SAFE_CODECS.match(name):
        return None
    return "cp1252" if name in ("iso8859-1", "ascii") else name
