"""Cloudflare's KV as a target, on a strict stand-in: limits, refusals, and reads that are a minute old."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import msgspec
import pytest
from tests.support.clock import ManualClock
from tests.support.cloudflare import Namespace, a_namespace
from tests.unit.follow.mirrors.stream import PIPELINE, DayCounter, Stream, a_mirror, follow_all

from tidings.follow.mirrors.addresses import TargetAddress, open_target
from tidings.follow.mirrors.cloudflare_target import CloudflareTarget
from tidings.follow.mirrors.mirror import MirrorPace
from tidings.model.errors import Misconfigured, Permanent, SlowDown, Transient
from tidings.net.client import Web

AT_ONCE = MirrorPace(0, 0, 20_000)


@pytest.fixture
def namespace(clock: ManualClock) -> Iterator[Namespace]:
    with a_namespace(clock) as namespace:
        yield namespace


@pytest.fixture
async def web() -> AsyncIterator[Web]:
    async with Web(user_agent="tests") as web:
        yield web


@pytest.fixture
def target(namespace: Namespace, web: Web) -> CloudflareTarget:
    return CloudflareTarget("cloudflare-kv://acc/space", web, token=namespace.token, endpoint=namespace.endpoint)


async def test_values_are_put_read_listed_and_removed(target: CloudflareTarget) -> None:
    values = {f"article:{number:03}": f'{{"id": "{number} ä"}}'.encode() for number in range(250)}
    assert await target.put_many(values | {"BTC_ID_INDEX": b"[]"}) == set()

    assert await target.get_many([*values, "article:none"]) == values
    assert await target.keys("article:") == set(values)

    await target.delete_many(["article:003"])
    assert await target.keys("article:00") == {f"article:00{number}" for number in range(10) if number != 3}


async def test_ten_thousand_pairs_go_in_one_call(target: CloudflareTarget, namespace: Namespace) -> None:
    await target.put_many({f"article:{number}": b"{}" for number in range(10_001)})

    assert namespace.calls == ["PUT /bulk", "PUT /bulk"]
    assert len(namespace.values) == 10_001


async def test_a_value_that_is_too_large_is_refused_here(target: CloudflareTarget, namespace: Namespace) -> None:
    with pytest.raises(Permanent, match="article:1"):
        await target.put_many({"article:1": b"x" * (26 << 20)})

    assert namespace.calls == []


async def test_a_second_write_within_a_second_asks_to_slow_down(target: CloudflareTarget) -> None:
    await target.put_many({"article:1": b"1"})

    with pytest.raises(SlowDown) as told:
        await target.put_many({"article:1": b"2"})

    assert told.value.retry_after_seconds == 1


async def test_a_wrong_token_needs_a_person_and_is_not_told(web: Web, namespace: Namespace) -> None:
    target = CloudflareTarget("cloudflare-kv://acc/space", web, token="wrong-token-1", endpoint=namespace.endpoint)

    with pytest.raises(Misconfigured) as told:
        await target.keys("")

    assert "wrong-token-1" not in str(told.value)


async def test_an_unknown_namespace_is_told(web: Web, namespace: Namespace) -> None:
    target = CloudflareTarget("cloudflare-kv://acc/other", web, token=namespace.token, endpoint=namespace.endpoint)

    with pytest.raises(Permanent, match="404"):
        await target.put_many({"a": b"1"})


async def test_keys_that_were_not_taken_are_written_again(
    target: CloudflareTarget, namespace: Namespace, clock: ManualClock, stream: Stream
) -> None:
    mirror = a_mirror(target, clock, pace=AT_ONCE)
    for name in "abc":
        stream.put(name)
    await follow_all(mirror, stream)
    namespace.loses = {"article:b"}
    with pytest.raises(Transient, match="1 of 3"):
        await mirror.flush()
    assert "BTC_ID_INDEX" not in namespace.values

    clock.advance(seconds=2)
    await mirror.flush()

    assert {key: namespace.values[key].encode() for key in stream.cards} == stream.cards
    assert msgspec.json.decode(namespace.values["BTC_ID_INDEX"]) == stream.ids


async def test_a_day_stays_within_what_the_free_plan_allows(
    target: CloudflareTarget, namespace: Namespace, clock: ManualClock, stream: Stream
) -> None:
    namespace.daily_writes_max = 1_000
    counter = DayCounter(clock)
    mirror = a_mirror(target, clock, counter=counter, pace=MirrorPace(0, 600, 2_000), limit=1_000)
    for number in range(1_500):
        stream.put(f"{number:04}", sort=number)
    await follow_all(mirror, stream, limit=2_000)
    for _ in range(5):
        await mirror.flush()
        clock.advance(seconds=700)

    assert namespace.writes == counter.today() <= 1_000
    listed = msgspec.json.decode(namespace.values["BTC_ID_INDEX"])
    assert listed == stream.ids[: len(listed)]
    assert len(listed) >= 750


async def test_a_successor_that_reads_an_old_catalog_ends_right(
    target: CloudflareTarget, namespace: Namespace, clock: ManualClock, stream: Stream
) -> None:
    first = a_mirror(target, clock, pace=AT_ONCE)
    stream.put("a", "one")
    await follow_all(first, stream)
    await first.flush()
    clock.advance(seconds=120)
    stream.put("a", "two")
    stream.put("b")
    await follow_all(first, stream)
    await first.flush()
    clock.advance(seconds=5)

    # It dies; for a minute its successor sees what was there before.
    namespace.is_stale = True
    stream.put("a", "one")
    stream.withdraw("b")
    successor = a_mirror(target, clock, pace=AT_ONCE)
    await follow_all(successor, stream)
    await successor.flush()

    held = {key: value.encode() for key, value in namespace.values.items() if key.startswith("article:")}
    assert held == stream.cards
    assert msgspec.json.decode(namespace.values["BTC_ID_INDEX"]) == ["a"]


async def test_a_busy_service_is_left_alone_for_as_long_as_it_asks(
    target: CloudflareTarget, namespace: Namespace, clock: ManualClock, stream: Stream
) -> None:
    mirror = a_mirror(target, clock, pace=AT_ONCE)
    stream.put("a")
    await follow_all(mirror, stream)
    namespace.slow_downs = 1

    with pytest.raises(SlowDown) as told:
        await mirror.flush()

    assert told.value.retry_after_seconds == 7
    await mirror.flush()
    assert "article:a" in namespace.values
    assert PIPELINE in mirror.pipelines


@pytest.mark.parametrize("url", ["cloudflare-kv://acc", "cloudflare-kv:///space", "cloudflare-kv://acc/space/more"])
async def test_odd_addresses_are_refused(web: Web, url: str) -> None:
    with pytest.raises(Misconfigured):
        open_target(TargetAddress(url, "secret"), web)


async def test_a_missing_token_is_told(web: Web) -> None:
    with pytest.raises(Misconfigured, match="token"):
        open_target(TargetAddress("cloudflare-kv://acc/space"), web)
