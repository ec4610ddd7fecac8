"""Where the entries of an XML feed stand in its text: more than the parser may be given is thinned out, oldest first.

The parser builds everything in memory and needs up to 20 microseconds a tag, so what it gets is bounded. A text that
is cut in the middle would lose the newest entries of a feed that is written oldest first.
"""

from __future__ import annotations

import re
from email.utils import parsedate_to_datetime
from typing import NamedTuple

from tidings.discover.feed.entry import ENTRIES_MAX, newest_first
from tidings.discover.feed.errors import NotAFeed
from tidings.model.clock import read_time

DEPTH_MAX = 100
TAGS_MAX = 400_000
"""Measured: the parser needs at most 20 microseconds a tag, so a hostile feed costs some seconds of its own process."""
ATTRIBUTES_MAX = 200
"""Of one tag; the parser's time grows with their square."""

TAG_CHARS_MAX = 50_000

_TAG_NAME = re.compile(r"[A-Za-z_][\w:.-]{0,100}")
_ENTRY_NAMES = frozenset({"item", "entry"})
_DATE = re.compile(
    r"<(?:pubDate|published|updated|modified|issued|dc:date)\b[^>]{0,100}>\s*([^<]{6,60}?)\s*<", re.IGNORECASE
)


class EntrySpan(NamedTuple):
    """The text of one entry."""

    start: int
    end: int
    tags: int
    is_hostile: bool


def keep_newest(text: str, shown: str) -> tuple[str, str | None]:
    """Return the text with as many entries as the parser may be given, and what was left out."""
    spans, end, tags_outside = _entry_spans(text, shown)
    usable = [span for span in spans if not span.is_hostile]
    kept = usable
    if len(usable) > ENTRIES_MAX or tags_outside + sum(span.tags for span in usable) > TAGS_MAX:
        kept = _newest(text, usable, TAGS_MAX - tags_outside)
    left_out = []
    if len(kept) < len(usable):
        left_out.append(f"the {len(usable) - len(kept):,} oldest of {len(spans):,} entries")
    if len(usable) < len(spans):
        left_out.append(f"{len(spans) - len(usable):,} entries with too many levels or attributes")
    return _without(text, set(spans) - set(kept), end), "; ".join(left_out) or None


def _newest(text: str, spans: list[EntrySpan], tags_allowed: int) -> list[EntrySpan]:
    order = newest_first([_time_ms(text[span.start : span.end]) for span in spans])
    chosen: list[int] = []
    for place in order[:ENTRIES_MAX]:
        tags_allowed -= spans[place].tags
        if tags_allowed < 0:
            break
        chosen.append(place)
    return [spans[place] for place in sorted(chosen)]


def _without(text: str, dropped: set[EntrySpan], end: int) -> str:
    pieces, position = [], 0
    for span in sorted(dropped):
        pieces.append(text[position : span.start])
        position = span.end
    return "".join([*pieces, text[position:end]])


def _time_ms(entry: str) -> int | None:
    """Read an entry's date as quickly as possible; only the order matters."""
    match = _DATE.search(entry)
    if match is None:
        return None
    if (ms := read_time(match[1])) is not None:
        return ms
    try:
        return round(parsedate_to_datetime(match[1]).timestamp() * 1000)
    except (ValueError, TypeError, OverflowError, IndexError):
        return None


def _entry_spans(text: str, shown: str) -> tuple[list[EntrySpan], int, int]:
    """Return the entries, where the readable text ends, and how many tags stand outside of entries."""
    finder = _Finder(shown)
    position, last_end = text.find("<"), text.rfind(">")
    while position != -1:
        if text.startswith(("<![CDATA[", "<!--", "<?"), position):
            position = _skip_opaque(text, position)
            continue
        if position > last_end:
            break  # No tag is ever closed again.
        end = text.find(">", position, position + TAG_CHARS_MAX)
        if end == -1:
            end = position
        closes = text.startswith("/", position + 1)
        match = _TAG_NAME.match(text, position + 1 + closes)
        many_attributes = text.count("=", position, end) > ATTRIBUTES_MAX
        if not finder.tag(position, end + 1, match[0].lower() if match else "", closes, text[end - 1] == "/"):
            return finder.spans, finder.last_end, finder.tags_outside
        if many_attributes:
            finder.suspect("has a tag with more than " + str(ATTRIBUTES_MAX) + " attributes")
        position = text.find("<", position + 1)
    finder.finish(len(text) if position == -1 else position)
    return finder.spans, len(text) if position == -1 else position, finder.tags_outside


class _Finder:
    """Follows the tags of a document and notes where entries begin and end."""

    def __init__(self, shown: str) -> None:
        self.spans: list[EntrySpan] = []
        self.tags_outside = 0
        self.last_end = 0
        self._shown = shown
        self._open: list[str] = []
        self._start: int | None = None
        self._tags = 0
        self._is_hostile = False

    def tag(self, start: int, end: int, name: str, closes: bool, closes_itself: bool) -> bool:
        """Take the next tag; False where there are too many of them outside of entries."""
        if self._start is None:
            self.tags_outside += 1
            if self.tags_outside > TAGS_MAX:
                return False
        self._tags += 1
        if closes:
            _close(self._open, name)
            if name in _ENTRY_NAMES and self._start is not None:
                self._end_entry(end)
        elif name and not closes_itself:
            if name in _ENTRY_NAMES:
                if self._start is not None:
                    self._end_entry(start)  # The one before was never closed.
                self._start, self._tags, self._is_hostile = start, 1, False
            self._open.append(name)
            if len(self._open) > DEPTH_MAX:
                self.suspect(f"nests its elements deeper than {DEPTH_MAX}")
        elif name in _ENTRY_NAMES and self._start is None:
            self.spans.append(EntrySpan(start, end, 1, is_hostile=False))
            self.last_end = end
        return True

    def suspect(self, trouble: str) -> None:
        """Leave out the entry that is open; what stands outside of entries cannot be left out."""
        if self._start is None:
            raise NotAFeed(f"{self._shown} {trouble}")
        self._is_hostile = True
        del self._open[DEPTH_MAX:]

    def finish(self, end: int) -> None:
        """Take an entry that the end of the text cut short as it is."""
        if self._start is not None:
            self._end_entry(end)

    def _end_entry(self, end: int) -> None:
        assert self._start is not None
        self.spans.append(EntrySpan(self._start, end, self._tags, self._is_hostile))
        self._start, self._tags, self.last_end = None, 0, end


def _skip_opaque(text: str, position: int) -> int:
    """Step over CDATA, a comment or an instruction; an unclosed one swallows the rest."""
    closing = "]]>" if text.startswith("<![", position) else "-->" if text.startswith("<!-", position) else "?>"
    end = text.find(closing, position)
    return -1 if end == -1 else text.find("<", end)


def _close(open_names: list[str], name: str) -> None:
    """Close the innermost element of that name and everything left open inside it; ignore a stray end tag."""
    for index in range(len(open_names) - 1, -1, -1):
        if open_names[index] == name:
            del open_names[index:]
            return
