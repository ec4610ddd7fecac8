"""Connections that cost us nothing for long: time limits for headers and answers, and a limit to how many there are.

uvicorn waits for headers for ever, and takes as many connections as there are file descriptors: 1,500 half a request
each stayed open for good. Here a client that does not finish its request in time is dropped; and when all places are
taken, the connection that has waited longest without a request is closed for the new one, so that people still get in.
"""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from dataclasses import dataclass
from functools import partial
from ipaddress import ip_address
from typing import Any

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from tidings.serve.http.problems import MEDIA_TYPE, Problem
from tidings.watch.logs import Seldom


@dataclass(frozen=True, slots=True)
class Allowance:
    """What connections may take."""

    connections_max: int = 1_000
    per_client_max: int = 250
    """From one address; this machine's own are not counted, because a proxy asks for many."""
    header_seconds: float = 10.0
    """From connecting, or from the answer before, until the headers are complete."""
    header_bytes_max: int = 64 << 10
    farewell_seconds: float = 2.0
    """How long a client that we refuse may still send: a reset would take our answer from it."""
    send_seconds: float = 60.0
    """How long a client may go without reading anything of its answer."""


class Gate:
    """Knows all connections of the process, and which of them wait for a request to be complete, longest first."""

    def __init__(self, allowance: Allowance) -> None:
        self.allowance = allowance
        self._waiting: dict[Connection, None] = {}
        self._clients: Counter[str] = Counter()
        self._seldom = Seldom()

    def enter(self, newcomer: Connection) -> bool:
        """Let a connection in, if need be in the place of one that waits; False where all are at work."""
        client, allowance = newcomer.address, self.allowance
        has_room = self._clients.total() < allowance.connections_max or self._dismiss(None)
        if has_room and not _is_this_machine(client) and self._clients[client] >= allowance.per_client_max:
            has_room = self._dismiss(client)
        if not has_room:
            self._seldom.event("too many connections", open=self._clients.total(), client=client)
            return False
        self._clients[client] += 1
        self._waiting[newcomer] = None
        return True

    def _dismiss(self, client: str | None) -> bool:
        """Close the connection that has waited longest, of one client or of all."""
        for each in self._waiting:
            if client in (None, each.address):
                self.leave(each)
                each.dismiss()
                return True
        return False

    def asked(self, connection: Connection) -> None:
        """Note that a request is complete, but for its body."""
        self._waiting.pop(connection, None)

    def answered(self, connection: Connection) -> None:
        """Note that the next request is waited for."""
        self._waiting[connection] = None

    def leave(self, connection: Connection) -> None:
        """Forget a connection; its place is free."""
        self._waiting.pop(connection, None)
        if connection.has_place:
            connection.has_place = False
            self._clients[connection.address] -= 1
            if not self._clients[connection.address]:
                del self._clients[connection.address]


