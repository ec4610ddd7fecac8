"""One line per event: human on a terminal, JSON for programs. Never a secret, never a whole payload."""

from __future__ import annotations

import json
import logging
import re
import sys
import time
from datetime import UTC, datetime
from typing import Any, Literal

import msgspec

from tidings.model.clock import rfc3339
from tidings.model.harmless import HIDDEN

_FORGING = re.compile(f"[\t\n\r]|{HIDDEN.pattern}")
_VALUE_CHARS_MAX = 300
_secrets: set[str] = set()

log = logging.getLogger("tidings")


def event(what: str, *, level: int = logging.INFO, **fields: Any) -> None:
    """Log one event with its fields."""
    if log.isEnabledFor(level):
        log.log(level, what, extra={"fields": fields})


def hide(secret: str | None) -> None:
    """Make sure a secret never appears in a log line, even one that a library writes."""
    if secret and len(secret) >= 6:
        _secrets.add(secret)


def redact(text: str) -> str:
    """Replace every known secret, and keep one event on one line."""
    for secret in _secrets:
        text = text.replace(secret, "***")
    # Spelled as JSON does: the same text may already stand inside a JSON string, which knows no `\x9f`.
    return _FORGING.sub(lambda found: json.dumps(found[0])[1:-1], text)


class HumanFormatter(logging.Formatter):
    """`12:00:01 info merged pipeline=hacker_news born=12`; what did not happen is not told."""

    def format(self, record: logging.LogRecord) -> str:
        """Write one line."""
        fields = getattr(record, "fields", {})
        moment = datetime.fromtimestamp(record.created, UTC).strftime("%H:%M:%S")
        level = record.levelname.lower()
        parts = " ".join(f"{name}={_short(value)}" for name, value in fields.items() if value not in (None, 0))
        return redact(f"{moment} {level} {record.getMessage()} {parts}".rstrip())


class JsonFormatter(logging.Formatter):
    """One JSON object a line."""

    def format(self, record: logging.LogRecord) -> str:
        """Write one line."""
        line: dict[str, Any] = {
            "at": rfc3339(int(record.created * 1000)),
            "level": record.levelname.lower(),
            "event": record.getMessage(),
        }
        line |= {k: _short(v) if isinstance(v, str) else v for k, v in getattr(record, "fields", {}).items()}
        return redact(msgspec.json.encode(line, enc_hook=str).decode())


def set_up(form: Literal["human", "json"] = "human", level: int = logging.INFO) -> None:
    """Send our events to stderr in the chosen form."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter() if form == "json" else HumanFormatter())
    log.handlers[:] = [handler]
    log.setLevel(level)
    log.propagate = False


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= _VALUE_CHARS_MAX else text[: _VALUE_CHARS_MAX - 1] + "…"


class Seldom:
    """At most one line per message a second, with how many were left out."""

    def __init__(self, seconds: float = 1.0) -> None:
        self._seconds = seconds
        self._last: dict[str, tuple[float, int]] = {}

    def event(self, what: str, *, level: int = logging.WARNING, **fields: Any) -> None:
        """Log the event unless the same one was logged a moment ago."""
        now = time.monotonic()
        last, skipped = self._last.get(what, (float("-inf"), 0))
        if now - last < self._seconds:
            self._last[what] = (last, skipped + 1)
            return
        self._last[what] = (now, 0)
        event(what, level=level, **fields, left_out=skipped or None)
