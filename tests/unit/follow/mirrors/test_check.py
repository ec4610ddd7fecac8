"""Check finds every way in which a mirror can differ from the store; repair leaves none."""

from __future__ import annotations

import msgspec
from tests.support.clock import ManualClock
from tests.unit.follow.mirrors.stream import PIPELINE, PLAN, DayCounter, Stream, a_mirror, follow_all

from tidings.follow.mirrors.check import check, repair
from tidings.follow.mirrors.mirror import Mirror, MirrorPace
from tidings.follow.mirrors.redis_target import RedisTarget
from tidings.model.changes import Change

AT_ONCE = MirrorPace(0, 0, 2_000)


def shelf_of(stream: Stream) -> list[Change]:
    return [change for change in stream.after(None)[0] if change.value is not None]


async def filled(redis: RedisTarget, clock: ManualClock, stream: Stream) -> Mirror:
    mirror = a_mirror(redis, clock, pace=AT_ONCE)
    for name in "abcde":
        stream.put(name)
        stream.put(name, collection="notes")
    await follow_all(mirror, stream)
    await mirror.flush()
    return mirror


async def test_a_good_mirror_differs_in_nothing(redis: RedisTarget, clock: ManualClock, stream: Stream) -> None:
    mirror = await filled(redis, clock, stream)

    found = await check(mirror, PLAN, shelf_of(stream))

    assert found.is_none
    assert found.cards == 10


async def test_every_difference_is_found_and_repaired(redis: RedisTarget, clock: ManualClock, stream: Stream) -> None:
    running = await filled(redis, clock, stream)
    await redis.delete_many(["article:a"])
    await redis.put_many(
        {
            "article:b": b'{"id":"b","title":"somebody else wrote this"}',
            "article:x": b"{}",
            "BTC_ID_INDEX": msgspec.json.encode(["a", "b", "c", "d", "zz"]),
        }
    )

    found = await check(running, PLAN, shelf_of(stream))
    assert (found.missing, found.extra, found.different) == (["article:a"], ["article:x"], ["article:b"])
    assert sorted(found.listed_without_card) == ["a", "zz"]
    assert found.unlisted == ["e"]

    counter = DayCounter(clock)
    _, left = await repair(a_mirror(redis, clock, counter=counter, pace=AT_ONCE), PLAN, shelf_of(stream))
    assert left == 0
    assert (await check(running, PLAN, shelf_of(stream))).is_none
    assert counter.today() == 5  # two cards, two indexes, the catalog


async def test_a_running_mirror_goes_on_after_a_repair(redis: RedisTarget, clock: ManualClock, stream: Stream) -> None:
    running = await filled(redis, clock, stream)
    await redis.delete_many(["article:a"])
    stream.put("new")
    await follow_all(running, stream)
    await repair(a_mirror(redis, clock, pace=AT_ONCE), PLAN, shelf_of(stream))

    stream.put("newer")
    for _ in range(4):
        try:
            if await running.is_our_turn():
                await follow_all(running, stream)
            await running.flush()
        except Exception as error:
            print(error)

    assert (await check(running, PLAN, shelf_of(stream))).is_none


async def test_a_lost_catalog_is_repaired_too(redis: RedisTarget, clock: ManualClock, stream: Stream) -> None:
    running = await filled(redis, clock, stream)
    await redis.delete_many([f"tidings:catalog:{PIPELINE}", f"tidings:tag:tidings:catalog:{PIPELINE}", "note:c"])

    await repair(a_mirror(redis, clock, pace=AT_ONCE), PLAN, shelf_of(stream))

    assert (await check(running, PLAN, shelf_of(stream))).is_none


async def test_what_changed_a_moment_ago_may_wait(redis: RedisTarget, clock: ManualClock, stream: Stream) -> None:
    mirror = await filled(redis, clock, stream)
    clock.advance(seconds=3_600)
    stream.put("late")

    found = await check(mirror, PLAN, shelf_of(stream), settled_at=clock.now_ms() - 60_000)

    assert found.is_none
    assert found.waiting == ["article:late"]


async def test_a_repair_keeps_within_the_budget(redis: RedisTarget, clock: ManualClock, stream: Stream) -> None:
    await filled(redis, clock, stream)
    await redis.delete_many([f"article:{name}" for name in "abcde"])
    short = a_mirror(redis, clock, pace=AT_ONCE, limit=5)

    found, left = await repair(short, PLAN, shelf_of(stream))

    assert len(found.missing) == 5
    assert left > 0
