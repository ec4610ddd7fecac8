"""Turns a page's bytes into readable text and what the page says of itself; runs inside the extraction child.

Importing this module costs about half a second and a parser that hostile pages can stall, so only the child, scorers
and benchmarks do.
"""

from __future__ import annotations

import codecs
import re
from datetime import UTC, datetime

import trafilatura
from trafilatura.settings import Document

from tidings.model.harmless import storable
from tidings.model.urls import public_host, web_address
from tidings.model.web import Extract
from tidings.process.extract.barrier import barrier_of

FIELD_CHARS_MAX = 500
HTML_CHARS_MAX = 100_000
_BODY = re.compile(r"<body>(.*)</body>", re.DOTALL)
_LANGUAGE_CHARS = 1_000
_LANGUAGE_CHARS_MIN = 40
_META_CHARSET = re.compile(rb"<meta[^>]{0,200}?charset\s*=\s*[\"']?\s*([a-zA-Z0-9_.:-]{2,40})", re.IGNORECASE)
_XML_CHARSET = re.compile(rb"<\?xml[^>]{0,100}?encoding\s*=\s*[\"']([a-zA-Z0-9_.:-]{2,40})", re.IGNORECASE)
_BOMS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
# A sentence ends at its mark and whatever closes after it. Marks of scripts without spaces need none behind them.
_SENTENCE_END = re.compile(r"[.!?…][\"'”’»)\]]*(?=\s|$)|[。！？｡।؟][\"'”’»）」』]*")
# Labels that mean more than they say, as in every browser: what is called Latin-1 is Windows-1252.
_WIDER = {"iso8859-1": "cp1252", "ascii": "cp1252", "gb2312": "gb18030", "gbk": "gb18030", "shift_jis": "cp932"}
_SHIFTING = frozenset({"iso2022_jp", "iso2022_kr", "hz", "utf-16", "utf-16-le", "utf-16-be", "utf-32"})


def extract_page(
    html: bytes | str, url: str, max_chars: int = 10_240, charset: str | None = None, *, marked_up: bool = False
) -> Extract:
    """Return the main text, cut at a sentence, with title, author, date, canonical address and language."""
    page = html if isinstance(html, str) else decode_page(html, charset)
    document = trafilatura.bare_extraction(
        storable(page, " "),
        url=url,
        with_metadata=True,
        include_comments=False,
        # The extensive search costs 1.6 s on the worst page and finds few dates more.
        date_extraction_params={"original_date": True, "extensive_search": False, "max_date": _today()},
    )
    if not isinstance(document, Document):
        return Extract(text="", barrier=barrier_of(page, None, ""))
    body = cut_at_sentence(storable(document.text or "").strip(), max_chars)
    return Extract(
        text=body,
        title=_field(document.title),
        author=_field(document.author),
        published_at=_field(document.date),
        canonical_url=_own_address(document.url, url),
        language=language_of(body),
        description=_field(document.description),
        html=_marked_up(page, url) if marked_up and body else None,
        barrier=barrier_of(page, document.title, body),
    )


def _marked_up(text: str, url: str) -> str | None:
    """Read the page once more, keeping its markup: with it the parser counts other words as text than without."""
    html = trafilatura.extract(
        storable(text, " "),
        url=url,
        output_format="html",
        include_comments=False,
        include_formatting=True,
        include_links=True,
        include_images=True,
        with_metadata=False,
    )
    found = _BODY.search(html or "")
    return storable(found[1]).strip()[:HTML_CHARS_MAX] if found else None


def decode_page(body: bytes, charset: str | None = None) -> str:
    """Read bytes as text, whatever the server or the page calls them; never fail.

    Bytes that are valid UTF-8 beyond ASCII are UTF-8, since other codings do not produce such bytes by accident.
    Otherwise the server's word counts, then the page's, then Windows-1252.
    """
    for mark, name in _BOMS:
        if body.startswith(mark):
            return body[len(mark) :].decode(name, "replace")
    head = body[:4096]
    found = _META_CHARSET.search(head) or _XML_CHARSET.search(head)
    encodings: list[str | None] = [_codec(charset), _codec(found[1].decode("ascii")) if found else None]
    if not any(name in _SHIFTING for name in encodings):
        encodings.insert(0, "utf-8")
    candidates = [name for name in (*encodings, "utf-8") if name]
    for name in candidates:
        try:
            return body.decode(name)
        except UnicodeDecodeError:
            continue
    # Nothing fits: take the first word that is not UTF-8 and mark what it cannot read.
    return body.decode(next((name for name in candidates if name != "utf-8"), "cp1252"), "replace")


def cut_at_sentence(text: str, max_chars: int) -> str:
    """Shorten to at most `max_chars`: at the last sentence end, else the last line or word, unless half would go."""
    if len(text) <= max_chars:
        return text
    head = text[:max_chars]
    ends = [match.end() for match in _SENTENCE_END.finditer(text, 0, min(len(text), max_chars + 1))]
    for end in (max((e for e in ends if e <= max_chars), default=0), head.rfind("\n"), head.rfind(" ")):
        if end > max_chars // 2:
            return head[:end].rstrip()
    return head.rstrip()


def language_of(text: str) -> str | None:
    """Name the language by its two-letter code; too little text has none."""
    if len(text) < _LANGUAGE_CHARS_MIN:
        return None
    import py3langid

    code, _ = py3langid.classify(text[:_LANGUAGE_CHARS])
    return str(code)


def _own_address(claimed: str | None, url: str) -> str | None:
    """Accept a page's canonical address only within its own site: it may not claim to be another site's article."""
    canonical = web_address(claimed, url)
    if canonical is None:
        return None
    claims, is_at = public_host(canonical), public_host(url)
    related = claims == is_at or claims.endswith(f".{is_at}") or is_at.endswith(f".{claims}")
    return canonical if claims.count(".") and related else None


def _field(value: str | None) -> str | None:
    text = " ".join(storable(value or "", " ").split())
    return text[:FIELD_CHARS_MAX] or None


def _codec(label: str | None) -> str | None:
    """Return Python's name of a character coding, if it has one for text."""
    try:
        info = codecs.lookup((label or "").strip(" \t\"'"))
    except (LookupError, ValueError):
        return None
    usable = getattr(info, "_is_text_encoding", True) and info.name not in ("utf-7", "idna", "punycode")
    return _WIDER.get(info.name, info.name) if usable else None


def _today() -> str:
    return datetime.now(UTC).date().isoformat()
