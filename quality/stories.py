"""Scores the grouping into stories beside the same title: B-cubed, in the order of time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping

from quality.data import FOLDER, read_lines
from quality.table import Row, timed
from tidings.follow.stories.grouping import Grouping, StoryItem

PRECISION_MIN, F_MIN, MS_MAX = 0.85, 0.50, 2.0


def run() -> list[Row]:
    rows = read_lines(FOLDER / "stories" / "uci_dev.jsonl")
    gold = {row["id"]: row["story"] for row in rows}
    items = [StoryItem(n, row["time"], row["title"], "", row["url"]) for n, row in enumerate(rows, 1)]
    grouping = Grouping()
    stories, ms = timed(lambda item: grouping.place(item).story, items)
    precision, f = bcubed(gold, dict(zip(gold, stories, strict=True)))
    _, same_title = bcubed(gold, {row["id"]: row["title"].lower() for row in rows})
    return [
        Row("stories: precision", precision, "B-cubed", PRECISION_MIN, beside=f"{len(set(stories))} stories"),
        Row("stories: F", f, "B-cubed", F_MIN, beside=f"same title {same_title:.2f}"),
        Row("stories: time", ms, "CPU ms", MS_MAX, is_ceiling=True),
    ]


def bcubed(gold: Mapping[str, Hashable], found: Mapping[str, Hashable]) -> tuple[float, float]:
    """Return precision and F over all items."""
    both = Counter((found[name], gold[name]) for name in gold)
    found_sizes, gold_sizes = Counter(found[name] for name in gold), Counter(gold.values())
    precision = sum(n * n / found_sizes[story] for (story, _), n in both.items()) / len(gold)
    recall = sum(n * n / gold_sizes[story] for (_, story), n in both.items()) / len(gold)
    return precision, 2 * precision * recall / (precision + recall)
