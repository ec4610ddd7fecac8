"""The signed webhook against a receiver that checks signatures with the reference library, over real HTTP."""

from __future__ import annotations

import base64
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import pytest
from pydantic import SecretStr
from standardwebhooks import Webhook
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from tidings.model.errors import Ambiguous, Misconfigured, Permanent, SlowDown, Transient
from tidings.model.publication import Notice, NoticeField
from tidings.net.client import Web
from tidings.publish.notifiers.webhook import Settings, SignedWebhook, build, endpoints, preview
from tidings.sample.serving import StandIn

SECRET = "whsec_" + base64.b64encode(bytes(range(32))).decode()
PATH = "/hooks/canary-token"
NOTICE = Notice(
    title="Ein Aufruf — «open»",
    url="https://example.org/a",
    text="Summary.",
    fields=(NoticeField("Deadline", "15 September 2026", time="2026-09-15T15:00:00Z"),),
    attributes={"status": "open"},
)


class Receiver:
    """Takes messages whose signature holds, and answers as told."""

    def __init__(self, status: int = 204, headers: dict[str, str] | None = None) -> None:
        self.status = status
        self.headers = headers
        self.taken: list[tuple[str, Any]] = []
        self.app = Starlette(routes=[Route(PATH, self.receive, methods=["POST"])])

    async def receive(self, request: Request) -> Response:
        message = Webhook(SECRET).verify(await request.body(), dict(request.headers))
        self.taken.append((request.headers["webhook-id"], message))
        return Response(status_code=self.status, headers=self.headers)


@contextlib.asynccontextmanager
async def a_channel(receiver: Receiver, path: str = PATH) -> AsyncIterator[SignedWebhook]:
    async with StandIn(receiver.app) as server:
        settings = Settings(url=SecretStr(server.url + path), secret=SecretStr(SECRET))
        allowed = endpoints(settings, "mine", frozenset())
        async with Web(user_agent="tidings-tests/1", endpoints=list(allowed)) as web:
            yield build(settings, "mine", web, frozenset())


async def test_a_message_is_signed_and_carries_the_notice() -> None:
    receiver = Receiver()
    async with a_channel(receiver) as channel:
        receipt = await channel.send(NOTICE, "0badcafe")

    ((message_id, message),) = receiver.taken
    assert (message_id, receipt.message_id) == ("0badcafe", "0badcafe")
    assert message["type"] == "tidings.notice"
    assert message["data"]["title"] == NOTICE.title
    assert message["data"]["fields"] == [
        {"name": "Deadline", "value": "15 September 2026", "time": "2026-09-15T15:00:00Z"}
    ]
    assert preview(Settings(), NOTICE)["data"]["text"] == "Summary."


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (400, Permanent), (413, Permanent), (401, Misconfigured), (404, Misconfigured), (410, Misconfigured),
        (302, Misconfigured), (429, SlowDown), (503, SlowDown), (500, Ambiguous), (502, Ambiguous), (408, Ambiguous),
    ],
)  # fmt: skip
async def test_an_answer_says_what_happens(status: int, error: type[Exception]) -> None:
    async with a_channel(Receiver(status, {"location": "http://127.0.0.1:1/"})) as channel:
        with pytest.raises(error) as caught:
            await channel.send(NOTICE, "1")

    assert "canary" not in f"{caught.value!r} {caught.value} {channel!r}"


async def test_a_receiver_says_how_long_to_wait() -> None:
    async with a_channel(Receiver(429, {"retry-after": "7"})) as channel:
        with pytest.raises(SlowDown) as caught:
            await channel.send(NOTICE, "1")

    assert caught.value.retry_after_seconds == 7


async def test_an_absent_receiver_is_tried_again_and_its_address_is_not_told() -> None:
    receiver = Receiver()
    async with a_channel(receiver) as channel:
        pass
    settings = Settings(url=SecretStr("http://127.0.0.1:9/canary"), secret=SecretStr(SECRET))
    async with Web(user_agent="tidings-tests/1", endpoints=["http://127.0.0.1:9"]) as web:
        channel = build(settings, "mine", web, frozenset())
        with pytest.raises(Transient) as caught:
            await channel.send(NOTICE, "1")

    assert "canary" not in str(caught.value)


@pytest.mark.parametrize(
    ("url", "secret"),
    [
        ("ftp://example.org/x", SECRET), ("https://me:canary@example.org/x", SECRET), ("", SECRET),
        ("https://[canary/x", SECRET), ("https://example.org:99999/canary", SECRET),
        ("https://example.org/x", "whsec_"), ("https://example.org/x", "canary!"),
        ("https://example.org/x", "whsec_Y2FuYXJ5"),
    ],
)  # fmt: skip
def test_what_cannot_work_is_refused_at_the_start(url: str, secret: str) -> None:
    with pytest.raises(Misconfigured) as caught:
        endpoints(Settings(url=SecretStr(url), secret=SecretStr(secret)), "mine", frozenset())

    assert "canary" not in str(caught.value)
