"""Hacker News ids that cannot be read: each costs only itself, is asked for again, given up, listed and completed.

Over real HTTP, against a stand-in that misbehaves by a plan, on both databases.
"""

from __future__ import annotations

import asyncio
import json
import re
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from tests.support.commands import tidings
from tests.support.engine import Engine
from tests.support.firebase import Fault, FirebaseApi, Trouble, seeded_plan
from tests.support.hacker_news import ask, engine_on
from tests.support.processes import fleet
from tests.support.waiting import until

from tidings.sample.serving import StandIn

LASTING: tuple[Fault, ...] = ("500", "401", "torn", "slow", "misshapen", "429")
MINUTE = 60
HOUR = 3600


@pytest.fixture
def api() -> FirebaseApi:
    return FirebaseApi(seed=18)


def keys(engine: Engine) -> set[int]:
    while engine.store.intake.unmerged("hacker_news"):
        engine.store.intake.merge("hacker_news")
    return {int(row.key) for row in engine.items("item")}


# The live source.


@pytest.mark.parametrize("fault", LASTING)
async def test_a_bad_id_costs_only_itself(database_url: str, api: FirebaseApi, fault: Fault) -> None:
    """It is the only id of its page; everything else is read all the same, run after run."""
    api.add(*range(1, 21))
    async with engine_on(database_url, api) as engine:
        await ask(engine)
        api.plan[21] = Trouble(fault)
        for number in range(21, 27):
            api.add(number)
            api.change(5, score=number)
            api.change(21, score=number)
            engine.advance_clock(seconds=MINUTE)
            run = await ask(engine)
            assert run.error is None
            assert engine.store.schedules.all()[0].failures == 0
            await engine.work_until_idle()
        for _ in range(2):
            engine.advance_clock(seconds=2 * MINUTE)
            await ask(engine)
        await engine.work_until_idle()

        assert keys(engine) == set(range(1, 27)) - {21}
        card = engine.card("items", "5")
        assert card is not None
        assert card["score"] == 26


@pytest.mark.parametrize("fault", ["500", "401", "torn", "429"])
async def test_a_bad_id_is_asked_at_growing_distances_and_then_given_up(
    database_url: str, api: FirebaseApi, fault: Fault
) -> None:
    api.add(*range(1, 6))
    api.plan[3] = Trouble(fault)
    async with engine_on(database_url, api) as engine:
        asked_at, minutes, notes = [], 0, []
        for minutes in (*range(20), *range(20, 3 * 24 * 60, 60)):
            before = api.requests_for(3)
            engine.advance_clock(seconds=minutes * MINUTE - engine.offset_ms / 1000)
            api.updates = [3]
            notes.append((await ask(engine)).note or "")
            if api.requests_for(3) > before:
                asked_at.append(minutes)

        waits = [later - earlier for earlier, later in pairwise(asked_at)]
        assert waits[0] == 1
        assert all(wait <= longer + 60 for wait, longer in pairwise(waits))
        assert waits[-1] >= 20 * 60
        assert len(asked_at) <= 14
        assert "1 id is given up" in notes[-1]
        assert "--unread" in notes[-1]
        assert keys(engine) == {1, 2, 4, 5}


@pytest.mark.parametrize("fault", [*LASTING, "null"])
async def test_an_id_that_heals_is_read_by_a_later_run(database_url: str, api: FirebaseApi, fault: Fault) -> None:
    api.add(*range(1, 6))
    api.plan[3] = Trouble(fault, requests=3 if fault == "slow" else 7)
    async with engine_on(database_url, api) as engine:
        for _ in range(20):
            await ask(engine)
            engine.advance_clock(seconds=HOUR)

        assert keys(engine) == {1, 2, 3, 4, 5}
        assert engine.store.intake.cursor("hacker_news.firebase")[0].get("unread") is None


async def test_a_page_of_which_most_ids_are_bad_is_left_behind(database_url: str, api: FirebaseApi) -> None:
    api.add(*range(1, 31))
    api.plan = seeded_plan(4, range(6, 31), 0.9, None, ("500", "401", "torn", "misshapen"))
    async with engine_on(database_url, api) as engine:
        await ask(engine)
        api.add(31)
        engine.advance_clock(seconds=MINUTE)
        run = await ask(engine)

        assert run.error is None
        assert len(api.plan) > 15
        assert keys(engine) == set(range(1, 32)) - api.plan.keys()


