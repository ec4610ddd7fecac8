"""Summaries, sentiments and the other local answers per second and core, beside the bare work they cannot avoid."""

from __future__ import annotations

from collections.abc import Callable
from time import process_time
from typing import Any

from tidings.model.answers import IssueFacts, RepoFacts
from tidings.process.enrich import local
from tidings.process.enrich.local.sentences import split_sentences

SENTENCE = "The harbour town number {0} will close plant {1} in June, two years earlier than the council had planned. "
ARTICLE = "".join(SENTENCE.format(n, n * 7) for n in range(40))
HEADLINE = "Operating profit of Lindholm Tools rose to 9.6 mn from 8.3 mn despite higher costs"
README = "# engine\n\n" + "\n\n".join(SENTENCE.format(n, n * 3) for n in range(20)) + "\n```\ncode\n```\n"
BODY = "Steps to reproduce:\n\n1. Run `engine.export()`\n2. Look\n\n" + ARTICLE[:1500]


def run(quick: bool) -> list[dict[str, Any]]:
    """Measure in CPU seconds: a busy machine does not count. The floor is splitting or lower-casing the text."""
    seconds = 0.2 if quick else 2.0
    repo = RepoFacts(full_name="ada/engine", description="An engine", readme=README)
    issue = IssueFacts(title="Export fails", body=BODY, labels=["good first issue"], comments=3, age_days=40)
    article_floor = per_second(lambda: split_sentences(ARTICLE), seconds)
    words_floor = per_second(lambda: HEADLINE.lower().split(), seconds)
    return [
        row("summaries of 40 sentences", lambda: local.summarize(ARTICLE), seconds, article_floor),
        row("sentiments of headlines", lambda: local.judge_sentiment(HEADLINE), seconds, words_floor),
        row("sentiments of articles", lambda: local.judge_sentiment(ARTICLE, HEADLINE), seconds, article_floor),
        row("repository summaries", lambda: local.summarize_repo(repo), seconds, article_floor),
        row("issue analyses", lambda: local.analyze_issue(issue), seconds, article_floor),
    ]


def row(what: str, work: Callable[[], object], seconds: float, floor: float) -> dict[str, Any]:
    value = per_second(work, seconds)
    return {"what": what, "value": value, "unit": "per second and core", "floor": floor, "ratio": value / floor}


def per_second(work: Callable[[], object], seconds: float) -> float:
    work()
    count, started = 0, process_time()
    while (spent := process_time() - started) < seconds:
        work()
        count += 1
    return count / spent


if __name__ == "__main__":
    for found in run(quick=False):
        value, floor, ratio = found["value"], found["floor"], found["ratio"]
        print(f"{found['what']:<28}{value:>10.0f} {found['unit']}   floor {floor:>9.0f}   {ratio:.3f}")
