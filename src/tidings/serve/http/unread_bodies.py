"""Answers that come before the request was read to its end: they must reach clients that are still sending.

A socket that is closed while bytes wait in it unread resets the connection, and the reset overtakes the answer: a
client with a body too large saw a broken pipe instead of our 413. So what is left of the body is taken in and dropped,
for a while, behind the answer and before the end of the connection.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from starlette.types import Message, Receive, Scope, Send

_SMALL_BYTES_MAX = 64 << 10
"""A body that is hardly worth a new connection: it is read to its end, and the connection stays."""


@dataclass(frozen=True, slots=True)
class Patience:
    """How long the rest of a body is taken in."""

    silence_seconds: float = 3.0
    seconds_max: float = 20.0


PATIENCE = Patience()


class UnreadBody:
    """What came of the body of one request, between the HTTP server and the application."""

    def __init__(self, receive: Receive, send: Send, *, is_small: bool, patience: Patience = PATIENCE) -> None:
        self._receive, self._send = receive, send
        self._is_small = is_small
        self._patience = patience
        self._is_read = False

    async def receive(self) -> Message:
        """Read on."""
        message = await self._receive()
        self._is_read = message["type"] == "http.disconnect" or not message.get("more_body", False)
        return message

    async def send(self, message: Message) -> None:
        """Send on; behind the last part of an answer comes the rest of an unread body."""
        if self._is_read:
            await self._send(message)
        elif message["type"] == "http.response.start":
            await self._send(message if self._is_small else _last_of_connection(message))
        elif message.get("more_body", False):
            await self._send(message)
        else:
            await self._send({**message, "more_body": True})
            await self._drop_rest()
            await self._send({"type": "http.response.body", "body": b""})

    async def _drop_rest(self) -> None:
        try:
            async with asyncio.timeout(self._patience.seconds_max):
                while not self._is_read:
                    async with asyncio.timeout(self._patience.silence_seconds):
                        await self.receive()
        except TimeoutError:
            return


def unread_body(scope: Scope, receive: Receive, send: Send) -> UnreadBody | None:
    """Return the body that a request announces, or None where it has none."""
    length = b"0"
    for name, value in scope["headers"]:
        if name == b"transfer-encoding":
            return UnreadBody(receive, send, is_small=False)
        if name == b"content-length":
            length = value
        elif name == b"expect":
            # A client that waits for our 100 does not send the body once refused: the connection cannot go on.
            return UnreadBody(receive, send, is_small=False)
    if length == b"0":
        return None
    return UnreadBody(receive, send, is_small=length.isdigit() and int(length) <= _SMALL_BYTES_MAX)


def _last_of_connection(start: Message) -> Message:
    return {**start, "headers": [*start.get("headers", ()), (b"connection", b"close")]}