async def test_an_outage_fails_the_run_and_costs_no_item(database_url: str, api: FirebaseApi) -> None:
    api.add(*range(1, 21))
    async with engine_on(database_url, api) as engine:
        await ask(engine)
        api.add(*range(21, 41))
        api.is_out = True
        for _ in range(12):
            assert "503" in ((await ask(engine)).error or "")
            engine.advance_clock(seconds=HOUR)
        api.is_out = False
        run = await ask(engine)

        assert (run.error, run.new, run.note) == (None, 20, "20 items read again")
        assert keys(engine) == set(range(1, 41))


async def test_an_old_id_that_had_no_item_at_first_is_asked_for_again(database_url: str, api: FirebaseApi) -> None:
    """After hours away the walk comes by ids far behind the newest; one `null` is no proof that there is no item."""
    api.add(*range(1, 1_501))
    api.plan[7] = Trouble("null", requests=3)
    async with engine_on(database_url, api, first_items=1_500) as engine:
        for _ in range(5):
            await ask(engine)
            engine.advance_clock(seconds=MINUTE)

        assert 7 in keys(engine)


async def test_never_more_requests_at_once_than_allowed(database_url: str, api: FirebaseApi) -> None:
    api.add(*range(1, 301))
    api.plan = seeded_plan(5, range(1, 301), 0.2, 2, ("500", "torn", "401"))
    async with engine_on(database_url, api, concurrency=16) as engine:
        await ask(engine)

        assert 4 <= api.most_at_once <= 16


async def test_what_stays_unread_can_be_asked_for_by_hand(database_url: str, api: FirebaseApi) -> None:
    api.add(*range(1, 11))
    api.plan = {3: Trouble("500"), 7: Trouble("401"), 8: Trouble("torn")}
    async with engine_on(database_url, api) as engine:
        for _ in range(16):
            await ask(engine)
            engine.advance_clock(seconds=HOUR)
        requests = api.requests.copy()
        del api.plan[3]
        run = await ask(engine, unread=True)

        assert (run.error, run.new) == (None, 1)
        assert set(api.requests - requests) == {f"item/{n}.json" for n in (3, 7, 8)}
        assert keys(engine) == set(range(1, 11)) - {7, 8}
        # Asking by hand gives the others all their tries again.
        del api.plan[7]
        engine.advance_clock(seconds=MINUTE)
        assert (await ask(engine)).new == 1


# A range of ids.


async def test_a_range_is_read_whatever_single_ids_do(database_url: str, api: FirebaseApi) -> None:
    """Torn answers heal at once; those that fail for good are named, and the same command completes the range."""
    api.add(*range(1, 1_301))
    lasting = seeded_plan(7, range(1, 1_001), 0.01, None, ("500", "401", "torn", "slow", "misshapen"))
    api.plan = seeded_plan(6, range(1, 1_001), 0.02, 2, ("torn", "500")) | lasting
    async with engine_on(database_url, api) as engine:
        first = await ask(engine, from_=1, to=1_000)

        assert (first.error, first.new) == (None, 1_000 - len(lasting))
        assert keys(engine) == set(range(1, 1_001)) - lasting.keys()
        missing = ", ".join(str(number) for number in sorted(lasting))
        assert first.note == (
            f"read from 1 to 1000; {len(lasting)} ids could not be read: {missing}; "
            "the same command asks for them again"
        )

        healed, requests = min(lasting), api.requests.copy()
        del api.plan[healed]
        second = await ask(engine, from_=1, to=1_000)
        assert (second.error, second.new) == (None, 1)
        asked = {path for path in api.requests - requests if path.startswith("item/")}
        assert asked == {f"item/{number}.json" for number in lasting}

        api.plan = {}
        third = await ask(engine, from_=1, to=1_000)
        assert (third.error, third.new, third.note) == (None, len(lasting) - 1, "read from 1 to 1000")
        assert keys(engine) == set(range(1, 1_001))


async def test_a_range_stopped_by_an_outage_goes_on_where_it_stopped(database_url: str, api: FirebaseApi) -> None:
    api.add(*range(1, 601))
    async with engine_on(database_url, api) as engine:

        def break_down(_page: Any) -> None:
            api.is_out = True

        poller = engine.app.poller
        options = {"from": 1, "to": 590}
        stopped = await poller.ask("hacker_news.firebase", force=True, options=options, on_page=break_down)
        assert stopped is not None
        assert "503" in (stopped.error or "")
        api.is_out = False
        done, requests = keys(engine), api.requests.copy()
        run = await ask(engine, from_=1, to=590)

        assert (run.error, run.note) == (None, "read from 1 to 590")
        assert keys(engine) == set(range(1, 591))
        assert done
        assert not {f"item/{number}.json" for number in done} & (api.requests - requests).keys()


