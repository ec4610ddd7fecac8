"""A real database whose commits may fail: before they are done, after, or with the process that asked for them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from simulation.faults import Faults
from tidings.model.errors import StoreUnavailable
from tidings.store.db.database import Database, Tx
from tidings.store.db.statements import Migration


class Died(BaseException):
    """The simulated process is gone: nothing in it may catch this, as nothing survives kill -9."""


class FaultyDatabase:
    """What the store's parts get. Every outermost transaction draws how it ends."""

    def __init__(
        self,
        real: Database,
        faults: Faults,
        *,
        before: Callable[[], None],
        on_commit: Callable[[], None],
        die: Callable[[], bool],
    ) -> None:
        self.real = real
        self._before = before
        self.dialect = real.dialect
        self.has_one_writer = real.has_one_writer
        self.carries_hints = real.carries_hints
        self.file = real.file
        self._faults = faults
        self._on_commit = on_commit
        self._die = die
        self._depth = 0
        self.is_full = False
        """The disk: every commit fails."""

    @contextmanager
    def transaction(self) -> Iterator[Tx]:
        """Open a writing transaction and end it as was drawn, or join the open one."""
        if self._depth:
            with self.real.transaction() as tx:
                yield tx
            return
        fate = self._faults.fate()
        self._before()
        self._depth += 1
        try:
            with self.real.transaction() as tx:
                yield tx
                self._fail_if(fate == "dies before", fate == "undone")
                if self.is_full:
                    raise StoreUnavailable("the disk is full")
        finally:
            self._depth -= 1
        self._on_commit()
        self._fail_if(fate == "dies after", fate == "reply lost")

    def _fail_if(self, dies: bool, is_cut: bool) -> None:
        """End the process that asked, or tell it nothing but that the connection is gone."""
        if dies and self._die():
            raise Died
        if dies or is_cut:
            raise StoreUnavailable("the connection was cut")

    @contextmanager
    def reading(self) -> Iterator[Tx]:
        """Open one snapshot."""
        self._before()
        with self.real.reading() as tx:
            yield tx

    def lock(self, tx: Tx, name: str, *, is_shared: bool = False) -> None:
        """Hold a named lock."""
        self.real.lock(tx, name, is_shared=is_shared)

    def migrations(self) -> list[Migration]:
        """Return the schema's migrations."""
        return self.real.migrations()

    def move_clock(self, offset_ms: int) -> None:
        """Set how far the clock is moved."""
        self.real.move_clock(offset_ms)

    def now_ms(self) -> int:
        """Return the database's clock."""
        return self.real.now_ms()

    def changes(self) -> int:
        """Return a number that differs after a write."""
        return self.real.changes()

    def hint(self) -> None:
        """Tell nobody: polling must suffice."""

    def wait_for_hint(self, seconds: float) -> bool:  # noqa: ARG002  # a contract's form
        """Wait for nothing: there are no threads."""
        return False

    def standstill(self) -> str | None:
        """Say nothing: nobody here waits for a socket."""
        return None

    def describe(self) -> str:
        """Name the database."""
        return self.real.describe()

    def close(self) -> None:
        """Close every connection."""
        self.real.close()
