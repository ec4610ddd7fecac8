"""Items like those of Hacker News, as many as wanted: the same seed gives the same file."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path

import msgspec

WORDS = 20_000
FIRST_ID = 10_000_000
FIRST_TIME = 1_450_000_000
REPLIES_WITHIN = 50
"""A reply comes at most so many items after what it replies to."""


class Item(msgspec.Struct, omit_defaults=True, rename=None):
    id: int
    type: str
    by: str
    time: int
    title: str | None = None
    url: str | None = None
    text: str | None = None
    score: int | None = None
    descendants: int | None = None
    kids: list[int] | None = None
    parent: int | None = None


def items(count: int, seed: int = 7) -> Iterator[Item]:
    """Yield items by growing id: one in eight a story, the rest comments below one of the latest."""
    rng = random.Random(seed)
    words, weights = _vocabulary(rng)
    for number, (parent, kids) in enumerate(_families(count, seed)):
        item = Item(FIRST_ID + number, "comment", f"user{rng.randrange(5_000)}", FIRST_TIME + number * 7)
        if parent is None:
            item.type = "story"
            item.title = " ".join(rng.choices(words, cum_weights=weights, k=rng.randint(4, 11))).capitalize()
            item.score, item.descendants = int(rng.paretovariate(1.1)), rng.randrange(40)
            if rng.random() < 0.85:
                item.url = f"https://{rng.choice(words)}.example/{number}/{rng.choice(words)}"
            else:
                item.text = _text(rng, words, weights)
        else:
            item.parent = FIRST_ID + parent
            item.text = _text(rng, words, weights)
        item.kids = [FIRST_ID + kid for kid in kids] or None
        yield item


def _families(count: int, seed: int) -> Iterator[tuple[int | None, list[int]]]:
    """Draw what each item replies to, and its replies: as in the real ones, a parent names just those it got."""
    rng = random.Random(seed)
    parents: dict[int, int] = {}
    kids: dict[int, list[int]] = {}
    for ahead in range(count + REPLIES_WITHIN):
        if ahead < count and ahead % 8:
            parents[ahead] = ahead - rng.randint(1, min(REPLIES_WITHIN, ahead))
            kids.setdefault(parents[ahead], []).append(ahead)
        if (number := ahead - REPLIES_WITHIN) >= 0:
            yield parents.pop(number, None), kids.pop(number, [])


def write(path: Path, count: int, seed: int = 7) -> Path:
    """Write them as JSON lines."""
    encode = msgspec.json.Encoder().encode
    with path.open("wb") as file:
        for item in items(count, seed):
            file.write(encode(item) + b"\n")
    return path


def _vocabulary(rng: random.Random) -> tuple[list[str], list[float]]:
    """Invent words and let them occur as words do: the n-th most frequent about 1/n as often as the first."""
    syllables = [a + b for a in "bcdfghjklmnprstvwz" for b in ("a", "e", "i", "o", "u", "an", "er", "is")]
    words = list({"".join(rng.choices(syllables, k=rng.choice((1, 2, 2, 3, 3, 4)))) for _ in range(2 * WORDS)})
    words = sorted(words)
    rng.shuffle(words)
    return words[:WORDS], list(accumulate(1 / (rank + 3) for rank in range(len(words[:WORDS]))))


def _text(rng: random.Random, words: list[str], weights: list[float]) -> str:
    """Write a comment: about 365 characters, three in five with markup or entities, as in the real ones."""
    length = min(800, max(4, int(rng.lognormvariate(3.45, 0.9))))
    parts = rng.choices(words, cum_weights=weights, k=length)
    if rng.random() < 0.6:
        for at in range(0, length, 25):
            parts[at] += rng.choice(("&#x27;s", "<p>", " &gt; ", " &quot;so&quot;", "<i>so</i>", " &amp; "))
        if rng.random() < 0.15:
            parts.append(
                f'<a href="https:&#x2F;&#x2F;{parts[0][:6]}.example&#x2F;x" rel="nofollow">https:&#x2F;...</a>'
            )
    return " ".join(parts)
