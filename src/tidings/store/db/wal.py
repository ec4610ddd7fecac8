"""SQLite's write-ahead log, copied to its places beside the writer: in its commits it took a tenth of a bulk load."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import apsw

from tidings.model.errors import StoreUnavailable

PAGES = 4_000
"""How long the write-ahead log may grow before its pages are copied to their places."""
PAGES_MAX = 8_000
"""While writes never pause, the thread never reaches the end of the log: at this length the writer copies the rest."""


def copy_log(file: Path) -> None:
    """Copy what the log holds to its places, as far as others let us; nobody waits for it."""
    flags = apsw.SQLITE_OPEN_READWRITE
    with contextlib.suppress(apsw.Error), closing(apsw.Connection(str(file), flags=flags)) as connection:
        connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)


class WalCopier:
    """Copies the log of one database in a thread of its own, which is started when there is something to do."""

    def __init__(self, connect: Callable[[], apsw.Connection], wait: Callable[[int], bool]) -> None:
        self._connect = connect
        self._wait = wait
        self._copying = threading.Lock()
        self._is_wanted = threading.Event()
        self._is_closing = False
        self._thread: threading.Thread | None = None

    def after_commit(self, writer: apsw.Connection, _name: str, pages: int) -> int:
        """Look at the log after a commit; SQLite calls this, and a failure here would look like one of the commit."""
        if pages >= PAGES_MAX:
            self._copy_all(writer)
        elif pages >= PAGES:
            self._start()
            self._is_wanted.set()
        return apsw.SQLITE_OK

    def close(self) -> None:
        """End the thread."""
        self._is_closing = True
        self._is_wanted.set()
        if self._thread is not None:
            self._thread.join()

    def _start(self) -> None:
        if self._thread is None:
            thread = threading.Thread(target=self._run, name="wal", daemon=True)
            with contextlib.suppress(RuntimeError):  # where no thread can be had, the writer copies
                thread.start()
                self._thread = thread

    def _run(self) -> None:
        try:
            connection = self._connect()
        except (apsw.Error, StoreUnavailable):
            return  # later, and more of it at once, the writer copies
        while self._is_wanted.wait() and not self._is_closing:
            self._is_wanted.clear()
            self._copy(connection, apsw.SQLITE_CHECKPOINT_PASSIVE)

    def _copy_all(self, writer: apsw.Connection) -> None:
        """Copy to the end, keeping others from writing meanwhile; where one writes already, what can be copied."""
        writer.set_busy_handler(None)
        self._copy(writer, apsw.SQLITE_CHECKPOINT_FULL)
        writer.set_busy_handler(self._wait)

    def _copy(self, connection: apsw.Connection, mode: int) -> None:
        # Another process may be at it, or the disk may be full: the log just stays longer, and nothing in it is lost.
        with self._copying, contextlib.suppress(apsw.Error):
            connection.wal_checkpoint(mode=mode)
