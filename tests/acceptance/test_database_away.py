"""A real server whose PostgreSQL goes away: readers are told at once, lists stay, and reading goes on."""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import urlopen

from tests.support.commands import tidings
from tests.support.postgres import new_postgres_database
from tests.support.processes import fleet, free_port
from tests.support.proxy import proxied
from tests.support.waiting import until

SOON_SECONDS = 5.0
"""Half of what each answer took; a second on an idle machine."""
STORY = {"id": 1, "type": "story", "by": "ada", "title": "Lists stay", "score": 7, "time": 1_700_000_000}


async def test_readers_are_told_at_once_and_lists_stay(tmp_path: Path, postgres_server: str) -> None:
    port, url = free_port(), new_postgres_database(postgres_server)
    (tmp_path / "tidings.toml").write_text(
        f'database_url = "{url}"\n[server]\nport = {port}\n[pipelines.hacker_news]\nbase_url = "http://127.0.0.1:9/v0"\n'
    )
    config = ("--config", str(tmp_path / "tidings.toml"))
    sent = await asyncio.to_thread(tidings, "upload", "hacker_news", "-", *config, given=json.dumps([STORY]).encode())
    assert sent.code == 0, sent.err
    with proxied(url) as (proxy, through):
        async with fleet(tmp_path) as processes:
            assert await (await processes.start("work", "--until-idle")).ended() == 0
            server = await processes.start("run", "--role", "serve", TIDINGS_DATABASE_URL=through)
            await until(lambda: server.has_started, watching=(server,))
            before = asked(port, "/api/v1/hacker_news/items")
            assert (before[0], before[1]["warnings"]) == (200, [])

            proxy.freeze()
            await until(lambda: asked(port, "/api/v1/status")[0] == 503, watching=(server,))
            started = time.monotonic()
            refused = [asked(port, f"/api/v1/hacker_news/items/{n}")[0] for n in range(2, 12)]
            assert refused == [503] * 10
            assert time.monotonic() - started < SOON_SECONDS
            status, document, age = asked(port, "/api/v1/hacker_news/items")
            assert (status, document["items"]) == (200, before[1]["items"])
            assert "the store does not answer" in document["warnings"][0]
            assert age is not None
            for path in ("/", "/search?q=lists", "/api/v1/search?q=lists", "/readyz"):
                started = time.monotonic()
                assert asked(port, path)[0] == 503, path
                assert time.monotonic() - started < SOON_SECONDS / 2, path

            proxy.thaw()
            await until(lambda: asked(port, "/api/v1/status")[0] == 200, watching=(server,))
            assert asked(port, "/api/v1/hacker_news/items")[1]["warnings"] == []


def asked(port: int, path: str) -> tuple[int, Any, str | None]:
    try:
        with urlopen(f"http://127.0.0.1:{port}{path}", timeout=60) as response:
            return response.status, json.load(response), response.headers["Age"]
    except HTTPError as refusal:
        return refusal.code, None, None