class Connection(HttpToolsProtocol):
    """uvicorn's protocol with time limits."""

    def __init__(self, gate: Gate, **options: Any) -> None:
        super().__init__(**options)
        self._gate = gate
        self._head_bytes = 0
        self._is_waiting = False
        self._headers_due: asyncio.TimerHandle | None = None
        self._reading_due: asyncio.TimerHandle | None = None
        self.address = "unknown"
        self.has_place = False
        self._has_answered = False
        self._has_refused = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        """Take a place, or say that there is none."""
        super().connection_made(transport)
        self.address = self.client[0] if self.client else "unknown"
        self.has_place = self._gate.enter(self)
        if self.has_place:
            self._wait()
        else:
            self._refuse(503, "Too many connections are open.", "Try again shortly.", {"retry-after": "5"})

    def connection_lost(self, exc: Exception | None) -> None:
        """Give the place back."""
        self._gate.leave(self)
        self._is_waiting = False
        for timer in (self._headers_due, self._reading_due):
            if timer is not None:
                timer.cancel()
        super().connection_lost(exc)

    def dismiss(self) -> None:
        """Make room for another: nothing is under way here."""
        self._is_waiting = False
        self.transport.abort()

    def data_received(self, data: bytes) -> None:
        """Read on, as long as the headers stay within their size."""
        if self.transport.is_closing() or self._has_refused:
            return
        self._head_bytes += len(data)
        super().data_received(data)
        if self._is_waiting and self._head_bytes > self._gate.allowance.header_bytes_max:
            self._refuse(431, "The headers are too large.", f"{self._gate.allowance.header_bytes_max:,} bytes will do.")

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002  # uvicorn's words are the same for everything
        """Say what could not be read, as a problem document; uvicorn would say it as plain text."""
        if self.cycle is not None and self.cycle.response_started and not self.cycle.response_complete:
            self.transport.close()  # A second answer inside the one that is being sent would garble it.
            return
        what, helps = _unreadable(sys.exception())
        self._refuse(400, what, helps)

    def on_headers_complete(self) -> None:
        """Stop the clock: the request is complete, but for its body."""
        self._is_waiting = False
        if self._headers_due is not None:
            self._headers_due.cancel()
        self._gate.asked(self)
        super().on_headers_complete()

    def on_response_complete(self) -> None:
        """Start the clock again, for the next request. It also runs while the rest of an unread body trickles in."""
        super().on_response_complete()
        if self.has_place and not self.transport.is_closing() and self.cycle.response_complete:
            self._gate.answered(self)
            self._has_answered = True
            self._wait()

    def pause_writing(self) -> None:
        """Give a client that does not read its answer some time."""
        super().pause_writing()
        self._expect_progress(self.transport.get_write_buffer_size())

    def resume_writing(self) -> None:
        """It reads."""
        super().resume_writing()
        if self._reading_due is not None:
            self._reading_due.cancel()

    def _expect_progress(self, unread: int) -> None:
        self._reading_due = self.loop.call_later(self._gate.allowance.send_seconds, self._look_for_progress, unread)

    def _look_for_progress(self, before: int) -> None:
        """Drop a client that has read nothing since the last look; a slow one that reads on may take its time."""
        unread = self.transport.get_write_buffer_size()
        if unread >= before:
            self.transport.abort()
        else:
            self._expect_progress(unread)

    def _wait(self) -> None:
        self._is_waiting, self._head_bytes = True, 0
        self._headers_due = self.loop.call_later(self._gate.allowance.header_seconds, self._are_late)

    def _are_late(self) -> None:
        if not self._is_waiting or self.transport.is_closing():
            return
        if self._has_answered and not self._head_bytes:
            # Kept alive and idle: a client would take whatever we say now for the answer to its next request.
            self._is_waiting = False
            self.transport.close()
        else:
            seconds = self._gate.allowance.header_seconds
            self._refuse(408, f"The request did not arrive within {seconds:g} seconds.", "Send it in one piece.")

    def _refuse(self, status: int, detail: str, helps: str, headers: dict[str, str] | None = None) -> None:
        """Answer before there is a request, and close. What still comes from one that had a place is dropped first."""
        self._is_waiting, self._has_refused = False, True
        body = Problem(status, detail, helps=helps).body()
        lines = {"content-type": MEDIA_TYPE, "content-length": str(len(body)), "connection": "close", **(headers or {})}
        head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
        self.transport.write(f"HTTP/1.1 {status} {_PHRASES[status]}\r\n{head}\r\n".encode() + body)
        if self.has_place and self.transport.can_write_eof():
            self.transport.write_eof()
            self.loop.call_later(self._gate.allowance.farewell_seconds, self.transport.close)
        else:
            self.transport.close()


def _unreadable(error: BaseException | None) -> tuple[str, str]:
    """Tell what of a request the parser refused, and what helps. Its own words name its states, not what was sent."""
    said = str(error).lower()
    if isinstance(error, httptools.HttpParserInvalidMethodError) or "method" in said:
        return "The request line names no method of HTTP.", "It looks like this: GET /api/v1/status HTTP/1.1."
    if isinstance(error, (httptools.HttpParserInvalidURLError, httptools.HttpParserCallbackError)) or "url" in said:
        return "The request line holds no readable address.", "Escape what does not belong there: a blank is %20."
    if "chunk" in said:
        return "The chunks of the body cannot be read.", "Each begins with its size in hexadecimal digits."
    if "header" in said or "content-length" in said or "transfer-encoding" in said:
        return "The headers cannot be read.", "One `Name: value` on each line; the length of the body told only once."
    return "This is not a request of HTTP/1.1.", "Ask by http:// or, behind a proxy that speaks it, by https://."


_PHRASES = {
    400: "Bad Request",
    408: "Request Timeout",
    431: "Request Header Fields Too Large",
    503: "Service Unavailable",
}


def guarded(allowance: Allowance) -> Any:
    """Return the protocol that a uvicorn server is to speak; its connections share one gate."""
    return partial(Connection, Gate(allowance))


def _is_this_machine(address: str) -> bool:
    try:
        return ip_address(address).is_loopback
    except ValueError:
        return False
