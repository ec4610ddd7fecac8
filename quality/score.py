"""The measures: macro-F1 and polarity flips, ROUGE-Lsum, F1 of shingles."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from statistics import fmean

from rouge_score import rouge_scorer

from tidings.process.enrich.local.sentences import split_sentences

LABELS = ("positive", "neutral", "negative")
SHINGLE_WORDS = 4


@dataclass(frozen=True)
class Verdict:
    """How well labels were guessed."""

    accuracy: float
    macro_f1: float
    flips: float


def labels(pairs: Iterable[tuple[str, str]]) -> Verdict:
    """Compare (true, guessed) labels; a flip takes good for bad or bad for good."""
    counts = Counter(pairs)
    total = counts.total()
    f1 = []
    for label in LABELS:
        hit = counts[label, label]
        wrong = sum(n for (true, guess), n in counts.items() if (true == label) != (guess == label))
        f1.append(2 * hit / (2 * hit + wrong) if hit else 0.0)
    flips = counts["positive", "negative"] + counts["negative", "positive"]
    return Verdict(sum(counts[label, label] for label in LABELS) / total, fmean(f1), flips / total)


_ROUGE = rouge_scorer.RougeScorer(["rougeLsum"], use_stemmer=True)


def rouge_lsum(reference: str, summary: str) -> float:
    """Return the F-measure times 100, sentence by sentence."""
    reference, summary = ("\n".join(split_sentences(text)) for text in (reference, summary))
    return float(_ROUGE.score(reference, summary)["rougeLsum"].fmeasure) * 100


def shingles(pairs: Iterable[tuple[str, str]]) -> float:
    """Return the F1 of (true, extracted) texts: precision and recall of 4-word shingles, averaged over pages."""
    precisions, recalls = [], []
    for true, extracted in pairs:
        expected, found = _shingles(true), _shingles(extracted)
        shared = (expected & found).total()
        if found:
            precisions.append(shared / found.total())
        if expected:
            recalls.append(shared / expected.total())
    precision, recall = fmean(precisions or [0.0]), fmean(recalls or [0.0])
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0


def _shingles(text: str) -> Counter[tuple[str, ...]]:
    words = re.findall(r"\w+", text)
    count = max(1, len(words) - SHINGLE_WORDS + 1) if words else 0
    return Counter(tuple(words[at : at + SHINGLE_WORDS]) for at in range(count))
