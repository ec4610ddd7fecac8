"""Cards that are fetched when someone asks for them: the server never fetches, it leaves a wish for a source."""

from __future__ import annotations

import re

import msgspec

from tidings.model.contracts import ShelfEntry
from tidings.model.errors import TidingsError
from tidings.model.wishes import WishState
from tidings.serve.api.listings import Reader
from tidings.serve.backend import ReadBackend
from tidings.serve.http.problems import Problem
from tidings.serve.http.replies import Reply

RENEW_MS = 24 * 3_600_000
"""A card this old is shown, and fetched again."""
AGAIN_SECONDS = 2
WAITING_HELP = (
    "One that is not here is fetched: until then the answer is 202 with `Retry-After`. An old one is given as it is, "
    "and fetched again."
)
WAITING_SCHEMA = {
    "type": "object",
    "properties": {"id": {"type": "string"}, "state": {"type": "string", "enum": ["being fetched"]}},
    "required": ["id", "state"],
}


class WishDesk:
    """Passes wishes on, for collections that take them."""

    def __init__(self, backend: ReadBackend) -> None:
        self._backend = backend

    def takes(self, reader: Reader) -> bool:
        """Tell whether cards of a collection can be wished for here."""
        return reader.collection.wishable is not None and self._backend.wishes is not None

    async def state(self, reader: Reader, card_id: str) -> WishState | None:
        """Wish for a card that is not here; None where there can be none of that name."""
        pattern = reader.collection.wishable
        if pattern is None or self._backend.wishes is None or not re.fullmatch(pattern, card_id):
            return None
        try:
            wish = self._backend.wishes.wish
            return await self._backend.executor.write(wish, reader.pipeline, reader.collection.name, card_id)
        except TidingsError:
            # A server whose database user may only read still answers what is there.
            return None

    async def renew(self, reader: Reader, entry: ShelfEntry | None) -> None:
        """Wish for a card again that is here and old."""
        if entry is not None and self.takes(reader) and self._backend.clock.now_ms() - entry.written_at > RENEW_MS:
            await self.state(reader, reader.id_of(entry.key))


def waiting_reply(card_id: str) -> Reply:
    """Say that a card is being fetched."""
    body = msgspec.json.encode({"id": card_id, "state": "being fetched"})
    return Reply(body, 202, headers={"Retry-After": str(AGAIN_SECONDS)}, tagged=False)


def busy(reader: Reader, state: WishState) -> Problem:
    """Say why a wish cannot be fulfilled now."""
    what = "Too many others are being fetched." if state == "refused" else "Its source could not be read."
    return Problem(
        503,
        f"This {reader.collection.singular} is not here yet. {what}",
        helps="It is tried again when you ask again.",
        headers={"Retry-After": "60"},
    )
