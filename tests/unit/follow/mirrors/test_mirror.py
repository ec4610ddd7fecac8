"""What a mirror writes, how seldom, and that it is the same however it came to it."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Mapping, Sequence

import msgspec
import pytest
from redis import Redis
from tests.support.clock import ManualClock
from tests.support.waiting import until
from tests.unit.follow.mirrors.stream import NOTES, PIPELINE, PLAN, DayCounter, Stream, a_mirror, follow_all

from tidings.follow.mirrors.mirror import Mirror, MirrorPace
from tidings.follow.mirrors.names import MirroredPipeline
from tidings.follow.mirrors.redis_target import RedisTarget
from tidings.follow.mirrors.target import Target, WrittenByAnother
from tidings.model.errors import Transient

INDEX = "BTC_ID_INDEX"
AT_ONCE = MirrorPace(0, 0, 2_000)


async def listed(target: Target) -> list[str]:
    return msgspec.json.decode((await target.get_many([INDEX])).get(INDEX, b"[]"))


async def stored(target: Target) -> dict[str, bytes]:
    keys = await target.keys("article:") | await target.keys("note:")
    return await target.get_many(sorted(keys))


async def test_a_card_is_written_once_with_all_changes_of_five_minutes(
    redis: RedisTarget, clock: ManualClock, stream: Stream
) -> None:
    counter = DayCounter(clock)
    mirror = a_mirror(redis, clock, counter=counter)
    stream.put("a", "found")
    await follow_all(mirror, stream)
    await mirror.flush()
    assert await stored(redis) == {}

    clock.advance(seconds=200)
    stream.put("a", "summarized")
    await follow_all(mirror, stream)
    clock.advance(seconds=101)
    await mirror.flush()

    assert await stored(redis) == stream.cards
    assert await listed(redis) == ["a"]
    assert counter.today() == 4  # the card, two indexes, the catalog


async def test_an_index_is_written_at_most_every_ten_minutes(
    redis: RedisTarget, clock: ManualClock, stream: Stream
) -> None:
    mirror = a_mirror(redis, clock, pace=MirrorPace(0, 600, 2_000))
    stream.put("a")
    await follow_all(mirror, stream)
    await mirror.flush()
    assert await listed(redis) == ["a"]

    clock.advance(seconds=300)
    stream.put("b")
    await follow_all(mirror, stream)
    await mirror.flush()
    assert await listed(redis) == ["a"]
    assert set(await stored(redis)) == {"article:a", "article:b"}

    clock.advance(seconds=300)
    await mirror.flush()
    assert await listed(redis) == ["b", "a"]


async def test_what_did_not_change_is_not_written(redis: RedisTarget, clock: ManualClock, stream: Stream) -> None:
    counter = DayCounter(clock)
    first = a_mirror(redis, clock, counter=counter, pace=AT_ONCE)
    stream.put("a", "text", sort=1)
    await follow_all(first, stream)
    await first.flush()
    before = counter.today()

    stream.put("a", "text", sort=1)
    await follow_all(first, stream)
    await first.flush()

    assert counter.today() == before


async def test_a_withdrawn_card_leaves_the_list_before_it_is_removed(
    redis: RedisTarget, clock: ManualClock, stream: Stream
) -> None:
    mirror = a_mirror(redis, clock, pace=MirrorPace(0, 600, 2_000))
    stream.put("a")
    stream.put("b")
    await follow_all(mirror, stream)
    await mirror.flush()

    stream.withdraw("a")
    await follow_all(mirror, stream)
    await mirror.flush()
    assert set(await stored(redis)) == {"article:a", "article:b"}

    clock.advance(seconds=600)
    await mirror.flush()
    assert await listed(redis) == ["b"]
    assert await stored(redis) == stream.cards


async def test_the_position_stays_behind_cards_that_wait(
    redis: RedisTarget, clock: ManualClock, stream: Stream
) -> None:
    mirror = a_mirror(redis, clock)
    stream.put("old")
    await follow_all(mirror, stream)
    clock.advance(seconds=301)
    stream.put("new")
    await follow_all(mirror, stream)
    clock.advance(seconds=1)
    await mirror.flush()
    clock.advance(seconds=299)
    await mirror.flush()

    # The process dies here; its successor is told of the new card again.
    successor = a_mirror(redis, clock, pace=AT_ONCE)
    await follow_all(successor, stream)
    await successor.flush()

    assert await stored(redis) == stream.cards
    assert await listed(redis) == ["new", "old"]


async def test_a_spent_budget_postpones_the_oldest(redis: RedisTarget, clock: ManualClock, stream: Stream) -> None:
    counter = DayCounter(clock)
    mirror = a_mirror(redis, clock, counter=counter, pace=MirrorPace(0, 600, 2_000), limit=100)
    for number in range(150):
        stream.put(f"{number:03}", sort=number)
    await follow_all(mirror, stream)
    for _ in range(10):
        await mirror.flush()
        clock.advance(seconds=600)

    assert counter.today() <= 100
    first_day = await listed(redis)
    assert 75 <= len(first_day) <= 100
    assert first_day == [f"{number:03}" for number in reversed(range(150))][: len(first_day)]

    clock.advance(seconds=86_400)
    for _ in range(3):
        await mirror.flush()
        clock.advance(seconds=600)
    assert await listed(redis) == stream.ids
    assert await stored(redis) == stream.cards


async def test_a_day_of_720_articles_of_three_providers_costs_at_most_1000_writes(
    redis: RedisTarget, clock: ManualClock, stream: Stream
) -> None:
    counter, rng = DayCounter(clock), random.Random(7)
    mirror = a_mirror(redis, clock, counter=counter, limit=1_000, plans=[only_articles()])
    events: list[tuple[int, str, str]] = []
    for hour in range(24):
        for provider, minute in (("newsdata", 2), ("apitube", 17), ("rss", 41)):
            for number in range(10):
                at = (hour * 60 + minute) * 60 + rng.randrange(60)
                name = f"{provider}-{hour:02}-{number}"
                events.append((at, name, "found"))
                slow = rng.random() < 0.05
                events.append((at + (rng.randrange(400, 2_000) if slow else rng.randrange(5, 200)), name, "processed"))
    events.sort()
    assert len(events) == 1_440
    for second in range(0, 86_400, 20):
        while events and events[0][0] <= second:
            _, name, state = events.pop(0)
            stream.put(name, state, sort=second)
        await follow_all(mirror, stream)
        await mirror.flush()
        clock.advance(seconds=20) if second < 86_380 else None
    print(counter.today(), "writes")

    assert counter.today() <= 1_000
    assert len(await listed(redis)) >= 700


def only_articles() -> MirroredPipeline:
    return MirroredPipeline(PIPELINE, {"articles": PLAN.collections["articles"]})


async def test_starting_over_keeps_what_is_there_and_removes_what_is_gone(
    redis: RedisTarget, clock: ManualClock, stream: Stream
) -> None:
    counter = DayCounter(clock)
    mirror = a_mirror(redis, clock, counter=counter, pace=AT_ONCE)
    for name in "abc":
        stream.put(name)
    await follow_all(mirror, stream)
    await mirror.flush()
    before = counter.today()
    stream.withdraw("b")
    stream.forget_withdrawn()

    await mirror.start_over(PIPELINE)
    assert await mirror.position(PIPELINE) is None
    assert set(await stored(redis)) == {"article:a", "article:b", "article:c"}
    await follow_all(mirror, stream)
    clock.advance(seconds=60)
    await mirror.flush()

    assert await stored(redis) == stream.cards
    assert await listed(redis) == stream.ids
    assert counter.today() - before == 2  # one index changed, and the catalog


async def test_a_lost_catalog_is_made_again_and_orphans_go(
    redis: RedisTarget, clock: ManualClock, stream: Stream
) -> None:
    stream.put("a")
    await redis.put_many({"article:orphan": b"{}"})
    mirror = a_mirror(redis, clock, pace=AT_ONCE)
    await follow_all(mirror, stream)
    clock.advance(seconds=60)
    await mirror.flush()

    assert await stored(redis) == stream.cards


async def test_only_the_newest_are_held(redis: RedisTarget, clock: ManualClock, stream: Stream) -> None:
    mirror = a_mirror(redis, clock, pace=MirrorPace(0, 0, 3))
    for number in range(6):
        stream.put(str(number), sort=number, collection="notes")
        await follow_all(mirror, stream)
        await mirror.flush()

    assert set(await stored(redis)) == {"note:3", "note:4", "note:5"}


async def test_a_collection_chosen_later_is_filled(redis: RedisTarget, clock: ManualClock, stream: Stream) -> None:
    stream.put("a")
    stream.put("n", collection="notes")
    first = a_mirror(redis, clock, pace=AT_ONCE, plans=[only_articles()])
    await follow_all(first, stream)
    await first.flush()
    assert set(await stored(redis)) == {"article:a"}

    both = MirroredPipeline(PIPELINE, {"articles": PLAN.collections["articles"], "notes": NOTES})
    second = a_mirror(redis, clock, pace=AT_ONCE, plans=[both])
    await follow_all(second, stream)
    await second.flush()

    assert await stored(redis) == stream.cards


class Faulty:
    """A target whose writes fail or die at chosen calls: before the effect, or after it."""

    def __init__(self, target: Target, fault: Exception) -> None:
        self._target, self._fault = target, fault
        self.place, self.has_paths, self.batch_max = target.place, target.has_paths, 3
        self.key_bytes_max = target.key_bytes_max
        self.calls = 0
        self.fails_at: set[int] = set()
        self.takes_effect = False
        self.hold, self.get_many, self.keys, self.tag, self.close = (
            target.hold,
            target.get_many,
            target.keys,
            target.tag,
            target.close,
        )

    async def put_many(self, values: Mapping[str, bytes]) -> set[str]:
        return await self._at_risk(lambda: self._target.put_many(values))

    async def delete_many(self, keys: Sequence[str]) -> None:
        await self._at_risk(lambda: self._target.delete_many(keys))

    async def replace(self, key: str, value: bytes, tag: str | None) -> str | None:
        return await self._at_risk(lambda: self._target.replace(key, value, tag))

    async def _at_risk(self, call):
        self.calls += 1
        if self.calls not in self.fails_at:
            return await call()
        if self.takes_effect:
            await call()
        raise self._fault


async def test_a_failed_write_is_tried_again(redis: RedisTarget, clock: ManualClock, stream: Stream) -> None:
    target = Faulty(redis, Transient("it does not answer"))
    target.fails_at = {1, 3, 6}
    mirror = a_mirror(target, clock, pace=AT_ONCE)
    for number in range(5):
        stream.put(str(number))
    await follow_all(mirror, stream)
    failures = 0
    for _ in range(6):
        try:
            await mirror.flush()
        except Transient:
            failures += 1

    assert failures == 3
    assert await stored(redis) == stream.cards
    assert await listed(redis) == stream.ids


class Died(BaseException):
    """The process is gone."""


@pytest.mark.parametrize("seed", range(40))
async def test_dying_anywhere_ends_as_a_rebuild_does(
    redis: RedisTarget, clock: ManualClock, stream: Stream, seed: int
) -> None:
    rng = random.Random(seed)
    pace = MirrorPace(rng.choice([0, 300]), rng.choice([0, 600]), rng.choice([8, 2_000]))
    mirror, target = live(redis, clock, rng, pace)
    for _ in range(60):
        act(stream, rng)
        clock.advance(seconds=rng.choice([0, 1, 60, 400]))
        try:
            await follow_some(mirror, stream, rng)
            await mirror.flush()
            # Whenever it can be looked at: no id without its card.
            cards = await stored(redis)
            assert {f"article:{each}" for each in await listed(redis)} <= set(cards)
        except Died:
            mirror, target = live(redis, clock, rng, pace)
    del target
    last = a_mirror(redis, clock, pace=pace)
    for _ in range(4):
        await follow_all(last, stream)
        clock.advance(seconds=700)
        await last.flush()

    expected = stream.cards
    if pace.newest == 8:
        found = await stored(redis)
        assert found.items() <= expected.items()
        assert len([key for key in found if key.startswith("article:")]) <= 8
    else:
        assert await stored(redis) == expected
        assert await listed(redis) == stream.ids


def live(redis: RedisTarget, clock: ManualClock, rng: random.Random, pace: MirrorPace) -> tuple[Mirror, Faulty]:
    target = Faulty(redis, Died())  # type: ignore[arg-type]
    target.fails_at, target.takes_effect = {rng.randrange(1, 12)}, rng.random() < 0.5
    return a_mirror(target, clock, pace=pace), target


def act(stream: Stream, rng: random.Random) -> None:
    for _ in range(rng.randrange(4)):
        name, collection = str(rng.randrange(12)), rng.choice(["articles", "notes"])
        if rng.random() < 0.3:
            stream.withdraw(name, collection=collection)
        else:
            stream.put(name, str(rng.randrange(5)), sort=int(name), collection=collection)


async def follow_some(mirror: Mirror, stream: Stream, rng: random.Random) -> None:
    changes, position = stream.after(await mirror.position(PIPELINE), rng.randrange(1, 6))
    if changes:
        await mirror.follow(PIPELINE, changes, position)


async def test_a_second_process_waits_until_the_first_is_gone(
    redis: RedisTarget, redis_url: str, clock: ManualClock, stream: Stream
) -> None:
    mine, other = a_mirror(redis, clock, pace=AT_ONCE), RedisTarget(redis_url)
    theirs = a_mirror(other, clock, pace=AT_ONCE)
    stream.put("a")
    await follow_all(mine, stream)
    changes, position = stream.after(None)
    await theirs.position(PIPELINE)
    await theirs.follow(PIPELINE, changes, position)
    await theirs.flush()
    assert await stored(redis) == {}

    await redis.close()
    await theirs.flush()
    with pytest.raises(Transient):
        await theirs.follow(PIPELINE, [], position)
    await follow_all(theirs, stream)
    await theirs.flush()
    assert await stored(other) == stream.cards
    await other.close()


async def test_a_catalog_written_by_another_process_is_not_overwritten(redis: RedisTarget) -> None:
    tag = await redis.replace("tidings:catalog:x", b"1", None)
    await redis.replace("tidings:catalog:x", b"2", tag)

    with pytest.raises(WrittenByAnother):
        await redis.replace("tidings:catalog:x", b"3", tag)

    assert await redis.get_many(["tidings:catalog:x"]) == {"tidings:catalog:x": b"2"}


async def test_an_index_that_does_not_fit_takes_nothing_of_the_budget(
    redis: RedisTarget, clock: ManualClock, stream: Stream
) -> None:
    counter = DayCounter(clock)
    mirror = a_mirror(redis, clock, counter=counter, pace=AT_ONCE, limit=10)
    for number in range(8):
        stream.put(str(number))
    await follow_all(mirror, stream)
    for _ in range(5):
        await mirror.flush()
        clock.advance(seconds=61)

    assert counter.today() == 8
    clock.advance(seconds=86_400)
    await mirror.flush()
    assert await listed(redis) == stream.ids


async def test_a_surprise_does_not_end_the_loop_that_writes(
    redis: RedisTarget, clock: ManualClock, stream: Stream
) -> None:
    stream.put("1", "one")
    target = Faulty(redis, FileNotFoundError("no such bucket"))
    target.fails_at = {1}
    mirror, stop = a_mirror(target, clock, pace=AT_ONCE), asyncio.Event()
    await follow_all(mirror, stream)

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(mirror.run(stop))
        await until(lambda: redis.get_many(["article:1"]))
        stop.set()
    assert target.calls > 1


async def test_a_place_that_was_never_written_is_told_as_behind(
    redis: RedisTarget, redis_server: str, clock: ManualClock, stream: Stream
) -> None:
    """Cards that are taken in and cannot be written are seen by no reader; here Redis has no memory left."""
    server = Redis.from_url(redis_server)
    mirror = a_mirror(redis, clock, pace=AT_ONCE)
    stream.put("a")
    stream.put("b")
    await follow_all(mirror, stream)
    server.config_set("maxmemory", "1")
    stop = asyncio.Event()
    running = asyncio.create_task(mirror.run(stop))
    try:
        unwritten = await until(mirror.unwritten)
        assert unwritten.changes == 2
        assert "memory" in unwritten.error
        server.config_set("maxmemory", "0")
        await until(lambda: mirror.unwritten() is None)
        assert set(await stored(redis)) == {"article:a", "article:b"}
    finally:
        server.config_set("maxmemory", "0")
        server.close()
        stop.set()
        await running
