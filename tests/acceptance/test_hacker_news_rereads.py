"""Changes of Hacker News items that `updates` never told, or told while nobody asked: found by reading again.

Over real HTTP, against a stand-in that misbehaves by a plan, on both databases.
"""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.engine import Engine
from tests.support.firebase import FirebaseApi
from tests.support.hacker_news import ask, engine_on

MINUTE = 60
HOUR = 3600


@pytest.fixture
def api() -> FirebaseApi:
    return FirebaseApi(seed=3)


async def pass_time(engine: Engine, *, seconds: int, every: int = 4 * MINUTE) -> list[str]:
    """Let tidings run for a while; return what its runs noted."""
    notes = []
    for _ in range(max(1, seconds // every)):
        engine.advance_clock(seconds=every)
        run = await ask(engine)
        assert run.error is None
        notes.append(run.note or "")
    await engine.work_until_idle()
    return notes


def card(engine: Engine, number: int) -> dict[str, Any]:
    found = engine.card("items", str(number))
    assert found is not None
    return found


async def test_a_change_that_updates_never_told_is_seen_after_two_hours(database_url: str, api: FirebaseApi) -> None:
    api.add(*range(1, 41))
    async with engine_on(database_url, api) as engine:
        await ask(engine)
        await pass_time(engine, seconds=40 * MINUTE)
        api.add(*range(41, 61))
        await pass_time(engine, seconds=4 * MINUTE)
        api.items[7] |= {"title": "Edited"}
        api.items[50] = {"id": 50, "type": "story", "time": 1_700_000_050, "deleted": True}
        await pass_time(engine, seconds=60 * MINUTE)
        assert card(engine, 7)["title"] == "Story 7"
        notes = await pass_time(engine, seconds=80 * MINUTE)

        assert card(engine, 7)["title"] == "Edited"
        assert card(engine, 50)["deleted"]
        assert engine.search("Story 50") == []
        assert [note for note in notes if note] == ["40 items read again", "20 items read again"]
        # Once at first sight, once more: nobody replied, so there is no third time.
        assert {api.requests_for(number) for number in api.items} == {2}


async def test_a_thread_is_read_again_at_growing_distances_while_it_is_alive(
    database_url: str, api: FirebaseApi
) -> None:
    api.add(1, kids=[3])
    api.add(2)
    api.add(3, type="comment", parent=1, title=None, text="first")
    async with engine_on(database_url, api) as engine:
        await ask(engine)
        read_at = []
        for hour in range(1, 100):
            if hour == 5:
                api.add(4, type="comment", parent=3, title=None, text="second")
                api.items[3] |= {"kids": [4]}
            before = api.requests_for(3)
            api.items[3] |= {"text": f"edited in hour {hour}"}
            await pass_time(engine, seconds=HOUR)
            if api.requests_for(3) > before:
                read_at.append(hour)

        # Its story had a reply; then it got one itself, in hour 5; then nobody replied any more.
        assert read_at == [2, 8, 26]
        assert card(engine, 3)["text"] == "edited in hour 26"
        assert api.requests_for(2) == 2


async def test_what_changed_while_tidings_was_away_is_read_again(database_url: str, api: FirebaseApi) -> None:
    api.add(*range(1, 301))
    async with engine_on(database_url, api, rereads_per_run=100) as engine:
        await ask(engine)
        await pass_time(engine, seconds=5 * HOUR)
        requests = api.requests.copy()
        await engine.reopen()
        for number in range(1, 301):
            api.items[number] |= {"score": 99}
        engine.advance_clock(seconds=3 * HOUR)
        api.updates = []
        notes = [(await ask(engine)).note]
        notes += await pass_time(engine, seconds=16 * MINUTE)

        assert [note for note in notes if note] == [
            "100 items read again, 200 to go",
            "100 items read again, 100 to go",
            "100 items read again",
        ]
        assert {card(engine, number)["score"] for number in api.items} == {99}
        assert sum((api.requests - requests)[f"item/{number}.json"] for number in api.items) == 300


async def test_what_changed_while_the_api_was_away_is_read_again(database_url: str, api: FirebaseApi) -> None:
    api.add(*range(1, 31))
    async with engine_on(database_url, api) as engine:
        await ask(engine)
        api.is_out = True
        for _ in range(5):
            engine.advance_clock(seconds=4 * MINUTE)
            api.add(max(api.items) + 1)
            assert (await ask(engine)).error is not None
        api.items[7] |= {"title": "Edited"}
        api.is_out = False
        await pass_time(engine, seconds=4 * MINUTE)

        assert card(engine, 7)["title"] == "Edited"


async def test_a_window_that_turned_over_between_two_looks_has_recent_items_read_again(
    database_url: str, api: FirebaseApi
) -> None:
    api.add(*range(1, 201))
    api.updates = list(range(1, 51))
    async with engine_on(database_url, api) as engine:
        await ask(engine)
        await pass_time(engine, seconds=4 * MINUTE)
        for number in range(60, 180):
            api.change(number, score=7)
        api.items[70] = {"id": 70, "type": "story", "time": 1_700_000_070, "deleted": True}
        notes = await pass_time(engine, seconds=4 * MINUTE)

        assert "items read again" in notes[-1]
        assert {card(engine, number).get("score") for number in range(60, 180) if number != 70} == {7}
        assert card(engine, 70)["deleted"]


async def test_an_outage_in_the_middle_of_reading_again_loses_nothing(database_url: str, api: FirebaseApi) -> None:
    api.add(*range(1, 31))
    async with engine_on(database_url, api) as engine:
        await ask(engine)
        await pass_time(engine, seconds=HOUR)
        api.items[7] |= {"title": "Edited"}
        engine.advance_clock(seconds=HOUR)
        api.is_out = True
        assert "503" in ((await ask(engine)).error or "")
        api.is_out = False
        notes = await pass_time(engine, seconds=4 * MINUTE)

        assert card(engine, 7)["title"] == "Edited"
        assert "given up" not in notes[-1]
