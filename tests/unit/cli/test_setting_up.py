"""init, token and notify: what they write, print and refuse."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path

import pytest
from tests.commands import tidings

from tidings.config import load
from tidings.sample.discord import DiscordStandIn
from tidings.sample.serving import StandIn
from tidings.wiring import wiring_from

HOOK = "TIDINGS_NOTIFIERS__DISCORD__{}__WEBHOOK_URL"


def test_init_writes_what_runs_without_a_key(home: Path) -> None:
    assert tidings("init").code == 0
    settings = load()
    assert set(settings.pipelines) == {"hacker_news", "bitcoin_news", "eu_funding", "first_issues", "feeds"}
    wiring = wiring_from(settings)
    assert all(pipeline.sources for pipeline in wiring.pipelines)


def test_everything_init_offers_can_be_filled_in(home: Path) -> None:
    tidings("init")
    text = (home / "tidings.toml").read_text()
    (home / "tidings.toml").write_text(re.sub(r"(?m)^# (?=\[|[a-z_]+ = )", "", text))
    named = set(re.findall(r"TIDINGS_[A-Z_]+(?=[\s.,;]|$)", text)) - {
        "TIDINGS_DATABASE_URL",
        "TIDINGS_AI__API_KEY_FILE",
    }
    values = dict.fromkeys(named, "a-key-of-some-length") | {
        HOOK.format("FUNDING"): "https://discord.com/api/webhooks/1/abc"
    }
    settings = load(environment={name: value for name, value in values.items() if "__" in name})
    wiring = wiring_from(settings)
    assert wiring.ai is not None
    assert [(r.pipeline, r.channel) for r in wiring.routes] == [("eu_funding", "funding")]
    assert {"bitcoin_news.newsdata", "bitcoin_news.apitube"} <= {s.name for p in wiring.pipelines for s in p.sources}


def test_init_overwrites_only_when_told(home: Path) -> None:
    (home / "tidings.toml").write_text("# mine")
    refused = tidings("init")
    assert (refused.code, "--force" in refused.err) == (2, True)
    assert (home / "tidings.toml").read_text() == "# mine"
    assert tidings("init", "--force").code == 0
    assert tidings("init", "no/where.toml").code == 2


def test_a_token_is_shown_once_and_kept_as_a_hash(home: Path) -> None:
    made = tidings("token", "create", "--scope", "read", "--name", "phone")
    token = made.out.strip()
    assert made.code == 0
    assert token.startswith("tid_")
    assert token not in made.err
    assert token.encode() not in b"".join(p.read_bytes() for p in home.glob("tidings.db*"))
    (listed,) = json.loads(tidings("token", "list", "--json").out)
    assert (listed["name"], listed["scope"], listed["revoked_at"]) == ("phone", "read", None)
    assert "phone" in tidings("token", "list").out
    again = tidings("token", "create", "--scope", "read", "--name", "phone")
    assert (again.code, "already" in again.err) == (2, True)
    assert tidings("token", "revoke", "phone").code == 0
    assert tidings("token", "revoke", "phone").code == 1
    assert json.loads(tidings("token", "create", "--scope", "operate", "--name", "phone", "--json").out)["token"]


def test_an_unknown_scope_is_refused(home: Path) -> None:
    ended = tidings("token", "create", "--scope", "admin")
    assert ended.code == 2
    assert "read, ingest, operate" in ended.err
    assert list(home.iterdir()) == []


def test_an_open_bind_is_allowed_once_there_is_a_token(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (home / "tidings.toml").write_text("[server]\nhost = '0.0.0.0'\n[pipelines.feeds]\n")
    assert json.loads(tidings("doctor", "--offline", "--json").out)["ok"] is False
    assert tidings("token", "create", "--scope", "read").code == 0
    assert json.loads(tidings("doctor", "--offline", "--json").out)["ok"] is True


def test_a_preview_needs_no_webhook_and_no_network(home: Path) -> None:
    alone = json.loads(tidings("notify", "preview").out)
    assert alone["allowed_mentions"] == {"parse": []}
    assert alone["embeds"][0]["footer"]["text"].endswith("preview")
    (home / "tidings.toml").write_text(
        "[pipelines.eu_funding]\n[notifiers.discord.funding]\nusername = 'Herald'\n"
        "[[routes]]\npipeline = 'eu_funding'\nchannel = 'funding'\n"
    )
    routed = json.loads(tidings("notify", "preview", "--channel", "funding").out)
    assert routed["username"] == "Herald"
    assert "harbours" in routed["embeds"][0]["title"]
    general = json.loads(tidings("notify", "preview", "--pipeline", "hacker_news").out)
    assert "sample notice" in general["embeds"][0]["title"]


@pytest.mark.parametrize(
    "arguments", [("preview", "--pipeline", "nope"), ("preview", "--channel", "nope"), ("test", "nope")]
)
def test_unknown_names_are_refused_with_the_known_ones(arguments: tuple[str, ...], home: Path) -> None:
    ended = tidings("notify", *arguments)
    assert ended.code == 2
    assert "known" in ended.err or "configured: none" in ended.err


async def test_a_test_prints_the_real_answer(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    discord = DiscordStandIn()
    async with StandIn(discord.app) as server:
        (home / "tidings.toml").write_text(
            f"loopback_allowed = ['127.0.0.1:{server.port}']\n[pipelines.eu_funding]\n"
            "[notifiers.discord.room]\n[notifiers.discord.gone]\n"
            "[[routes]]\npipeline = 'eu_funding'\nchannel = 'room'\n"
        )
        address = discord.webhook_url(server.url)
        monkeypatch.setenv(HOOK.format("ROOM"), address)
        monkeypatch.setenv(HOOK.format("GONE"), address.replace("webhooks/", "webhooks/9"))
        sent = await asyncio.to_thread(tidings, "notify", "test", "room", "--json")
        refused = await asyncio.to_thread(tidings, "notify", "test", "gone")
        discord.script("429")
        slowed = await asyncio.to_thread(tidings, "notify", "test", "room")
    answer = json.loads(sent.out)
    assert (sent.code, refused.code, slowed.code) == (0, 2, 1)
    assert answer["message_id"] == discord.messages[0].id
    assert "200 OK" in answer["answer"]
    assert "harbours" in discord.messages[0].body["embeds"][0]["title"]
    assert "404" in refused.err
    assert address.rpartition("/")[2] not in sent.out + sent.err + refused.err + slowed.err
