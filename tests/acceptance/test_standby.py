"""A server on a hot standby of PostgreSQL: it reads, says that it may not write, and outlives the primary."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
from tests.acceptance.test_cli import ran
from tests.support.cluster import Cluster
from tests.support.processes import fleet, free_port
from tests.support.waiting import until

STORY = {"id": 1, "type": "story", "by": "ada", "title": "Read beside the writer", "score": 7, "time": 1_700_000_000}


@pytest.fixture
def clusters(tmp_path: Path) -> Iterator[tuple[Cluster, Cluster]]:
    """A primary and its hot standby."""
    with Cluster(tmp_path, name="primary") as primary:
        primary.set("wal_level", "replica")
        standby = Cluster(tmp_path, name="standby")
        standby.copy(primary)
        try:
            standby.start()
            yield primary, standby
        finally:
            standby.__exit__()


def answer(url: str, body: Any = None, token: str = "") -> tuple[int, Any]:
    data = None if body is None else json.dumps(body).encode()
    headers = {"content-type": "application/json", **({"authorization": f"Bearer {token}"} if token else {})}
    try:
        with urlopen(Request(url, data, headers), timeout=20) as given:
            return given.status, json.load(given)
    except HTTPError as error:
        return error.code, json.loads(error.read() or b"{}")


def page(url: str) -> str:
    with urlopen(url, timeout=20) as given:
        return str(given.read().decode())


@pytest.mark.slow
async def test_a_server_on_a_standby_reads_and_outlives_the_primary(
    tmp_path: Path, clusters: tuple[Cluster, Cluster]
) -> None:
    primary, standby = clusters
    (tmp_path / "tidings.toml").write_text("[pipelines.hacker_news]\nevery = 3600\n")
    at_primary = {"TIDINGS_DATABASE_URL": primary.url}

    async def publish(number: int) -> None:
        given = json.dumps([{**STORY, "id": number}]).encode()
        assert (await ran(tmp_path, "upload", "hacker_news", "-", given=given, environment=at_primary)).code == 0
        assert (await ran(tmp_path, "work", "--until-idle", environment=at_primary)).code == 0

    await publish(1)
    token = (await ran(tmp_path, "token", "create", "--scope", "ingest", environment=at_primary)).out.split()[0]
    port = free_port()
    address = f"http://127.0.0.1:{port}"
    async with fleet(tmp_path) as processes:
        server = await processes.start(
            "run", "--role", "serve", TIDINGS_SERVER__PORT=str(port), TIDINGS_DATABASE_URL=standby.url
        )
        await until(lambda: server.has_started, watching=(server,))
        await until(lambda: answer(f"{address}/api/v1/hacker_news/items/1")[0] == 200, watching=(server,))
        await publish(2)
        await until(lambda: answer(f"{address}/api/v1/hacker_news/items/2")[0] == 200, watching=(server,))
        await until(lambda: answer(f"{address}/api/v1/search?q=writer")[1].get("total") == 2, watching=(server,))
        status, told = answer(f"{address}/api/v1/hacker_news/items", {**STORY, "id": 3}, token)
        assert (status, "standby" in told["detail"]) == (503, True), told
        status, ready = answer(f"{address}/readyz")
        assert status == 200, ready
        assert ready["standby"]["lag_seconds"] < 60

        primary.kill()

        assert answer(f"{address}/api/v1/hacker_news/items/2")[0] == 200
        assert answer(f"{address}/api/v1/hacker_news/items?limit=5")[0] == 200
        status, ready = answer(f"{address}/readyz")
        assert status == 200, ready
        assert "This server reads a standby" in page(f"{address}/")
        assert await server.stop() == 0
