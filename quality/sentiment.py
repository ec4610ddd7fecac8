"""Scores the local default's sentiment beside VADER."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from vaderSentiment.vaderSentiment import SentimentIntensityAnalyzer

from quality.data import FOLDER, own_rows, rows
from quality.score import labels
from quality.table import Row, timed
from tidings.process.enrich.local import judge_sentiment

FLIPS_MAX = 0.04
MS_MAX = 0.2
SETS = [("finance tweets", "tfn_dev.jsonl", 0.62), ("finance phrases", "fpb_dev.jsonl", 0.68)]
CRYPTO = "cryptolin_dev.jsonl"
"""Made from the authors' own file by the script beside the data; scored where somebody has made it."""


def run() -> list[Row]:
    sets = [(name, rows(file), reach) for name, file, reach in SETS]
    if (FOLDER / "quality" / CRYPTO).is_file():
        sets.append(("crypto headlines", rows(CRYPTO), 0.60))
    sets.append(("own headlines", own_rows("headlines.jsonl"), 0.75))
    return [row for name, gold, reach in sets for row in _score(name, gold, reach)]


def _score(name: str, gold: list[dict[str, Any]], reach: float) -> list[Row]:
    texts, true = [row["text"] for row in gold], [row["label"] for row in gold]
    guesses, ms = timed(lambda text: judge_sentiment(text).label, texts)
    ours = labels(zip(true, guesses, strict=True))
    theirs = labels(zip(true, map(vader(), texts), strict=True))
    beside = f"VADER {theirs.macro_f1:.3f}, its flips {theirs.flips:.3f}; accuracy {ours.accuracy:.3f}"
    return [
        Row(f"sentiment, {name}", ours.macro_f1, "macro-F1", reach, beside=beside),
        Row(f"sentiment, {name}: flips", ours.flips, "share", FLIPS_MAX, is_ceiling=True),
        Row(f"sentiment, {name}: time", ms, "CPU ms", MS_MAX, is_ceiling=True),
    ]


def vader() -> Callable[[str], str]:
    analyzer = SentimentIntensityAnalyzer()

    def label(text: str) -> str:
        score = analyzer.polarity_scores(text)["compound"]
        return "positive" if score >= 0.05 else "negative" if score <= -0.05 else "neutral"

    return label
