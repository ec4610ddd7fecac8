"""The wish that every process reads its configuration again."""

from __future__ import annotations

from tidings.store.db.database import Database


class ReloadMarks:
    """A number that is raised with every wish."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def ask(self) -> None:
        """Wish that every process reads its configuration."""
        with self._database.transaction() as tx:
            tx.run("ask_reload")

    def asked(self) -> str | None:
        """Return what changes with every wish."""
        with self._database.reading() as tx:
            found: str | None = tx.value("reload_asked")
            return found
