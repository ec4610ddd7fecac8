"""Waits for the lock that another process holds on a SQLite file, and says who holds it."""

from __future__ import annotations

import logging
import os
import threading
import time
from pathlib import Path

from tidings.store.db.database import PATIENCE_SECONDS
from tidings.watch.logs import event

TICK_SECONDS = 0.001
"""SQLite's own way of waiting sleeps longer each time."""
WAIT_SECONDS = 5.0
TELL_SECONDS = 1.0
STALL_SECONDS = 3.0
RECENT_SECONDS = 5.0
WRITE_LOCK_BYTE = 120
"""Where in the file `-shm` SQLite locks for writing."""


class LockWait:
    """Bounded patience: 5 s, but half a minute before our first turn, for a command has no other chance."""

    def __init__(self, path: str, patience_seconds: float = PATIENCE_SECONDS) -> None:
        self._path = Path(path)
        self._patience_seconds = patience_seconds
        self._starts: dict[int, float] = {}
        self._stuck_since: float | None = None
        self._ticked = float("-inf")
        self._had_lock = False
        self._told = float("-inf")

    def tick(self, tries: int) -> bool:
        """Wait a moment; False once it was too long. SQLite calls this while the lock is taken."""
        time.sleep(TICK_SECONDS)
        now = self._ticked = time.monotonic()
        start = now if tries == 0 else self._starts.get(threading.get_ident(), now)
        self._starts[threading.get_ident()] = start
        if self._stuck_since is None:
            self._stuck_since = start
        if now - start > TELL_SECONDS and now - self._told > TELL_SECONDS:
            self._told = now
            seconds = round(now - start)
            event(
                "waiting for a lock",
                level=logging.WARNING,
                file=self._path.name,
                seconds=seconds,
                held_by=self.holder(),
            )
        return now - start < (WAIT_SECONDS if self._had_lock else self._patience_seconds)

    def got(self) -> None:
        """Note that the lock was ours."""
        self._had_lock = True
        self._stuck_since = None

    def stalled(self) -> str | None:
        """Say since when nothing could be written, if a call waits for it."""
        now, since = time.monotonic(), self._stuck_since
        if since is None or now - since < STALL_SECONDS or now - self._ticked > RECENT_SECONDS:
            return None
        return f"no commit for {now - since:.0f} s, waiting for a lock held by {self.holder()}"

    def holder(self) -> str:
        """Name the process that holds the lock, where the system tells."""
        try:
            file = os.stat(f"{self._path}-shm")
            place = f"{os.major(file.st_dev):02x}:{os.minor(file.st_dev):02x}:{file.st_ino}"
            locks = [line.split() for line in Path("/proc/locks").read_text().splitlines()]
        except OSError:
            return "another process"
        # 12: POSIX  ADVISORY  WRITE 4711 08:01:123456 120 120
        for words in locks:
            if words[1] != "->" and words[3:4] == ["WRITE"] and words[5] == place and _covers(words[6], words[7]):
                return _process(int(words[4]))
        return "another process"


def _covers(first: str, last: str) -> bool:
    return int(first) <= WRITE_LOCK_BYTE and (last == "EOF" or int(last) >= WRITE_LOCK_BYTE)


def _process(number: int) -> str:
    try:
        state = Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return f"process {number}"
    return f"process {number}, which is stopped" if state == "T" else f"process {number}"
