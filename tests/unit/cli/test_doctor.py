"""`tidings doctor`: sound things are called sound, broken ones by name, and nothing is written."""

from __future__ import annotations

import asyncio
import json
import os
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
import pytest
from tests.support.commands import Ended, tidings

from tidings.sample.world import World

HN = "[pipelines.hacker_news]\nbase_url = 'http://127.0.0.1:1/v0'\n"


def live_in(world: World, monkeypatch: pytest.MonkeyPatch, **changes: Any) -> None:
    """Put a world's whole configuration into the environment, secrets and all."""
    settings = {**world.settings("sqlite:///tidings.db"), **changes}
    settings["loopback_allowed"] = [f"{host}:{port}" for host, port in sorted(world.loopback())]
    for name, value in settings.items():
        monkeypatch.setenv(f"TIDINGS_{name.upper()}", value if isinstance(value, str) else json.dumps(value))


def standing(ended: Ended) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for check in json.loads(ended.out)["checks"]:
        found.setdefault(check["what"], set()).add(check["standing"])
    return found


async def test_a_sound_world_is_called_sound(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with World(stands_still=True) as world:
        live_in(world, monkeypatch)
        ended = await asyncio.to_thread(tidings, "doctor", "--json")
        plain = await asyncio.to_thread(tidings, "doctor")
    found = standing(ended)
    assert (ended.code, plain.code) == (0, 0), plain.out
    assert "nothing is broken" in plain.out
    asked = {"configuration", "disk", "database", "clock", "hacker_news", "eu_funding", "first_issues", "ai"}
    asked |= {"bitcoin_news.newsdata", "bitcoin_news.apitube"}
    assert asked <= set(found)
    assert found["discord:sample"] == {"ok"}
    assert any(what.startswith("bitcoin_news.rss.") for what in found)
    assert any(what.startswith("feeds.") for what in found)
    assert "broken" not in set().union(*found.values())
    assert os.listdir(home) == []


async def test_what_does_not_answer_is_named(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with World(stands_still=True) as world:
        settings = world.settings("sqlite:///tidings.db")
        settings["pipelines"] = {"hacker_news": {"base_url": "http://127.0.0.1:1/v0"}}
        settings["ai"]["base_url"] = "http://127.0.0.1:1/v1"
        address = settings["notifiers"]["discord"]["sample"]["webhook_url"]
        settings["notifiers"]["discord"]["sample"]["webhook_url"] = address[:-1]
        settings["routes"] = []
        live_in(world, monkeypatch, **settings)
        ended = await asyncio.to_thread(tidings, "doctor", "--json")
    found = standing(ended)
    assert ended.code == 1
    assert {what for what, standings in found.items() if "broken" in standings} == {
        "hacker_news", "ai", "discord:sample"
    }  # fmt: skip
    assert address.rpartition("/")[2][:-1] not in ended.out


@pytest.mark.parametrize("name", ["newsdata", "apitube"])
async def test_a_wrong_key_is_broken(home: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    async with World(stands_still=True) as world:
        settings = world.settings("sqlite:///tidings.db")
        settings["pipelines"]["bitcoin_news"][f"{name}_key"] = "a-wrong-key-of-some-length"
        live_in(world, monkeypatch, **settings)
        ended = await asyncio.to_thread(tidings, "doctor", "--json")
    found = standing(ended)
    assert ended.code == 1
    assert {what for what, standings in found.items() if "broken" in standings} == {f"bitcoin_news.{name}"}
    assert "401" in ended.out
    assert "a-wrong-key" not in ended.out


async def test_many_feeds_on_one_host_wait_their_turn(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tidings.cli.doctor_services.WAIT_SECONDS", 0.5)
    async with World(stands_still=True) as world:
        settings = world.settings("sqlite:///tidings.db")
        address = settings["pipelines"]["feeds"]["feeds"][0]["url"]
        feeds = [{"url": f"{address}?copy={n}"} for n in range(20)]
        live_in(world, monkeypatch, pipelines={"feeds": {"feeds": feeds}}, per_host_delay_seconds=0.1, routes=[])
        ended = await asyncio.to_thread(tidings, "doctor", "--json")
    found = standing(ended)
    assert {what for what, standings in found.items() if "broken" in standings} == set(), ended.out
    assert len([what for what in found if what.startswith("feeds.")]) == 20


def test_what_was_not_tested_is_said(home: Path) -> None:
    (home / "tidings.toml").write_text(HN)
    ended = tidings("doctor", "--offline", "--json")
    assert (ended.code, standing(ended)["network"]) == (0, {"untested"})


def test_what_keys_would_add_is_said_without_the_network(home: Path) -> None:
    tidings("init")
    ended = tidings("doctor", "--offline")
    assert ended.code == 0
    for name in ("NEWSDATA_KEY", "APITUBE_KEY", "FIRST_ISSUES__TOKEN", "TIDINGS_AI__API_KEY", "no channel"):
        assert name in ended.out
    assert sorted(p.name for p in home.iterdir()) == ["tidings.toml"]


def test_a_missing_webhook_is_broken_and_the_rest_is_still_checked(home: Path) -> None:
    (home / "tidings.toml").write_text(f"{HN}[notifiers.discord.room]\n")
    ended = tidings("doctor", "--offline", "--json")
    found = standing(ended)
    assert (ended.code, found["configuration"], found["database"]) == (1, {"broken"}, {"ok"})
    assert "TIDINGS_NOTIFIERS__DISCORD__ROOM__WEBHOOK_URL" in ended.out


def test_a_damaged_database_and_a_missing_folder_are_broken(home: Path) -> None:
    (home / "tidings.toml").write_text(HN)
    (home / "tidings.db").write_bytes(b"\xa5" * 8192)
    damaged = tidings("doctor", "--offline", "--json")
    assert (damaged.code, standing(damaged)["database"]) == (1, {"broken"})
    (home / "tidings.toml").write_text(f"database_url = 'sqlite:///no/where.db'\n{HN}")
    nowhere = tidings("doctor", "--offline", "--json")
    assert (nowhere.code, standing(nowhere)["disk"]) == (1, {"broken"})


def test_a_database_in_use_is_sound(home: Path) -> None:
    (home / "tidings.toml").write_text(HN)
    assert tidings("status").code == 0
    ended = tidings("doctor", "--offline", "--json")
    assert (ended.code, standing(ended)["database"]) == (0, {"ok"})


def test_an_empty_configuration_is_told_about_init(home: Path) -> None:
    ended = tidings("doctor", "--offline")
    assert ended.code == 0
    assert "tidings init" in ended.out


def test_a_configuration_that_cannot_be_read_ends_at_once(home: Path) -> None:
    (home / "tidings.toml").write_text("[pipelines.nope]")
    ended = tidings("doctor")
    assert (ended.code, "pipelines.nope" in ended.err) == (2, True)


def test_a_write_lock_that_another_process_holds_is_told(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (home / "tidings.toml").write_text(HN)
    monkeypatch.setattr("tidings.cli.doctor.LOCK_WAIT_MS", 50)
    assert tidings("status").code == 0
    assert tidings("db", "migrate").code == 0
    with closing(apsw.Connection("tidings.db")) as other:
        other.execute("BEGIN IMMEDIATE")
        locked = tidings("doctor", "--offline", "--json")
        other.execute("ROLLBACK")
    free = tidings("doctor", "--offline", "--json")

    assert (locked.code, standing(locked)["database"]) == (1, {"broken"})
    assert "write lock" in locked.out
    assert (free.code, standing(free)["database"]) == (0, {"ok"})
