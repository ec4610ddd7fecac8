"""A circuit: while an endpoint fails for all items, questions wait instead of spending their items' attempts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tidings.model.errors import Permanent, SlowDown, Transient

OPENS_AFTER = 3
"""So many different questions must fail in a row: a text that an endpoint cannot answer is one item's own trouble."""
WAIT_SECONDS = 15.0
WAIT_SECONDS_MAX = 300.0


class EndpointDown(SlowDown):
    """The endpoint fails for all; what waits for it spends no attempt."""


class Circuit:
    """Watches how questions end, in this process.

    Closed, it lets everything through. After some failures in a row it opens: questions are told to wait, and one
    after each wait is let through to see. Its success closes the circuit, its failure makes the wait longer.
    """

    def __init__(self, name: str, *, answers: tuple[type[Exception], ...] = (), now: Callable[[], float]) -> None:
        """Take the errors that only a working endpoint causes, such as an answer that cannot be used."""
        self._name = name
        self._answers: tuple[type[Exception], ...] = (SlowDown, Permanent, *answers)
        self._now = now
        self._failed: set[str] = set()
        self._wait_seconds = WAIT_SECONDS
        self._next_try = float("-inf")
        self._problem = ""

    @property
    def is_open(self) -> bool:
        """Tell whether questions wait."""
        return len(self._failed) >= OPENS_AFTER

    @contextmanager
    def around(self, question: str) -> Iterator[None]:
        """Let a question through; raise EndpointDown where it has to wait, or where it failed as all others do."""
        self._enter()
        try:
            yield
        except self._answers:
            self._close()
            raise
        except Transient as error:
            self._note_failure(question, error)
            if self.is_open:
                raise self._wait() from error
            raise
        self._close()

    def _enter(self) -> None:
        if self.is_open:
            if self._now() < self._next_try:
                raise self._wait()
            self._next_try = self._now() + self._wait_seconds  # this one tries; the others go on waiting

    def _note_failure(self, question: str, error: Transient) -> None:
        was_open = self.is_open
        self._problem = str(error)
        if not was_open:
            self._failed.add(question)
        if self.is_open:
            self._wait_seconds = min(self._wait_seconds * 2, WAIT_SECONDS_MAX) if was_open else WAIT_SECONDS
            self._next_try = self._now() + self._wait_seconds

    def _wait(self) -> EndpointDown:
        seconds = max(1.0, self._next_try - self._now())
        return EndpointDown(f"{self._name} fails for all: {self._problem}", retry_after_seconds=seconds)

    def _close(self) -> None:
        self._failed.clear()
        self._wait_seconds = WAIT_SECONDS
