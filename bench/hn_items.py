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
    latest: list[Item] = []
    for number in range(count):
        item = Item(FIRST_ID + number, "comment", f"user{rng.randrange(5_000)}", FIRST_TIME + number * 7)
        if number % 8 == 0:
            item.type = "story"
            item.title = " ".join(rng.choices(words, cum_weights=weights, k=rng.randint(4, 11))).capitalize()
            item.score, item.descendants = int(rng.paretovariate(1.1)), rng.randrange(40)
            if rng.random() < 0.85:
                item.url = f"https://{rng.choice(words)}.example/{number}/{rng.choice(words)}"
            else:
                item.text = _text(rng, words, weights)
        else:
            item.parent = rng.choice(latest).id
            item.text = _text(rng, words, weights)
        # Kids come later than the item that names them; half of the items name a few.
        if rng.random() < 0.35:
            item.kids = sorted({item.id + rng.randint(1, 4_000) for _ in range(rng.randint(1, 4))})
        latest = [*latest[-49:], item]
        yield item


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
