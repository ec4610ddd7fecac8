"""The first five minutes: the sample world in a process of its own, and what its services saw of it."""

from __future__ import annotations

import signal
import socket
import time
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.support.commands import tidings
from tests.support.environment import clean_environment
from tests.support.shell import fetched, posted, started, tidings_process
from tests.support.waiting import wait_until

from tidings.app import App
from tidings.cli.demo import process_all, wiring_of
from tidings.sample.world import BLOCKED_NOTICE, FLAGGED_CALL, WAYS_TO_ASK, World

EXPECTED: dict[str, Any] = {
    "bitcoin_news": {
        "found": 48,
        "states": {"published": 48},
        "parked": 0,
        "dead_letters": {},
        "announced": 2,
    },
    "eu_funding": {
        "found": 62,
        "states": {"found": 1, "published": 61},
        "parked": 0,
        "dead_letters": {
            "discord:sample refused the message with 400: Message blocked by harmful links filter, code …": 1,
            "the AI endpoint answered 400: Invalid prompt: your prompt was flagged as potentially violating our "
            "usage policy.": 1,
        },
        "announced": 4,
    },
    "feeds": {"found": 21, "states": {"published": 21}, "parked": 0, "dead_letters": {}, "announced": 4},
    "first_issues": {
        "found": 37,
        "states": {"published": 99, "gone": 1, "blocked": 1, "moved": 1},
        "parked": 0,
        "dead_letters": {},
        "announced": 2,
    },
    "hacker_news": {
        "found": 373,
        "states": {"completed": 372, "failed": 1},
        "parked": 0,
        "dead_letters": {"is_valid: type: '…' is none of story, comment, job, poll, pollopt": 1},
        "announced": 0,
    },
}


async def test_the_report_agrees_with_what_the_services_received(tmp_path: Path) -> None:
    async with World(stands_still=True) as world, App(wiring_of(world, f"sqlite:///{tmp_path / 'x.db'}")) as app:
        report = await process_all(app, time.monotonic(), lambda _: None)
        told = report["pipelines"]
        assert told == EXPECTED

        assert told["hacker_news"]["found"] == len(world.hacker_news.items())
        assert {f"item/{number}.json" for number in world.hacker_news.items()} <= set(world.hacker_news.asked)

        news = world.news
        listed = {story.id for provider in ("newsdata", "apitube", "rss") for story in news.listed(provider)}
        assert told["bitcoin_news"]["found"] == len(listed) == len(news.page_requests)
        faults = {story.fault: story.id for story in news.stories.values() if story.fault}
        assert news.page_requests[faults["times_out_twice"]] == 3
        assert sum(news.page_requests.values()) == len(listed) + 2

        sites = world.feeds.feeds.values()
        pages = {f"/{site.host}{entry.path}" for site in sites for entry in site.entries}
        assert told["feeds"]["found"] == len(pages & {asked.path for asked in world.feeds.asked})
        surveyed = {path.split("/")[2] for path in (call.path for call in world.github.calls) if "/issues?" in path}
        withdrawn = sum(told["first_issues"]["states"][state] for state in ("gone", "blocked", "moved"))
        switched_off = 1  # one repository says that it has no issues
        assert told["first_issues"]["found"] == len(surveyed) + withdrawn + switched_off

        assert sum(part["announced"] for part in told.values()) == len(world.discord.messages)
        assert Counter(status for status, _ in world.discord.refused) == {429: 1, 400: 1}
        assert world.discord.requests == len(world.discord.messages) + 2
        assert len({message.delivery_id for message in world.discord.messages}) == len(world.discord.messages)
        about = [body for body in world.ai.requests if FLAGGED_CALL in str(body["messages"])]
        assert len(about) == WAYS_TO_ASK

        await revived_things_succeed(app, world)


async def revived_things_succeed(app: App, world: World) -> None:
    """What was refused once succeeds when it is revived; what is wrong in itself fails again, visibly."""
    before = len(world.discord.messages)
    assert app.store.operations.revive(actor="test") == 3
    await app.worker().until_idle(wait_for_due_seconds=30)

    causes = [group.cause for group in app.store.item_views.dead_letters()]
    assert causes == list(EXPECTED["hacker_news"]["dead_letters"])
    assert len(world.discord.messages) == before + 1
    assert BLOCKED_NOTICE in str(world.discord.messages[-1].body)
    assert app.store.status_views.status().pipelines["eu_funding"].states["published"] == 62


