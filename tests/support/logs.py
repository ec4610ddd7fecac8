"""What tidings logs, for tests that wait for a line."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager


class Lines(logging.Handler):
    """What was logged."""

    def __init__(self) -> None:
        super().__init__()
        self.told: list[str] = []
        self.has_told = threading.Event()

    def emit(self, record: logging.LogRecord) -> None:
        self.told.append(f"{record.getMessage()} {getattr(record, 'fields', {})}")
        self.has_told.set()


@contextmanager
def listening(level: int | None = None) -> Iterator[Lines]:
    lines = Lines()
    logger = logging.getLogger("tidings")
    before = logger.level
    logger.addHandler(lines)
    logger.setLevel(before if level is None else level)
    try:
        yield lines
    finally:
        logger.removeHandler(lines)
        logger.setLevel(before)
