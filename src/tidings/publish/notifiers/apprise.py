"""Carries notices to any service Apprise knows (mail, ntfy, Matrix, ...); needs the extra `tidings[notifiers]`.

An Apprise address is a credential, and Apprise writes addresses to its log: its loggers are switched off for good.
"""

from __future__ import annotations

import asyncio
import logging
import warnings
from typing import Any

from pydantic import Field, SecretStr

from tidings.model.contracts import Fetcher, Receipt
from tidings.model.errors import Ambiguous, Misconfigured
from tidings.model.publication import Notice
from tidings.publish.notifiers import ChannelSettings
from tidings.publish.wording import clean

BODY_CHARS_MAX = 10_000
_TELLTALE_LOGGERS = ("apprise", "urllib3", "requests")


class Settings(ChannelSettings):
    """Any service Apprise knows (extra `notifiers`)."""

    url: SecretStr | None = Field(default=None, title="address")
    """Only by environment or file: TIDINGS_NOTIFIERS__APPRISE__<NAME>__URL."""


def build(settings: Settings, name: str, fetcher: Fetcher, loopback: frozenset[tuple[str, int]]) -> Apprise:  # noqa: ARG001  # Apprise brings an HTTP client of its own
    """Return the notifier of one address."""
    return Apprise(settings.url.get_secret_value() if settings.url else "", name)


async def check(notifier: Apprise) -> str:
    """Say what is known: Apprise cannot ask a service without sending."""
    return f"its address can be read; `tidings notify test {notifier.name}` tries it"


def preview(settings: Settings, notice: Notice) -> dict[str, str]:  # noqa: ARG001  # it looks the same everywhere
    """Return title and plain text."""
    return _plain(notice, "preview")


class Apprise:
    """The notifier of one Apprise address."""

    def __init__(self, address: str, name: str, *, timeout_seconds: float = 40.0) -> None:
        _silence()
        self.name = name
        self._timeout_seconds = timeout_seconds
        self._service = _service(address, name)

    def __repr__(self) -> str:
        return f"Apprise(apprise:{self.name})"

    async def send(self, notice: Notice, delivery_id: str) -> Receipt:
        """Send, and raise Ambiguous where Apprise does not confirm: it never says why."""
        text = self.render(notice, delivery_id)
        try:
            async with asyncio.timeout(self._timeout_seconds):
                # Apprise calls are blocking. After the time limit the thread goes on, so the outcome is unknown.
                confirmed = await asyncio.to_thread(self._service.notify, **text)
        except TimeoutError:
            raise Ambiguous(f"apprise:{self.name} did not answer in {self._timeout_seconds:g} s") from None
        if not confirmed:
            raise Ambiguous(f"apprise:{self.name} did not confirm the notice; it may or may not have arrived")
        return Receipt(None, "Apprise reports it as sent")

    def render(self, notice: Notice, delivery_id: str) -> dict[str, str]:
        """Return title and plain text, as any service can show them."""
        return _plain(notice, delivery_id)


def _plain(notice: Notice, delivery_id: str) -> dict[str, str]:
    lines = [f"{clean(field.name)}: {clean(field.value)}" for field in notice.fields if clean(field.value)]
    parts = [
        clean(notice.text),
        "\n".join(lines),
        notice.url or "",
        f"{clean(notice.footer) or 'tidings'} • {delivery_id}",
    ]
    body = "\n\n".join(part for part in parts if part)
    return {"title": clean(notice.title), "body": body[:BODY_CHARS_MAX], "body_format": "text"}


def _silence() -> None:
    for name in _TELLTALE_LOGGERS:
        logger = logging.getLogger(name)
        logger.handlers[:] = [logging.NullHandler()]
        logger.propagate = False
        logger.setLevel(logging.CRITICAL + 1)


def _service(address: str, name: str) -> Any:  # Apprise carries no types.
    with warnings.catch_warnings():
        # Apprise imports its services on first use, and with them modules that Python deprecates.
        warnings.simplefilter("ignore", DeprecationWarning)
        try:
            import apprise
        except ImportError:
            raise Misconfigured(f"apprise:{name} needs the extra: install tidings[notifiers]") from None
        service = apprise.Apprise()
        if not service.add(address):
            raise Misconfigured(f"apprise:{name}: the address is not one Apprise understands")
    return service
