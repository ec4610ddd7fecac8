"""Scores the local default's summaries beside the first three sentences, with and without furniture in front."""

from __future__ import annotations

from statistics import fmean

from quality.data import own_rows, rows
from quality.score import rouge_lsum
from quality.table import Row, timed
from tidings.process.enrich.local import summarize
from tidings.process.enrich.local.sentences import split_sentences

BELOW_LEAD_MAX = 1.0
ABOVE_LEAD_MIN = 5.0
WORDS_MAX = 80
MS_MAX = 10.0
FURNITURE = (
    "We use cookies to give you the best experience on our site. Accept all Reject all\n"
    "Subscribe to our newsletter and never miss a story.\nBy Ada Example\n4 min read\nShare Tweet Email\n"
)


def run() -> list[Row]:
    dev = rows("summ_dev.jsonl")
    own = own_rows("pages.jsonl")
    return [
        *_score("news", [(row["article"], row["reference"]) for row in dev], -BELOW_LEAD_MAX),
        *_score(
            "news behind furniture", [(FURNITURE + row["article"], row["reference"]) for row in dev], ABOVE_LEAD_MIN
        ),
        *_score("own pages", [(row["page"], row["reference"]) for row in own], ABOVE_LEAD_MIN),
    ]


def _score(name: str, gold: list[tuple[str, str]], over_lead: float) -> list[Row]:
    summaries, ms = timed(lambda pair: summarize(pair[0]).summary, gold)
    ours = fmean(rouge_lsum(reference, summary) for (_, reference), summary in zip(gold, summaries, strict=True))
    lead = fmean(rouge_lsum(reference, first_three(text)) for text, reference in gold)
    words = [len(summary.split()) for summary in summaries]
    beside = f"first three sentences {lead:.2f}; {fmean(words):.0f} words on average"
    return [
        Row(f"summary, {name}", ours, "ROUGE-Lsum", lead + over_lead, beside=beside),
        Row(f"summary, {name}: longest", max(words), "words", WORDS_MAX, is_ceiling=True),
        Row(f"summary, {name}: time", ms, "CPU ms", MS_MAX, is_ceiling=True),
    ]


def first_three(text: str) -> str:
    return " ".join(split_sentences(text)[:3])
