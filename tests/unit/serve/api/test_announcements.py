"""Readers see where and when a card was announced."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence

from tests.support.example import pipeline

from tidings.model.contracts import ShelfEntry
from tidings.publish.deliveries import DELIVERIES
from tidings.serve.api.announcements import AnnouncedShelf


class Shelf:
    """A shelf of two things and what was sent of the first."""

    def __init__(self) -> None:
        self.now = 1
        self.sent = [{"channel": "news", "parent": "thing:a", "sent_at": "2026-01-01T00:00:00Z", "message_id": "7"}]

    def get(self, pipeline: str, key: str) -> ShelfEntry | None:
        return ShelfEntry(key, json.dumps({"id": key}).encode(), self.now, 1, 0, 0)

    def get_many(self, pipeline: str, keys: Sequence[str]) -> dict[str, ShelfEntry]:
        return {key: entry for key in keys if (entry := self.get(pipeline, key))}

    def newest(
        self, pipeline: str, collection: str, *, limit: int, after: tuple[int, str] | None = None
    ) -> list[ShelfEntry]:
        if collection == "deliveries":
            return [
                ShelfEntry(f"delivery:{n}", json.dumps(each).encode(), 1, 1, 0, 0) for n, each in enumerate(self.sent)
            ]
        return [entry for key in ("thing:a", "thing:b") if (entry := self.get(pipeline, key))]

    def count(self, pipeline: str, collection: str) -> int:
        return 2

    def listed(self, pipeline: str, collection: str) -> Sequence[str]:
        return ()

    def version(self, pipeline: str) -> int:
        return self.now


def announced_shelf(shelf: Shelf) -> AnnouncedShelf:
    declared = dataclasses.replace(pipeline(), announce={"thing": lambda work: ()})
    return AnnouncedShelf(shelf, {"example": declared})


def test_a_card_tells_its_announcements_and_another_that_there_are_none() -> None:
    shelf = announced_shelf(Shelf())

    first, second = (json.loads(entry.value) for entry in shelf.newest("example", "things", limit=2))

    assert first["announced"] == [{"channel": "news", "sent_at": "2026-01-01T00:00:00Z", "message_id": "7"}]
    assert second["announced"] == []


def test_a_new_announcement_shows_once_the_shelf_has_changed() -> None:
    inner = Shelf()
    shelf = announced_shelf(inner)
    assert shelf.get("example", "thing:b") is not None
    inner.sent.append({"channel": "news", "parent": "thing:b", "sent_at": "2026-01-02T00:00:00Z", "message_id": "8"})
    inner.now = 2

    entry = shelf.get_many("example", ["thing:b"])["thing:b"]

    assert [each["message_id"] for each in json.loads(entry.value)["announced"]] == ["8"]


def test_deliveries_themselves_are_left_as_they_are() -> None:
    shelf = announced_shelf(Shelf())

    (entry,) = shelf.newest("example", DELIVERIES.name, limit=9)

    assert "announced" not in json.loads(entry.value)
