"""Puts items into stories, one after the other: near-copies first, then what tells the same event.

Everything is kept in whole numbers: sums of them do not depend on the order in which they were added and removed, so
that members that were read back after a restart lead to the very same stories.
"""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from heapq import nlargest

from tidings.follow.stories.copies import CopyIndex, address_of, digest_of
from tidings.follow.stories.terms import weighed_terms
from tidings.model.clock import DAY_MS

WINDOW_MS = 3 * DAY_MS
"""An item joins a story that had news within so many days, before or after it."""
STORY_MS_MAX = 10 * DAY_MS
"""No story goes on longer: what is told for weeks is a topic, and would swallow all that comes."""
MEMBERS_MAX = 200_000
ALIKE = 0.28
"""The least score of an item that joins. Measured: docs/stories.md."""
SHARED_MIN = 2
"""One word in common, however rare, is a topic."""
UNIT = 1_000
"""The length of a member's vector."""
LOOKED_UP_MAX = 500
"""So many entries of the index are looked at for an item, those of its rarest terms first: this bounds the cost."""
COMPARED_MAX = 8
NEWEST_COMPARED = 40


@dataclass(frozen=True, slots=True)
class StoryItem:
    """What the grouping has to know of an item."""

    id: int
    time_ms: int
    title: str
    text: str = ""
    url: str = ""
    language: str | None = None
    digest: bytes | None = None
    """Of the whole text, where that is kept no longer."""
    seen_ms: int = 0
    """When it came, where that is known: an item found late is compared with what came lately."""


@dataclass(frozen=True, slots=True)
class Member:
    """An item in a story, with what placed it there: enough to go on from after a restart."""

    id: int
    story: int
    time_ms: int
    seen_ms: int
    """Never less than that of the one before."""
    address: str
    digest: bytes
    terms: Mapping[str, int]


@dataclass(slots=True)
class _Story:
    id: int
    first_ms: int
    last_ms: int
    members: dict[int, Member] = field(default_factory=dict)
    terms: Counter[str] = field(default_factory=Counter)
    square: int = 0
    """Of the length of all its members' vectors together."""
    length: float = 0.0


