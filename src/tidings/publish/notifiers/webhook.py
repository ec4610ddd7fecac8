"""Posts notices to an address of your own, signed as Standard Webhooks describes: a receiver can check who sent what.

The delivery's id is the message's id. It stays the same when a notice is sent again, so a receiver that remembers ids
sees each notice once.
"""

from __future__ import annotations

import base64
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import msgspec
from pydantic import Field, SecretStr
from standardwebhooks import Webhook

from tidings.model.clock import rfc3339
from tidings.model.contracts import Fetcher, Receipt
from tidings.model.errors import Misconfigured
from tidings.model.publication import Notice
from tidings.publish.notifiers import ChannelSettings
from tidings.publish.service import Service, origin, secret_value

EVENT = "tidings.notice"
SIGNING_PREFIX = "whsec_"
SECRET_BYTES_MIN = 24
SECRET_BYTES_MAX = 64


class Settings(ChannelSettings):
    """An address of your own; messages are signed (Standard Webhooks)."""

    url: SecretStr | None = Field(default=None, title="address")
    """Only by environment or file: TIDINGS_NOTIFIERS__WEBHOOK__<NAME>__URL."""
    secret: SecretStr | None = Field(default=None, title="secret")
    """What signs the messages, `whsec_` and 24 to 64 bytes in base64. Only by environment or file."""


def endpoints(settings: Settings, name: str, loopback: frozenset[tuple[str, int]]) -> tuple[str, ...]:  # noqa: ARG001  # the web client knows them
    """Return the address's origin; refuse an address or a secret that cannot work."""
    signer(settings, name)
    return (origin(secret_value(settings.url), f"webhook:{name}"),)


def build(settings: Settings, name: str, fetcher: Fetcher, loopback: frozenset[tuple[str, int]]) -> SignedWebhook:  # noqa: ARG001
    """Return the notifier of one address."""
    return SignedWebhook(secret_value(settings.url), signer(settings, name), name, fetcher)


async def check(notifier: SignedWebhook) -> str:
    """Say what is known: nothing can be asked of a receiver without sending."""
    return f"its address and secret can be read; `tidings notify test {notifier.name}` tries them"


def preview(settings: Settings, notice: Notice) -> dict[str, Any]:  # noqa: ARG001  # it looks the same everywhere
    """Return the body of the request."""
    return message(notice, "preview", 0)


class SignedWebhook:
    """The notifier of one address. `name` is what operators call the channel."""

    def __init__(
        self, url: str, signer: Webhook, name: str, fetcher: Fetcher, now: Callable[[], float] = time.time
    ) -> None:
        self.name = name
        self._url = url
        self._signer = signer
        self._service = Service(f"webhook:{name}", fetcher, (url,), now=now)
        self._now = now

    def __repr__(self) -> str:
        return f"SignedWebhook({self._service.who})"

    async def send(self, notice: Notice, delivery_id: str) -> Receipt:
        """Post one signed message; raise the error that says what to do where it is not taken."""
        now = self._now()
        body = msgspec.json.encode(message(notice, delivery_id, round(now * 1000)))
        response = await self._service.call("POST", self._url, headers=self._headers(delivery_id, now, body), data=body)
        if 200 <= response.status < 300:
            return Receipt(delivery_id, f"answered {response.status}")
        raise self._service.slow_down(response) if response.status == 503 else self._service.failure(response)

    def render(self, notice: Notice, delivery_id: str) -> dict[str, Any]:
        """Return the body as it would be posted."""
        return message(notice, delivery_id, round(self._now() * 1000))

    def _headers(self, delivery_id: str, now: float, body: bytes) -> dict[str, str]:
        signature = self._signer.sign(delivery_id, datetime.fromtimestamp(int(now), UTC), body.decode())
        return {
            "content-type": "application/json",
            "webhook-id": delivery_id,
            "webhook-timestamp": str(int(now)),
            "webhook-signature": signature,
        }


def message(notice: Notice, delivery_id: str, now_ms: int) -> dict[str, Any]:
    """Return the body: type, time and data, as Standard Webhooks proposes."""
    fields = [{"name": field.name, "value": field.value, "time": field.time} for field in notice.fields]
    data = {
        "id": delivery_id,
        "title": notice.title,
        "url": notice.url,
        "text": notice.text,
        "time": notice.time,
        "fields": fields,
        "attributes": notice.attributes,
        "language": notice.language,
    }
    if notice.entries:
        data["entries"] = msgspec.to_builtins(notice.entries)
    return {"type": EVENT, "timestamp": rfc3339(now_ms), "data": data}


def signer(settings: Settings, name: str) -> Webhook:
    """Return what signs messages, or refuse a secret that is none."""
    try:
        secret = base64.b64decode(secret_value(settings.secret).removeprefix(SIGNING_PREFIX), validate=True)
    except ValueError:
        secret = b""
    if not SECRET_BYTES_MIN <= len(secret) <= SECRET_BYTES_MAX:
        wanted = f"{SIGNING_PREFIX} and {SECRET_BYTES_MIN} to {SECRET_BYTES_MAX} bytes in base64"
        raise Misconfigured(f"webhook:{name}: the secret must be {wanted}")
    return Webhook(secret)
