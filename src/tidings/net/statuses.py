"""What an HTTP status means for us: which error to raise, how long to wait."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC
from email.utils import parsedate_to_datetime

from tidings.model.backoff import RETRY_AFTER_SECONDS_MAX
from tidings.model.errors import Misconfigured, Permanent, SlowDown, Transient
from tidings.model.web import Response

_WORTH_ANOTHER_TRY = frozenset({204, 205, 408, 425, 509})
_NEEDS_A_PERSON = {401: "the credential is missing or wrong", 402: "payment is required", 403: "access is denied"}


def raise_for_status(response: Response, what: str, *, trusted: bool = True, now: float | None = None) -> None:
    """Turn a status other than success into the error that says what to do; `what` names the thing for the operator.

    A trusted endpoint that denies us needs a person; a page that does is simply not for us.
    """
    status = response.status
    if 200 <= status < 300 and status not in _WORTH_ANOTHER_TRY:
        return
    wait = retry_after_seconds(response.headers, now)
    if status == 429:
        raise SlowDown(f"{what} asked us to slow down (429)", retry_after_seconds=wait)
    if status >= 500 or status in _WORTH_ANOTHER_TRY:
        raise Transient(f"{what} answered {status}; it may recover", retry_after_seconds=wait)
    if trusted and status in _NEEDS_A_PERSON:
        raise Misconfigured(f"{what} answered {status}: {_NEEDS_A_PERSON[status]}; check its settings")
    raise Permanent(f"{what} answered {status}; trying again will not help", status=status)


def retry_after_seconds(headers: Mapping[str, str], now: float | None = None) -> float | None:
    """Read `Retry-After` as seconds (fractions too) or a date (needs `now`, Unix seconds), within [0, 1 h].

    Nonsense and negative values count as no answer; a date in the past means now.
    """
    text = headers.get("retry-after", "").strip()
    if not text:
        return None
    try:
        seconds = float(text)
    except ValueError:
        return _until_date(text, now)
    if not math.isfinite(seconds) or seconds < 0:
        return None
    return min(seconds, RETRY_AFTER_SECONDS_MAX)


def _until_date(text: str, now: float | None) -> float | None:
    if now is None or len(text) > 64:
        return None
    try:
        date = parsedate_to_datetime(text)
        seconds = (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp() - now
    except (ValueError, OverflowError, TypeError):
        return None
    return min(max(seconds, 0.0), RETRY_AFTER_SECONDS_MAX)
