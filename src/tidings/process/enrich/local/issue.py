"""Analyzes an issue by what its text names: what it asks for, how hard it looks and why, where to begin."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from tidings.model.answers import IssueAnalysis, IssueFacts
from tidings.model.harmless import visible
from tidings.process.enrich.local import markdown
from tidings.process.enrich.local.summary import SUMMARY_CHARS_MAX, summarize

TITLE_CHARS_MAX: Final = 300
LABELS_MAX: Final = 20
LABEL_CHARS_MAX: Final = 100
INTRODUCTION_SENTENCES: Final = 2
INTRODUCTION_WORDS_MAX: Final = 60
INTRODUCTION_WORDS_MIN: Final = 8
ENTRY_CHARS_MAX: Final = 300
ENTRIES_MAX: Final = 8
NAMED_MAX: Final = 3
START: Final = 5
LONG_TEXT_CHARS: Final = 2_500
SHORT_TEXT_CHARS: Final = 80
MANY_COMMENTS: Final = 10
DAYS_A_YEAR: Final = 365

FILE: Final = re.compile(
    r"(?<![\w/.-])(?:[\w-]{1,60}/){0,8}[\w.-]{1,60}\.(?:py|pyi|js|jsx|ts|tsx|vue|c|cc|cpp|h|hpp|cs|java|kt|go|rs|rb|php|"
    r"swift|scala|ex|exs|dart|sh|ps1|sql|html|css|scss|md|rst|txt|json|ya?ml|toml|ini|cfg|xml|gradle|lock|proto|ipynb)"
    r"(?![\w/])"
)
TRACE: Final = re.compile(
    r"Traceback \(most recent call last\)|^\s{0,40}at [\w.$<>]{1,200}\(|^\s{0,8}File \"[^\"\n]{1,200}\", line \d|"
    r"panic: |Exception in thread|Unhandled exception|Segmentation fault|stack ?trace|thread '[^'\n]{1,60}' panicked",
    re.MULTILINE,
)
STEPS: Final = re.compile(r"to reproduce|reproduction steps|repro steps|reproducible example", re.IGNORECASE)
EXPECTED: Final = re.compile(
    r"expected (?:behaviou?r|result|output)|expected:|should (?:instead )?(?:return|show|be|print|say|read)\b",
    re.IGNORECASE,
)
IDENTIFIER: Final = re.compile(r"(?=.*[A-Z_.:(/])[A-Za-z_][\w.:/-]{2,60}(?:\(\))?$")
NOT_A_WORD: Final = re.compile(r"[^a-z0-9]+")


@dataclass(frozen=True, slots=True)
class Clue:
    """Beginnings of words or phrases, separated by commas, that make an issue easier or harder."""

    points: int
    reason: str
    beginnings: str


LABEL_CLUES: Final = (
    Clue(
        -2,
        "is labelled for newcomers",
        "good first, goodfirst, first timers, beginner, newcomer, starter, easy, low hanging, trivial",
    ),
    Clue(-1, "is labelled as documentation", "documentation, docs, typo, translation, i18n, readme, example"),
    Clue(2, "is labelled as hard", "hard, difficult, complex, epic, advanced, expert"),
    Clue(
        1,
        "is labelled with a demanding area",
        "architecture, performance, security, concurren, refactor, breaking, rfc, design, compiler, regression, memory",
    ),
)
TITLE_CLUES: Final = (
    Clue(
        -1,
        "sounds like a small change",
        "typo, spelling, rename, docs, documentation, readme, comment, broken link, dead link, wording, error message, "
        "add example, an example, add a test, add test, unit test, deprecat, unused, lint, changelog, tooltip, icon",
    ),
    Clue(
        2,
        "names a hard kind of fault",
        "race condition, deadlock, memory leak, segfault, segmentation fault, data loss, corrupt, intermittent, flaky, "
        "thread safety, undefined behavior",
    ),
    Clue(
        1,
        "asks for a larger change",
        "refactor, rewrite, redesign, migrat, port the, port to, support for, implement, architecture, performance, "
        "optimi, async, concurren, cross platform, plugin system",
    ),
)


@dataclass(frozen=True, slots=True)
class IssueReading:
    """What an issue's text holds."""

    parts: markdown.Markdown
    files: tuple[str, ...]
    names: tuple[str, ...]
    has_trace: bool
    has_steps: bool
    says_expected: bool


