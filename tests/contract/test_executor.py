"""The executor: one commit may serve many calls, yet each fails alone, and nobody is answered before the COMMIT."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from tests.support.store import Ground

from tidings.model.errors import StoreUnavailable
from tidings.store.db.database import Contention
from tidings.store.db.executor import StoreExecutor, patiently

OpenGround = Callable[..., Ground]


@asynccontextmanager
async def an_executor(ground: Ground) -> AsyncIterator[StoreExecutor]:
    executor = StoreExecutor(ground.database)
    try:
        yield executor
    finally:
        await asyncio.to_thread(executor.close)


def note(ground: Ground, name: str) -> None:
    ground.write("INSERT INTO meta (name, value) VALUES (:name, 'x')", name=name)


def notes(ground: Ground) -> set[str]:
    return {row[0] for row in ground.sql("SELECT name FROM meta") if row[0] != "stream"}


class Door:
    """Holds the writer inside a call until the test opens it."""

    def __init__(self) -> None:
        self.inside = threading.Event()
        self.open = threading.Event()

    def pass_through(self) -> None:
        self.inside.set()
        assert self.open.wait(20)


async def test_a_failing_call_undoes_nothing_of_its_neighbors(ground: Ground) -> None:
    def fail(name: str) -> None:
        with ground.database.transaction():
            note(ground, name)
            raise ValueError(f"{name} went wrong")

    async with an_executor(ground) as executor:
        door = Door()
        first = asyncio.create_task(executor.write(door.pass_through))
        await asyncio.to_thread(door.inside.wait, 20)
        calls = [executor.write(fail if n % 3 == 1 else note_on(ground), f"note {n}") for n in range(9)]
        gathered = asyncio.gather(*calls, return_exceptions=True)
        await asyncio.sleep(0)
        door.open.set()
        answers = await gathered
        await first

    assert [isinstance(answer, ValueError) for answer in answers] == [n % 3 == 1 for n in range(9)]
    assert notes(ground) == {f"note {n}" for n in range(9) if n % 3 != 1}


def note_on(ground: Ground) -> Callable[[str], None]:
    return lambda name: note(ground, name)


async def test_nobody_is_answered_before_the_commit(open_ground: OpenGround) -> None:
    """One call has run; its neighbor in the same group is still inside. Answered and visible must mean the same."""
    ground, reader = open_ground(), open_ground()
    async with an_executor(ground) as executor:
        first, second = Door(), Door()
        holding = asyncio.create_task(executor.write(first.pass_through))
        await asyncio.to_thread(first.inside.wait, 20)
        ran = threading.Event()

        def quick() -> None:
            note(ground, "quick")
            ran.set()

        answered = asyncio.create_task(executor.write(quick))
        slow = asyncio.create_task(executor.write(second.pass_through))
        await asyncio.sleep(0)
        first.open.set()
        await asyncio.to_thread(ran.wait, 20)
        await asyncio.to_thread(second.inside.wait, 20)

        if ground.database.dialect == "sqlite":
            assert not answered.done()
            assert "quick" not in notes(reader)
        second.open.set()
        await answered
        assert "quick" in notes(reader)
        await asyncio.gather(slow, holding)


async def test_a_commit_that_fails_answers_nobody(ground: Ground) -> None:
    """A deferred constraint lets every statement pass and only the COMMIT fail."""
    ground.write("CREATE TABLE parents (id INTEGER PRIMARY KEY)")
    ground.write(
        "CREATE TABLE orphans (parent INTEGER REFERENCES parents (id) DEFERRABLE INITIALLY DEFERRED)",
    )
    if ground.database.dialect == "sqlite":
        writer: Any = ground.database
        writer._writer.execute("PRAGMA foreign_keys = ON")

    def orphan() -> str:
        ground.write("INSERT INTO orphans (parent) VALUES (404)")
        return "fine so far"

    async with an_executor(ground) as executor:
        door = Door()
        holding = asyncio.create_task(executor.write(door.pass_through))
        await asyncio.to_thread(door.inside.wait, 20)
        before = asyncio.create_task(executor.write(note, ground, "before"))
        bad = asyncio.create_task(executor.write(orphan))
        after = asyncio.create_task(executor.write(note, ground, "after"))
        await asyncio.sleep(0)
        door.open.set()
        _, *answers = await asyncio.gather(holding, before, bad, after, return_exceptions=True)

        assert isinstance(answers[1], Exception)
        answered = {name for name, answer in zip(("before", "bad", "after"), answers, strict=True) if answer is None}
        assert notes(ground) == answered
        assert ground.sql("SELECT count(*) FROM orphans") == [(0,)]
        # The store goes on.
        await executor.write(note, ground, "later")
        assert "later" in notes(ground)


async def test_reads_do_not_wait_for_writers(ground: Ground) -> None:
    async with an_executor(ground) as executor:
        door = Door()
        holding = asyncio.create_task(executor.write(door.pass_through))
        await asyncio.to_thread(door.inside.wait, 20)

        async with asyncio.timeout(60):
            assert await executor.read(notes, ground) == set()
        door.open.set()
        await holding


async def test_a_caller_that_goes_away_does_not_stop_the_others(ground: Ground) -> None:
    async with an_executor(ground) as executor:
        door = Door()
        holding = asyncio.create_task(executor.write(door.pass_through))
        await asyncio.to_thread(door.inside.wait, 20)
        gone = asyncio.create_task(executor.write(note, ground, "gone"))
        stays = asyncio.create_task(executor.write(note, ground, "stays"))
        await asyncio.sleep(0)
        gone.cancel()
        door.open.set()
        await stays
        await holding

    assert "stays" in notes(ground)


async def test_closing_finishes_what_waits(ground: Ground) -> None:
    executor = StoreExecutor(ground.database)
    calls = [asyncio.create_task(executor.write(note, ground, f"note {n}")) for n in range(20)]
    await asyncio.sleep(0)
    await asyncio.to_thread(executor.close)
    await asyncio.gather(*calls)

    assert len(notes(ground)) == 20


async def test_a_call_that_takes_too_long_is_given_up_and_the_next_succeeds(ground: Ground) -> None:
    """Whoever called is told; a call that had not begun by then is never made."""
    executor = StoreExecutor(ground.database, writers=1, call_seconds=0.5)
    door = Door()
    stuck = asyncio.create_task(executor.write(door.pass_through))
    await asyncio.to_thread(door.inside.wait, 20)
    behind = asyncio.create_task(executor.write(note, ground, "behind"))
    for call in (stuck, behind):
        with pytest.raises(StoreUnavailable, match="no answer within"):
            await call
    door.open.set()
    await executor.write(note, ground, "later")
    await asyncio.to_thread(executor.close)

    assert notes(ground) == {"later"}


async def test_an_answer_that_never_comes_does_not_keep_the_executor_open(ground: Ground) -> None:
    executor = StoreExecutor(ground.database, call_seconds=0.5)
    door = Door()
    with pytest.raises(StoreUnavailable):
        await executor.read(door.pass_through)
    async with asyncio.timeout(60):
        await asyncio.to_thread(executor.close)
    door.open.set()


def test_a_call_that_has_to_give_way_is_made_again() -> None:
    tries: list[int] = []

    def busy(until: int) -> str:
        tries.append(1)
        if len(tries) < until:
            raise Contention("somebody else was first")
        return "done"

    assert patiently(busy, 3) == "done"
    assert len(tries) == 3
    tries.clear()
    with pytest.raises(StoreUnavailable):
        patiently(busy, 99)
    assert len(tries) == 5
