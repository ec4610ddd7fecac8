"""Reads what the portal's search service answers.

Every value is a list there; missing, `[]` and `[""]` all occur.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import msgspec
import nh3

from tidings.model.errors import BadInput, Transient
from tidings.pipelines.eu_funding.opportunity import Opportunity, Status, closes_at
from tidings.pipelines.eu_funding.programmes import STATUS_CODES, TYPE_CODES, programme_of

DESCRIPTION_CHARS_MAX = 10_240
TITLE_CHARS_MAX = 500
REFERENCE_CHARS_MAX = 300
LEGACY = "SEDIA_PRD_CENTRICITY"
Row = Mapping[str, Any]

_BLOCK_END = re.compile(r"</(?:p|li|h[1-6]|div|tr|ul|ol)\s*>|<br\s*/?>", re.IGNORECASE)
_FOOTNOTE = re.compile(r"\[\d{1,3}\]")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_CASCADE_NUMBER = re.compile(r"/competitive-calls-cs/(\d+)")


@dataclass(frozen=True, slots=True)
class Answer:
    """One page of search results, and how many there are in all."""

    total: int
    rows: tuple[Row, ...]


def parse_answer(body: bytes) -> Answer:
    """Read a search answer; anything else with status 200 is trouble that may pass."""
    try:
        found = msgspec.json.decode(body)
        return Answer(int(found["totalResults"]), tuple(row for row in found["results"] if isinstance(row, dict)))
    except (msgspec.DecodeError, UnicodeDecodeError, KeyError, TypeError, ValueError, RecursionError):
        raise Transient("the funding portal answered with something that is no search result") from None


def parse_row(row: Row, *, pages_url: str, now_ms: int, is_baseline: bool = False) -> Opportunity:
    """Read one result, or raise BadInput saying what it lacks."""
    known = _metadata(row)
    reference = _text(row.get("reference")) or _one(known, "REFERENCE")
    type_ = TYPE_CODES.get(_one(known, "type") or "1")
    status = STATUS_CODES.get(_one(known, "status") or "")
    title = _title(row, known, is_cascade=type_ == "cascade")
    if not reference or not title or type_ is None or status is None:
        lacks = [name for name, value in zip(_NEEDED, (reference, title, type_, status), strict=True) if not value]
        raise BadInput(f"result {(reference or 'without reference')[:80]} has no usable {', '.join(lacks)}")
    identifier = _one(known, "identifier") or reference
    code = _one(known, "frameworkProgramme")
    programme, programme_name = programme_of(code)
    deadlines = tuple(sorted({time for text in _all(known, "deadlineDate") if (time := parse_time(text))}))
    return Opportunity(
        reference=reference[:REFERENCE_CHARS_MAX],
        identifier=identifier[:200],
        title=title[:TITLE_CHARS_MAX],
        type=type_,
        status=judged(status, deadlines, now_ms),
        url=page_for_people(row, known, identifier, pages_url, is_cascade=type_ == "cascade"),
        language=_language(row, known),
        is_legacy=_one(known, "DATASOURCE") == LEGACY,
        programme=programme,
        programme_name=programme_name,
        programme_code=code,
        action_type=_one(known, "typesOfAction"),
        call_identifier=_one(known, "callIdentifier"),
        call_title=_one(known, "callTitle"),
        project=_one(known, "projectAcronym"),
        opening=parse_time(_one(known, "startDate") or ""),
        deadlines=deadlines,
        stage=_one(known, "deadlineModel"),
        budget_eur=_budget(known, identifier, is_cascade=type_ == "cascade"),
        keywords=tuple(_keywords(known))[:40],
        description=plain_text(_one(known, "descriptionByte", raw=True) or _one(known, "description", raw=True) or ""),
        ingested=parse_time(_one(known, "esDA_FirstIngestDate") or ""),
        found_at=now_ms,
        is_baseline=is_baseline,
    )


_NEEDED = ("reference", "title", "type", "status")


def key_of(opportunity: Opportunity) -> str:
    """Return what is really unique: the reference without the language it ends in."""
    reference, language = opportunity.reference, opportunity.language
    if language and reference.lower().endswith(language.lower()) and len(reference) > len(language):
        stem = reference[: -len(language)]
        # `…TOPICSen`, `…PROSPECTSEN` and `…1716940800000cs` end in a language; a word that happens to does not.
        if not stem[-1].islower():
            return stem
    return reference


def judged(status: Status, deadlines: Iterable[str], now_ms: int) -> Status:
    """Judge a status by the clock: hundreds of results say open years after their last deadline."""
    known = tuple(deadlines)
    ahead = any(closes_at(deadline) > now_ms for deadline in known)
    if status == "open" and not ahead:
        return "closed"
    return "closed" if status == "forthcoming" and known and not ahead else status


def page_for_people(row: Row, known: Row, identifier: str, pages_url: str, *, is_cascade: bool) -> str:
    """Return the address of the page a person can read; old rows name a data file instead."""
    stated = _text(row.get("url")) or _one(known, "url") or ""
    screen = f"{pages_url.rstrip('/')}/portal/screen/opportunities"
    if is_cascade and (number := _CASCADE_NUMBER.search(stated)):
        return f"{screen}/competitive-calls-cs/{number[1]}"
    is_topic = "/topicDetails/" in stated or "/topic-details/" in stated
    if stated.startswith("https://") and not is_topic:
        return stated
    return f"{screen}/topic-details/{identifier}"


def parse_time(text: str) -> str | None:
    """Read the portal's times (`2026-09-15T00:00:00.000+0000`) into ours; None for anything unreadable."""
    try:
        moment = datetime.fromisoformat(text.strip())
        moment = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        return None
    return moment.replace(microsecond=0).isoformat().replace("+00:00", "Z")


