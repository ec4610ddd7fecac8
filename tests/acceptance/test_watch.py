"""Real processes, any split of roles: what is missing is told, once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
from tests.support.processes import fleet, free_port
from tests.support.waiting import until


@pytest.mark.slow
async def test_a_server_and_a_poller_say_that_no_worker_runs(tmp_path: Path, database_url: str) -> None:
    port = free_port()
    (tmp_path / "tidings.toml").write_text(
        f'database_url = "{database_url}"\n[alerts]\nabsent = 20\nlag = 86400\n[server]\nport = {port}\n'
        '[pipelines.hacker_news]\nbase_url = "http://127.0.0.1:9/v0"\nevery = 3600\nstreams = false\n'
    )
    async with fleet(tmp_path) as processes:
        server = await processes.start("run", "--role", "serve")
        poller = await processes.start("run", "--role", "discover")
        await until(lambda: server.has_started and poller.has_started, watching=(server, poller))
        await until(lambda: "no worker" in alerts(port), watching=(server, poller))
        fired = [each for process in (server, poller) for each in process.events() if each["event"] == "alert fired"]
        assert [each["subject"] for each in fired if each["name"] == "no worker"] == ["worker"]

        worker = await processes.start("run", "--role", "work")
        await until(lambda: "no worker" not in alerts(port), watching=(server, poller, worker))
        seen = {each["role"] for each in status(port)["processes"]}
        assert seen == {"serve", "discover", "work"}


def status(port: int) -> Any:
    with urlopen(f"http://127.0.0.1:{port}/api/v1/status", timeout=10) as response:
        return json.load(response)


def alerts(port: int) -> set[str]:
    return {each["name"] for each in status(port)["alerts"]}
