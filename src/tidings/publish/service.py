"""A service over HTTP as a notifier sees it: calls that tell no secret, and what an answer means for a message."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

import msgspec
from pydantic import SecretStr

from tidings.model.contracts import Fetcher
from tidings.model.errors import Ambiguous, Misconfigured, Permanent, SlowDown, TidingsError, Transient
from tidings.model.web import Response
from tidings.net.statuses import retry_after_seconds

TIMEOUT_SECONDS = 20.0
WAIT_SECONDS_UNSTATED = 60.0
ANSWER_CHARS_MAX = 300
SECRET_PART_CHARS_MIN = 6
"""Shorter parts of an address hide nothing, and blanking them would spoil the message."""

_NEEDS_A_PERSON = {
    401: "it does not know us",
    403: "it forbids this",
    404: "there is nothing at this address",
    410: "it wants no more messages",
}


class Service:
    """What carries the requests of one channel. `who` is what operators call it: `slack:team`."""

    def __init__(
        self,
        who: str,
        fetcher: Fetcher,
        secrets: tuple[str, ...] = (),
        *,
        timeout_seconds: float = TIMEOUT_SECONDS,
        now: Callable[[], float] = time.time,
    ) -> None:
        self.who = who
        self._fetcher = fetcher
        self._secrets = sorted({part for secret in secrets for part in _parts(secret)}, key=len, reverse=True)
        self._timeout_seconds = timeout_seconds
        self._now = now

    async def call(self, method: str, url: str, **request: Any) -> Response:
        """Make one request; raise what the web client raises, without a secret."""
        try:
            return await self._fetcher.call(method, url, timeout_seconds=self._timeout_seconds, **request)
        except TidingsError as error:
            # The cause is dropped on purpose: whatever it says may repeat the address, which often holds a token.
            raise type(error)(f"{self.who}: {self.masked(str(error))}") from None

    def masked(self, text: str) -> str:
        """Return text that may be shown: short, and without the secrets of this channel."""
        for secret in self._secrets:
            text = text.replace(secret, "***")
        return text[:ANSWER_CHARS_MAX]

    def failure(
        self, response: Response, reason: str = "", *, wait_seconds: float | None = None, idempotent: bool = False
    ) -> TidingsError:
        """Say what an answer that is no success means for the message, by its status.

        `reason` are the service's own words, `wait_seconds` is how long it asks us to wait where its answer tells. A
        request that may be repeated without harm is never of unknown outcome.
        """
        status, told = response.status, f" ({self.masked(reason)})" if reason else ""
        if status == 429:
            return self.slow_down(response, wait_seconds)
        if status in _NEEDS_A_PERSON:
            return self.disabled(f"answered {status}: {_NEEDS_A_PERSON[status]}{told}")
        if 300 <= status < 400:
            return Misconfigured(f"{self.who} answered {status}, a redirect; set the address it leads to")
        if status >= 500 or status < 300 or status == 408:
            if idempotent:
                return Transient(f"{self.who} answered {status}{told}; it is asked again")
            return Ambiguous(f"{self.who} answered {status}{told}; the notice may or may not have been taken")
        return Permanent(f"{self.who} refused the notice with {status}{told}", status=status)

    def slow_down(self, response: Response, wait_seconds: float | None = None) -> SlowDown:
        """Say how long the service asks us to wait."""
        stated = retry_after_seconds(response.headers, self._now()) if wait_seconds is None else wait_seconds
        wait = WAIT_SECONDS_UNSTATED if stated is None else stated
        return SlowDown(f"{self.who} asked us to wait {wait:g} s ({response.status})", retry_after_seconds=wait)

    def disabled(self, what: str) -> Misconfigured:
        """Say that no message goes through until a person acts."""
        return Misconfigured(f"{self.who} {self.masked(what)}; mend it, then resume it")


def json_object(response: Response) -> dict[str, Any]:
    """Return the answer's JSON object; proxies answer in HTML, which is an empty one here."""
    try:
        found = msgspec.json.decode(response.body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def number(value: object) -> float | None:
    """Return a count or a wait that a service stated, or None where it is none."""
    usable = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 10**9
    return float(value) if usable else None  # type: ignore[arg-type]  # checked above


def secret_value(secret: SecretStr | None) -> str:
    """Return a secret as it is sent, "" where there is none."""
    return secret.get_secret_value().strip() if secret else ""


def origin(url: str, who: str) -> str:
    """Return the origin of an address without repeating the rest of it; refuse what is no web address."""
    try:
        parts = urlsplit(url.strip())
        port = f":{parts.port}" if parts.port is not None else ""
    except ValueError:
        parts, port = urlsplit(""), ""
    if parts.scheme not in ("http", "https") or not parts.hostname or "@" in parts.netloc:
        raise Misconfigured(f"{who}: the address must look like https://example.org/path, without a password")
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return f"{parts.scheme}://{host}{port}"


def _parts(secret: str) -> list[str]:
    """Return a secret and, of an address, what stands behind its host: messages may quote either."""
    parts = [secret]
    if "://" in secret:
        parts = [secret, secret.partition("://")[2].partition("/")[2], *urlsplit(secret)[2:4]]
    return [part for part in parts if len(part) >= SECRET_PART_CHARS_MIN]
