"""A floor under the local default's quality, on texts of our own; `make quality` scores the full sets."""

from __future__ import annotations

from statistics import fmean

import pytest
from quality.data import own_rows
from quality.score import labels, rouge_lsum
from quality.sentiment import vader
from quality.stories import bcubed
from quality.summary import first_three

from tidings.follow.stories.grouping import Grouping, StoryItem
from tidings.process.enrich.local import judge_sentiment, summarize
from tidings.process.enrich.local.furniture import is_furniture
from tidings.process.enrich.local.sentences import split_sentences

STORIES = own_rows("stories.jsonl")
HEADLINES = own_rows("headlines.jsonl")
PAGES = own_rows("pages.jsonl")


def test_sentiment_stays_above_its_floor_and_far_above_vader() -> None:
    true = [row["label"] for row in HEADLINES]
    ours = labels(zip(true, (judge_sentiment(row["text"]).label for row in HEADLINES), strict=True))
    theirs = labels(zip(true, (vader()(row["text"]) for row in HEADLINES), strict=True))
    assert ours.macro_f1 >= 0.88
    assert ours.macro_f1 >= theirs.macro_f1 + 0.2
    assert ours.flips <= 0.02


def test_summaries_stay_above_their_floor_and_far_above_the_first_three_sentences() -> None:
    ours = fmean(rouge_lsum(row["reference"], summarize(row["page"], row["title"]).summary) for row in PAGES)
    lead = fmean(rouge_lsum(row["reference"], first_three(row["page"])) for row in PAGES)
    assert ours >= 44.0
    assert ours >= lead + 30.0


@pytest.mark.parametrize("row", PAGES, ids=lambda row: row["title"])
def test_a_summary_holds_sentences_of_the_page_and_none_of_its_furniture(row: dict[str, str]) -> None:
    summary = summarize(row["page"], row["title"]).summary
    assert len(summary.split()) <= 80
    for sentence in split_sentences(summary):
        assert sentence in row["page"]
        assert not is_furniture(sentence)


def test_stories_stay_above_their_floor_and_far_above_the_same_title() -> None:
    gold = {row["id"]: row["story"] for row in STORIES}
    grouping = Grouping()
    items = [StoryItem(n, row["hour"] * 3_600_000, row["title"], "", row["url"]) for n, row in enumerate(STORIES, 1)]
    precision, f = bcubed(
        gold, {row["id"]: grouping.place(item).story for row, item in zip(STORIES, items, strict=True)}
    )
    _, same_title = bcubed(gold, {row["id"]: row["title"] for row in STORIES})
    assert precision >= 0.85
    assert f >= 0.9
    assert f >= same_title + 0.1
