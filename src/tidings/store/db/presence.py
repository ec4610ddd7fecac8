"""Which processes work on a SQLite file: one that is alone knows that every other holder of a lease is dead.

Every process that takes leases or turns holds a lock beside the file for as long as it lives. The kernel drops the lock
when the process dies, however it dies. A process that starts first asks for the lock alone. If it gets it, no lease or
turn in the database has a living holder, and all end at once. Otherwise they end when their time is up, as with
PostgreSQL. No other sign (a process id, an age) is taken for a death: a stopped or slow process may still be writing.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from tidings.store.db.database import Database

SUFFIX = "-alive"


class TakenOver(NamedTuple):
    """What was held by processes that are dead."""

    items: int = 0
    sources: int = 0
    reservations: int = 0
    channels: int = 0


@contextmanager
def present(database: Database) -> Iterator[TakenOver]:
    """Be known as alive while inside; on entering, end what dead processes held, where all others are known dead."""
    lock = None if database.file is None else _open(database.file)
    if lock is None:
        yield TakenOver()
        return
    try:
        taken = take_over(database) if _is_alone(lock) else TakenOver()
        # Going from the exclusive to the shared lock lets go of it for a moment. Another process that finds itself
        # alone in that moment takes nothing from us: we claim nothing before the shared lock is ours.
        fcntl.flock(lock, fcntl.LOCK_SH)
        yield taken
    finally:
        os.close(lock)


def take_over(database: Database) -> TakenOver:
    """End every lease, turn, reservation of the log and place in a channel.

    Items are swept as usual, and each lease counts as lost: one of them may be what the process died of.
    """
    with database.transaction() as tx:
        tx.run("close_all_lost_runs")
        return TakenOver(
            items=tx.run("end_leases"),
            sources=tx.run("end_turns"),
            reservations=tx.run("end_reservations"),
            channels=tx.run("end_places"),
        )


def _open(file: Path) -> int | None:
    file = file.resolve()
    try:
        return os.open(file.with_name(file.name + SUFFIX), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError:
        return None  # the folder cannot be written; leases then end when their time is up


def _is_alone(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
