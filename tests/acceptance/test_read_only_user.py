"""A database user that may only read: enough to look, to search and to serve."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import psycopg
import pytest
from tests.support.commands import tidings
from tests.support.postgres import new_postgres_database
from tests.support.processes import fleet, free_port
from tests.support.waiting import until

READER = "tidings_reader"
STORY = {"id": 1, "type": "story", "by": "ada", "title": "Readers need no pen", "score": 7, "time": 1_700_000_000}


@pytest.fixture
def reader_url(postgres_server: str) -> tuple[str, str]:
    """Return the addresses of one database: its owner's, and that of a user with SELECT alone."""
    owner = new_postgres_database(postgres_server)
    with psycopg.connect(owner, autocommit=True) as connection:
        if not connection.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", [READER]).fetchone():
            connection.execute(f"CREATE ROLE {READER} LOGIN")
        connection.execute(f"ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT SELECT ON TABLES TO {READER}")
    return owner, owner.replace("postgres:@", f"{READER}:@")


@pytest.fixture
def reader(reader_url: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Publish a story as the owner; return the reader's address."""
    owner, reader = reader_url
    assert owner != reader
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tidings.toml").write_text("[pipelines.hacker_news]\nevery = 3600\n")
    monkeypatch.setenv("TIDINGS_DATABASE_URL", owner)
    assert tidings("upload", "hacker_news", "-", given=json.dumps([STORY]).encode()).code == 0
    assert tidings("work", "--until-idle").code == 0
    monkeypatch.setenv("TIDINGS_DATABASE_URL", reader)
    return reader


def test_one_that_may_only_read_looks_and_searches(reader: str) -> None:
    assert READER in reader
    for command in ("status", "items", "search pen", "explain hacker_news item 1", "dead list"):
        ended = tidings(*command.split())
        assert (ended.code, ended.err) == (0, ""), command
    assert "Readers need no pen" in tidings("search", "pen").out

    refused = tidings("upload", "hacker_news", "-", given=json.dumps([{**STORY, "id": 2}]).encode())

    assert refused.code != 0
    assert "may not write" in refused.err


async def test_one_that_may_only_read_serves(reader: str, tmp_path: Path) -> None:
    port = free_port()
    async with fleet(tmp_path) as processes:
        server = await processes.start(
            "run", "--role", "serve", TIDINGS_SERVER__PORT=str(port), TIDINGS_DATABASE_URL=reader
        )
        address = f"http://127.0.0.1:{port}"
        await until(lambda: server.has_started, watching=(server,))
        assert asked(f"{address}/api/v1/hacker_news/items/1")["title"] == STORY["title"]
        assert asked(f"{address}/api/v1/status")["pipelines"]["hacker_news"]["states"]["completed"] == 1
        await until(lambda: asked(f"{address}/api/v1/search?q=pen")["total"] == 1, watching=(server,))
        assert len(asked(f"{address}/api/v1/changes?pipeline=hacker_news")["changes"]) == 1
        assert status_of(f"{address}/items") == 200
        assert status_of(f"{address}/api/v1/hacker_news/items", b"{}") == 401
        assert await server.stop() == 0


def asked(url: str) -> Any:
    with urlopen(url, timeout=10) as response:
        return json.load(response)


def status_of(url: str, body: bytes | None = None) -> int:
    try:
        with urlopen(Request(url, body, {"content-type": "application/json"}), timeout=10) as response:
            return int(response.status)
    except HTTPError as error:
        return error.code
