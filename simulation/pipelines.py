"""Two pipelines made to exercise every rule of the engine; what becomes of a copy is written in the copy itself.

`copies` merges each copy of a note into what the copies before it made, in turn. Of a page in `pages` the newest copy
counts; it waits for an outside service and for a budget, bears children, and is announced.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

import msgspec
from msgspec.structs import replace

from tidings.model.backoff import RetryPolicy
from tidings.model.contracts import Kit
from tidings.model.errors import Permanent, Transient
from tidings.model.item import AWAITS, Finding, Link, fingerprint, ref
from tidings.model.outcome import Advance, No, Outcome, Postpone, Reject, Verdict
from tidings.model.pipeline import Pipeline, Source
from tidings.model.publication import Collection, Document, IdIndex, Notice, Presentation, Retention
from tidings.model.workflow import ANY, Transition, Work, Workflow

COPIES, PAGES = "copies", "pages"
NOTE, PAGE, PART = "note", "page", "part"
CHANNEL = "room"
BUDGET, BUDGET_LIMIT, COST = "answers", 40, 10
HOUR_MS = 3_600_000
INDEX_DAYS = 30
INDEX_NEWEST = 6
"""Few: a seed offers some more pages, and whatever the list has no room for is retired."""
POLICY = RetryPolicy(attempts=5, base_seconds=1, cap_seconds=30, jitter=0.5)
PARKS = RetryPolicy(attempts=4, base_seconds=1, cap_seconds=10, jitter=0.2, exhausted="park", park_seconds=3600)
FAILS = RetryPolicy(attempts=4, base_seconds=1, cap_seconds=30, jitter=0.2, exhausted="mark_failed")
FATES = ("", "", "", "", "", "", "fail", "break", "reject", "postpone", "refuse", "die")
"""What a copy wants to happen to it; most want nothing."""


class Thing(msgspec.Struct, frozen=True, omit_defaults=True):
    """The body of every kind here."""

    key: str
    mark: int
    """Unique to this copy: by it the oracle knows what became of it."""
    fate: str = ""
    fails: int = 0
    """How many attempts at the failing step fail before one succeeds."""
    above: str | None = None
    marks: tuple[int, ...] = ()
    """Of all copies merged into this one."""
    text: str = ""
    not_before: int = 0
    failures: int = 0


class Card(msgspec.Struct, frozen=True):
    """The card of every kind here."""

    key: str
    mark: int
    marks: tuple[int, ...]
    published_at: str | None = None


class Outside(Protocol):
    """The outside services that processors call; see `world`."""

    async def fetch(self, work: Work) -> str:
        """Get a page's text."""
        ...

    async def answer(self, work: Work) -> int:
        """Ask a question that costs money; return what it cost."""
        ...


def finding(pipeline: str, kind: str, thing: Thing, priority: int = 1) -> Finding:
    """Make the finding of a copy."""
    payload = msgspec.json.encode(thing)
    return Finding(pipeline, kind, thing.key, fingerprint(payload.decode()), payload, priority)


def decide(work: Work) -> Outcome | None:
    """Let the copy's fate come true; None where it has none, or had it."""
    body: Thing = work.body
    if body.fate == "die":
        raise Permanent("this copy is beyond help")
    if body.fate == "reject":
        return Reject("not for us")
    if body.fate == "postpone" and work.now_ms < body.not_before:
        return Postpone(body.not_before, "later")
    if work.attempt <= body.fails:
        raise ZeroDivisionError("a surprise") if body.fate == "break" else Transient("the weather is bad")
    return None


def read(work: Work) -> Outcome:
    """The first step, pure."""
    return Advance(body=replace(work.body, text="read"))


def merge(work: Work) -> Outcome:
    """The second step: merge this copy into what readers know."""
    if (outcome := decide(work)) is not None:
        return outcome
    body: Thing = work.body
    known: Thing | None = work.accepted
    marks = {body.mark, *body.marks, *(known.marks if known else ())}
    return Advance(body=replace(body, marks=tuple(sorted(marks))))


def place(work: Work) -> Outcome:
    """The third step: stand below the note named above, or await it."""
    body: Thing = work.body
    if body.above is None:
        return Advance(links=())
    name = ref(NOTE, body.above)
    return Advance(links=(Link(ref(NOTE, work.key), name, "below" if name in work.related else AWAITS),))


def named_above(work: Work) -> Iterable[str]:
    """Name the note that should stand above."""
    return [ref(NOTE, work.body.above)] if work.body.above is not None else []


def is_wanted(work: Work) -> Verdict:
    """The criterion of the step in which fates come true."""
    return No("unwanted") if work.body.fate == "refuse" else True


def record_failure(work: Work) -> Outcome:
    """Keep the failure; ask to be woken twice."""
    failures = work.body.failures + 1
    failed = replace(work.body, failures=failures)
    return Advance(failed, due_at=work.now_ms + 60_000 * failures if failures < 3 else None)


def may_retry(work: Work) -> Verdict:
    """The criterion of the scheduled retry."""
    return work.body.failures < 3 or No("failed thrice")


