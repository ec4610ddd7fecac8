"""The Discord notifier against a stand-in, over real HTTP."""

from __future__ import annotations

import contextlib
import json
import logging
import socket
import traceback
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tidings.model.errors import Ambiguous, Misconfigured, Permanent, SlowDown, TidingsError, Transient
from tidings.model.publication import Notice, NoticeField
from tidings.model.web import Response
from tidings.net.client import Web
from tidings.publish.notifiers.discord.webhook import Discord
from tidings.sample.discord import DiscordStandIn
from tidings.sample.discord_rates import DiscordRates
from tidings.sample.serving import StandIn

TOKEN = "canary-token_" + "z" * 55
LOOPBACK = frozenset({"127.0.0.1"})
NOTICE = Notice(title="A call", url="https://example.org/a", text="Summary.", fields=(NoticeField("Status", "Open"),))


@contextlib.asynccontextmanager
async def a_channel(**options) -> AsyncIterator[tuple[DiscordStandIn, Discord]]:
    discord = DiscordStandIn(token=TOKEN, hang_seconds=0.3, **options)
    async with StandIn(discord.app) as server, Web(user_agent="tidings-tests/1", endpoints=[server.url]) as web:
        yield discord, Discord(discord.webhook_url(server.url), "eu", web, hosts=LOOPBACK)


async def test_a_notice_is_posted_and_its_message_id_kept():
    async with a_channel() as (discord, notifier):
        receipt = await notifier.send(NOTICE, "0badcafe")

    assert receipt.message_id == discord.messages[0].id
    assert receipt.answer.startswith(f"200 OK, message {receipt.message_id}, channel ")
    assert discord.messages[0].delivery_id == "0badcafe"
    assert discord.messages[0].body == notifier.render(NOTICE, "0badcafe")


async def test_the_bucket_in_the_headers_is_respected():
    async with a_channel(rates=DiscordRates(per_webhook=2)) as (_, notifier):
        first = await notifier.send(NOTICE, "1")
        second = await notifier.send(NOTICE, "2")

    assert first.not_before_ms == 0
    assert 0 < second.not_before_ms <= 2000


async def test_a_rate_limit_says_how_long_in_seconds():
    async with a_channel(rates=DiscordRates(per_webhook=1, webhook_seconds=30)) as (_, notifier):
        await notifier.send(NOTICE, "1")
        with pytest.raises(SlowDown) as asked:
            await notifier.send(NOTICE, "2")

    assert asked.value.retry_after_seconds == pytest.approx(30, abs=1)
    assert "discord:eu asked us to wait" in str(asked.value)


@pytest.mark.parametrize(
    ("fault", "kind", "stored"),
    [
        ("429", SlowDown, 0),
        ("global_429", SlowDown, 0),
        ("html_429", SlowDown, 0),
        ("html_403", SlowDown, 0),
        ("401", Misconfigured, 0),
        ("403", Misconfigured, 0),
        ("404", Misconfigured, 0),
        ("500", Ambiguous, 0),
        ("502", Ambiguous, 0),
        ("reset", Ambiguous, 0),
        ("store_then_502", Ambiguous, 1),
        ("store_then_reset", Ambiguous, 1),
        ("store_then_cut", Ambiguous, 1),
    ],
)
async def test_each_answer_is_told_apart(fault, kind, stored):
    async with a_channel() as (discord, notifier):
        discord.script(fault)
        with pytest.raises(TidingsError) as raised:
            await notifier.send(NOTICE, "1")

    assert type(raised.value) is kind
    assert len(discord.messages) == stored
    assert str(raised.value).startswith("discord:eu")


async def test_no_answer_in_time_is_ambiguous():
    discord = DiscordStandIn(token=TOKEN, hang_seconds=5)
    async with StandIn(discord.app) as server, Web(user_agent="tidings-tests/1", endpoints=[server.url]) as web:
        notifier = Discord(discord.webhook_url(server.url), "eu", web, hosts=LOOPBACK, timeout_seconds=1.0)
        discord.script("store_then_hang")
        with pytest.raises(Ambiguous):
            await notifier.send(NOTICE, "1")

    assert len(discord.messages) == 1


