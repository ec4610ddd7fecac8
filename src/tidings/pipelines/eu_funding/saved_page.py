"""Reads a listing page of the portal that a browser rendered or a person saved.

The page as served is an empty application shell; we ask the search service instead. Cards are recognized by what people
read in them, not by their markup, which changes.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from html.parser import HTMLParser
from urllib.parse import unquote, urljoin, urlsplit

from tidings.pipelines.eu_funding.body import Opportunity, Status
from tidings.pipelines.eu_funding.programmes import PROGRAMMES
from tidings.pipelines.eu_funding.results import judged

BASE_URL = "https://ec.europa.eu/"
CARDS_MAX = 1_000
PAGE_CHARS_MAX = 5_000_000

_CARD_LINK = re.compile(r"/opportunities/(topic-details|competitive-calls-cs)/([^/?#]+)", re.IGNORECASE)
_SUBTITLE = re.compile(r"^(\S+) \| ", re.MULTILINE)
_DATE = r"\s*(\d{1,2} [A-Z][a-z]+ \d{4})"
_OPENING = re.compile(r"Opening date:" + _DATE)
_DEADLINE = re.compile(r"(?:Deadline date|Next deadline):" + _DATE)
_STAGE = re.compile(r"^(single-stage|two-stage|multiple cut-off)$", re.IGNORECASE | re.MULTILINE)
_PROGRAMME = re.compile(r"^Programme:\s*(.+?)(?:\s*\(([^()]+)\))?\s*$", re.MULTILINE)
_ACTION = re.compile(r"^Type of action:\s*(.+)$", re.MULTILINE)
_STATUSES: tuple[tuple[str, Status], ...] = (("forthcoming", "forthcoming"), ("open", "open"), ("closed", "closed"))


def parse_opportunities(page: str, *, now_ms: int, base_url: str = BASE_URL) -> list[Opportunity]:
    """Return the opportunities a rendered listing shows, in its order; an unrendered shell shows none."""
    reader = _Cards()
    reader.feed(page[:PAGE_CHARS_MAX])
    reader.close()
    found = [_opportunity(href, title, text, base_url, now_ms) for href, title, text in reader.cards()]
    return list({each.reference: each for each in found if each is not None}.values())[:CARDS_MAX]


class _Cards(HTMLParser):
    """Cuts a page into cards: each begins with the link to its opportunity."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self._found: list[tuple[str, list[str], list[str]]] = []
        self._in_title = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        href = dict(attrs).get("href") or ""
        if tag == "a" and _CARD_LINK.search(href):
            self._found.append((href, [], []))
            self._in_title = True
        elif self._found and tag not in ("strong", "b", "em", "i"):
            self._found[-1][2].append("\n")

    def handle_endtag(self, tag: str) -> None:
        if tag == "a":
            self._in_title = False

    def handle_data(self, data: str) -> None:
        if self._found:
            _, title, text = self._found[-1]
            (title if self._in_title else text).append(data)

    def cards(self) -> list[tuple[str, str, str]]:
        """Return address, title and text of each card."""
        return [(href, " ".join("".join(title).split()), _lines("".join(text))) for href, title, text in self._found]


def _opportunity(href: str, title: str, text: str, base_url: str, now_ms: int) -> Opportunity | None:
    link = _CARD_LINK.search(href)
    if link is None or not title:
        return None
    is_cascade = link[1].lower() == "competitive-calls-cs"
    subtitle = _SUBTITLE.search(text)
    identifier = subtitle[1] if subtitle else unquote(link[2])
    deadline = _date(_DEADLINE.search(text))
    deadlines = (deadline,) if deadline else ()
    programme, programme_name, programme_code = _programme(text)
    action, stage = _ACTION.search(text), _STAGE.search(text)
    return Opportunity(
        reference=f"{unquote(link[2]).upper()}{'COMPETITIVE_CALL' if is_cascade else ''}",
        identifier=identifier,
        title=title,
        type="cascade" if is_cascade else "grant",
        status=judged(_status(text), deadlines, now_ms),
        url=urlsplit(urljoin(base_url, href))._replace(query="", fragment="").geturl(),
        programme=programme,
        programme_name=programme_name,
        programme_code=programme_code,
        action_type=action[1] if action else None,
        opening=_date(_OPENING.search(text)),
        deadlines=deadlines,
        stage=stage[1].lower() if stage else None,
        found_at=now_ms,
    )


def _status(text: str) -> Status:
    lines = [line.lower() for line in text.splitlines()]
    for word, status in _STATUSES:
        if any(line.startswith(word) for line in lines):
            return status
    return "open"


def _programme(text: str) -> tuple[str | None, str | None, str | None]:
    match = _PROGRAMME.search(text)
    if match is None:
        return None, None, None
    code = next((code for code, (short, _) in PROGRAMMES.items() if short == match[2]), None)
    return match[2] or match[1], match[1], code


def _date(match: re.Match[str] | None) -> str | None:
    if match is None:
        return None
    try:
        return datetime.strptime(match[1], "%d %B %Y").replace(tzinfo=UTC).isoformat().replace("+00:00", "Z")
    except ValueError:
        return None


def _lines(text: str) -> str:
    lines = (" ".join(line.split()) for line in text.splitlines())
    return "\n".join(line for line in lines if line)
