"""Time limits and places of connections, by real sockets against a small application."""

from __future__ import annotations

import asyncio

from tests.unit.serve.http.site import REQUEST, WAIT_SECONDS, a_site, ended, status_of

from tidings.serve.http.connections import Allowance, Gate

LARGE = REQUEST.replace(b"/ ", b"/large ", 1)


async def test_whoever_says_nothing_is_dropped_in_time() -> None:
    async with a_site(header_seconds=0.3) as site:
        reader, _ = await site.connect()
        assert (await ended(reader)).startswith(b"HTTP/1.1 408 ")


async def test_a_byte_now_and_then_wins_no_time() -> None:
    async with a_site(header_seconds=0.5) as site:
        reader, writer = await site.connect(b"GET / HTTP/1.1\r\nX-Slow: ")
        ending = asyncio.create_task(ended(reader))
        sent = 0
        while not ending.done():
            writer.write(b"a")
            sent += 1
            assert await site.status() == 200
            await asyncio.sleep(0.02)
        assert (await ending).startswith(b"HTTP/1.1 408 ")
        assert sent > 3


async def test_the_next_request_of_a_kept_connection_has_its_own_time() -> None:
    async with a_site(header_seconds=1.5) as site:
        reader, writer = await site.connect()
        for _ in range(18):
            writer.write(REQUEST)
            assert await status_of(reader) == 200
            await reader.readuntil(b"hello")
            await asyncio.sleep(0.1)
        writer.write(b"GET / HT")
        assert b" 408 " in await ended(reader)


async def test_an_idle_kept_connection_is_closed_without_a_word() -> None:
    async with a_site(header_seconds=0.3) as site:
        reader, _ = await site.connect(REQUEST)
        assert await status_of(reader) == 200
        await reader.readuntil(b"hello")
        assert await ended(reader) == b""


async def test_a_body_that_nobody_reads_holds_no_connection_open() -> None:
    async with a_site(header_seconds=0.5) as site:
        reader, writer = await site.connect(b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10000000\r\n\r\n")
        assert await status_of(reader) == 200
        ending = asyncio.create_task(ended(reader))
        while not ending.done():
            writer.write(b"x")
            await asyncio.sleep(0.02)
        await ending


async def test_work_under_way_has_all_the_time_it_needs() -> None:
    async with a_site(header_seconds=0.2) as site:
        reader, _ = await site.connect(REQUEST.replace(b"/ ", b"/hold ", 1))
        slow = [await site.connect() for _ in range(3)]
        for each, _ in slow:
            assert (await ended(each)).startswith(b"HTTP/1.1 408 ")
        site.application.let_go.set()
        assert await status_of(reader) == 200


async def test_headers_without_end_are_refused() -> None:
    async with a_site(header_bytes_max=10_000) as site:
        for start in (b"GET / HTTP/1.1\r\nX: ", b"GET /"):
            reader, _writer = await site.connect(start + b"a" * 10_000)
            assert b" 431 " in await ended(reader)
        assert await site.status() == 200


async def test_a_client_that_never_reads_its_answer_is_dropped() -> None:
    async with a_site(send_seconds=0.5) as site:
        reader, writer = await site.connect()
        writer.transport.pause_reading()  # type: ignore[attr-defined]
        writer.write(LARGE)
        steady, _ = await site.connect(LARGE)
        size = 0
        while size < 64 << 20:
            piece = await asyncio.wait_for(steady.read(1 << 20), WAIT_SECONDS)
            assert piece, "who reads, however slowly, gets all of it"
            size += len(piece)
            await asyncio.sleep(0.01)
        writer.transport.resume_reading()  # type: ignore[attr-defined]
        assert len(await ended(reader)) < 64 << 20


async def test_those_who_wait_make_room_and_those_at_work_do_not() -> None:
    async with a_site(connections_max=10) as site:
        waiting = [await site.connect(b"GET / HT") for _ in range(30)]
        assert await site.status() == 200
        closed = [await ended(reader) for reader, _ in waiting[:20]]
        assert closed == [b""] * 20

        busy = [await site.connect(REQUEST.replace(b"/ ", b"/hold ", 1)) for _ in range(10)]
        while site.application.held < 10:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        refused, _ = await site.connect(REQUEST)
        answer = await ended(refused)
        assert answer.startswith(b"HTTP/1.1 503 ")
        assert b"retry-after: 5" in answer
        assert b"Too many connections" in answer

        site.application.let_go.set()
        assert [await status_of(reader) for reader, _ in busy] == [200] * 10
        assert await site.status() == 200


async def test_places_are_given_back() -> None:
    async with a_site(connections_max=10) as site:
        for _ in range(50):
            assert await site.status() == 200
            reader, writer = await site.connect(b"GET")
            writer.close()
            assert await ended(reader) == b""
        assert await site.status() == 200


class Visitor:
    """What the gate needs to know of a connection from elsewhere; a test has only this machine's addresses."""

    def __init__(self, gate: Gate, address: str) -> None:
        self.address = address
        self.was_dismissed = False
        self.has_place = False
        self.has_place = gate.enter(self)  # type: ignore[arg-type]

    def dismiss(self) -> None:
        self.was_dismissed = True


def test_one_address_cannot_take_all_places() -> None:
    gate = Gate(Allowance(connections_max=100, per_client_max=3))
    first, *others = (Visitor(gate, "203.0.113.9") for _ in range(4))
    assert (first.was_dismissed, [each.was_dismissed for each in others]) == (True, [False] * 3)

    for each in others:
        gate.asked(each)  # type: ignore[arg-type]
    assert not Visitor(gate, "203.0.113.9").has_place, "all of its places are at work"
    assert Visitor(gate, "203.0.113.10").has_place
    gate.leave(others[0])  # type: ignore[arg-type]
    assert Visitor(gate, "203.0.113.9").has_place
    assert all(Visitor(gate, "127.0.0.1").has_place for _ in range(50)), "a proxy on this machine asks for many"