def present_note(key: str, body: Thing) -> Presentation:
    """Show a note."""
    return Presentation(
        "notes", key, Card(key, body.mark, body.marks), sort=body.mark, document=lambda: _document(body)
    )


def present_page(key: str, body: Thing) -> Presentation:
    """Show a page."""
    return Presentation(
        "pages", key, Card(key, body.mark, body.marks), sort=body.not_before, document=lambda: _document(body)
    )


def present_part(key: str, body: Thing) -> Presentation:
    """Show a part of a page."""
    return Presentation("parts", key, Card(key, body.mark, body.marks), sort=body.mark)


def _document(body: Thing) -> Document:
    return Document(f"number {body.mark}", body.text)


def part_keys(body: Thing) -> list[str]:
    """Name the children a page bears."""
    return [f"{body.key}.{number}" for number in range(body.mark % 3)]


def copies(*sources: Source) -> Pipeline:
    """Declare the pipeline of notes, whose copies take turns."""
    life = Workflow(
        kind=NOTE,
        start="found",
        states=("found", "read", "merged", "placed", "shown", "failed"),
        terminal=frozenset({"shown"}),
        failures=frozenset({"failed"}),
        body=Thing,
        in_turn=True,
        transitions=(
            Transition("read", "found", "read", read, retry=FAILS, prefetch=named_above),
            Transition("merge", "read", "merged", merge, is_wanted, retry=FAILS),
            Transition("place", "merged", "placed", place, retry=FAILS),
            Transition("show", "placed", "shown", retry=FAILS, publishes=True),
            Transition("mark_failed", ANY, "failed", record_failure, trigger="manual"),
            Transition("retry", "failed", "found", None, may_retry, trigger="scheduled"),
        ),
    )
    return Pipeline(
        name=COPIES,
        title="Copies",
        about="Notes whose copies are merged in turn.",
        workflows={NOTE: life},
        sources=sources,
        collections=(Collection("notes", "note", NOTE, Card, "Notes", relation="below"),),
        presenters={NOTE: present_note},
        retention=(Retention(NOTE, days=10, forget_days=20),),
        tombstone_days=15,
    )


def pages(outside: Outside, *sources: Source) -> Pipeline:
    """Declare the pipeline of pages, of which the newest copy counts."""

    async def fetch(work: Work, kit: Kit) -> Outcome:  # noqa: ARG001  # a processor's form
        return Advance(body=replace(work.body, text=await outside.fetch(work)))

    async def ask(work: Work, kit: Kit) -> Outcome:
        if not await kit.ledger.reserve(BUDGET, COST, BUDGET_LIMIT):
            return Postpone(work.now_ms + 6 * HOUR_MS, "over budget")
        spent = 0
        try:
            spent = await outside.answer(work)
        finally:
            await kit.ledger.settle(BUDGET, COST, spent)
        return Advance(body=replace(work.body, text=f"{work.body.text}, asked"))

    def judge(work: Work) -> Outcome:
        return decide(work) or Advance()

    def bear(work: Work) -> Outcome:
        body: Thing = work.body
        parts = [finding(PAGES, PART, Thing(key, body.mark)) for key in part_keys(body)]
        return Advance(body=replace(body, marks=(body.mark,)), children=tuple(parts))

    def announce(work: Work) -> tuple[Notice, ...]:
        return (Notice(title=f"{work.key} {work.body.mark}"),)

    page = Workflow(
        kind=PAGE,
        start="found",
        states=("found", "fetched", "judged", "asked", "shown"),
        terminal=frozenset({"shown"}),
        body=Thing,
        transitions=(
            Transition("fetch", "found", "fetched", fetch, lane="fetch", retry=POLICY),
            Transition("judge", "fetched", "judged", judge, is_wanted, retry=PARKS),
            Transition("ask", "judged", "asked", ask, lane="fetch", retry=POLICY),
            Transition("show", "asked", "shown", bear, retry=POLICY, publishes=True),
            Transition("again", "shown", "judged", trigger="manual"),
        ),
    )
    part = Workflow(
        kind=PART,
        start="found",
        states=("found", "read", "shown"),
        terminal=frozenset({"shown"}),
        body=Thing,
        transitions=(
            Transition("read", "found", "read", read, retry=POLICY),
            Transition("show", "read", "shown", retry=POLICY, publishes=True),
        ),
    )
    return Pipeline(
        name=PAGES,
        title="Pages",
        about="Pages of which the newest copy counts.",
        workflows={PAGE: page, PART: part},
        sources=sources,
        collections=(
            Collection("pages", "page", PAGE, Card, "Pages", id_index=True),
            Collection("parts", "part", PART, Card, "Parts"),
        ),
        presenters={PAGE: present_page, PART: present_part},
        first_cards={PAGE: present_page},
        id_index=IdIndex("pages", newest=INDEX_NEWEST, days=INDEX_DAYS),
        announce={PAGE: announce},
        retention=(Retention(PAGE, by_id_index=True, forget_days=20), Retention(PART, days=14, forget_days=20)),
        tombstone_days=15,
    )