def analyze_issue(facts: IssueFacts) -> IssueAnalysis:
    """Answer from the issue's own words; the difficulty starts in the middle and every step away has its reason."""
    title = " ".join(visible(facts.title[:TITLE_CHARS_MAX], " ").split())
    reading = read_issue(facts.body)
    judged = [*_judge_labels(facts), *_judge_clues(title, TITLE_CLUES), *_judge_text(facts, reading)]
    return IssueAnalysis(
        introduction=_introduction(title, reading),
        difficulty=max(1, min(10, START + sum(points for points, _ in judged))),
        reasons=_entries(reason for _, reason in judged) or ["nothing in the text makes it easier or harder than most"],
        first_steps=_entries(_first_steps(facts, reading)),
    )


def read_issue(body: str) -> IssueReading:
    """Find what the text names: files, code, steps, a stack trace."""
    body = visible(body[: markdown.TEXT_CHARS_MAX], " ")
    parts = markdown.read(body)
    files = tuple(dict.fromkeys(FILE.findall(body)))[:NAMED_MAX]
    spans = dict.fromkeys(span for span in parts.code_spans if IDENTIFIER.match(span) and span not in files)
    return IssueReading(
        parts=parts,
        files=files,
        names=tuple(spans)[:NAMED_MAX],
        has_trace=TRACE.search(body) is not None,
        has_steps=STEPS.search(body) is not None or len(parts.numbered) >= 2,
        says_expected=EXPECTED.search(body) is not None,
    )


def _introduction(title: str, reading: IssueReading) -> str:
    """Choose the best two sentences of prose, after the title where they say little."""
    prose = "\n".join(line for line in reading.parts.prose if not line.endswith(":"))
    best = summarize(prose, title, INTRODUCTION_WORDS_MAX, INTRODUCTION_SENTENCES).summary
    if title and len(best.split()) < INTRODUCTION_WORDS_MIN:
        best = f"{title.rstrip(' .')}. {best}".strip()
    return (best or "The issue has neither a title nor a text.")[:SUMMARY_CHARS_MAX]


def _judge_labels(facts: IssueFacts) -> list[tuple[int, str]]:
    return _judge_clues(" | ".join(label[:LABEL_CHARS_MAX] for label in facts.labels[:LABELS_MAX]), LABEL_CLUES)


def _judge_clues(text: str, clues: tuple[Clue, ...]) -> list[tuple[int, str]]:
    text = " " + NOT_A_WORD.sub(" ", text.lower())
    found = [(clue, next((word for word in clue.beginnings.split(", ") if f" {word}" in text), None)) for clue in clues]
    return [(clue.points, f"{clue.reason} ({word})") for clue, word in found if word]


def _judge_text(facts: IssueFacts, reading: IssueReading) -> list[tuple[int, str]]:
    length, years = len(facts.body.strip()), facts.age_days // DAYS_A_YEAR
    judged = [
        (length < SHORT_TEXT_CHARS, 1, "says little; ask before you start"),
        (length > LONG_TEXT_CHARS, 1, "is long: there is much to take in"),
        (reading.has_trace, 1, "comes with a stack trace to follow"),
        (reading.has_steps, -1, "tells how to reproduce it"),
        (reading.says_expected and not reading.has_steps, -1, "says what is expected"),
        (len(reading.files) == 1, -1, "names the file concerned"),
        (len(reading.files) >= NAMED_MAX, 1, "touches several files"),
        (facts.comments >= MANY_COMMENTS, 1, f"has been discussed at length ({facts.comments} comments)"),
        (years >= 1, 1, f"has stayed open for {years} year{'s' if years > 1 else ''}"),
    ]
    return [(points, reason) for holds, points, reason in judged if holds]


def _first_steps(facts: IssueFacts, reading: IssueReading) -> Iterable[str]:
    """Point to what the text names, in the order a newcomer would go."""
    if facts.comments > 0:
        yield f"Read the discussion ({facts.comments} comment{'s' if facts.comments > 1 else ''})."
    if reading.has_steps:
        first = reading.parts.numbered[0] if reading.parts.numbered else ""
        yield f"Reproduce it with the steps given{f', beginning with: {first}' if first else '.'}"
    if reading.has_trace:
        yield "Follow the stack trace to the first line that belongs to this project."
    yield from (f"Open {name}." for name in reading.files)
    yield from (f"Search the code for {name}." for name in reading.names)
    yield from (f"Tackle one open task: {task}" for task in reading.parts.tasks[:NAMED_MAX])
    if not (reading.has_steps or reading.has_trace or reading.files or reading.names or reading.parts.tasks):
        yield f"Find where {visible(facts.repo[:LABEL_CHARS_MAX], ' ') or 'the project'} handles what the title names."


def _entries(entries: Iterable[str]) -> list[str]:
    return [_shorten(entry) for entry in entries][:ENTRIES_MAX]


def _shorten(entry: str) -> str:
    return entry if len(entry) <= ENTRY_CHARS_MAX else entry[: ENTRY_CHARS_MAX - 1] + "…"
