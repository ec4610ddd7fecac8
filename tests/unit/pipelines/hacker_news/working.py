"""Build the work a worker would hand to a criterion or processor."""

from __future__ import annotations

from typing import Any

from tidings.model.publication import Presentation
from tidings.model.workflow import Work
from tidings.pipelines.hacker_news.body import KIND, PIPELINE, ItemBody
from tidings.pipelines.hacker_news.cards import present

NOW_MS = 1_795_000_000_000


def a_body(**fields: Any) -> ItemBody:
    return ItemBody(
        **{"id": 100, "type": "story", "time": 1_700_000_000, "by": "someone", "title": "A title", **fields}
    )


def a_comment(**fields: Any) -> ItemBody:
    return a_body(**{"type": "comment", "parent": 50, "title": None, "text": "words", **fields})


def presented(body: ItemBody) -> Presentation:
    """Return what readers see of an item that is shown."""
    shown = present(str(body.id), body)
    assert shown is not None
    return shown


def work_on(body: ItemBody, **fields: Any) -> Work:
    given: dict[str, Any] = {"state": "ingested", "attempt": 1, "revision": 1, "now_ms": NOW_MS, **fields}
    return Work(pipeline=PIPELINE, kind=KIND, key=str(body.id), body=body, **given)
