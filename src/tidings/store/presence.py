"""Who works on a SQLite file: a process that finds itself alone knows that all others who held anything are dead.

Every process that takes leases or turns holds a lock beside the file for as long as it lives; the kernel drops it when
the process dies, however it dies. A process that starts asks for the lock alone first. If it gets it, nothing that is
held has a holder, and is free at once; else only time tells, as with PostgreSQL. Nothing else may judge who is alive.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from tidings.store.database import Database
from tidings.store.sqlite import SqliteDatabase

SUFFIX = "-alive"


class TakenOver(NamedTuple):
    """What was held by processes that are dead."""

    items: int = 0
    sources: int = 0
    batches: int = 0
    channels: int = 0


@contextmanager
def present(database: Database) -> Iterator[TakenOver]:
    """Be known as alive; on entering, free what the dead held, where it is certain that all others are."""
    if not isinstance(database, SqliteDatabase):
        yield TakenOver()
        return
    with contextlib.ExitStack() as held:
        lock = _open(database.path)
        if lock is None:
            yield TakenOver()
            return
        held.callback(os.close, lock)
        taken = TakenOver()
        if _is_alone(lock):
            taken = take_over(database)
        # This lets go of the lock for a moment. Nothing is claimed before it is held again, so that another who finds
        # itself alone in that moment takes nothing away.
        fcntl.flock(lock, fcntl.LOCK_SH)
        yield taken


def take_over(database: Database) -> TakenOver:
    """End every lease, turn, right to run ahead and place in a channel.

    Items are swept as usual, and each lease counts as lost: one of them may be what the process died of.
    """
    with database.transaction() as tx:
        return TakenOver(*[tx.run(name) for name in ("end_leases", "end_turns", "end_aheads", "end_places")])


def _open(path: str) -> int | None:
    file = Path(path).resolve()
    try:
        return os.open(file.with_name(file.name + SUFFIX), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError:
        return None  # a folder that cannot be written; leases then run out


def _is_alone(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
