"""Wishes for cards, bounded: a server writes them, a poller reads and answers them."""

from __future__ import annotations

from typing import NamedTuple

from tidings.model.wishes import GrantedWishes, Outdated, WishState
from tidings.store.db.database import Database, Tx

WAITING_MAX = 1_000
REST_MS = {"found": 60_000, "failed": 60_000, "unknown": 3_600_000}
"""How long an answer stands before the same wish is passed on again."""


class WishRow(NamedTuple):
    """One wish: how long ago it was answered and how."""

    answer: str | None
    age_ms: int | None


class WishedId(NamedTuple):
    """A card that is wished for."""

    id: str


class WishStore:
    """One row per wished card; answered ones are forgotten after a day."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def wish(self, pipeline: str, collection: str, card_id: str) -> WishState:
        """Ask for a card, unless that was answered lately; return how it stands."""
        name = {"pipeline": pipeline, "collection": collection, "id": card_id}
        with self._database.reading() as tx:
            known = _known(tx, name)
        if known is not None:
            return known
        with self._database.transaction() as tx:
            if tx.value("count_wishes", pipeline=pipeline) >= WAITING_MAX:
                return "refused"
            tx.run("put_wish", **name)
        return "waiting"

    def waiting(self, pipeline: str, collection: str, limit: int) -> list[str]:
        """Return the ids that wait, the oldest wish first."""
        with self._database.reading() as tx:
            rows = tx.rows(WishedId, "waiting_wishes", pipeline=pipeline, collection=collection, limit=limit)
        return [row.id for row in rows]

    def answer(self, pipeline: str, granted: GrantedWishes) -> None:
        """Close wishes."""
        rows = [(pipeline, granted.collection, card_id, how) for card_id, how in granted.answers.items()]
        with self._database.transaction() as tx:
            tx.put("answer_wishes", rows)

    def renew(self, pipeline: str, singular: str, outdated: Outdated) -> None:
        """Wish again for those cards that are shown."""
        rows = [(pipeline, outdated.collection, card_id, f"{singular}:{card_id}") for card_id in outdated.ids]
        with self._database.transaction() as tx:
            room = WAITING_MAX - tx.value("count_wishes", pipeline=pipeline)
            tx.put("renew_wishes", rows[: max(0, room)])


def _known(tx: Tx, name: dict[str, str]) -> WishState | None:
    """Return what can be told of a wish without passing it on."""
    row = tx.row(WishRow, "wish", **name)
    if row is None:
        return None
    if row.answer is None or row.age_ms is None:
        return "waiting"
    if row.age_ms >= REST_MS[row.answer]:
        return None
    # What was found is on its way to the shelf.
    return "unknown" if row.answer == "unknown" else "failed" if row.answer == "failed" else "waiting"
