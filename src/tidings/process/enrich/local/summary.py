"""Chooses the sentences that say most of a text: TF-IDF centroid, a prior for the beginning, no repeats."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping
from typing import Final, NamedTuple

from tidings.model.answers import Summary
from tidings.model.harmless import visible
from tidings.process.enrich.local.furniture import is_furniture, is_sentence, phrases_in
from tidings.process.enrich.local.sentences import split_sentences

TEXT_CHARS_MAX: Final = 60_000
LINES_MAX: Final = 400
"""Sentences looked at before the furniture is taken out; those chosen from after it."""
SENTENCES_MAX: Final = 120
SUMMARY_CHARS_MAX: Final = 1_200
TITLE_CHARS_MAX: Final = 500
WORDS_MAX: Final = 80
SENTENCE_WORDS_MIN: Final = 5

POSITION_WEIGHT: Final = 0.6
POSITION_DECAY: Final = 0.5
REPEAT_PENALTY: Final = 0.6
TITLE_WEIGHT: Final = 0.2
SHORT_PENALTY: Final = 1.0

WORD: Final = re.compile(r"[^\W_]{2,}")
_STOP_WORDS = """
    the a an and or but of to in on at by for with from as is are was were be been being it its this that these
    those he she his her him they them their we our us you your i my me not no so if then than there here what
    which who whom when where how why will would can could should may might must do does did has have had having
    about into over after before between out up down off under again more most some such only own same too very
    just also said says say one two
"""
STOP_WORDS: Final = frozenset(_STOP_WORDS.split())

Vector = Mapping[str, float]


class Candidate(NamedTuple):
    """A sentence that may be chosen: where it stood, how long it is, what it is about."""

    position: int
    text: str
    words: int
    vector: Vector


def summarize(
    text: str, title: str | None = None, words_max: int = WORDS_MAX, sentences_max: int = SENTENCES_MAX
) -> Summary:
    """Return whole sentences of the text in their order, at most so many words and sentences of them."""
    sentences = readable_sentences(visible(text[:TEXT_CHARS_MAX], " "))[:SENTENCES_MAX]
    if title:
        sentences = [s for s in sentences if s.strip(" .").lower() != title.strip(" .").lower()] or sentences
    candidates = _candidates(sentences, words_max)
    chosen = _choose(candidates, _terms((title or "")[:TITLE_CHARS_MAX]), words_max)[:sentences_max]
    summary = " ".join(sentence.text for sentence in sorted(chosen)) or _cut(sentences, words_max)
    return Summary(summary=summary)


def readable_sentences(text: str) -> list[str]:
    """Return the sentences of the article without the page's furniture; all of them where nothing else is left."""
    everything = [" ".join(sentence.split()) for sentence in split_sentences(text)[:LINES_MAX]]
    phrases = phrases_in("\n".join(everything))
    article = [sentence for sentence in everything if not is_furniture(sentence, phrases)]
    whole = [sentence for sentence in article if is_sentence(sentence)]
    return whole or article or everything


def _candidates(sentences: list[str], words_max: int) -> list[Candidate]:
    terms = [_terms(sentence) for sentence in sentences]
    seen_in = Counter(term for bag in terms for term in bag)
    rarity = {term: math.log(1.0 + len(sentences) / count) for term, count in seen_in.items()}
    candidates = []
    for position, (sentence, bag) in enumerate(zip(sentences, terms, strict=True)):
        words = len(sentence.split())
        if words <= words_max and len(sentence) <= SUMMARY_CHARS_MAX:
            candidates.append(Candidate(position, sentence, words, _unit({t: n * rarity[t] for t, n in bag.items()})))
    return candidates


def _choose(candidates: list[Candidate], title: Counter[str], words_max: int) -> list[Candidate]:
    """Take the best sentence that still fits, again and again, each time marking down what has been said."""
    worth = _worth(candidates, _unit(title))
    repeats = dict.fromkeys(worth, 0.0)
    chosen: list[Candidate] = []
    words_left, chars_left = words_max, SUMMARY_CHARS_MAX
    remaining = candidates
    while remaining := [c for c in remaining if c.words <= words_left and len(c.text) <= chars_left]:
        best = max(remaining, key=lambda c: (worth[c.position] - REPEAT_PENALTY * repeats[c.position], -c.position))
        if chosen and worth[best.position] <= REPEAT_PENALTY * repeats[best.position]:
            break
        chosen.append(best)
        words_left, chars_left = words_left - best.words, chars_left - len(best.text) - 1
        remaining = [c for c in remaining if c is not best]
        for candidate in remaining:
            repeats[candidate.position] = max(repeats[candidate.position], cosine(candidate.vector, best.vector))
    return chosen


def _worth(candidates: list[Candidate], title: Vector) -> dict[int, float]:
    """Rate each sentence: close to what the text is about, near its beginning, close to the title, long enough."""
    sums: dict[str, float] = {}
    for candidate in candidates:
        for term, weight in candidate.vector.items():
            sums[term] = sums.get(term, 0.0) + weight
    centroid = _unit(sums)
    worth = {}
    for candidate in candidates:
        early = POSITION_WEIGHT / (1.0 + POSITION_DECAY * candidate.position)
        short = SHORT_PENALTY if candidate.words < SENTENCE_WORDS_MIN else 0.0
        about = cosine(candidate.vector, centroid) + TITLE_WEIGHT * cosine(candidate.vector, title)
        worth[candidate.position] = about + early - short
    return worth


def cosine(one: Vector, other: Vector) -> float:
    """Return how alike two vectors of length 1 are, from 0 to 1."""
    if len(other) < len(one):
        one, other = other, one
    return sum(weight * other[term] for term, weight in one.items() if term in other)


def _unit(vector: Vector) -> Vector:
    """Scale a vector to length 1."""
    length = math.sqrt(sum(weight * weight for weight in vector.values()))
    return {term: weight / length for term, weight in vector.items()}


def _terms(text: str) -> Counter[str]:
    return Counter(word for word in WORD.findall(text.lower()) if word not in STOP_WORDS)


def _cut(sentences: list[str], words_max: int) -> str:
    """Shorten the first sentence where none fits whole."""
    words = " ".join(sentences[:1]).split()[:words_max]
    return " ".join(words)[: SUMMARY_CHARS_MAX - 1] + "…" if words else ""


def shared_terms(one: str, other: str) -> float:
    """Return the share of the first text's words that the second one holds too."""
    terms = _terms(one[:TEXT_CHARS_MAX])
    return len(terms.keys() & _terms(other[:TEXT_CHARS_MAX]).keys()) / len(terms) if terms else 0.0
