"""Cards made ready for people: text without invisible characters, checked addresses, times as numbers."""

from __future__ import annotations

from typing import Any

import msgspec

from tidings.model.contracts import ShelfEntry
from tidings.model.publication import Collection
from tidings.model.stories import StoryPlace
from tidings.serve.api.filters import Card
from tidings.serve.api.listings import Reader
from tidings.serve.http.wire import milliseconds
from tidings.serve.markup import host_of, safe_url, segment, tidy, words_of

_ALIKE = 60
"""Two texts that begin with so many of the same characters tell the same."""
CONTENT_FIELDS = ("content_html", "content", "text", "body", "description", "excerpt")


def from_shelf(
    reader: Reader, entry: ShelfEntry, root: str, card: Card | None = None, *, card_id: str | None = None
) -> ReadableCard:
    """Make ready what stands on the shelf; what is known already need not be read from the entry."""
    return ReadableCard(
        reader.pipeline,
        reader.collection,
        card_id if card_id is not None else reader.id_of(entry.key),
        card if card is not None else msgspec.json.decode(entry.value),
        sort=entry.sort,
        root=root,
    )


class ReadableCard:
    """A card as templates and feeds use it: `card["field"]` is tidied foreign text, or None where it is absent."""

    __slots__ = ("_card", "_sort", "collection", "href", "id", "pipeline", "story")

    def __init__(
        self, pipeline: str, collection: Collection, card_id: str, card: Card, *, sort: int = 0, root: str = ""
    ) -> None:
        self.pipeline = pipeline
        self.collection = collection
        self.id = card_id
        self.href = f"{root}/pipelines/{pipeline}/{collection.name}/{segment(card_id)}"
        self.story: StoryPlace | None = None
        """Where others tell the same, for pages that fold them."""
        self._card = card
        self._sort = sort

    def __getitem__(self, name: str) -> Any:
        """Return a field for drawing; text is tidied."""
        value = self._card.get(name)
        if isinstance(value, str):
            return tidy(value)
        if isinstance(value, (list, tuple)):
            return [tidy(each, 300) if isinstance(each, str) else each for each in value[:200]]
        return value

    def raw(self, name: str) -> Any:
        """Return a field as it is, for cleaning."""
        return self._card.get(name)

    @property
    def title(self) -> str:
        """What it is called; a comment by its first words."""
        title = tidy(self._card.get(self.collection.title_field), 300).strip()
        return title or words_of(self._card.get("text"), 90) or f"{self.collection.singular} {tidy(self.id, 80)}"

    @property
    def has_title(self) -> bool:
        """Tell whether the card itself names it."""
        return bool(tidy(self._card.get(self.collection.title_field)).strip())

    @property
    def is_gone(self) -> bool:
        """Tell whether its source has taken it back, though its place is still shown."""
        return bool(self._card.get("dead") or self._card.get("deleted"))

    @property
    def url(self) -> str | None:
        """Where the original is."""
        return safe_url(self._card.get(self.collection.link_field))

    @property
    def host(self) -> str | None:
        """The original's host."""
        return host_of(self.url)

    @property
    def at(self) -> int | None:
        """When it was published, in milliseconds."""
        return milliseconds(self._card.get(self.collection.time_field)) or self._sort or None

    @property
    def summary(self) -> str:
        """Its summary as plain text."""
        value = self._card.get(self.collection.summary_field)
        if self.collection.summary_field in self.collection.html_fields:
            return words_of(value, 600)
        return tidy(value, 1_500)

    @property
    def content(self) -> tuple[str, bool] | None:
        """The longest text it carries, and whether that is HTML."""
        for name in CONTENT_FIELDS:
            value = self._card.get(name)
            if isinstance(value, str) and value.strip():
                return value, name in self.collection.html_fields
        return None

    @property
    def more(self) -> tuple[str, bool] | None:
        """The content, unless it only says the summary again, as an excerpt does."""
        content, summary = self.content, " ".join(self.summary.split())
        if content is None or not summary:
            return content
        words = words_of(content[0], 2_000) if content[1] else " ".join(tidy(content[0]).split())
        rest = words.removeprefix(self.title).lstrip(" .:")
        is_same = rest[:_ALIKE].startswith(summary[: min(_ALIKE, len(rest))]) and len(rest) < 2 * len(summary)
        return None if is_same else content

    def time(self, name: str) -> int | None:
        """Return a field that holds a time, in milliseconds."""
        return milliseconds(self._card.get(name))

    @property
    def fields(self) -> list[tuple[str, Any]]:
        """Every field that holds something, for cards without a template."""
        return [(name, self[name]) for name in self._card if self._card[name] not in (None, "", [], {}, False)]
