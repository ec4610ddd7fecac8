"""source: what it lists, adds, changes, removes and finds."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.commands import tidings
from tests.unit.pipelines.feeds.sites import NOW_MS, a_site

from tidings.sample.feeds import FeedSites
from tidings.sample.serving import StandIn

ADDRESS = "/lamp.example/"


@pytest.fixture
def site(home: Path) -> Iterator[str]:
    """A site on loopback whose page announces a feed, and settings that allow to read it."""
    import asyncio

    stop: asyncio.Event
    ready = threading.Event()
    told: list[str] = []

    async def serve() -> None:
        nonlocal stop
        stop, loop = asyncio.Event(), asyncio.get_running_loop()
        async with StandIn(FeedSites([a_site()], now_ms=lambda: NOW_MS).app) as web:
            told.append(web.url)
            loops.append(loop)
            ready.set()
            await stop.wait()

    loops: list[asyncio.AbstractEventLoop] = []
    thread = threading.Thread(target=lambda: asyncio.run(serve()), daemon=True)
    thread.start()
    assert ready.wait(30)
    place = told[0].removeprefix("http://")
    (home / "tidings.toml").write_text(
        f'loopback_allowed = ["{place}"]\nper_host_delay_seconds = 0\nobey_robots = false\n[pipelines.feeds]\n'
    )
    yield told[0]
    loops[0].call_soon_threadsafe(stop.set)
    thread.join(30)


def test_a_site_is_added_by_its_address(home: Path, site: str) -> None:
    added = tidings("source", "add", site + ADDRESS)
    assert added.code == 0, added.err
    assert "The Lampkeeper's Log: 3 found" in added.out
    assert "Entry number 3" in added.out
    (listed,) = json.loads(tidings("source", "list", "--json").out)
    assert (listed["origin"], listed["address"], listed["health"]) == ("store", site + ADDRESS, "waiting")
    again = tidings("source", "add", site + ADDRESS)
    assert (again.code, "watched already" in again.err) == (2, True)
    changed = tidings("source", "edit", listed["name"], "--title", "The log", "--interval", "30min", "--json")
    assert json.loads(changed.out)["interval"] == 1800
    assert tidings("source", "edit", listed["name"], "--unset", "title", "--json").out.count("title") == 0
    removed = tidings("source", "remove", listed["name"], "--items", "forget")
    assert "its 0 items are forgotten" in removed.out
    assert "no sources" in tidings("source", "list").out


def test_a_test_shows_entries_and_what_becomes_of_one_and_keeps_nothing(home: Path, site: str) -> None:
    tried = json.loads(tidings("source", "test", site + ADDRESS, "--json").out)
    assert [entry["title"] for entry in tried["preview"]["entries"]] == [f"Entry number {n}" for n in (3, 2, 1)]
    assert tried["newest"]["card"]["text_from"] == "page"
    assert tried["newest"]["card"]["summary"]
    assert [step.partition(":")[0] for step in tried["newest"]["steps"]] == ["fetch", "summarize", "publish"]
    assert [path.name for path in home.iterdir()] == ["tidings.toml"]


def test_what_is_no_feed_is_not_added(home: Path, site: str) -> None:
    refused = tidings("source", "add", site + "/nowhere.example/feed")
    assert (refused.code, "nothing was added" in refused.err) == (1, True)
    assert tidings("source", "add", site + "/nowhere.example/feed", "--unseen").code == 0
    assert tidings("source", "remove", "feeds.nowhere", "--items", "keep").code == 2
    assert tidings("source", "edit", "feeds.127-0-0-1").code == 2
    assert tidings("source", "add", site, "--set", "x").code == 2