def test_once_counts_the_same_every_time_and_keeps_nothing_unless_told(tmp_path: Path) -> None:
    environment, kept = clean_environment(tmp_path / "temporary"), tmp_path / "kept"
    once = tidings_process("demo", "--once", "--json")
    with (
        started(*once, folder=tmp_path, environment=environment) as first,
        started(*once, "--keep", str(kept), folder=tmp_path, environment=environment) as second,
    ):
        reports = []
        for run in (first, second):
            code, out, err = run.ended()
            assert (code, err) == (0, "")
            reports.append(msgspec.json.decode(out))
    assert [report["pipelines"] for report in reports] == [EXPECTED, EXPECTED]
    assert all(report["seconds"] > 0 for report in reports)
    assert list((tmp_path / "temporary").iterdir()) == []
    assert sorted(path.name for path in kept.iterdir()) == ["tidings.db", "tidings.db-alive", "tidings.toml"]

    config = ("--config", str(kept / "tidings.toml"))
    status = msgspec.json.decode(tidings("status", "--json", *config).out)
    assert status["pipelines"]["hacker_news"]["states"]["completed"] == 372
    assert "A winter on batteries, with figures" in tidings("search", "lamp", *config).out
    assert len(msgspec.json.decode(tidings("dead", "list", "--json", *config).out)) == 3
    used = tidings("demo", "--once", "--keep", str(kept))
    assert used.code == 2
    assert "there is a tidings.db already; choose an empty folder" in used.err


def test_the_dashboard_fills_lives_and_leaves_nothing(tmp_path: Path) -> None:
    environment = clean_environment(tmp_path / "temporary")
    with started(*tidings_process("demo", "--port", "0"), folder=tmp_path, environment=environment) as demo:
        address = demo.printed(r"dashboard\s+(http://127\.0\.0\.1:\d+)")
        channel = demo.printed(r"Discord\s+(http://127\.0\.0\.1:\d+/)")

        def published() -> dict[str, int]:
            pipelines = msgspec.json.decode(fetched(f"{address}/api/v1/status"))["pipelines"]
            return {
                name: part["states"].get("published", 0) + part["states"].get("completed", 0)
                for name, part in pipelines.items()
            }

        wait_until(lambda: min(published().values()) >= 20, missing=lambda: f"enough in {published()}")
        assert "Hacker News" in fetched(address).decode()

        seen = sum(wait_until(published, missing=lambda: "anything").values())
        wait_until(lambda: sum(published().values()) > seen + 3, missing=lambda: f"more than {seen} in {published()}")
        assert b"tidings" in wait_until(lambda: fetched(channel), missing=lambda: "the channel's page")

        wait_until(lambda: dead_letters(address) == 3, missing=lambda: f"three, not {dead_letters(address)}")
        assert posted(f"{address}/api/v1/dead-letters/revive", {"all": True}) == {"revived": 3}
        wait_until(lambda: dead_letters(address) == 1, missing=lambda: f"one, not {dead_letters(address)}")

        assert len(list((tmp_path / "temporary").iterdir())) == 1
        demo.process.send_signal(signal.SIGINT)
        code, _, err = demo.ended()
    assert (code, err) == (0, "")
    assert list((tmp_path / "temporary").iterdir()) == []


def dead_letters(address: str) -> int:
    """Count the dead letters the API tells of."""
    answer = msgspec.json.decode(fetched(f"{address}/api/v1/dead-letters"))
    return sum(group["count"] for group in answer["dead_letters"])


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_once_stopped_half_way_leaves_nothing(tmp_path: Path, number: signal.Signals) -> None:
    temporary = tmp_path / "temporary"
    with started(*tidings_process("demo", "--once"), folder=tmp_path, environment=clean_environment(temporary)) as demo:
        demo.printed("(processing) ")
        assert len(list(temporary.iterdir())) == 1
        demo.process.send_signal(number)
        code, _, err = demo.ended()
    assert code == 130
    assert err == "tidings: stopped before everything was processed\n"
    assert list(temporary.iterdir()) == []


def test_a_taken_port_is_told_in_one_sentence() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        ended = tidings("demo", "--port", str(port))
    assert ended.code == 2
    other = port + 1 if port < 65535 else port - 1
    assert ended.err == (
        f"tidings: port {port} cannot be used, probably because something listens there; "
        f"try --port {other} (make run PORT={other})\n"
    )
