"""Killed at random points and resumed, the pipeline arrives where an undisturbed one does."""

from __future__ import annotations

import asyncio
import json
import random
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.acceptance.beginners_world import RESTING, TOKEN, beginners_world, settings_for
from tests.support.engine import Engine
from tests.support.environment import clean_environment
from tests.support.postgres import new_postgres_database

from tidings.model.clock import SystemClock
from tidings.pipelines import first_issues
from tidings.sample.github import LIST_PATH, GitHub
from tidings.sample.serving import StandIn

KILLS = 12
ROUNDS = 24
LEASE_SECONDS = 60
"""How long a killed process keeps what it held, at most."""
TIMES = ("processed_at",)


@asynccontextmanager
async def serving(samples: Path) -> AsyncIterator[tuple[GitHub, str]]:
    world, _ = beginners_world(samples, SystemClock().now_ms)
    world.faults.clear()
    kept = world.listing["repositories"][:90]
    world.listing = {**world.listing, "repositories": kept}
    async with StandIn(world.app) as server:
        yield world, server.url


def configuration(folder: Path, database_url: str, url: str) -> Path:
    file = folder / "tidings.toml"
    file.write_text(
        f"""database_url = "{database_url}"
durability = "crash-safe"
[pipelines.first_issues]
github_url = "{url}"
list_url = "{url}{LIST_PATH}"
"""
    )
    return file


async def start(file: Path, offset_seconds: int, *command: str) -> asyncio.subprocess.Process:
    environment = clean_environment(
        TIDINGS_PIPELINES__FIRST_ISSUES__TOKEN=TOKEN, TIDINGS_CLOCK_OFFSET_MS=str(offset_seconds * 1000)
    )
    return await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tidings", *command, "--config", str(file),
        env=environment, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL,
    )  # fmt: skip


async def kill_soon(process: asyncio.subprocess.Process, world: GitHub, calls: int) -> bool:
    """Kill a process once the world has heard so many more calls from it; False: it ended before."""
    heard = len(world.calls) + calls
    while process.returncode is None and len(world.calls) < heard:
        try:
            async with asyncio.timeout(0.01):
                await process.wait()
        except TimeoutError:
            pass
    if process.returncode is not None:
        return False
    process.send_signal(signal.SIGKILL)
    await process.wait()
    return True


async def final_data(database_url: str, url: str, offset_seconds: int) -> dict[str, Any]:
    """Work to the end and return everything readers see, without times of processing."""
    settings = settings_for(url)
    engine = Engine(database_url, [first_issues.build(settings)], endpoints=first_issues.endpoints(settings))
    async with engine:
        engine.advance_clock(seconds=offset_seconds)
        for _ in range(60):
            await engine.sweep()
            await engine.discover_due()
            await engine.work_until_idle()
            if any(group.cause == "poison" for group in engine.store.item_views.dead_letters()):
                engine.store.operations.revive(cause="poison", actor="test")
            elif {*engine.states("repo"), *engine.states("issue")} <= RESTING and not engine.store.intake.unmerged(
                "first_issues"
            ):
                break
            engine.advance_clock(seconds=60)
        keys = [(row.kind, row.key) for row in engine.items(limit=100_000)]
        assert len(keys) == len(set(keys)), "no duplicate rows"
        assert engine.store.item_views.dead_letters() == []
        cards = [*engine.cards("repos"), *engine.cards("issues")]
        assert len(cards) == len({(card["url"], card["id"]) for card in cards})
        links = {
            key: engine.store.links.children("first_issues", "issue_of", f"repo:{key}")
            for kind, key in keys
            if kind == "repo"
        }
        return {
            "states": {f"{row.kind}:{row.key}": row.state for row in engine.items(limit=100_000)},
            "cards": {card["id"]: {k: v for k, v in card.items() if k not in TIMES} for card in cards},
            "links": links,
            "found": sorted(hit.key for hit in engine.search("config.yml", limit=1_000)),
        }


async def storm(file: Path, world: GitHub, rng: random.Random) -> tuple[int, int]:
    """Start and kill processes; return how many were killed, and how far the clock has moved."""
    killed = offset = 0
    has_work = False
    for _ in range(ROUNDS):
        if killed == KILLS:
            break
        offset += LEASE_SECONDS + 1
        command = ("work", "--until-idle") if has_work else ("discover", "first_issues")
        process = await start(file, offset, *command)
        was_killed = await kill_soon(process, world, rng.randint(3, 60) if has_work else rng.randint(22, 60))
        killed += was_killed
        has_work = was_killed if has_work else True
    return killed, offset


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
async def test_a_pipeline_killed_again_and_again_ends_with_the_same_data(
    kind: str, tmp_path: Path, samples: Path, request: pytest.FixtureRequest
) -> None:
    if kind == "sqlite":
        urls = [f"sqlite:///{tmp_path / name}" for name in ("calm.db", "stormy.db")]
    else:
        server = request.getfixturevalue("postgres_server")
        urls = [new_postgres_database(server) for _ in range(2)]
    async with serving(samples) as (world, url):
        calm = await final_data(urls[0], url, 0)
        file = configuration(tmp_path, urls[1], url)
        killed, offset = await storm(file, world, random.Random(4))
        stormy = await final_data(urls[1], url, offset + LEASE_SECONDS + 1)

    assert killed >= KILLS // 2, "the storm was no storm"
    assert stormy["states"] == calm["states"]
    assert stormy["links"] == calm["links"]
    assert stormy["found"] == calm["found"]
    assert json.dumps(stormy["cards"], sort_keys=True) == json.dumps(calm["cards"], sort_keys=True)
