"""Analyzes an issue by what its text really says: what it asks for, how hard the project calls it, where to begin."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from tidings.model.answers import IssueAnalysis, IssueFacts
from tidings.model.harmless import visible
from tidings.process.enrich.local import difficulty, markdown, names
from tidings.process.enrich.local.first_steps import first_steps
from tidings.process.enrich.local.furniture import is_sentence
from tidings.process.enrich.local.language import length_in_words
from tidings.process.enrich.local.sentences import split_sentences
from tidings.process.enrich.local.summary import SUMMARY_CHARS_MAX, lead_of
from tidings.process.enrich.local.templates import SIDE_SECTIONS, is_template

TITLE_CHARS_MAX: Final = 300
INTRODUCTION_SENTENCES: Final = 2
INTRODUCTION_WORDS_MAX: Final = 60
INTRODUCTION_WORDS_MIN: Final = 8
ENTRY_CHARS_MAX: Final = 300
ENTRIES_MAX: Final = 8
SMALL_PATHS_MAX: Final = 2

STEPS: Final = re.compile(
    r"to reproduce|reproduction steps|repro steps|reproducible example|steps to reproduc", re.IGNORECASE
)
WIDE: Final = re.compile(
    r"\b(?:rewrite|redesign|overhaul|re-?architect|migrat\w{1,8}|epic|umbrella|tracking issue|meta issue|roadmap)\b",
    re.IGNORECASE,
)
"""Words of a title that ask for more than the few places which the text names."""


@dataclass(frozen=True, slots=True)
class IssueReading:
    """What an issue's text holds that helps those who choose."""

    names_little: bool
    """It names one or two places in the code, and its title asks for no large change."""
    has_steps: bool
    """It tells how to see the problem."""


def analyze_issue(facts: IssueFacts) -> IssueAnalysis:
    """Answer from the issue's own words; without evidence there is no difficulty, without names no step."""
    title = _title(facts)
    parts = _parts(facts)
    rating, reasons = difficulty.rate(facts)
    return IssueAnalysis(
        introduction=_introduction(title, parts),
        difficulty=rating,
        reasons=[_shorten(reason) for reason in reasons][:ENTRIES_MAX],
        first_steps=first_steps(facts, title, parts),
    )


def read_issue(facts: IssueFacts) -> IssueReading:
    """Tell what an issue's text offers to those who would take it."""
    parts, title = _parts(facts), _title(facts)
    places = {*names.paths(parts, facts.repo), *names.identifiers(title, facts.repo)}
    places.update(each.partition(",")[0].partition(":")[0] for each in names.linked_lines(parts.links, facts.repo))
    steps = [entry for entry in parts.numbered if not is_template(entry)]
    return IssueReading(
        names_little=0 < len(places) <= SMALL_PATHS_MAX and not WIDE.search(title),
        has_steps=len(steps) >= 2 or (bool(STEPS.search(facts.body)) and bool(steps or parts.code_blocks)),
    )


def _title(facts: IssueFacts) -> str:
    return " ".join(visible(facts.title[:TITLE_CHARS_MAX], " ").split())


def _parts(facts: IssueFacts) -> markdown.Markdown:
    text = visible(facts.body[: markdown.TEXT_CHARS_MAX], " ")
    parts = markdown.read(text, SIDE_SECTIONS, quotes=False)
    return parts if parts.prose or parts.code_spans else markdown.read(text, quotes=False)


def _introduction(title: str, parts: markdown.Markdown) -> str:
    """Take the first two sentences of what the reporter wrote, after the title where they say little."""
    best = lead_of(_own_sentences(parts), title, INTRODUCTION_WORDS_MAX, INTRODUCTION_SENTENCES)
    if title and length_in_words(best) < INTRODUCTION_WORDS_MIN:
        best = f"{(markdown.plain(title) or title).rstrip(' .')}. {best}".strip()
    return (best or "The issue has neither a title nor a text.")[:SUMMARY_CHARS_MAX]


def _own_sentences(parts: markdown.Markdown) -> list[str]:
    """Return the reporter's sentences; what only leads to a list or to code, and what has no end, is left out."""
    said = [[each for each in split_sentences(text) if not is_template(each)] for text in parts.prose]
    whole = [each for text in said for each in text if is_sentence(each)]
    first = next((text[0] for text in said if text), "")
    if (
        first
        and not is_sentence(first)
        and not first.endswith(":")
        and length_in_words(first) >= INTRODUCTION_WORDS_MIN
    ):
        return [f"{first}.", *whole]  # Many people end a short report without a full stop.
    return whole or [each for text in said for each in text if not each.endswith(":")]


def _shorten(entry: str) -> str:
    return entry if len(entry) <= ENTRY_CHARS_MAX else entry[: ENTRY_CHARS_MAX - 1] + "…"
