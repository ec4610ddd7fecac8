import asyncio
import time

import pytest

from tidings.model.errors import SlowDown
from tidings.net.hosts import Hosts


def some_hosts(**options: float) -> Hosts:
    given = {"concurrency": 2, "delay_seconds": 0.0, "wait_seconds_max": 1.0, "clock": time.monotonic}
    return Hosts(**(given | options))  # type: ignore[arg-type]  # options of many types


async def test_a_host_serves_only_so_many_of_us_at_once():
    hosts, inside, most = some_hosts(), 0, 0

    async def visit() -> None:
        nonlocal inside, most
        async with hosts.turn("a.example"):
            inside += 1
            most = max(most, inside)
            await asyncio.sleep(0.01)
            inside -= 1

    await asyncio.gather(*(visit() for _ in range(10)))
    assert most == 2


async def test_requests_to_one_host_keep_their_distance():
    hosts, starts = some_hosts(delay_seconds=0.05), []

    async def visit(host: str) -> None:
        async with hosts.turn(host):
            starts.append(time.monotonic())

    began = time.monotonic()
    await asyncio.gather(*(visit("a.example") for _ in range(4)))

    # A busy machine may let one start late, so that the next seems to come too soon: what holds is when each may begin.
    assert all(start >= began + number * 0.05 - 0.005 for number, start in enumerate(starts))


async def test_other_hosts_do_not_wait():
    hosts = some_hosts(delay_seconds=30.0)
    started = time.monotonic()
    for host in ("a.example", "b.example", "c.example"):
        async with hosts.turn(host):
            pass
    assert time.monotonic() - started < 15.0  # Waiting for one of them would take twice that.


async def test_a_queue_that_is_too_long_is_a_wish_to_slow_down():
    hosts = some_hosts(delay_seconds=30.0)
    async with hosts.turn("a.example"):
        pass
    with pytest.raises(SlowDown) as told:
        async with hosts.turn("a.example"):
            pass
    assert 29 < (told.value.retry_after_seconds or 0) <= 30


async def test_a_host_that_asked_for_silence_gets_it():
    hosts = some_hosts()
    hosts.be_silent("a.example", 100)
    with pytest.raises(SlowDown) as told:
        async with hosts.turn("a.example"):
            pass
    assert 99 < (told.value.retry_after_seconds or 0) <= 100
    async with hosts.turn("b.example"):
        pass


async def test_a_cancelled_visitor_gives_its_place_back():
    hosts = some_hosts(concurrency=1)

    async def stay() -> None:
        async with hosts.turn("a.example"):
            await asyncio.sleep(60)

    task = asyncio.create_task(stay())
    await asyncio.sleep(0.01)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    async with hosts.turn("a.example"):
        pass
