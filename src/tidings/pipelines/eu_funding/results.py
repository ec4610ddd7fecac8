"""Reads one result of the portal's search into an opportunity.

Every value is a list there; missing, `[]` and `[""]` all occur.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterable, Mapping
from datetime import MAXYEAR, UTC, datetime
from typing import Any

from tidings.model.clock import read_time
from tidings.model.errors import BadInput
from tidings.model.harmless import storable
from tidings.net.sanitizer import lines_of
from tidings.pipelines.eu_funding.body import Opportunity, Status, brussels_day, closes_at, is_day
from tidings.pipelines.eu_funding.programmes import STATUS_CODES, TYPE_CODES, programme_of

DESCRIPTION_CHARS_MAX = 10_240
TITLE_CHARS_MAX = 500
REFERENCE_CHARS_MAX = 300
LEGACY = "SEDIA_PRD_CENTRICITY"
Row = Mapping[str, Any]

_FOOTNOTE = re.compile(r"\[\d{1,3}\]")
_CASCADE_NUMBER = re.compile(r"/competitive-calls-cs/(\d+)")


def parse_row(row: Row, *, pages_url: str, now_ms: int, is_baseline: bool = False) -> Opportunity:
    """Read one result, or raise BadInput saying what it lacks."""
    metadata = _metadata(row)
    reference = _text(row.get("reference")) or _one(metadata, "REFERENCE")
    type_ = TYPE_CODES.get(_one(metadata, "type") or "1")
    status = STATUS_CODES.get(_one(metadata, "status") or "")
    title = _title(row, metadata, is_cascade=type_ == "cascade")
    if not reference or not title or type_ is None or status is None:
        lacks = [name for name, value in zip(_NEEDED, (reference, title, type_, status), strict=True) if not value]
        raise BadInput(f"result {(reference or 'without reference')[:80]} has no usable {', '.join(lacks)}")
    identifier = _one(metadata, "identifier") or reference
    code = _one(metadata, "frameworkProgramme")
    programme, programme_name = programme_of(code)
    deadlines = tuple(sorted({time for text in _all(metadata, "deadlineDate") if (time := parse_time(text))}))
    return Opportunity(
        reference=reference[:REFERENCE_CHARS_MAX],
        identifier=identifier[:200],
        title=title[:TITLE_CHARS_MAX],
        type=type_,
        status=judged(status, deadlines, now_ms),
        url=page_for_people(row, metadata, identifier, pages_url, is_cascade=type_ == "cascade"),
        language=_language(row, metadata),
        is_legacy=_one(metadata, "DATASOURCE") == LEGACY,
        programme=programme,
        programme_name=programme_name,
        programme_code=code,
        action_type=_one(metadata, "typesOfAction"),
        call_identifier=_one(metadata, "callIdentifier"),
        call_title=_one(metadata, "callTitle"),
        project=_one(metadata, "projectAcronym"),
        opening=parse_time(_one(metadata, "startDate") or ""),
        deadlines=deadlines,
        stage=_one(metadata, "deadlineModel"),
        budget_eur=_budget(metadata, identifier, is_cascade=type_ == "cascade"),
        keywords=tuple(_keywords(metadata))[:40],
        description=plain_text(
            _one(metadata, "descriptionByte", raw=True) or _one(metadata, "description", raw=True) or ""
        ),
        ingested=parse_time(_one(metadata, "esDA_FirstIngestDate") or ""),
        found_at=now_ms,
        is_baseline=is_baseline,
    )


_NEEDED = ("reference", "title", "type", "status")


def identity_of(row: Row) -> tuple[str, str, str]:
    """Return what tells two results apart: both databases of the portal may hold one of the same reference."""
    metadata = _metadata(row)
    reference = _text(row.get("reference")) or _one(metadata, "REFERENCE") or _sorted_json(row)
    return reference, _one(metadata, "DATASOURCE") or "", _language(row, metadata)


def version_of(row: Row) -> tuple[str, str]:
    """Order copies of one result by when the portal took them in; where that is not said, by anything that is fixed."""
    return _one(_metadata(row), "esDA_IngestDate") or "", _sorted_json(row)


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
    """Judge a status by the clock: hundreds of results say open years after their last deadline.

    Where no deadline can be read the portal's word is all there is.
    """
    dates = tuple(deadlines)
    is_past = bool(dates) and all(closes_at(deadline) <= now_ms for deadline in dates)
    return "closed" if is_past else status


def page_for_people(row: Row, metadata: Row, identifier: str, pages_url: str, *, is_cascade: bool) -> str:
    """Return the address of the page a person can read; old rows name a data file instead."""
    stated = _text(row.get("url")) or _one(metadata, "url") or ""
    screen = f"{pages_url.rstrip('/')}/portal/screen/opportunities"
    if is_cascade and (number := _CASCADE_NUMBER.search(stated)):
        return f"{screen}/competitive-calls-cs/{number[1]}"
    is_topic = "/topicDetails/" in stated or "/topic-details/" in stated
    if stated.startswith("https://") and not is_topic:
        return stated
    return f"{screen}/topic-details/{identifier}"


def parse_time(text: str) -> str | None:
    """Read the portal's times (`2026-09-15T00:00:00.000+0000`) into ours; None for anything unreadable.

    Some results write a day as midnight in UTC, others as midnight in Brussels: both become the first form.
    """
    ms = read_time(text)
    moment = None if ms is None else datetime.fromtimestamp(ms // 1000, UTC)
    if moment is None or moment.year == MAXYEAR:
        return None  # The last day of all has no next one, and no other zone.
    time = moment.isoformat().replace("+00:00", "Z")
    return f"{brussels_day(time)}T00:00:00Z" if is_day(time) else time


def plain_text(markup: str, limit: int = DESCRIPTION_CHARS_MAX) -> str:
    """Turn a fragment of HTML into lines that read like sentences: no bullets, no footnote marks; cut at a word."""
    text = _readable(lines_of(markup[: 8 * limit]))
    lines = (" ".join(_FOOTNOTE.sub("", line).split()).lstrip("•·*-– ") for line in text.splitlines())
    text = "\n".join(line[0].upper() + line[1:] for line in lines if line)
    return text if len(text) <= limit else text[:limit].rsplit(" ", 1)[0]


def _sorted_json(row: Row) -> str:
    return json.dumps(row, sort_keys=True)


def _metadata(row: Row) -> Row:
    """A few cascade calls have none: their fields sit on the result itself."""
    metadata = row.get("metadata")
    return metadata if isinstance(metadata, dict) and metadata else row


def _title(row: Row, metadata: Row, *, is_cascade: bool) -> str | None:
    """A cascade call's own name; its `title` is the parent topic's."""
    own = (_one(metadata, "callTitle"), _one(metadata, "caName"), plain_text(_text(row.get("summary")) or ""))
    parents = (_one(metadata, "title"), plain_text(_text(row.get("summary")) or _text(row.get("content")) or ""))
    return next((title for title in ((*own, *parents) if is_cascade else parents) if title), None)


def _language(row: Row, metadata: Row) -> str:
    return (_one(metadata, "language") or _text(row.get("language")) or "en").lower()


def _budget(metadata: Row, identifier: str, *, is_cascade: bool) -> int | None:
    """A topic's own line of the call's overview; siblings are listed there too, and 0 means not stated."""
    if is_cascade:
        return _amount([_one(metadata, "budget")])
    lines: list[Any] = []
    try:
        overview = json.loads(_one(metadata, "budgetOverview", raw=True) or "{}")
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


def _keywords(metadata: Row) -> list[str]:
    """Keywords and tags; old rows hold one JSON string inside the list."""
    found: list[str] = []
    for text in (*_all(metadata, "keywords"), *_all(metadata, "tags")):
        if text.startswith("["):
            try:
                found += [str(word) for word in json.loads(text) if isinstance(word, str)]
                continue
            except ValueError:
                pass
        found.append(text)
    return list(dict.fromkeys(word[:100] for word in found if word))


def _all(metadata: Row, name: str) -> list[str]:
    value = metadata.get(name)
    values = value if isinstance(value, list) else [value]
    return [text for each in values if (text := _text(each))]


def _one(metadata: Row, name: str, *, raw: bool = False) -> str | None:
    if raw:
        value = metadata.get(name)
        first = value[0] if isinstance(value, list) and value else value
        return first if isinstance(first, str) else None
    return next(iter(_all(metadata, name)), None)


def _text(value: Any) -> str | None:
    """One line of text: the portal doubles blanks here and there, and databases take no control characters."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        value = str(value)
    return " ".join(_readable(value).split()) or None if isinstance(value, str) else None


def _readable(text: str) -> str:
    return storable(html.unescape(text)).replace("\xa0", " ")
