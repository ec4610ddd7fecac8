"""Digests: what each table of a backup held when it was written, so that damage shows before anything is restored."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from typing import NamedTuple

import apsw
import msgspec

from tidings.store.db.sqlite_tx import SqliteTx
from tidings.store.upkeep.tables import columns_by_table

TABLE = "digests"
"""Only backups have it. It holds one row for each other table, and one for itself: the digest over the digests."""
UNREADABLE = (apsw.CorruptError, apsw.NotADBError, apsw.SQLError, UnicodeDecodeError)
"""What reading a damaged file raises: bad pages, a schema that makes no sense, text that is none."""
# Types keep their differences in this form (a number is no text, nothing is not empty), and no two rows share one.
_canonical = msgspec.msgpack.Encoder().encode


class Digest(NamedTuple):
    """How many rows a table has, and the SHA-256 of their content in the order of their keys."""

    name: str
    rows: int
    digest: str


class Content(NamedTuple):
    """A table, its columns, and those of its key, by which it is read."""

    table: str
    columns: list[str]
    key: list[str]


class DamagedTableError(Exception):
    """A table does not hold what it did; the message says which, and how that shows."""


def write_digests(target: SqliteTx) -> None:
    """Note in a backup what each of its tables holds. Nothing may be written to it afterwards."""
    target.run("create_digests")
    digests = [_digest(target, content) for content in _contents(target)]
    target.put("put_digests", [*digests, _digest_over(digests)])


def has_digests(backup: SqliteTx) -> bool:
    """Tell whether a backup has digests; those of older versions have none."""
    try:
        return backup.value("any_digests") is not None
    except apsw.CorruptError:
        raise DamagedTableError("sqlite_schema cannot be read") from None


def check_digests(backup: SqliteTx, progress: Callable[[int, int], None]) -> str:
    """Compare all content with the digests; return the one over them all, or raise DamagedTableError."""
    expected = _read_digests(backup)
    total, done = sum(digest.rows for digest in expected.values()), 0
    # The schema first: whatever is read after it is then read by the names and from the tables it was written to.
    for content in _contents(backup):
        digest = expected.get(content.table)
        if digest is None:
            raise DamagedTableError(f"{content.table} is not among its digests")
        _compare(backup, content, digest)
        progress(done := done + digest.rows, total)
    return expected[TABLE].digest


def _read_digests(backup: SqliteTx) -> dict[str, Digest]:
    try:
        digests = backup.rows(Digest, "read_digests")
    except UNREADABLE:
        raise DamagedTableError(f"{TABLE} cannot be read") from None
    others = [digest for digest in digests if digest.name != TABLE]
    if _digest_over(others) not in digests:
        raise DamagedTableError(f"{TABLE} is not as it was written")
    return {digest.name: digest for digest in digests}


def _compare(backup: SqliteTx, content: Content, expected: Digest) -> None:
    try:
        found = _digest(backup, content, rows_max=expected.rows)
    except UNREADABLE:
        raise DamagedTableError(f"{content.table} cannot be read") from None
    if found != expected:
        raise DamagedTableError(f"{content.table} is not as it was written")


def _contents(backup: SqliteTx) -> Iterator[Content]:
    """List the tables, the schema first. What the full text index keeps for itself is left out: a restore writes it."""
    for table, columns in columns_by_table(backup).items():
        names = [column.name for column in columns]
        if columns[0].is_without_rowid:
            key = sorted((column for column in columns if column.place_in_key), key=lambda column: column.place_in_key)
            yield Content(table, names, [column.name for column in key])
        else:
            yield Content(table, ["rowid", *names], ["rowid"])


def _digest(backup: SqliteTx, content: Content, rows_max: int | None = None) -> Digest:
    """Read a table whole. A damaged tree may lead in circles, so it is left when there are more rows than expected."""
    hashed, rows = hashlib.sha256(), 0
    for row in backup.scan(*content):
        hashed.update(_canonical(row))
        rows += 1
        if rows_max is not None and rows > rows_max:
            break
    return Digest(content.table, rows, hashed.hexdigest())


def _digest_over(digests: list[Digest]) -> Digest:
    hashed = hashlib.sha256()
    for digest in sorted(digests):
        hashed.update(_canonical(digest))
    return Digest(TABLE, len(digests), hashed.hexdigest())