async def test_what_a_range_left_out_is_read_by_the_live_source(database_url: str, api: FirebaseApi) -> None:
    api.add(*range(1, 31))
    api.plan[12] = Trouble("500", requests=9)
    async with engine_on(database_url, api, first_items=5) as engine:
        await ask(engine, from_=1, to=20)
        assert 12 not in keys(engine)
        for _ in range(4):
            engine.advance_clock(seconds=HOUR)
            await ask(engine)

        assert 12 in keys(engine)
        assert (await ask(engine, unread=True)).found == 0


# The command line.


def configure(folder: Path, server: StandIn, database_url: str) -> tuple[str, str]:
    (folder / "tidings.toml").write_text(
        f"database_url = '{database_url}'\n[pipelines.hacker_news]\nbase_url = '{server.url}/v0'\n"
    )
    return ("--config", str(folder / "tidings.toml"))


async def test_the_command_lists_what_is_unread_and_asks_again(
    tmp_path: Path, database_url: str, api: FirebaseApi
) -> None:
    api.add(*range(1, 31))
    api.plan = {3: Trouble("401"), 7: Trouble("torn")}
    async with StandIn(api.app) as server:
        config = configure(tmp_path, server, database_url)

        def discover(*arguments: str) -> Any:
            return asyncio.to_thread(tidings, "discover", "hacker_news", *arguments, *config)

        none = await discover("--unread")
        partial = await discover("--from", "1", "--to", "20")
        del api.plan[3]
        shown = await discover("--unread")
        as_json = await discover("--unread", "--json")
        del api.plan[7]
        whole = await discover("--from", "1", "--to", "20")
        nothing = await discover("--unread")

    assert (none.code, none.out) == (0, "every id that was asked for has been read\n")
    assert partial.code == 1
    assert "2 ids could not be read: 3, 7; the same command asks for them again" in partial.out
    assert shown.code == 1
    assert re.search(r"^ *3 .*401.* read now *$", shown.out, re.MULTILINE)
    assert re.search(r"^ *7 .*cannot read.* asked again at [\d-]{10} [\d:]{8} *$", shown.out, re.MULTILINE)
    (left,) = json.loads(as_json.out)["unread"]
    assert (left["id"], left["is_given_up"], left["is_read"]) == (7, False, False)
    assert (whole.code, whole.err) == (0, "")
    assert "read from 1 to 20" in whole.out
    assert (nothing.code, nothing.out) == (0, "every id that was asked for has been read\n")


@pytest.mark.parametrize(
    ("pipeline", "arguments", "message"),
    [
        ("hacker_news", ("--unread", "--from", "1", "--to", "2"), "--unread goes without --from and --to"),
        ("feeds", ("--unread",), "keeps no list of unread ids"),
    ],
)
def test_unread_is_refused_where_it_means_nothing(
    tmp_path: Path, pipeline: str, arguments: tuple[str, ...], message: str
) -> None:
    (tmp_path / "tidings.toml").write_text(
        f"database_url = 'sqlite:///{tmp_path / 'a.db'}'\n[pipelines.hacker_news]\n"
        "[pipelines.feeds]\nfeeds = [{url = 'https://a.example/feed'}]\n"
    )
    ended = tidings("discover", pipeline, *arguments, "--config", str(tmp_path / "tidings.toml"))

    assert ended.code == 2
    assert message in ended.err


@pytest.mark.slow
async def test_a_killed_range_is_continued_by_the_same_command(
    tmp_path: Path, database_url: str, api: FirebaseApi
) -> None:
    """The dead process still has its turn for some seconds; the command waits for that instead of refusing."""
    api.add(*range(1, 601))
    api.plan[450] = Trouble("slow")
    async with StandIn(api.app) as server, fleet(tmp_path) as processes:
        config = configure(tmp_path, server, database_url)
        command = ("discover", "hacker_news", "--from", "1", "--to", "590")
        doomed = await processes.start(*command)
        await until(lambda: api.requests_for(450), watching=(doomed,))
        await doomed.kill()
        del api.plan[450]
        requests, killed_at = api.requests.copy(), time.monotonic()
        ended = await asyncio.to_thread(tidings, *command, *config)
        seconds = time.monotonic() - killed_at

    assert ended.code == 0
    assert "read from 1 to 590" in ended.out
    assert seconds < 20
    repeated = sum(1 for path in (api.requests - requests) if path.startswith("item/"))
    assert 190 <= repeated <= 390