def plain_text(markup: str, limit: int = DESCRIPTION_CHARS_MAX) -> str:
    """Turn a fragment of HTML into lines that read like sentences: no bullets, no footnote marks; cut at a word."""
    lined = _BLOCK_END.sub("\n", markup[: 8 * limit])
    text = _readable(nh3.clean(lined, tags=set(), clean_content_tags={"script", "style"}))
    lines = (" ".join(_FOOTNOTE.sub("", line).split()).lstrip("•·*-– ") for line in text.splitlines())
    text = "\n".join(line[0].upper() + line[1:] for line in lines if line)
    return text if len(text) <= limit else text[:limit].rsplit(" ", 1)[0]


def _metadata(row: Row) -> Row:
    """A few cascade calls have none: their fields sit on the result itself."""
    metadata = row.get("metadata")
    return metadata if isinstance(metadata, dict) and metadata else row


def _title(row: Row, known: Row, *, is_cascade: bool) -> str | None:
    """A cascade call's own name; its `title` is the parent topic's."""
    own = (_one(known, "callTitle"), _one(known, "caName"), plain_text(_text(row.get("summary")) or ""))
    parents = (_one(known, "title"), plain_text(_text(row.get("summary")) or _text(row.get("content")) or ""))
    return next((title for title in ((*own, *parents) if is_cascade else parents) if title), None)


def _language(row: Row, known: Row) -> str:
    return (_one(known, "language") or _text(row.get("language")) or "en").lower()


def _budget(known: Row, identifier: str, *, is_cascade: bool) -> int | None:
    """A topic's own line of the call's overview; siblings are listed there too, and 0 means not stated."""
    if is_cascade:
        return _amount([_one(known, "budget")])
    lines: list[Any] = []
    try:
        overview = json.loads(_one(known, "budgetOverview", raw=True) or "{}")
        for actions in overview.get("budgetTopicActionMap", {}).values():
            lines += [line for line in actions if str(line.get("action", "")).startswith(f"{identifier} ")]
        return _amount(amount for line in lines for amount in line.get("budgetYearMap", {}).values())
    except (ValueError, AttributeError, TypeError, RecursionError):
        return None


def _amount(stated: Iterable[Any]) -> int | None:
    try:
        return sum(int(float(amount)) for amount in stated if amount) or None
    except (ValueError, TypeError, OverflowError):
        return None


def _keywords(known: Row) -> list[str]:
    """Keywords and tags; old rows hold one JSON string inside the list."""
    found: list[str] = []
    for text in (*_all(known, "keywords"), *_all(known, "tags")):
        if text.startswith("["):
            try:
                found += [str(word) for word in json.loads(text) if isinstance(word, str)]
                continue
            except ValueError:
                pass
        found.append(text)
    return list(dict.fromkeys(word[:100] for word in found if word))


def _all(known: Row, name: str) -> list[str]:
    value = known.get(name)
    values = value if isinstance(value, list) else [value]
    return [text for each in values if (text := _text(each))]


def _one(known: Row, name: str, *, raw: bool = False) -> str | None:
    if raw:
        value = known.get(name)
        first = value[0] if isinstance(value, list) and value else value
        return first if isinstance(first, str) else None
    return next(iter(_all(known, name)), None)


def _text(value: Any) -> str | None:
    """One line of text: the portal doubles blanks here and there, and databases take no control characters."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        value = str(value)
    return " ".join(_readable(value).split()) or None if isinstance(value, str) else None


def _readable(text: str) -> str:
    return _CONTROL.sub("", html.unescape(text)).replace("\xa0", " ")