class Grouping:
    """The stories of the last days."""

    def __init__(self) -> None:
        self._members: dict[int, Member] = {}
        self._queue: deque[int] = deque()
        self._stories: dict[int, _Story] = {}
        self._index: dict[str, dict[int, int]] = {}
        """For each term, the stories that have it and how much."""
        self._frequencies: Counter[str] = Counter()
        self._copies = CopyIndex()
        self._newest_ms = 0

    def place(self, item: StoryItem, *, story: int | None = None) -> Member:
        """Put an item into the story it belongs to, or into one of its own; a person may have said which."""
        seen_ms = max(self._newest_ms, item.seen_ms or item.time_ms)
        self._forget_before(seen_ms)
        terms = self._counted_vector(weighed_terms(item.title, item.text, item.url, item.language))
        address = address_of(item.url)
        digest = digest_of(item.text) if item.digest is None else item.digest
        if story is None:
            story = self._copied(address, digest) or self._same_event(terms, item.time_ms) or item.id
        member = Member(item.id, story, item.time_ms, seen_ms, address, digest, terms)
        self._enter(member)
        return member

    def restore(self, member: Member, *, first_ms: int | None = None, last_ms: int | None = None) -> None:
        """Take in a member that was placed before; in the order in which they were placed.

        The story may have begun before the oldest member that is still in the window: then that has to be told.
        """
        self._forget_before(member.seen_ms)
        self._frequencies.update(member.terms.keys())
        self._enter(member)
        story = self._stories[member.story]
        story.first_ms = min(story.first_ms, first_ms if first_ms is not None else story.first_ms)
        story.last_ms = max(story.last_ms, last_ms if last_ms is not None else story.last_ms)

    def remove(self, item: int) -> None:
        """Forget a member: it was withdrawn, or is too old."""
        member = self._members.pop(item, None)
        if member is None:
            return
        self._copies.remove(member.id, member.address)
        self._frequencies.subtract(member.terms.keys())
        story = self._stories[member.story]
        del story.members[item]
        story.square += _square(member.terms) - 2 * _dot(member.terms, story.terms)
        story.length = math.sqrt(story.square)
        for term, weight in member.terms.items():
            left = story.terms[term] - weight
            if left:
                story.terms[term] = self._index[term][story.id] = left
                continue
            del story.terms[term], self._index[term][story.id]
            if not self._index[term]:
                del self._index[term]
                del self._frequencies[term]
        if not story.members:
            del self._stories[story.id]

    def _enter(self, member: Member) -> None:
        self._members[member.id] = member
        self._queue.append(member.id)
        self._copies.add(member.id, member.address, member.digest)
        story = self._stories.setdefault(member.story, _Story(member.story, member.time_ms, member.time_ms))
        story.first_ms, story.last_ms = min(story.first_ms, member.time_ms), max(story.last_ms, member.time_ms)
        story.members[member.id] = member
        story.square += _square(member.terms) + 2 * _dot(member.terms, story.terms)
        story.length = math.sqrt(story.square)
        for term, weight in member.terms.items():
            story.terms[term] += weight
            self._index.setdefault(term, {})[story.id] = story.terms[term]

    def _forget_before(self, seen_ms: int) -> None:
        """Forget members that left the window: they stay in their stories and draw in nothing more."""
        self._newest_ms = max(self._newest_ms, seen_ms)
        while self._queue:
            oldest = self._members.get(self._queue[0])
            if oldest is not None and oldest.seen_ms >= self._newest_ms - WINDOW_MS and len(self._queue) < MEMBERS_MAX:
                return
            self.remove(self._queue.popleft())

    def _counted_vector(self, weighed: Mapping[str, float]) -> dict[str, int]:
        """Count the terms and weigh them. What weighs nothing is not kept with the member, so it is not counted."""
        self._frequencies.update(weighed.keys())
        terms = self._vector(weighed)
        for term in weighed.keys() - terms.keys():
            self._frequencies[term] -= 1
            if not self._frequencies[term]:
                del self._frequencies[term]
        return terms

    def _vector(self, weighed: Mapping[str, float]) -> dict[str, int]:
        """Weigh the terms by how seldom they are, and make all vectors equally long."""
        known = len(self._members) + 1
        raw = {term: weight * math.log(1 + known / self._frequencies[term]) for term, weight in weighed.items()}
        length = math.sqrt(sum(weight * weight for weight in raw.values()))
        terms = {term: round(UNIT * weight / length) for term, weight in raw.items()} if length else {}
        return {term: weight for term, weight in terms.items() if weight}

    def _copied(self, address: str, digest: bytes) -> int | None:
        copied = self._copies.find(address, digest)
        return self._members[copied].story if copied is not None else None

    def _same_event(self, terms: Mapping[str, int], time_ms: int) -> int | None:
        scores = [(self._score(story, terms), -story.id) for story in self._candidates(terms, time_ms)]
        score, story = max(scores, default=(0.0, 0))
        return -story if score >= ALIKE else None

    def _candidates(self, terms: Mapping[str, int], time_ms: int) -> list[_Story]:
        """Return the few stories that share the most, by the item's rarest terms."""
        shared: Counter[int] = Counter()
        budget = LOOKED_UP_MAX
        for term, weight in sorted(terms.items(), key=lambda each: (self._frequencies[each[0]], each[0])):
            having = self._index.get(term, {})
            budget -= len(having)
            if budget < 0:
                break
            for story, total in having.items():
                shared[story] += weight * total
        stories = self._stories
        ranked = nlargest(COMPARED_MAX, [(total / stories[story].length, -story) for story, total in shared.items()])
        stories_found = [self._stories[-story] for _, story in ranked]
        return [story for story in stories_found if _is_open(story, time_ms) and _shares(story, terms)]

    def _score(self, story: _Story, terms: Mapping[str, int]) -> float:
        """Compare with the story as a whole and with the nearest of its members, half each.

        The nearest alone lets a story drift from word to word; the whole alone splits long stories.
        """
        whole = _dot(terms, story.terms) / (UNIT * story.length)
        newest = list(story.members.values())[-NEWEST_COMPARED:]
        nearest = max(_dot(terms, member.terms) for member in newest) / (UNIT * UNIT)
        return (whole + nearest) / 2


def _is_open(story: _Story, time_ms: int) -> bool:
    is_near = story.first_ms - WINDOW_MS <= time_ms <= story.last_ms + WINDOW_MS
    return is_near and max(story.last_ms, time_ms) - min(story.first_ms, time_ms) <= STORY_MS_MAX


def _shares(story: _Story, terms: Mapping[str, int]) -> bool:
    return sum(term in story.terms for term in terms) >= SHARED_MIN


def _dot(one: Mapping[str, int], other: Mapping[str, int]) -> int:
    return sum(weight * other[term] for term, weight in one.items() if term in other)


def _square(terms: Mapping[str, int]) -> int:
    return sum(weight * weight for weight in terms.values())
