"""Two machines' worth of processes on one PostgreSQL: work is shared, and no single death loses anything."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen

import pytest
from tests.support.own_sql import own_sql
from tests.support.postgres import new_postgres_database
from tests.support.processes import Running, fleet, free_port
from tests.support.waiting import until

from tidings.sample.hacker_news import HackerNews
from tidings.sample.serving import StandIn
from tidings.store.db.database import Database, connect

FIRST, AFTER_WORKER, AFTER_POLLER = 600, 300, 150


@pytest.mark.slow
async def test_roles_share_work_and_survive_each_others_death(tmp_path: Path, postgres_server: str) -> None:
    url = new_postgres_database(postgres_server)
    world = HackerNews(now_ms=None)
    stories(world, FIRST)
    async with StandIn(world.app) as firebase, fleet(tmp_path) as processes:
        configure(tmp_path, url, firebase.url)
        ports = [free_port(), free_port()]
        poller = await processes.start("run", "--role", "discover")
        workers = [await processes.start("run", "--role", "work") for _ in range(2)]
        servers = [await processes.start("run", "--role", "serve", TIDINGS_SERVER__PORT=str(port)) for port in ports]
        database = connect(url)
        try:
            await until(lambda: completed(database) >= FIRST, watching=(poller, *workers, *servers))
            # Each tells of its run when that is over.
            await until(lambda: all(settled(worker) > 0 for worker in workers), watching=tuple(workers))

            # A worker dies at work: its leases run out, the other one does the rest.
            stories(world, AFTER_WORKER)
            await until(lambda: completed(database) > FIRST)
            await workers[0].kill()
            await until(lambda: completed(database) == FIRST + AFTER_WORKER, watching=(workers[1],), seconds=90)

            # The poller dies while it reads: the next one goes on from the cursor.
            stories(world, AFTER_POLLER)
            await until(lambda: len(world.asked) and known(database) > FIRST + AFTER_WORKER)
            await poller.kill()
            successor = await processes.start("run", "--role", "discover")
            everything = FIRST + AFTER_WORKER + AFTER_POLLER
            await until(lambda: completed(database) == everything, watching=(successor, workers[1]), seconds=90)
            assert born_twice(database) == []

            # Both servers say the same; when one dies, the other goes on.
            await until(lambda: answers(ports[0]) == answers(ports[1]), watching=tuple(servers))
            counted = f'tidings_item_state{{kind="item",pipeline="hacker_news",state="completed"}} {everything}.0'
            assert counted in fetched(ports[0], "/metrics")
            await servers[0].kill()
            assert answers(ports[1])["/api/v1/hacker_news/items?limit=500"]["total"] == everything

            # The rest stops politely, and holds nothing when it is gone.
            rest = (workers[1], successor, servers[1])
            await until(lambda: all(process.has_started for process in rest))
            assert await asyncio.gather(*(process.stop() for process in rest)) == [0, 0, 0]
            assert leases(database) == 0
        finally:
            database.close()


def configure(folder: Path, url: str, firebase: str) -> None:
    (folder / "tidings.toml").write_text(
        f'database_url = "{url}"\nlease_seconds = 15\n[lanes.pure]\nbatch = 5\n'
        f'[pipelines.hacker_news]\nbase_url = "{firebase}/v0"\nevery = 1\nfirst_items = 5000\nconcurrency = 4\n'
    )


def stories(world: HackerNews, count: int) -> None:
    for _ in range(count):
        number = world.newest_id() + 1
        world.add(id=number, type="story", by="ada", title=f"Story number {number}", score=number % 50, descendants=0)


def settled(worker: Running) -> int:
    return sum(event.get("processed", 0) for event in worker.events())


def completed(database: Database) -> int:
    return number(database, "SELECT count(*) FROM items WHERE state = 'completed'")


def known(database: Database) -> int:
    return number(database, "SELECT (SELECT count(*) FROM items) + (SELECT count(*) FROM intake WHERE id > "
                  "(SELECT max(checkpoint) FROM checkpoints))")  # fmt: skip


def leases(database: Database) -> int:
    return number(database, "SELECT count(*) FROM items WHERE lease_until IS NOT NULL")


def born_twice(database: Database) -> list[Any]:
    with database.reading() as tx:
        return own_sql(tx, "SELECT item FROM journal WHERE kind = 'born' GROUP BY item HAVING count(*) > 1")


def number(database: Database, select: str) -> int:
    try:
        with database.reading() as tx:
            return int(own_sql(tx, select)[0][0] or 0)
    except Exception as error:  # The first process may still be making the tables.
        if "does not exist" in str(error):
            return 0
        raise


def answers(port: int) -> dict[str, Any]:
    paths = ["/api/v1/hacker_news/items?limit=500", "/api/v1/hacker_news/items/7",
             "/api/v1/hacker_news/search?q=%22number%207%22",
             "/feeds/hacker_news.json", "/api/v1/pipelines"]  # fmt: skip
    return {path: json.loads(fetched(port, path).replace(str(port), "PORT")) for path in paths}


def fetched(port: int, path: str) -> str:
    try:
        with urlopen(f"http://127.0.0.1:{port}{path}", timeout=10) as response:
            body: bytes = response.read()
            return body.decode()
    except URLError as error:
        return json.dumps({"trouble": str(error), "port": port})
