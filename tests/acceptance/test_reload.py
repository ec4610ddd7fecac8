"""A changed configuration is taken over by running processes, whole or not at all."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from tests.support.processes import fleet, free_port
from tests.support.waiting import until
from tests.unit.pipelines.feeds.sites import NOW_MS, a_site

from tidings.sample.feeds import FeedSites
from tidings.sample.serving import StandIn
from tidings.store.db.database import connect
from tidings.store.sources import ScheduleStore

pytestmark = pytest.mark.slow


def configure(folder: Path, web: StandIn, *paths: str, more: str = "") -> None:
    feeds = ", ".join(f'"{web.url}{path}"' for path in paths)
    (folder / "tidings.toml").write_text(
        f'database_url = "sqlite:///{folder / "tidings.db"}"\nobey_robots = false\nper_host_delay_seconds = 0\n'
        f'loopback_allowed = ["127.0.0.1:{web.port}"]\n[pipelines.feeds]\nfeeds = [{feeds}]\n{more}'
    )


def asked(folder: Path) -> int:
    """Return how many sources have been asked with success."""
    database = connect(f"sqlite:///{folder / 'tidings.db'}")
    try:
        return len([row for row in ScheduleStore(database).all() if row.last_success_at])
    finally:
        database.close()


@pytest.mark.parametrize("role", ["all", "discover"])
async def test_a_changed_file_is_taken_over_and_a_wrong_one_is_not(tmp_path: Path, role: str) -> None:
    world = FeedSites([a_site(f"{name}.example", 2) for name in ("one", "two")], now_ms=lambda: NOW_MS)
    async with StandIn(world.app) as web, fleet(tmp_path) as processes:
        configure(tmp_path, web, "/one.example/feed")
        process = await processes.start("run", "--role", role, TIDINGS_SERVER__PORT=str(free_port()))
        await until(lambda: process.has_started and asked(tmp_path) == 1, watching=(process,))

        os.kill(process.pid, signal.SIGHUP)
        await until(lambda: told(process, "configuration is as it was"), watching=(process,))

        configure(tmp_path, web, "/one.example/feed", "/two.example/feed", more="nonsense = 1\n")
        os.kill(process.pid, signal.SIGHUP)
        await until(lambda: told(process, "configuration refused"), watching=(process,))
        assert "nonsense" in process.log.read_text()
        refused = await processes.start("reload")
        assert await refused.ended() == 2

        configure(tmp_path, web, "/one.example/feed", "/two.example/feed")
        command = await processes.start("reload")
        assert await command.ended() == 0
        await until(lambda: told(process, "configuration taken over"), watching=(process,))
        await until(lambda: asked(tmp_path) == 2, watching=(process,))
        assert await process.stop() == 0
        assert process.events()[-1]["event"] == "stopped"


def told(process: object, what: str) -> bool:
    return any(each["event"] == what for each in process.events())  # type: ignore[attr-defined]
