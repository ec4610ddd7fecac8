"""notify: what it draws, sends and refuses."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from tests.support.commands import tidings

from tidings.sample.discord import DiscordStandIn
from tidings.sample.serving import StandIn

HOOK = "TIDINGS_NOTIFIERS__DISCORD__{}__WEBHOOK_URL"


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
