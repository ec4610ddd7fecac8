"""A story as readers see it: its cards joined from the shelf, a title, a summary, sources and moods."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from tidings.model.clock import rfc3339
from tidings.model.stories import StoryMember, StoryRow
from tidings.model.words import stem, words
from tidings.serve.api.collections import Collections
from tidings.serve.api.readable_cards import ReadableCard, from_shelf
from tidings.serve.backend import Backend

ADDED_MAX = 3
ADDED_CHARS_MAX = 300
COMPARED_MAX = 20
"""So many members are looked at for a title and a summary."""
NEW_SHARE = 0.6
"""What a sentence adds is worth a place if so many of its longer words were not told yet."""
_LONG_WORD = 4
_SENTENCE = re.compile(r"(?<=[.!?])\s+")


class StoryTeller(msgspec.Struct, frozen=True, kw_only=True):
    """One that tells a story."""

    item: int
    """The item's number."""
    pipeline: str
    collection: str
    id: str
    """The id of its card."""
    title: str
    url: str | None
    source: str
    at: str | None
    summary: str = ""
    sentiment: str | None = None


class StoryCard(msgspec.Struct, frozen=True, kw_only=True):
    """A story."""

    id: int
    title: str
    first_at: str | None
    last_at: str | None
    size: int
    """How many items tell it."""
    sources: list[str]
    """Who tells it, first told first."""
    summary: str
    """The lead that most of the others share, then what the others add."""
    sentiment_counts: dict[str, int]
    """How many tell it in which mood, where that is known."""
    members: list[StoryTeller]


class ToldStory(msgspec.Struct, frozen=True):
    """A story and its cards, as pages draw them."""

    card: StoryCard
    shown: list[ReadableCard]


class StoryCards:
    """Reads stories and what tells them."""

    def __init__(self, backend: Backend, collections: Collections) -> None:
        self._backend = backend
        self._collections = collections

    async def told(self, rows: Sequence[StoryRow], root: str = "") -> list[ToldStory]:
        """Join stories with the cards on the shelf; what was withdrawn is not shown, however far the groups lag."""
        stories = self._backend.stories
        if stories is None or not rows:
            return []
        members = await self._backend.executor.read(stories.members, [row.id for row in rows])
        cards = await self._cards([each for told in members.values() for each in told], root)
        found = [(row, [(each, cards[each.item]) for each in members[row.id] if each.item in cards]) for row in rows]
        return [ToldStory(_card(row, shown), [card for _, card in shown]) for row, shown in found if shown]

    async def note(self, cards: Sequence[ReadableCard]) -> None:
        """Let cards know where others tell the same."""
        if self._backend.stories is None or not any(card.collection.stories != "never" for card in cards):
            return
        names = [(card.pipeline, f"{card.collection.singular}:{card.id}") for card in cards]
        places = await self._backend.executor.read(self._backend.stories.places, names)
        for card, name in zip(cards, names, strict=True):
            card.story = places.get(name)

    async def _cards(self, members: Sequence[StoryMember], root: str) -> dict[int, ReadableCard]:
        by_pipeline: dict[str, list[StoryMember]] = {}
        for member in members:
            if member.pipeline in self._backend.pipelines:
                by_pipeline.setdefault(member.pipeline, []).append(member)
        found: dict[int, ReadableCard] = {}
        for pipeline, group in by_pipeline.items():
            keys = [member.key for member in group]
            entries = await self._backend.executor.read(self._backend.shelf.get_many, pipeline, keys)
            singulars = {
                r.collection.singular: r for (name, _), r in self._collections.readers.items() if name == pipeline
            }
            for member in group:
                reader, entry = singulars.get(member.key.partition(":")[0]), entries.get(member.key)
                if reader is not None and entry is not None:
                    card = from_shelf(reader, entry, root)
                    if not card.is_gone:
                        found[member.item] = card
        return found


def once(cards: Sequence[ReadableCard]) -> list[ReadableCard]:
    """Leave out what tells a story that a card above tells already."""
    stories: set[int] = set()
    shown = []
    for card in cards:
        if card.story is None or card.story.story not in stories:
            shown.append(card)
        if card.story is not None:
            stories.add(card.story.story)
    return shown


def _card(row: StoryRow, shown: Sequence[tuple[StoryMember, ReadableCard]]) -> StoryCard:
    tellers = [_teller(member, card) for member, card in shown]
    moods = Counter(each.sentiment for each in tellers if each.sentiment)
    # Who talks about a page of others has its title, and no lead of its own.
    own = [each for (_, card), each in zip(shown, tellers, strict=True) if card.collection.relation is None] or tellers
    return StoryCard(
        id=row.id,
        title=_most_shared([each.title for each in own]),
        first_at=rfc3339(row.first_ms),
        last_at=rfc3339(row.last_ms),
        size=len(tellers),
        sources=list(dict.fromkeys(each.source for each in tellers)),
        summary=summary_of([each.summary for each in own if each.summary]),
        sentiment_counts=dict(sorted(moods.items())),
        members=tellers,
    )


def _teller(member: StoryMember, card: ReadableCard) -> StoryTeller:
    sentiment = card["sentiment"] if "sentiment" in card.collection.facets else None
    return StoryTeller(
        item=member.item,
        pipeline=member.pipeline,
        collection=card.collection.name,
        id=card.id,
        title=card.title,
        url=card.url,
        source=member.source,
        at=rfc3339(card.at),
        summary=card.summary,
        sentiment=sentiment if isinstance(sentiment, str) else None,
    )


def summary_of(summaries: Sequence[str]) -> str:
    """Return the lead that shares the most with the others, then the sentences of others that add something."""
    if not summaries:
        return ""
    lead = _most_shared(summaries)
    told = set(_long_words(lead))
    added: list[str] = []
    for sentence in _sentences([each for each in summaries[:COMPARED_MAX] if each != lead]):
        new = set(_long_words(sentence))
        if len(added) == ADDED_MAX:
            break
        if len(new) >= _LONG_WORD and len(new - told) >= NEW_SHARE * len(new):
            added.append(sentence)
            told |= new
    return " ".join([lead, *added])


def _sentences(texts: Sequence[str]) -> Iterator[str]:
    for text in texts:
        for sentence in _SENTENCE.split(text.strip()):
            if sentence.endswith((".", "!", "?")) and len(sentence) <= ADDED_CHARS_MAX:
                yield sentence


def _most_shared(texts: Sequence[str]) -> str:
    """Return the text whose words most of the others have too; of even ones the first."""
    compared = [set(_long_words(text)) for text in texts[:COMPARED_MAX]]
    counts = Counter(word for found in compared for word in found)
    scores = [_shared_by_others(found, counts) for found in compared]
    return texts[scores.index(max(scores))]


def _shared_by_others(found: set[str], counts: Mapping[str, int]) -> int:
    return sum(counts[word] - 1 for word in found)


def _long_words(text: str) -> list[str]:
    return [stem(word, None) for word in words(text.lower()) if len(word) >= _LONG_WORD]
