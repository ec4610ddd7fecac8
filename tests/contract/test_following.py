"""A follower: catches up in batches, starts over where it must, and tells how far behind it is."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence

import pytest
from tests.support.example import thing
from tests.support.store import Ground
from tests.support.waiting import until

from tidings.follow.follower import FollowLoop
from tidings.model.changes import Change, Unwritten
from tidings.model.clock import DAY_MS
from tidings.model.errors import StoreUnavailable, Transient
from tidings.model.views import FollowerView
from tidings.store.db.executor import StoreExecutor


class Copy:
    """Keeps every value, and its position with them."""

    name = "copy"

    def __init__(self) -> None:
        self.values: dict[str, bytes] = {}
        self.cursor: str | None = None
        self.batches: list[int] = []
        self.is_broken = self.is_away = False
        self.stuck: Unwritten | None = None

    def unwritten(self) -> Unwritten | None:
        return self.stuck

    async def is_our_turn(self) -> bool:
        if self.is_away:
            raise Transient("the copy's server does not answer")
        return True

    async def position(self, _pipeline: str) -> str | None:
        return self.cursor

    async def follow(self, _pipeline: str, changes: Sequence[Change], position: str) -> None:
        if self.is_broken:
            raise OSError("the place where the copy is kept does not answer")
        for change in changes:
            if change.value is None:
                self.values.pop(change.key, None)
            else:
                self.values[change.key] = change.value
        self.batches.append(len(changes))
        self.cursor = position

    async def start_over(self, _pipeline: str) -> None:
        self.values, self.cursor = {}, None


@pytest.fixture
async def executor(ground: Ground) -> AsyncIterator[StoreExecutor]:
    made = StoreExecutor(ground.database)
    yield made
    made.close()


def loop_of(ground: Ground, executor: StoreExecutor, copy: Copy, batch: int = 3) -> FollowLoop:
    store = ground.store
    return FollowLoop(
        copy, store.changes, executor, ["example"], "me", store.now_ms, store.follower_notes.put, batch=batch
    )


def publish(ground: Ground, *names: str, text: str = "text") -> None:
    ground.record(*(thing(name, text) for name in names))
    ground.work()


def shelf(ground: Ground) -> dict[str, bytes]:
    return {key: bytes(value) for key, value in ground.sql("SELECT key, value FROM shelf")}


def followers(ground: Ground) -> list[FollowerView]:
    return ground.store.status_views.status().followers


async def test_it_catches_up_in_batches_and_then_finds_nothing(ground: Ground, executor: StoreExecutor) -> None:
    publish(ground, *"abcdefgh")
    copy = Copy()
    loop = loop_of(ground, executor, copy)

    assert await loop.catch_up() == 8
    assert copy.values == shelf(ground)
    assert max(copy.batches) == 3
    assert await loop.catch_up() == 0


async def test_one_that_was_away_hears_of_changes_and_withdrawals(ground: Ground, executor: StoreExecutor) -> None:
    publish(ground, "a", "b", "c")
    copy = Copy()
    await loop_of(ground, executor, copy).catch_up()
    publish(ground, "a", text="new")
    ground.store.shelf.put("example", "note:x", b"1")
    ground.store.shelf.delete("example", "note:x")

    await loop_of(ground, executor, copy).catch_up()

    assert copy.values == shelf(ground)


async def test_one_that_was_away_too_long_starts_over(ground: Ground, executor: StoreExecutor) -> None:
    publish(ground, "a")
    copy = Copy()
    ground.store.shelf.put("example", "note:x", b"1")
    await loop_of(ground, executor, copy).catch_up()
    ground.store.shelf.delete("example", "note:x")
    ground.advance(seconds=8 * DAY_MS / 1000)
    ground.store.retention.tidy()

    await loop_of(ground, executor, copy).catch_up()

    assert copy.values == shelf(ground)
    assert "note:x" not in copy.values


async def test_what_was_derived_and_vanished_is_derived_again(ground: Ground, executor: StoreExecutor) -> None:
    publish(ground, "a", "b")
    copy, clock = Copy(), [0.0]
    loop = loop_of(ground, executor, copy)
    loop.monotonic = lambda: clock[0]
    await loop.catch_up()
    copy.values, copy.cursor = {}, None

    clock[0] += 60
    await loop.catch_up()

    assert copy.values == shelf(ground)
    assert await loop.catch_up() == 0


async def test_what_is_behind_and_why_is_told_to_other_processes(ground: Ground, executor: StoreExecutor) -> None:
    publish(ground, "a", "b")
    copy = Copy()
    copy.is_broken = True
    loop, stop = loop_of(ground, executor, copy), asyncio.Event()
    running = asyncio.create_task(loop.run(stop))
    try:
        (seen,) = await until(lambda: [each for each in followers(ground) if each.error])
        assert (seen.name, seen.process, seen.behind) == ("copy", "me", 2)
        assert "does not answer" in seen.error
        copy.is_broken = False
        await until(lambda: not followers(ground)[0].behind)
        assert copy.values == shelf(ground)
    finally:
        stop.set()
        await running


async def test_a_follower_that_cannot_reach_its_data_is_behind(ground: Ground, executor: StoreExecutor) -> None:
    """A mirror whose server never answered is not up to date."""
    publish(ground, "a", "b")
    copy = Copy()
    copy.is_away = True
    loop = loop_of(ground, executor, copy)

    with pytest.raises(Transient):
        await loop.catch_up()
    assert loop.view().behind == 2

    copy.is_away = False
    await loop.catch_up()
    assert (loop.view().behind, loop.view().behind_seconds) == (0, 0.0)


async def test_what_is_taken_in_and_cannot_be_written_is_behind(ground: Ground, executor: StoreExecutor) -> None:
    publish(ground, "a", "b")
    copy = Copy()
    loop = loop_of(ground, executor, copy)
    await loop.catch_up()
    copy.stuck = Unwritten(2, loop.now_ms() - 400_000, "the disk is full")

    seen = loop.view()
    assert (seen.behind, seen.error) == (2, "the disk is full")
    assert seen.behind_seconds >= 400


class InDatabase(Copy):
    """Keeps its place in the database, which is away for a while."""

    def __init__(self) -> None:
        super().__init__()
        self.asked_in_vain = 0
        self.is_database_away = True

    def unwritten(self) -> Unwritten | None:
        if self.is_database_away:
            self.asked_in_vain += 1
            raise StoreUnavailable("no answer for 6 s")
        return None


async def test_a_follower_outlives_a_database_that_cannot_say_how_far_it_is(
    ground: Ground, executor: StoreExecutor
) -> None:
    """Asked in the middle of an outage how far it is, the loop ended, and with it the process."""
    publish(ground, "a")
    copy, stop = InDatabase(), asyncio.Event()
    running = asyncio.create_task(loop_of(ground, executor, copy).run(stop))
    await until(lambda: copy.asked_in_vain > 1 or running.done())
    assert not running.done()
    copy.is_database_away = False
    await until(lambda: [each.behind for each in followers(ground)] == [0])
    stop.set()
    await running
    assert set(copy.values) == set(shelf(ground))
