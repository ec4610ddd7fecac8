"""The Discord stand-in answers as Discord does, and shows its channel."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tidings.net.client import Web
from tidings.sample.discord import DiscordStandIn, Posted
from tidings.sample.discord_page import channel_page
from tidings.sample.discord_rates import DiscordRates
from tidings.sample.serving import StandIn

EMBED = {"title": "A call", "footer": {"text": "tidings • abc"}}


async def post(
    discord: DiscordStandIn, body: Any, *, version: str = "/v10", wait: bool = True, times: int = 1
) -> list[Any]:
    async with StandIn(discord.app) as server, Web(user_agent="tests/1", endpoints=[server.url]) as web:
        url = discord.webhook_url(server.url, version)
        params = {"wait": "true"} if wait else {}
        return [await web.call("POST", url, json=body, params=params) for _ in range(times)]


def decoded(answer: Any) -> Any:
    return json.loads(answer.body)


async def test_a_message_is_kept_and_returned_whole():
    discord = DiscordStandIn()

    (answer,) = await post(discord, {"embeds": [EMBED]})

    told = decoded(answer)
    assert (answer.status, told["id"], told["webhook_id"]) == (200, discord.messages[0].id, "710000000000000003")
    assert told["embeds"] == [{"type": "rich", **EMBED}]
    assert discord.posts_of("abc") == discord.messages
    assert answer.headers["x-ratelimit-limit"] == "5"
    assert answer.headers["x-ratelimit-remaining"] == "4"


async def test_without_wait_the_answer_is_empty():
    (answer,) = await post(DiscordStandIn(), {"embeds": [EMBED]}, wait=False)

    assert (answer.status, answer.body) == (204, b"")


@pytest.mark.parametrize(("version", "unit"), [("/v10", 1), ("", 1000)])
async def test_waits_are_in_seconds_with_a_version_and_in_milliseconds_without(version, unit):
    discord = DiscordStandIn(rates=DiscordRates(per_webhook=1, webhook_seconds=20))

    _, limited = await post(discord, {"embeds": [EMBED]}, version=version, times=2)

    assert limited.status == 429
    assert decoded(limited)["retry_after"] == pytest.approx(20 * unit, rel=0.05)
    assert limited.headers["x-ratelimit-scope"] == "user"


async def test_the_channel_has_a_hidden_limit():
    discord = DiscordStandIn(rates=DiscordRates(per_webhook=100, per_channel=3))

    *_, limited = await post(discord, {"embeds": [EMBED]}, times=4)

    assert (limited.status, limited.headers["x-ratelimit-scope"]) == (429, "shared")
    assert int(limited.headers["x-ratelimit-remaining"]) > 0


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ({}, {"message": "Cannot send an empty message", "code": 50006}),
        ({"embeds": [{"title": "x" * 257}]}, {"embeds": ["0"]}),
        ({"content": "x" * 2001}, {"content": ["Must be 2000 or fewer in length."]}),
    ],
)
async def test_an_unversioned_address_explains_less(body, told):
    (answer,) = await post(DiscordStandIn(), body, version="")

    assert (answer.status, decoded(answer)) == (400, told)


@pytest.mark.parametrize(
    ("path", "status", "code"),
    [("/api/webhooks/1/x", 404, 10015), ("/api/webhooks/710000000000000003/x", 401, 50027), ("/api/other", 404, 0)],
)
async def test_wrong_addresses_are_told_apart(path, status, code):
    discord = DiscordStandIn()
    async with StandIn(discord.app) as server, Web(user_agent="tests/1", endpoints=[server.url]) as web:
        answer = await web.call("POST", server.url + path, json={"embeds": [EMBED]})

    assert (answer.status, decoded(answer)["code"]) == (status, code)


async def test_the_page_shows_the_channel_escaped_and_without_script():
    discord = DiscordStandIn.from_package()
    evil = "<script>alert(1)</script>"
    fields = [{"name": evil, "value": evil, "inline": True}]
    embed = {"title": evil, "url": "https://example.org/?a=1&b='", "description": evil, "fields": fields, **EMBED}
    async with StandIn(discord.app) as server, Web(user_agent="tests/1", endpoints=[server.url]) as web:
        await web.call("POST", discord.webhook_url(server.url), json={"embeds": [{**embed, "title": evil}]})
        page = await web.call("GET", server.url + "/")

    text = page.body.decode()
    assert page.headers["content-security-policy"].startswith("default-src 'none'")
    assert text.count("&lt;script&gt;alert(1)&lt;/script&gt;") == 4
    assert "https://example.org/?a=1&amp;b=&#x27;" in text
    assert "<script" not in text
    assert "funding-and-tidings" in text


def test_the_page_shows_text_as_discord_does():
    discord = DiscordStandIn()
    embed = {**EMBED, "title": r"50 \* 2", "url": "https://example.org/", "color": 0x2EA043}

    page = channel_page(discord.channel, [Posted("1", "2", "abc", {"embeds": [embed]}, 0.0)])

    assert '<a href="https://example.org/" rel="noopener noreferrer">50 * 2</a>' in page
    assert "--edge: #2ea043" in page
    assert "tidings • abc" in page
