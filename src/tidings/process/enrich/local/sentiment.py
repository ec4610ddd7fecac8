"""Judges whether a text is good or bad news, by words, negation and direction: a cost that falls is good news."""

from __future__ import annotations

import re
from typing import Final

from tidings.model.answers import Sentiment, SentimentLabel
from tidings.process.enrich.local import lexicon
from tidings.process.enrich.local.language import language_of
from tidings.process.enrich.local.lexicon import LexiconMatch
from tidings.process.enrich.local.sentences import split_sentences

TITLE_CHARS_MAX: Final = 500
TEXT_CHARS_MAX: Final = 3_000
SENTENCES_MAX: Final = 3
WORDS_MIN: Final = 3
SHORT_WORDS: Final = 8
WORD: Final = re.compile(r"[^\W\d_]{2,}")
TITLE_WEIGHT: Final = 2.0

LABEL_FROM: Final = 0.95
"""Below this many points, either way, a text is neutral."""
HALF_SURE_POINTS: Final = 2.0
"""The points at which the score reaches a half."""
NEGATION: Final = -0.65
"""Not good is bad, but less so than bad."""
QUESTION: Final = 0.6
COMPARISON: Final = -0.5
"""What is compared with lies in the past: a profit after a loss, a slip from record highs."""

DIRECTIONS: Final = {"rise": 1.0, "raise": 1.0, "fall": -1.0, "cut": -1.0}
MEASURES: Final = {"wanted": 1.0, "unwanted": -1.0}
YEARS: Final = (1990, 2100)
TOKENS_BEFORE_MAX: Final = 7
TOKENS_AFTER_MAX: Final = 5
CONTEXT_TOKENS_MAX: Final = 3


def judge(text: str, title: str | None = None) -> Sentiment:
    """Score the title with double weight and the first three sentences; say so where the words cannot be judged."""
    reason = why_unknown(f"{title or ''}\n{text[:TEXT_CHARS_MAX]}")
    if reason is not None:
        return Sentiment(label="unknown", score=0.0, reason=reason)
    sentences = split_sentences(text[:TEXT_CHARS_MAX])[:SENTENCES_MAX]
    points = sum(points_of(sentence) for sentence in sentences)
    if title and title.strip():
        points = (TITLE_WEIGHT * points_of(title[:TITLE_CHARS_MAX]) + points) / TITLE_WEIGHT
    return Sentiment(label=label_of(points), score=round(points / (abs(points) + HALF_SURE_POINTS), 3))


def why_unknown(text: str) -> str | None:
    """Return why nothing can be said of a text, or None: the lexicon is English, and too few words say nothing."""
    words = WORD.findall(text)
    if not words:
        return "there are no words to judge"
    is_short = len(words) < SHORT_WORDS and text.isascii()
    if is_short and lexicon.general().find(lexicon.tokenize(text)):
        return None  # "No risk no reward" has two small words of Portuguese.
    language = language_of(text)
    if language not in (None, "en"):
        return f"the text seems to be in another language than English ({language})"
    says_something = len(words) >= WORDS_MIN or bool(lexicon.crypto().find(lexicon.tokenize(text)))
    return None if says_something else "so few words say nothing"


def label_of(points: float) -> SentimentLabel:
    """Name the verdict that a number of points amounts to."""
    if abs(points) < LABEL_FROM:
        return "neutral"
    return "positive" if points > 0 else "negative"


def points_of(text: str) -> float:
    """Add up what the marks of a text say; below zero is bad news."""
    tokens = lexicon.tokenize(text)
    marks = lexicon.crypto().find(tokens)
    if not any(mark.role == "context" for mark in marks):
        marks = lexicon.general().find(tokens)
    moved = {at: _moved_measure(marks, at) for at, mark in enumerate(marks) if mark.role in DIRECTIONS}
    points = sum(_direction_points(marks, at, measure) for at, measure in moved.items())
    points += sum(_own_points(marks, at) for at in range(len(marks)) if at not in moved.values())
    points += sum(_compared_points(marks, at) for at, mark in enumerate(marks) if mark.role == "compare")
    return points * _tone(marks, "?" in tokens)


def _direction_points(marks: list[LexiconMatch], at: int, measure: int | None) -> float:
    """Judge a movement by what moves: up is good for sales and bad for costs."""
    mark = marks[at]
    points = DIRECTIONS[mark.role] * mark.weight
    if measure is not None:
        points = DIRECTIONS[mark.role] * MEASURES[marks[measure].role] * max(1.0, mark.weight)
    return points * _context(marks, at)


def _own_points(marks: list[LexiconMatch], at: int) -> float:
    mark = marks[at]
    if mark.role == "signed":
        return mark.weight
    return mark.weight * _context(marks, at) if mark.role == "polar" or mark.role in MEASURES else 0.0


def _moved_measure(marks: list[LexiconMatch], at: int) -> int | None:
    """Find the measure that a direction moves: what is raised stands after the word, what rises mostly before it."""
    before = _nearest_measure(marks, at, -1, TOKENS_BEFORE_MAX)
    after = _nearest_measure(marks, at, 1, TOKENS_AFTER_MAX)
    first, second = (after, before) if marks[at].role in {"raise", "cut"} else (before, after)
    return second if first is None else first


def _nearest_measure(marks: list[LexiconMatch], at: int, step: int, tokens_max: int) -> int | None:
    other = at + step
    while 0 <= other < len(marks):
        left, right = (marks[other], marks[at]) if step < 0 else (marks[at], marks[other])
        if right.start - left.end > tokens_max or marks[other].role == "break" or marks[other].role in DIRECTIONS:
            return None
        if marks[other].role in MEASURES:
            return other
        other += step
    return None


def _context(marks: list[LexiconMatch], at: int) -> float:
    """Turn or scale a mark by the negators and boosters just before it, within its clause."""
    factor = 1.0
    for other in range(at - 1, -1, -1):
        mark = marks[other]
        if mark.role == "break" or marks[at].start - mark.end > CONTEXT_TOKENS_MAX:
            break
        if mark.role == "negator":
            factor *= NEGATION
        elif mark.role == "booster":
            factor *= mark.weight
        elif mark.role == "compare":
            factor *= COMPARISON
    return factor


def _compared_points(marks: list[LexiconMatch], at: int) -> float:
    """Judge "profit 9.6 mn, compared to 8.3 mn": a measure, now and then, with no word for the direction."""
    clause_start = next((i + 1 for i in range(at - 1, -1, -1) if marks[i].role == "break"), 0)
    before, after = marks[clause_start:at], marks[at + 1 : at + 4]
    measures = [MEASURES[mark.role] for mark in before if mark.role in MEASURES]
    now, then = _amounts(before), _amounts(after)
    if not (measures and now and then) or any(mark.role in DIRECTIONS for mark in before):
        return 0.0
    if any(MEASURES.get(mark.role) == -measures[-1] for mark in after):
        return 0.0  # A loss after a profit: the words have said it, the numbers would say the opposite.
    return measures[-1] * ((now[-1] > then[0]) - (now[-1] < then[0]))


def _amounts(marks: list[LexiconMatch]) -> list[float]:
    return [mark.weight for mark in marks if mark.role == "number" and not YEARS[0] <= mark.weight < YEARS[1]]


def _tone(marks: list[LexiconMatch], is_question: bool) -> float:
    """Speak more softly of a question, and of a text that only announces or lists."""
    tone = min((mark.weight for mark in marks if mark.role == "dull"), default=1.0)
    return tone * (QUESTION if is_question else 1.0)
