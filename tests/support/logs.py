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
def listening() -> Iterator[Lines]:
    lines = Lines()
    logger = logging.getLogger("tidings")
    logger.addHandler(lines)
    try:
        yield lines
    finally:
        logger.removeHandler(lines)
