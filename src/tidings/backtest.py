"""What a route would have sent of what is stored: tried before it is written down, without sending anything."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import NamedTuple

import msgspec

from tidings.model.changes import StoredCopy
from tidings.model.item import ref
from tidings.model.pipeline import Pipeline
from tidings.model.publication import Notice, Route
from tidings.model.texts import worded
from tidings.model.workflow import Work
from tidings.publish.deliveries import delivering
from tidings.publish.delivery import Delivery

DAY_MS = 86_400_000


class WouldSend(NamedTuple):
    """A notice that the route would have sent."""

    at: int
    item: str
    notice: Notice


class Backtest(NamedTuple):
    """How a route would have done."""

    considered: int
    announced: int
    """How many of them were worth a notice at all, to whatever channel."""
    sent: list[WouldSend]
    days: int

    @property
    def per_day(self) -> dict[str, int]:
        """How many on each day that had any, in order."""
        counts = Counter(day_of(each.at) for each in self.sent)
        return dict(sorted(counts.items()))


def backtest(copies: Iterable[StoredCopy], pipeline: Pipeline, route: Route, *, since_ms: int, now_ms: int) -> Backtest:
    """Make the notices that items were worth when they were found, and ask the route about each.

    Only the newest copy of an item is stored: it is looked at as if it had been found so.
    """
    deliver = delivering([route], [pipeline])
    considered = announced = 0
    sent: list[WouldSend] = []
    for copy in copies:
        workflow, announce = pipeline.workflows.get(copy.kind), pipeline.announce.get(copy.kind)
        if workflow is None or announce is None:
            continue
        considered += 1
        try:
            body = workflow.decode(copy.body)
        except (msgspec.DecodeError, msgspec.ValidationError):
            continue
        work = Work(pipeline.name, copy.kind, copy.key, workflow.start, 1, 1, copy.found_at, body)
        notices = announce(work)
        announced += bool(notices)
        for finding in deliver(work, notices):
            notice = msgspec.json.decode(finding.payload, type=Delivery).notice
            sent.append(WouldSend(copy.found_at, ref(copy.kind, copy.key), worded(notice, route.texts)))
    sent.sort(key=lambda each: each.at)
    return Backtest(considered, announced, sent, max(1, -(-(now_ms - since_ms) // DAY_MS)))


def day_of(moment_ms: int) -> str:
    """Return the day (UTC) of a moment."""
    return datetime.fromtimestamp(moment_ms / 1000, UTC).date().isoformat()