async def test_a_refused_connection_is_certainly_not_sent():
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        base = f"http://127.0.0.1:{unused.getsockname()[1]}"
    async with Web(user_agent="tidings-tests/1", endpoints=[base]) as web:
        notifier = Discord(f"{base}/api/webhooks/1/{TOKEN}", "eu", web, hosts=LOOPBACK)
        with pytest.raises(Transient) as raised:
            await notifier.send(NOTICE, "1")

    assert type(raised.value) is Transient


class Canned:
    """A fetcher with one answer."""

    def __init__(self, status: int, body: object, headers: dict[str, str] | None = None) -> None:
        self.calls: list[tuple[str, str, dict]] = []
        encoded = body.encode() if isinstance(body, str) else json.dumps(body).encode()
        self._answer = Response(status, "", {k.lower(): v for k, v in (headers or {}).items()}, encoded)

    async def call(self, method, url, **options):
        self.calls.append((method, url, options))
        return self._answer

    async def page(self, url, **options):
        raise AssertionError("no page is fetched here")


def a_notifier(fetcher, url=f"https://discord.com/api/webhooks/123456789012345678/{TOKEN}", **options) -> Discord:
    return Discord(url, "eu", fetcher, **options)


@pytest.mark.parametrize(
    "host", ["discord.com", "discordapp.com", "ptb.discord.com", "canary.discord.com", "DISCORD.COM"]
)
@pytest.mark.parametrize("version", ["", "/v6", "/v9", "/v10"])
async def test_every_form_of_the_address_is_rewritten_to_v10(host, version):
    fetcher = Canned(200, {"id": "1"})

    await a_notifier(fetcher, f"https://{host}/api{version}/webhooks/123/{TOKEN}").send(NOTICE, "1")

    method, url, options = fetcher.calls[0]
    assert (method, url) == ("POST", f"https://discord.com/api/v10/webhooks/123/{TOKEN}")
    assert options["params"] == {"wait": "true"}


async def test_a_thread_is_kept():
    fetcher = Canned(200, {"id": "1"})

    await a_notifier(fetcher, f"https://discord.com/api/webhooks/123/{TOKEN}?thread_id=77").send(NOTICE, "1")

    assert fetcher.calls[0][2]["params"] == {"wait": "true", "thread_id": "77"}


@pytest.mark.parametrize(
    "url",
    ["", "https://discord.com/", f"https://evil.example/api/webhooks/1/{TOKEN}", f"http://discord.com/api/webhooks/1/{TOKEN}",
     f"https://discord.com.evil.example/api/webhooks/1/{TOKEN}", f"https://u@discord.com/api/webhooks/1/{TOKEN}",
     f"https://discord.com/api/webhooks/1/{TOKEN}/../../x"],
)  # fmt: skip
def test_an_address_that_is_no_webhook_is_refused_without_repeating_it(url):
    with pytest.raises(Misconfigured) as raised:
        a_notifier(Canned(200, {}), url)

    assert "discord:eu" in str(raised.value)
    assert TOKEN not in str(raised.value)


@pytest.mark.parametrize("username", ["", "x" * 81, "Discord helper", "CLYDE"])
def test_a_forbidden_username_is_refused(username):
    with pytest.raises(Misconfigured):
        a_notifier(Canned(200, {}), username=username)


def test_a_username_is_sent():
    assert a_notifier(Canned(200, {}), username="tidings").render(NOTICE, "1")["username"] == "tidings"


async def test_recorded_rate_limits_are_read_in_seconds(samples):
    recorded = json.loads((samples / "discord" / "rate_limit_responses.json").read_text())
    waits = {}
    for each in recorded:
        with pytest.raises(SlowDown) as asked:
            await a_notifier(Canned(each["status"], each["body"], each["headers"])).send(NOTICE, "1")
        waits[each["name"]] = asked.value.retry_after_seconds

    assert waits == {"route_limit_user_scope": 64.57, "shared_resource_limit": 1336.57, "global_limit": 64.57}


