"""Turns the sample world's funding calls into results of the portal's search service."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from importlib.resources import files
from typing import Any

Record = dict[str, Any]
API_VERSION = "2.151"
OPPORTUNITIES = "/info/funding-tenders/opportunities"
SCREEN = f"https://ec.europa.eu{OPPORTUNITIES}/portal/screen/opportunities"


@dataclass(slots=True)
class PortalChange:
    """Metadata that takes new values at a moment."""

    reference: str
    at: float
    metadata: dict[str, list[str]]


def load(start: float) -> tuple[list[Record], dict[str, float], list[PortalChange]]:
    """Return the results, when each appears, and what changes when; days count from `start`."""
    data = files("tidings.sample").joinpath("data/eu_funding")
    rows = [json.loads(line) for line in data.joinpath("opportunities.jsonl").read_text("utf-8").splitlines()]
    moves = [json.loads(line) for line in data.joinpath("changes.jsonl").read_text("utf-8").splitlines()]
    hours = {row["reference"]: row.get("deadline_time", "00:00") for row in rows}
    return (
        [_result(row, start) for row in rows],
        {row["reference"]: start + row.get("arrives_after_seconds", 0) for row in rows},
        [_change(move, start, hours[move["reference"]]) for move in moves],
    )


def _result(row: Record, start: float) -> Record:
    """Make a search result of a line of the sample data."""
    is_cascade = row["type"] == "8"
    page = f"competitive-calls-cs/{row['url_number']}" if is_cascade else f"topic-details/{row['identifier']}"
    title = row["call_title"] if is_cascade else row["title"]
    opening = _day(start, row["opening_days"])
    known = {
        "REFERENCE": row["reference"],
        "identifier": row["identifier"],
        "language": row["language"],
        "type": row["type"],
        "status": row["status"],
        "frameworkProgramme": row["programme"],
        "programmeDivision": row["programme_division"],
        "title": row["title"],
        "callIdentifier": row["call_identifier"],
        "callTitle": row["call_title"],
        "ccm2Id": row["ccm2_id"],
        "callccm2Id": row["call_ccm2_id"],
        "typesOfAction": row["action_type"],
        "typeOfMGAs": row["mga"],
        "startDate": opening,
        "es_SortDate": opening,
        "deadlineDate": _deadlines(start, row["deadline_days"], row.get("deadline_time", "00:00")),
        "deadlineModel": row["deadline_model"],
        ("description" if is_cascade else "descriptionByte"): row["description_html"],
        "keywords": row["keywords"],
        "tags": row["tags"],
        "crossCuttingPriorities": row["cross_cutting"],
        "DATASOURCE": row["datasource"],
        "url": f"{SCREEN}/{page}",
        **{name: row.get(ours) for name, ours in _CASCADE_FIELDS.items()},
        **_budget(row, is_cascade=is_cascade),
    }
    return {
        "apiVersion": API_VERSION,
        "reference": row["reference"],
        "url": f"{SCREEN}/{page}",
        "contentType": "text/plain",
        "language": row["language"],
        "databaseLabel": "SEDIA",
        "database": "SEDIA",
        "summary": title,
        "weight": 0.0,
        "content": title,
        "accessRestriction": False,
        "children": [],
        "highlightedFragments": [],
        "metadata": {name: _listed(value) for name, value in known.items() if value is not None},
    }


_CASCADE_FIELDS = {"projectAcronym": "project_acronym", "projectName": "project_name", "duration": "duration"}


def _budget(row: Record, *, is_cascade: bool) -> dict[str, str]:
    budget = row.get("budget")
    if not budget:
        return {}
    if is_cascade:
        return {"budget": str(budget["total_eur"])}
    line = {
        "action": f"{row['identifier']} - {row['action_type']}",
        "expectedGrants": budget["expected_grants"],
        "minContribution": budget["min_eur"],
        "maxContribution": budget["max_eur"],
        "budgetYearMap": {"1": str(budget["total_eur"])},
    }
    return {"budgetOverview": json.dumps({"budgetYearsColumns": ["1"], "budgetTopicActionMap": {"1": [line]}})}


def _change(move: Record, start: float, hour: str) -> PortalChange:
    known: dict[str, list[str]] = {}
    if "deadline_days" in move:
        known["deadlineDate"] = _deadlines(start, move["deadline_days"], hour)
    if "status" in move:
        known["status"] = [move["status"]]
    if "opening_days" in move:
        known["startDate"] = [_day(start, move["opening_days"])]
    return PortalChange(move["reference"], start + move["arrives_after_seconds"], known)


def _deadlines(start: float, days: list[int], hour: str) -> list[str]:
    return [_day(start, day, hour) for day in days]


def _day(start: float, days: int, hour: str = "00:00") -> str:
    day = (datetime.fromtimestamp(start, UTC) + timedelta(days=days)).date()
    return f"{day.isoformat()}T{hour}:00.000+0000"


def _listed(value: Any) -> list[str]:
    return [str(each) for each in value] if isinstance(value, list) else [str(value)]
