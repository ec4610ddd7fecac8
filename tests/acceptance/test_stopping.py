"""A process that is told to stop is gone within 25 seconds, whatever the signal and whether the database answers."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path

import pytest
from tests.support.own_sql import own_sql
from tests.support.postgres import new_postgres_database
from tests.support.processes import Fleet, Running, fleet, free_port
from tests.support.proxy import Proxy, proxied
from tests.support.waiting import until

from tidings.sample.hacker_news import HackerNews
from tidings.sample.serving import StandIn
from tidings.store.db.database import connect

PROMISE_SECONDS = 25
SLACK_SECONDS = 5
"""A busy machine needs a moment to end a process."""
BACKLOG = 20_000

pytestmark = pytest.mark.slow


def configure(folder: Path, url: str, firebase: str = "http://127.0.0.1:9") -> None:
    (folder / "tidings.toml").write_text(
        f'database_url = "{url}"\n[pipelines.hacker_news]\nbase_url = "{firebase}/v0"\nevery = 1\nfirst_items = 300\n'
    )


async def started(processes: Fleet, *words: str, **settings: str) -> Running:
    process = await processes.start(*words, TIDINGS_SERVER__PORT=str(free_port()), **settings)
    await until(lambda: process.has_started, watching=(process,), seconds=90)
    return process


@pytest.mark.parametrize("role", ["all", "discover", "work", "serve"])
async def test_a_hangup_reads_the_configuration_and_ends_no_role(tmp_path: Path, role: str) -> None:
    configure(tmp_path, f"sqlite:///{tmp_path / 'tidings.db'}")
    async with fleet(tmp_path) as processes:
        process = await started(processes, "run", "--role", role)
        os.kill(process.pid, signal.SIGHUP)
        words = "configuration is as it was"
        await until(lambda: any(each["event"] == words for each in process.events()), watching=(process,))
        assert await process.stop() == 0
        assert process.events()[-1]["event"] == "stopped"


async def test_a_hangup_stops_work_until_idle_before_it_is_idle(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'tidings.db'}"
    configure(tmp_path, url)
    stories = tmp_path / "stories.jsonl"
    with stories.open("w") as file:
        for number in range(1, BACKLOG + 1):
            file.write(json.dumps({"id": number, "type": "story", "title": f"Story {number}", "by": "ada", "time": 1}))
            file.write("\n")
    async with fleet(tmp_path) as processes:
        upload = await processes.start("upload", "hacker_news", str(stories))
        assert await upload.ended(120) == 0, upload.log.read_text()
        worker = await processes.start("work", "--until-idle")
        await until(lambda: any(e["event"] in ("merged", "settled") for e in worker.events()), watching=(worker,))
        os.kill(worker.pid, signal.SIGHUP)
        assert await worker.ended() == 0
    database = connect(url)
    with database.reading() as tx:
        assert own_sql(tx, "SELECT count(*) FROM items WHERE lease_until IS NOT NULL") == [(0,)]
    database.close()


def ignores(process: Running, number: signal.Signals) -> bool:
    lines = Path(f"/proc/{process.pid}/status").read_text().splitlines()
    mask = int(next(line for line in lines if line.startswith("SigIgn")).split()[1], 16)
    return bool(mask & 1 << (number - 1))


async def test_an_ignored_hangup_stays_ignored(tmp_path: Path) -> None:
    """As nohup starts it: the terminal's end is not the process's."""
    configure(tmp_path, f"sqlite:///{tmp_path / 'tidings.db'}")
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        async with fleet(tmp_path) as processes:
            process = await started(processes, "run", "--role", "work")
            assert ignores(process, signal.SIGHUP)
            assert await process.stop() == 0
    finally:
        signal.signal(signal.SIGHUP, before)


@pytest.mark.parametrize(("role", "moment"), [("work", "started"), ("all", "started"), ("all", "merged")])
async def test_a_silent_database_does_not_hold_up_the_end(
    tmp_path: Path, postgres_server: str, role: str, moment: str
) -> None:
    """The server falls silent before anything was asked, or while items are under way."""
    url = new_postgres_database(postgres_server)
    world = HackerNews(now_ms=None)
    for number in range(1, 301):
        world.add(id=number, type="story", by="ada", title=f"Story {number}", score=1, descendants=0)
    with proxied(url) as (proxy, through):
        async with StandIn(world.app) as firebase, fleet(tmp_path) as processes:
            configure(tmp_path, through, firebase.url)
            process = await started(processes, "run", "--role", role)
            await until(lambda: any(event["event"] == moment for event in process.events()), watching=(process,))
            proxy.freeze()
            begun = time.monotonic()
            os.kill(process.pid, signal.SIGTERM)
            code = await process.ended(120)
            took = time.monotonic() - begun
            assert code == 0, process.log.read_text()[-3000:]
            assert took < PROMISE_SECONDS + SLACK_SECONDS


async def test_a_worker_started_before_its_database_waits_for_it(tmp_path: Path, postgres_server: str) -> None:
    url = new_postgres_database(postgres_server)
    port = free_port()
    configure(tmp_path, f"postgresql://postgres@127.0.0.1:{port}/{url.split('/')[3].split('?')[0]}?sslmode=disable")
    async with fleet(tmp_path) as processes:
        process = await processes.start("run", "--role", "work")
        await until(lambda: any(e["event"] == "waiting for PostgreSQL" for e in process.events()), watching=(process,))
        socket_folder = url.split("host=")[1].split("&")[0]
        proxy = Proxy(f"{socket_folder}/.s.PGSQL.5432", port)
        await until(lambda: process.has_started, watching=(process,))
        assert await process.stop() == 0
        proxy.close()