async def test_recorded_errors_get_their_meaning(samples):
    meaning = {}
    for each in json.loads((samples / "discord" / "error_bodies.json").read_text()):
        with pytest.raises(TidingsError) as raised:
            await a_notifier(Canned(each["status"], each["body"])).send(NOTICE, "1")
        meaning[each["name"]] = (type(raised.value), str(raised.value))

    assert {name for name, (kind, _) in meaning.items() if kind is Misconfigured} == {
        "unknown_webhook", "invalid_token", "missing_permissions", "not_found_route",
    }  # fmt: skip
    assert {kind for kind, _ in meaning.values()} == {Misconfigured, Permanent}
    assert "embeds.0.fields.1.value: Must be 1024 or fewer in length." in meaning["field_value_too_long_versioned"][1]


async def test_recorded_answers_without_doubt_and_with(samples):
    seen: dict[str, Any] = {}
    for each in json.loads((samples / "discord" / "synthetic_responses.json").read_text()):
        try:
            receipt = await a_notifier(Canned(each["status"], each["body"], each["headers"])).send(NOTICE, "1")
            seen[each["name"]] = receipt.message_id
        except TidingsError as error:
            seen[each["name"]] = type(error)

    assert seen["accepted_wait_true"] == "1200000000000000001"
    assert seen["accepted_no_wait"] is Ambiguous
    assert seen["bad_gateway"] is Ambiguous
    assert seen["cloudflare_block"] is SlowDown
    assert seen["hidden_channel_limit_versioned"] is SlowDown


@pytest.mark.parametrize("stated", ["nan", "inf", -5, "soon", None, [], {"a": 1}, True])
async def test_a_nonsense_wait_is_replaced(stated):
    with pytest.raises(SlowDown) as asked:
        await a_notifier(Canned(429, {"retry_after": stated}, {"Retry-After": "-1"})).send(NOTICE, "1")

    assert 0 <= (asked.value.retry_after_seconds or 0) <= 3600


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (403, "error code: 1015"),
        (429, "error code: 1015"),
        (403, "<html><title>Access denied | discord.com used Cloudflare to restrict access</title></html>"),
        (403, {"message": "internal network error", "code": 40333}),
        (403, {"cloudflare_error": True, "error_code": 1015, "title": "Error 1015: You are being rate limited"}),
    ],
)
async def test_a_ban_by_cloudflare_is_a_long_wait(status, body):
    with pytest.raises(SlowDown, match=f"Cloudflare keeps this machine away from Discord.*{status}") as request:
        await a_notifier(Canned(status, body)).send(NOTICE, "1")
    with pytest.raises(SlowDown) as stated:
        await a_notifier(Canned(status, body, {"Retry-After": "2285"})).send(NOTICE, "1")

    assert request.value.retry_after_seconds == 900
    assert stated.value.retry_after_seconds == 2285


async def test_an_endless_wait_is_capped_at_an_hour():
    with pytest.raises(SlowDown) as asked:
        await a_notifier(Canned(429, {"retry_after": 10**9})).send(NOTICE, "1")

    assert asked.value.retry_after_seconds == 3600


class Telltale:
    """A fetcher whose errors repeat the whole address."""

    async def call(self, method, url, **options):
        raise Ambiguous(f"{method} {url} broke")

    async def page(self, url, **options):
        raise AssertionError("no page is fetched here")


async def test_the_webhook_is_never_shown(caplog):
    caplog.set_level(logging.DEBUG)
    notifier = a_notifier(Telltale())

    with pytest.raises(Ambiguous) as raised:
        await notifier.send(NOTICE, "1")

    shown = [repr(notifier), str(notifier), str(raised.value), caplog.text, json.dumps(notifier.render(NOTICE, "1"))]
    shown += traceback.format_exception(raised.value)
    assert not any(TOKEN in text for text in shown)
    assert repr(notifier) == "Discord(discord:eu)"


async def test_a_webhook_can_be_checked_without_posting():
    async with a_channel() as (discord, notifier):
        said = await notifier.check()

    assert said == "webhook 'tidings' in channel 710000000000000002"
    assert discord.messages == []
    assert TOKEN not in said
