"""Lists of feeds as other readers write them, and as we do: OPML 2. What is read comes from strangers."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any
from xml.parsers import expat
from xml.sax.saxutils import quoteattr

from tidings.model.errors import BadInput
from tidings.model.harmless import storable

BYTES_MAX = 20 * 1024 * 1024
OUTLINES_MAX = 20_000
DEPTH_MAX = 200
NAME_CHARS_MAX = 100
ADDRESS_CHARS_MAX = 2_000
_DECLARED = re.compile(rb"""^\s*<\?xml[^>]{0,200}?encoding\s*=\s*["']([A-Za-z0-9._-]{1,40})["']""")
_FEED_TYPES = frozenset({"", "rss", "atom", "rss1", "rdf", "feed", "jsonfeed", "json feed"})


@dataclass(frozen=True, slots=True)
class Outline:
    """One feed of a list."""

    line: int
    address: str
    title: str | None
    category: str | None
    trouble: str | None = None
    """Why it cannot be watched as it stands."""


@dataclass(slots=True)
class OpmlReading:
    """What a list holds."""

    outlines: list[Outline] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def read_opml(data: bytes) -> OpmlReading:
    """Read a list; raise BadInput where it is none. Document types and entities are refused, everything has a limit."""
    if len(data) > BYTES_MAX:
        raise BadInput(f"the list has {len(data):,} bytes; at most {BYTES_MAX:,} are read")
    reading = OpmlReading()
    data = _as_utf8(data, reading)
    handler = _Outlines(reading)
    parser = expat.ParserCreate("utf-8")
    parser.StartElementHandler = handler.start
    parser.EndElementHandler = handler.end
    parser.EntityDeclHandler = _refuse_entity
    parser.SetParamEntityParsing(expat.XML_PARAM_ENTITY_PARSING_NEVER)
    handler.parser = parser
    try:
        parser.Parse(data, True)
    except expat.ExpatError as error:
        if not reading.outlines:
            raise BadInput(f"this is no OPML: line {error.lineno}: {expat.ErrorString(error.code)}") from None
        reading.notes.append(
            f"line {error.lineno}: {expat.ErrorString(error.code)}; what stands before was read, the rest was not"
        )
    if not handler.is_opml:
        raise BadInput("this is no OPML: it has no <opml> element; export the subscriptions of your reader as OPML")
    return reading


def _refuse_entity(name: str, *_: Any) -> None:
    raise BadInput(f"the list declares the entity {name[:40]!r}; lists with entities of their own are not read")


def _as_utf8(data: bytes, reading: OpmlReading) -> bytes:
    """Return the list as UTF-8, whatever it says of itself and whatever it is."""
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return _plain(data.decode("utf-16", "replace"))
    found = _DECLARED.match(data.removeprefix(codecs.BOM_UTF8))
    named = found[1].decode().lower() if found else "utf-8"
    try:
        return _plain(data.decode("utf-8-sig" if named in ("utf-8", "utf8") else named))
    except LookupError:
        reading.notes.append(f"the encoding {named!r} is not known; it was read as UTF-8")
        return _plain(data.decode("utf-8", "replace"))
    except UnicodeError:
        reading.notes.append(f"it is not {named}, as it says; letters may be wrong")
        try:
            return _plain(data.decode("utf-8-sig"))
        except UnicodeDecodeError:
            return _plain(data.decode("cp1252", "replace"))


def _plain(text: str) -> bytes:
    return storable(text).encode()


class _Outlines:
    """Follows the elements, and keeps the feeds with the folders they stand in."""

    def __init__(self, reading: OpmlReading) -> None:
        self._reading = reading
        self._folders: list[str | None] = []
        self.parser: Any = None
        self.is_opml = False

    def start(self, name: str, attributes: dict[str, str]) -> None:
        if name.lower() == "opml":
            self.is_opml = True
        if name.lower() != "outline":
            return
        if len(self._folders) >= DEPTH_MAX:
            raise BadInput(f"line {self.parser.CurrentLineNumber}: folders stand more than {DEPTH_MAX} deep")
        said = {key.lower(): value.strip() for key, value in attributes.items()}
        title = (said.get("title") or said.get("text") or "")[:NAME_CHARS_MAX].strip() or None
        address = said.get("xmlurl") or (said.get("url", "") if said.get("type", "").lower() in ("rss", "atom") else "")
        self._folders.append(None if address else title)
        if address:
            self._keep(address, title, said)

    def end(self, name: str) -> None:
        if name.lower() == "outline":
            self._folders.pop()

    def _keep(self, address: str, title: str | None, said: dict[str, str]) -> None:
        if len(self._reading.outlines) >= OUTLINES_MAX:
            raise BadInput(f"the list has more than {OUTLINES_MAX:,} feeds; split it")
        folders = [folder for folder in self._folders if folder]
        folders = folders or [part for part in said.get("category", "").split(",")[0].split("/") if part.strip()]
        category = " / ".join(folders)[:NAME_CHARS_MAX].strip() or None
        kind = said.get("type", "").lower()
        trouble = None if kind in _FEED_TYPES else f"its type is {said['type'][:40]!r}, which is no feed"
        line = self.parser.CurrentLineNumber
        self._reading.outlines.append(Outline(line, address[:ADDRESS_CHARS_MAX], title, category, trouble))


def write_opml(outlines: Iterable[Outline], title: str) -> bytes:
    """Write a list that other readers take: one folder for each category."""
    folders: dict[str, list[Outline]] = {}
    for outline in outlines:
        folders.setdefault(outline.category or "", []).append(outline)
    lines = ['<?xml version="1.0" encoding="UTF-8"?>', '<opml version="2.0">', "  <head>"]
    lines += [f"    <title>{_escaped(title)}</title>", "  </head>", "  <body>"]
    for category, inside in sorted(folders.items()):
        if category:
            lines.append(f"    <outline text={_quoted(category)} title={_quoted(category)}>")
        lines += [f"{'      ' if category else '    '}{_line(outline)}" for outline in inside]
        if category:
            lines.append("    </outline>")
    return "\n".join([*lines, "  </body>", "</opml>", ""]).encode()


def _line(outline: Outline) -> str:
    name = _quoted(outline.title or outline.address)
    return f'<outline type="rss" text={name} title={name} xmlUrl={_quoted(outline.address)}/>'


def _quoted(text: str) -> str:
    return quoteattr(storable(text))


def _escaped(text: str) -> str:
    return _quoted(text)[1:-1]
