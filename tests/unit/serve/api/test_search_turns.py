"""However long searches take, their readers are told in time, and the rest of the server goes on."""

from __future__ import annotations

import asyncio
import threading

import pytest
from tests.support.waiting import until
from tests.unit.serve.asgi import Client
from tests.unit.serve.world import World

from tidings.model.contracts import Found
from tidings.model.errors import BadInput, SearchTooSlow
from tidings.serve.api.search_turns import SearchTurns
from tidings.serve.application import build
from tidings.serve.http.problems import Problem


class StuckSearch:
    """An engine that answers nothing until it is let go."""

    def __init__(self) -> None:
        self.let_go = threading.Event()
        self.running = self.most = 0
        self._lock = threading.Lock()

    def search(self, *_: object, **__: object) -> Found:
        with self._lock:
            self.running += 1
            self.most = max(self.most, self.running)
        self.let_go.wait()
        with self._lock:
            self.running -= 1
        return Found([], 0)


async def test_a_reader_is_told_in_time_and_few_run_at_once() -> None:
    stuck, turns = StuckSearch(), SearchTurns(at_once=2, waiting_max=5, seconds_max=0.2)
    try:
        told = await asyncio.gather(*(turns.take(stuck.search) for _ in range(8)), return_exceptions=True)

        assert [each.status for each in told if isinstance(each, Problem)] == [503] * 8
        assert sorted(str(each) for each in told)[-3:] == ["Too many searches are under way."] * 3
        assert stuck.most == 2
        with pytest.raises(Problem, match="took too long"):
            await turns.take(stuck.search)
        assert stuck.most == 2  # Those that were given up keep their turns until they end.
    finally:
        stuck.let_go.set()
    await until(lambda: stuck.running == 0)
    assert await turns.take(stuck.search) == Found([], 0)


async def test_answers_and_errors_of_a_search_are_its_caller_s() -> None:
    turns = SearchTurns(at_once=1)

    def refuse(error: Exception) -> None:
        raise error

    assert await turns.take(sorted, [2, 1]) == [1, 2]
    with pytest.raises(BadInput, match="odd"):
        await turns.take(refuse, BadInput("odd"))
    with pytest.raises(Problem, match="took too long"):
        await turns.take(refuse, SearchTooSlow("slow"))
    assert await turns.take(sorted, []) == []


async def test_a_reader_who_leaves_gives_its_turn_back_when_the_search_ends() -> None:
    stuck, turns = StuckSearch(), SearchTurns(at_once=1)
    reader = asyncio.create_task(turns.take(stuck.search))
    await until(lambda: stuck.running == 1)
    reader.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reader

    stuck.let_go.set()
    assert await turns.take(stuck.search) == Found([], 0)


async def test_stuck_searches_stop_nothing_else(world: World) -> None:
    stuck = StuckSearch()
    client = Client(build(world.backend(search=stuck)))
    async with asyncio.TaskGroup() as tasks:
        searches = [tasks.create_task(client.get("/api/v1/search", q="fell")) for _ in range(12)]
        await until(lambda: stuck.running == 4)
        assert (await client.get("/api/v1/bitcoin_news/articles")).status == 200
        assert (await client.get("/healthz")).status == 200
        stuck.let_go.set()
    assert {(await each).status for each in searches} <= {200, 503}  # Late ones, on a busy machine.
