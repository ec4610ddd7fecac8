"""Calls an ASGI application in the same process, without a network."""

from __future__ import annotations

import asyncio
import gzip
import json
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote, urlencode

import msgspec
from tests.support.waiting import until


@dataclass(frozen=True)
class Answer:
    status: int
    raw_headers: list[tuple[bytes, bytes]]
    raw: bytes

    @property
    def headers(self) -> dict[str, str]:
        return {name.decode().lower(): value.decode("latin-1") for name, value in self.raw_headers}

    @property
    def body(self) -> bytes:
        return gzip.decompress(self.raw) if self.headers.get("content-encoding") == "gzip" else self.raw

    @property
    def text(self) -> str:
        return self.body.decode()

    @property
    def json(self) -> Any:
        return msgspec.json.decode(self.body)


class Client:
    """A client with headers of its own; `get` and `post` return whole answers."""

    def __init__(
        self, app: Any, *, host: str = "127.0.0.1:8000", token: str | None = None, peer: str = "127.0.0.1"
    ) -> None:
        self.app = app
        self.peer = peer
        self.headers: dict[str, str] = {"host": host}
        if token is not None:
            self.headers["authorization"] = f"Bearer {token}"

    async def get(self, path: str, headers: dict[str, str] | None = None, **query: Any) -> Answer:
        return await self.send("GET", path, headers=headers, query=query)

    async def post(
        self, path: str, json_body: Any = None, *, content: bytes | None = None, headers: dict[str, str] | None = None
    ) -> Answer:
        sent = dict(headers or {})
        if content is None and json_body is not None:
            content = json.dumps(json_body).encode()
        if content is not None:
            sent.setdefault("content-type", "application/json")
        return await self.send("POST", path, headers=sent, content=content or b"")

    async def form(self, path: str, fields: dict[str, str], headers: dict[str, str] | None = None) -> Answer:
        sent = {"content-type": "application/x-www-form-urlencoded", "sec-fetch-site": "same-origin", **(headers or {})}
        return await self.send("POST", path, headers=sent, content=urlencode(fields).encode())

    async def send(
        self,
        method: str,
        path: str,
        *,
        headers: dict[str, str] | None = None,
        query: dict[str, Any] | None = None,
        content: bytes = b"",
    ) -> Answer:
        path, _, query_string = path.partition("?")
        if query:
            query_string = urlencode(query)
        merged = {**self.headers, **(headers or {})}
        if content and "content-length" not in merged:
            merged["content-length"] = str(len(content))
        messages: list[dict[str, Any]] = []
        bodies = [{"type": "http.request", "body": content, "more_body": False}]

        async def receive() -> dict[str, Any]:
            if bodies:
                return bodies.pop()
            await asyncio.Event().wait()
            raise AssertionError("never")

        async def send(message: Any) -> None:
            messages.append(message)

        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": unquote(path),
            "raw_path": path.encode(),
            "query_string": query_string.encode(),
            "root_path": "",
            "headers": [(name.lower().encode(), value.encode("latin-1")) for name, value in merged.items()],
            "client": (self.peer, 5000),
            "server": ("127.0.0.1", 8000),
        }
        await self.app(scope, receive, send)
        body = b"".join(message.get("body", b"") for message in messages[1:])
        return Answer(messages[0]["status"], list(messages[0]["headers"]), body)


class Listener:
    """Reads a stream until it has enough."""

    def __init__(
        self, app: Any, headers: dict[str, str] | None = None, path: str = "/api/v1/events", query: str = ""
    ) -> None:
        self.received = b""
        self._gone = asyncio.Event()
        sent = {"host": "localhost", **(headers or {})}
        scope = {
            "type": "http",
            "method": "GET",
            "path": path,
            "query_string": query.encode(),
            "root_path": "",
            "headers": [(name.encode(), value.encode()) for name, value in sent.items()],
            "client": ("127.0.0.1", 1),
            "server": ("127.0.0.1", 8000),
            "scheme": "http",
            "http_version": "1.1",
        }
        self.task = asyncio.create_task(app(scope, self._receive, self._send))

    async def _receive(self) -> dict[str, Any]:
        await self._gone.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: Any) -> None:
        self.received += message.get("body", b"")

    async def until(self, text: bytes) -> None:
        await until(lambda: text in self.received)

    async def leave(self) -> None:
        self._gone.set()
        async with asyncio.timeout(60):
            await self.task
