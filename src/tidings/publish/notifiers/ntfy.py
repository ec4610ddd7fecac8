"""Sends notices to a topic of ntfy, by JSON. Who knows the name of an open topic can read it: the name is a secret."""

from __future__ import annotations

import re
from typing import Any

from pydantic import Field, SecretStr

from tidings.model.contracts import Fetcher, Receipt
from tidings.model.errors import Ambiguous, Misconfigured, TidingsError
from tidings.model.publication import Notice
from tidings.model.urls import link_address
from tidings.model.web import Response
from tidings.publish.notifiers import ChannelSettings
from tidings.publish.service import Service, json_object, origin, secret_value
from tidings.publish.wording import facts, fit, one_line

SERVER = "https://ntfy.sh"
MESSAGE_BYTES_MAX = 4096
"""A longer message arrives as a file."""
TITLE_MAX = 250
LABEL_MAX = 60
TEXT_CHARS_MAX = 2500
URL_MAX = 2000
DAILY_QUOTA = 42908
DAILY_QUOTA_WAIT_SECONDS = 3600.0
PRODUCT = "tidings"

_TOPIC = re.compile(r"[A-Za-z0-9_-]{1,64}")


class Settings(ChannelSettings):
    """A topic of ntfy."""

    server: str = SERVER
    """The server; one of your own is as good."""
    topic: SecretStr | None = None
    """Only by environment or file: TIDINGS_NOTIFIERS__NTFY__<NAME>__TOPIC."""
    token: SecretStr = SecretStr("")
    """An access token, where the topic is protected. Only by environment or file."""
    priority: int = Field(default=3, ge=1, le=5)
    """From 1 (no sound) to 5 (rings until it is seen)."""
    tags: tuple[str, ...] = ()
    """Shown with the title; names of emoji become emoji."""


def endpoints(settings: Settings, name: str, loopback: frozenset[tuple[str, int]]) -> tuple[str, ...]:  # noqa: ARG001  # the web client knows them
    """Return the server's origin; refuse a topic that cannot be one."""
    if not _TOPIC.fullmatch(secret_value(settings.topic)):
        raise Misconfigured(f"ntfy:{name}: a topic has 1 to 64 letters, digits, - and _")
    return (origin(settings.server, f"ntfy:{name}"),)


def build(settings: Settings, name: str, fetcher: Fetcher, loopback: frozenset[tuple[str, int]]) -> Ntfy:  # noqa: ARG001
    """Return the notifier of one topic."""
    return Ntfy(settings, name, fetcher)


async def check(notifier: Ntfy) -> str:
    """Ask the server whether it is well and knows the token; nothing is sent."""
    return await notifier.check()


def preview(settings: Settings, notice: Notice) -> dict[str, Any]:
    """Return the body of the request, without its topic."""
    return message(settings, notice, "preview")


class Ntfy:
    """The notifier of one topic."""

    def __init__(self, settings: Settings, name: str, fetcher: Fetcher) -> None:
        self.name = name
        self._settings = settings
        self._topic, token = secret_value(settings.topic), secret_value(settings.token)
        self._headers = {"authorization": f"Bearer {token}"} if token else {}
        self._base = settings.server.rstrip("/")
        self._service = Service(f"ntfy:{name}", fetcher, (self._topic, token))

    def __repr__(self) -> str:
        return f"Ntfy({self._service.who})"

    async def send(self, notice: Notice, delivery_id: str) -> Receipt:
        """Publish one message and keep its id."""
        body = {"topic": self._topic, **self.render(notice, delivery_id)}
        response = await self._service.call("POST", f"{self._base}/", headers=self._headers, json=body)
        reply = json_object(response)
        if response.status != 200:
            raise self._failure(response, reply)
        if not isinstance(reply.get("id"), str):
            raise Ambiguous(f"{self._service.who} answered 200 with a reply that cannot be read")
        return Receipt(reply["id"], f"200 OK, message {reply['id'][:40]}")

    def render(self, notice: Notice, delivery_id: str) -> dict[str, Any]:
        """Return the message as it would be sent, without its topic."""
        return message(self._settings, notice, delivery_id)

    async def check(self) -> str:
        """Say whether the server is healthy and takes the token."""
        health = await self._service.call("GET", f"{self._base}/v1/health")
        if health.status != 200 or json_object(health).get("healthy") is not True:
            raise Misconfigured(f"{self._service.who}: the server does not say that it is healthy ({health.status})")
        if not self._headers:
            return "the server is healthy; whether the topic is open, a test tells"
        account = await self._service.call("GET", f"{self._base}/v1/account", headers=self._headers)
        if account.status != 200:
            raise self._failure(account, json_object(account))
        return "the server is healthy and knows the token; whether it may write to the topic, a test tells"

    def _failure(self, response: Response, reply: dict[str, Any]) -> TidingsError:
        words = str(reply.get("error", ""))
        if reply.get("code") == DAILY_QUOTA:
            return self._service.slow_down(response, DAILY_QUOTA_WAIT_SECONDS)
        return self._service.failure(response, words)


def message(settings: Settings, notice: Notice, delivery_id: str) -> dict[str, Any]:
    """Return what is published: plain text, and the address that a tap opens."""
    address = link_address(notice.url)
    body: dict[str, Any] = {
        "title": one_line(notice.title, TITLE_MAX) or "Untitled",
        "message": _text(notice, delivery_id),
        "priority": settings.priority,
        "tags": list(settings.tags),
    }
    return {**body, "click": address} if address is not None and len(address) <= URL_MAX else body


def _text(notice: Notice, delivery_id: str) -> str:
    """Put text and facts below the limit, which counts bytes. Labels are short: without values all of them fit."""
    footer = f"{one_line(notice.footer, 300) or PRODUCT} • {delivery_id}"
    chars = TEXT_CHARS_MAX
    while True:
        lines = "\n".join(
            f"{one_line(name, LABEL_MAX)}: {fit(value, chars, markdown=False)}" for name, value in facts(notice)[:10]
        )
        parts = (fit(notice.text, chars, markdown=False), lines, footer)
        text = "\n\n".join(part for part in parts if part)
        if len(text.encode()) <= MESSAGE_BYTES_MAX:
            return text
        chars = chars * 3 // 4
