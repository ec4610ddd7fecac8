"""To which places a database was copied, or from which it was restored."""

from __future__ import annotations

from tidings.store.db.database import Database

PREFIX = "replica:"


class ReplicaNotes:
    """One row of `meta` for each place: a database that has none there must not write over what the place holds."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def holds(self, url: str) -> bool:
        """Tell whether the database was copied to a place before."""
        with self._database.reading() as tx:
            return tx.value("meta_named", name=PREFIX + url) is not None

    def put(self, url: str) -> None:
        """Note that the copies at a place are of this database."""
        with self._database.transaction() as tx:
            tx.run("name_in_meta", name=PREFIX + url)
