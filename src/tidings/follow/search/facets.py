"""How many hits have each type, pipeline, source and day."""

from __future__ import annotations

from typing import Any

import tantivy

from tidings.model.clock import DAY_MS, day_of

VALUES_MAX = 50
DAYS_MAX = 366
_FIELDS = ("type", "pipeline", "source")


def facets(searcher: tantivy.Searcher, query: tantivy.Query) -> dict[str, dict[str, int]]:
    """Count the values of all hits: the most frequent ones, and the newest days."""
    asked: dict[str, Any] = {name: {"terms": {"field": name, "size": VALUES_MAX}} for name in _FIELDS}
    asked["day"] = {"histogram": {"field": "time", "interval": DAY_MS, "min_doc_count": 1}}
    answer = searcher.aggregate(query, asked)
    counts = {name: {b["key"]: b["doc_count"] for b in answer[name]["buckets"] if b["key"]} for name in _FIELDS}
    days = answer["day"]["buckets"][-DAYS_MAX:]
    counts["day"] = {day_of(int(bucket["key"])): bucket["doc_count"] for bucket in reversed(days)}
    return counts
