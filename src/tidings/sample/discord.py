"""A stand-in for Discord's webhooks: strict about every documented length and rate, and able to misbehave on request.

It keeps what was posted and shows the channel at `/`, as Discord would.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.resources import files
from typing import Any, Literal

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from tidings.sample.discord_forms import Blocked, Refusal, check_message
from tidings.sample.discord_page import channel_page
from tidings.sample.discord_rates import DiscordRates

FaultName = Literal[
    "429", "global_429", "html_429", "html_403", "500", "502", "store_then_502", "store_then_hang", "store_then_reset",
    "store_then_cut", "reset", "hang", "401", "403", "404",
]  # fmt: skip
"""`store_then_…` keeps the message before it misbehaves: the caller cannot know."""

RETRY_AFTER_SECONDS = 1.5


@dataclass(slots=True)
class Posted:
    """One message the channel shows."""

    id: str
    webhook_id: str
    delivery_id: str
    """From the footer: `tidings • <id>`."""
    body: dict[str, Any]
    at: float


class DiscordStandIn:
    """One channel with one webhook."""

    def __init__(
        self,
        *,
        channel: dict[str, Any] | None = None,
        token: str = "stand-in-token_" + "x" * 50,
        now: Callable[[], float] = time.time,
        rates: DiscordRates | None = None,
        hang_seconds: float = 60.0,
    ) -> None:
        self.channel = {**_CHANNEL, **(channel or {})}
        self.messages: list[Posted] = []
        self.refused: list[tuple[int, Any]] = []
        """Every answer but 200, as (status, body)."""
        self.requests = 0
        self.faults: deque[FaultName] = deque()
        self.blocked: dict[str, int] = {}
        """Words, and how many more messages with them a filter stops."""
        self._token = token
        self._now = now
        self.rates = rates or DiscordRates()
        self._hang_seconds = hang_seconds
        self._read = asyncio.Event()
        self._ids = itertools.count(1_200_000_000_000_000_001)
        self.app: ASGIApp = self._application()

    @classmethod
    def from_package(cls, **options: Any) -> DiscordStandIn:
        """Return the sample world's channel."""
        text = files("tidings.sample").joinpath("data/discord/channel.json").read_text(encoding="utf-8")
        return cls(channel=json.loads(text), **options)

    def webhook_url(self, base_url: str, version: str = "") -> str:
        """Return the address to configure, in the form people copy from Discord: without a version."""
        return f"{base_url}/api{version}/webhooks/{self.channel['webhook_id']}/{self._token}"

    def script(self, *faults: FaultName) -> None:
        """Let the next posts go wrong, one by one."""
        self.faults.extend(faults)

    def next_request(self) -> asyncio.Event:
        """Return an event that is set once the next post was read, kept or not."""
        return self._read

    def posts_of(self, delivery_id: str) -> list[Posted]:
        """Return the messages of one delivery: more than one only after an unknown outcome."""
        return [posted for posted in self.messages if posted.delivery_id == delivery_id]

    def _application(self) -> ASGIApp:
        routes = [Route("/", self._page, methods=["GET"])]
        for prefix in ("/api", "/api/v{version:int}"):
            path = f"{prefix}/webhooks/{{webhook}}/{{token}}"
            routes.append(Route(path, self._describe, methods=["GET"]))
        inner = Starlette(routes=routes)

        async def application(scope: Scope, receive: Receive, send: Send) -> None:
            # Posts are answered here and not by a route: a fault may have to break the connection itself.
            if scope["type"] == "http" and scope["method"] == "POST":
                await self._post(scope, receive, send)
            else:
                await inner(scope, receive, send)

        return application

    async def _page(self, _request: Request) -> Response:
        return HTMLResponse(
            channel_page(self.channel, self.messages),
            headers={"Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'"},
        )

    async def _describe(self, request: Request) -> Response:
        trouble = self._wrong_address(request.url.path)
        if trouble is not None:
            return self._answer(*trouble)
        known = self.channel
        return JSONResponse(
            {
                "id": known["webhook_id"],
                "type": 1,
                "name": known["webhook_name"],
                "channel_id": known["channel_id"],
                "guild_id": known["guild_id"],
                "token": self._token,
            }
        )

    async def _post(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.requests += 1
        request = Request(scope, receive)
        body = await request.body()
        fault = self.faults.popleft() if self.faults else None
        if fault is not None and not fault.startswith("store_then"):
            self._note_read()
            response = await self._misbehave(fault, receive)
        else:
            response = self._execute(request, body)
            self._note_read()
            if fault is not None and response.status_code == 200:
                response = await self._misbehave(fault.removeprefix("store_then_"), receive)
        if response is not None:
            await response(scope, receive, send)

    def _note_read(self) -> None:
        self._read.set()
        self._read = asyncio.Event()

    def _execute(self, request: Request, body: bytes) -> Response:
        """Do what Discord does with a post, in its order: address, rate, form."""
        trouble = self._wrong_address(request.url.path)
        if trouble is not None:
            return self._answer(*trouble)
        now = self._now()
        wait, scope = self.rates.admit(now)
        milliseconds = "/v" not in request.url.path
        if wait > 0:
            return self._limited(wait, milliseconds=milliseconds, scope=scope)
        try:
            message = check_message(body, request.headers.get("content-type", ""))
            self._filter(body.decode())
        except Refusal as refusal:
            return self._answer(400, refusal.unversioned if milliseconds else refusal.body)
        posted = self._keep(message, now)
        headers = self.rates.headers(now)
        if request.query_params.get("wait") != "true":
            return Response(status_code=204, headers=headers)
        return JSONResponse(self._message(posted), headers=headers)

    def _filter(self, text: str) -> None:
        for words, left in self.blocked.items():
            if left > 0 and words in text:
                self.blocked[words] = left - 1
                raise Blocked

    def _wrong_address(self, path: str) -> tuple[int, Any] | None:
        *_, name, webhook, token = ["", "", *path.strip("/").split("/")]
        if name != "webhooks":
            return 404, {"message": "404: Not Found", "code": 0}
        if webhook != self.channel["webhook_id"]:
            return 404, {"message": "Unknown Webhook", "code": 10015}
        return None if token == self._token else (401, {"message": "Invalid Webhook Token", "code": 50027})

    def _keep(self, message: dict[str, Any], now: float) -> Posted:
        footers = [embed.get("footer", {}).get("text", "") for embed in message.get("embeds", [])]
        delivery_id = next((text.rpartition("• ")[2] for text in footers if "• " in text), "")
        posted = Posted(str(next(self._ids)), self.channel["webhook_id"], delivery_id, message, now)
        self.messages.append(posted)
        return posted

    def _message(self, posted: Posted) -> dict[str, Any]:
        name = posted.body.get("username") or self.channel["webhook_name"]
        return {
            "id": posted.id,
            "type": 0,
            "content": posted.body.get("content", ""),
            "channel_id": self.channel["channel_id"],
            "author": {"bot": True, "id": posted.webhook_id, "username": name, "avatar": None, "discriminator": "0000"},
            "attachments": [],
            "embeds": [{"type": "rich", **embed} for embed in posted.body.get("embeds", [])],
            "mentions": [],
            "mention_roles": [],
            "pinned": False,
            "mention_everyone": False,
            "tts": False,
            "timestamp": datetime.fromtimestamp(posted.at, UTC).isoformat(timespec="microseconds"),
            "edited_timestamp": None,
            "flags": 0,
            "components": [],
            "webhook_id": posted.webhook_id,
        }

    def _limited(self, wait: float, *, milliseconds: bool = False, scope: str = "user") -> Response:
        """Answer 429: in seconds with a version in the address, in milliseconds without."""
        stated = round(wait * 1000) if milliseconds else round(wait, 3)
        headers = {"Retry-After": str(stated if milliseconds else int(-(-wait // 1))), "X-RateLimit-Scope": scope}
        headers |= {"X-RateLimit-Global": "true"} if scope == "global" else self.rates.headers(self._now())
        said = "The resource is being rate limited." if scope == "shared" else "You are being rate limited."
        return self._answer(429, {"message": said, "retry_after": stated, "global": scope == "global"}, headers)

    def _answer(self, status: int, body: Any, headers: dict[str, str] | None = None) -> Response:
        self.refused.append((status, body))
        return JSONResponse(body, status_code=status, headers=headers)

    async def _misbehave(self, fault: str, receive: Receive) -> Response | None:
        if fault in ("hang", "reset"):
            if fault == "hang":
                await asyncio.sleep(self._hang_seconds)
            await _break_connection(receive)
            return None
        if fault == "cut":
            return Response(b'{"id": "12000', headers={"Content-Type": "application/json"})
        if fault in ("html_429", "html_403"):
            page = "<html><title>Access denied | discord.com used Cloudflare to restrict access</title></html>"
            status = int(fault.removeprefix("html_"))
            self.refused.append((status, page))
            return HTMLResponse(page, status_code=status, headers={"Retry-After": "3"})
        if fault in ("429", "global_429"):
            return self._limited(RETRY_AFTER_SECONDS, scope="global" if fault == "global_429" else "user")
        if fault in _REFUSALS:
            return self._answer(int(fault), _REFUSALS[fault])
        self.refused.append((int(fault), None))
        return HTMLResponse(f"<html><head><title>{fault}</title></head></html>", status_code=int(fault))


_REFUSALS = {
    "401": {"message": "Invalid Webhook Token", "code": 50027},
    "403": {"message": "Missing Permissions", "code": 50013},
    "404": {"message": "Unknown Webhook", "code": 10015},
}

_CHANNEL: dict[str, Any] = {
    "guild": "Stand-in",
    "guild_id": "710000000000000001",
    "channel": "notices",
    "channel_id": "710000000000000002",
    "topic": "",
    "webhook_name": "tidings",
    "webhook_id": "710000000000000003",
    "members_online": 1,
}


async def _break_connection(receive: Receive) -> None:
    """Reset the connection under the request, as a crashed proxy does; the server's own cycle holds it."""
    transport = getattr(getattr(receive, "__self__", None), "transport", None)
    if transport is not None:
        transport.abort()
        while (await receive())["type"] != "http.disconnect":
            pass
