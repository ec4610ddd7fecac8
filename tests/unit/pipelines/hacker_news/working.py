"""Build the work a worker would hand to a criterion or processor."""

from __future__ import annotations

from typing import Any

from tidings.model.workflow import Work
from tidings.pipelines.hacker_news.item import KIND, PIPELINE, Body

NOW_MS = 1_795_000_000_000


def a_body(**fields: Any) -> Body:
    return Body(**{"id": 100, "type": "story", "time": 1_700_000_000, "by": "someone", "title": "A title", **fields})


def a_comment(**fields: Any) -> Body:
    return a_body(**{"type": "comment", "parent": 50, "title": None, "text": "words", **fields})


def work_on(body: Body, **fields: Any) -> Work:
    given: dict[str, Any] = {"state": "ingested", "attempt": 1, "revision": 1, "now_ms": NOW_MS, **fields}
    return Work(pipeline=PIPELINE, kind=KIND, key=str(body.id), body=body, **given)
