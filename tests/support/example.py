"""A tiny pipeline that proves the engine's promises."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import msgspec

from tidings.model.backoff import RetryPolicy
from tidings.model.contracts import Kit
from tidings.model.errors import Permanent, Transient
from tidings.model.item import Finding, Link, fingerprint, ref
from tidings.model.outcome import Advance, No, Outcome, Postpone, Reject, Verdict
from tidings.model.pipeline import Page, Pipeline, Run, Schedule, Source
from tidings.model.publication import Collection, Document, Presentation
from tidings.model.workflow import ANY, Transition, Work, Workflow


class Thing(msgspec.Struct, frozen=True, omit_defaults=True):
    """The body: what it says, and what it wants to happen to it."""

    id: str
    text: str = ""
    fate: str = ""
    """fail, break, reject, postpone, refuse, die, exit: what the second step does with it."""
    parent: str | None = None
    seen: int = 0
    failures: int = 0
    heard: tuple[str, ...] = ()
    """The texts of all copies so far, where copies are merged in turn."""


class ThingCard(msgspec.Struct, frozen=True):
    """The card."""

    id: str
    text: str


def read(work: Work) -> Outcome:
    """The first step."""
    return Advance(body=msgspec.structs.replace(work.body, seen=work.body.seen + 1))


def hear(work: Work) -> Outcome:
    """The first step where copies are merged in turn: what the accepted one had heard, and this copy's own text."""
    before = work.accepted.heard if work.accepted is not None else ()
    return Advance(body=msgspec.structs.replace(work.body, heard=(*before, work.body.text)))


def check(work: Work) -> Outcome:
    """The second step, in which fates come true."""
    fate = work.body.fate
    if fate == "fail":
        raise Transient("the weather is bad")
    if fate == "exit":
        os._exit(9)
    if fate == "die":
        raise Permanent("this thing is beyond help")
    if fate == "break":
        raise ZeroDivisionError("a surprise")
    if fate == "reject":
        return Reject("not for us")
    if fate == "postpone":
        return Postpone(work.now_ms + 3_600_000, "later")
    links = (Link(ref("thing", work.key), ref("thing", work.body.parent), "below"),) if work.body.parent else ()
    return Advance(links=links)


def is_wanted(work: Work) -> Verdict:
    """The criterion of the second step."""
    return No(f"fate is {work.body.fate!r}") if work.body.fate == "refuse" else True


def fail(work: Work) -> Outcome:
    """Note a failure."""
    return Advance(body=msgspec.structs.replace(work.body, failures=work.body.failures + 1))


def present(key: str, body: Thing) -> Presentation:
    """Show a thing."""
    return Presentation(
        "things", key, ThingCard(key, body.text), sort=len(key), document=lambda: Document(body.text, body.text)
    )


def workflow(*, fuse: bool = True, retry: RetryPolicy | None = None, in_turn: bool = False) -> Workflow:
    """Declare found -> read -> checked -> shown, with a failure state reached by hand."""
    policy = retry or RetryPolicy(attempts=3, base_seconds=1, cap_seconds=60, jitter=0)
    return Workflow(
        kind="thing",
        start="found",
        states=("found", "read", "checked", "shown", "failed"),
        terminal=frozenset({"shown"}),
        failures=frozenset({"failed"}),
        body=Thing,
        fuse=fuse,
        in_turn=in_turn,
        transitions=(
            Transition("read", "found", "read", processor=hear if in_turn else read, retry=policy),
            Transition("check", "read", "checked", processor=check, criterion=is_wanted, retry=policy),
            Transition("show", "checked", "shown", retry=policy, publishes=True),
            Transition("fail", ANY, "failed", processor=fail, trigger="manual"),
            Transition("retry", "failed", "found", trigger="manual"),
        ),
    )


@dataclass
class ThingSource:
    """A source whose pages tests write."""

    name: str = "example.things"
    schedule: Schedule = Schedule(every_seconds=60)
    all_pages: list[Page] = field(default_factory=list)
    error: Exception | None = None
    runs: list[Run] = field(default_factory=list)

    async def pages(self, run: Run, kit: Kit) -> AsyncIterator[Page]:  # a source's form
        """Yield what was written."""
        self.runs.append(run)
        for page in self.all_pages:
            yield page
        if self.error is not None:
            raise self.error


def thing(key: str, text: str = "", **body: Any) -> Finding:
    """Make a finding."""
    payload = Thing(key, text or f"thing {key}", **body)
    return Finding("example", "thing", key, fingerprint(msgspec.structs.astuple(payload)), msgspec.json.encode(payload))


def pipeline(
    *sources: Source, fuse: bool = True, retry: RetryPolicy | None = None, in_turn: bool = False, **more: Any
) -> Pipeline:
    """Declare the example."""
    return Pipeline(
        name="example",
        title="Example",
        about="A tiny pipeline.",
        workflows={"thing": workflow(fuse=fuse, retry=retry, in_turn=in_turn)},
        sources=sources,
        collections=(Collection("things", "thing", "thing", ThingCard, "Things", relation="below"),),
        presenters={"thing": present},
        **more,
    )
