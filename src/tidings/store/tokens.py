"""Access tokens of the API; only their hashes are stored."""

from __future__ import annotations

import secrets
from hashlib import sha256

from tidings.model.views import TokenView
from tidings.store.db.database import Database

USE_NOTED_EVERY_MS = 60_000


class TokenStore:
    """Tokens, live and revoked."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def create(self, name: str, scope: str, reader: str | None = None) -> str:
        """Make a token and return it. This is the only time it can be read. It sets the marks of `reader`."""
        token = f"tid_{secrets.token_urlsafe(32)}"
        with self._database.transaction() as tx:
            tx.run("insert_token", hash=_hash(token), name=name, scope=scope, reader=reader)
        return token

    def scope_of(self, token: str) -> str | None:
        """Return the scope of a live token, or None."""
        with self._database.reading() as tx:
            scope: str | None = tx.value("token_scope", hash=_hash(token))
        return scope

    def reader_of(self, token: str) -> str | None:
        """Return whose marks a live token gives, where it names a reader."""
        with self._database.reading() as tx:
            reader: str | None = tx.value("token_reader", hash=_hash(token))
        return reader

    def note_use(self, token: str) -> None:
        """Note that a token was used just now, unless any process noted that within the last minute."""
        with self._database.transaction() as tx:
            tx.run("note_token_use", hash=_hash(token), every_ms=USE_NOTED_EVERY_MS)

    def list(self) -> list[TokenView]:
        """Return all tokens, the revoked ones too, oldest first."""
        with self._database.reading() as tx:
            return tx.rows(TokenView, "tokens")

    def are_there(self) -> bool:
        """Tell whether any live token exists."""
        return any(token.revoked_at is None for token in self.list())

    def revoke(self, name: str) -> int:
        """End every live token of a name; return how many there were."""
        with self._database.transaction() as tx:
            return tx.run("revoke_tokens", name=name)


def _hash(token: str) -> str:
    return sha256(token.encode()).hexdigest()
