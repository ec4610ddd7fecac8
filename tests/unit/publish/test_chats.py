"""Slack, Telegram, ntfy and Matrix against strict stand-ins, over real HTTP."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import pytest
from pydantic import SecretStr
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from tests.support.chat_services import (
    BOT_TOKEN,
    CHAT,
    HOOK,
    ROOM,
    TOKEN,
    TOPIC,
    ChatService,
    MatrixStandIn,
    NtfyStandIn,
    SlackStandIn,
    TelegramStandIn,
    matrix_error,
    misbehavior,
    ntfy_error,
    telegram_error,
)
from tests.support.hostile_text import HOSTILE

from tidings.model.errors import Ambiguous, Misconfigured, Permanent, SlowDown, TidingsError, Transient
from tidings.model.publication import Notice, NoticeField
from tidings.net.client import Web
from tidings.publish.notifiers import matrix, ntfy, slack, telegram
from tidings.sample.serving import StandIn

NOTICE = Notice(
    title="A call <!channel> & more",
    url="https://example.org/a?b=1&c=2",
    text="Research & innovation for <b>all</b> @everyone.",
    fields=(NoticeField("Deadline", "15 September 2026", time="2026-09-15T15:00:00Z"), NoticeField("Budget", "€ 2 M")),
)


@dataclass(frozen=True)
class Chat:
    """One of the four: its module, its stand-in and its settings at an address."""

    module: ModuleType
    stand_in: type[ChatService]
    settings: dict[str, Any]
    slow: Response

    def configured(self, at: str, **changes: Any) -> Any:
        values = {name: SecretStr(value) if "canary" in str(value) else value for name, value in self.settings.items()}
        place = (
            {"url": SecretStr(at + HOOK)}
            if self.module is slack
            else {"api" if self.module is telegram else "server": at}
        )
        return self.module.Settings(**{**values, **place, **changes})


CHATS = {
    "slack": Chat(slack, SlackStandIn, {}, PlainTextResponse("rate_limited", 429, {"retry-after": "7"})),
    "telegram": Chat(
        telegram, TelegramStandIn, {"token": BOT_TOKEN, "chat": CHAT},
        telegram_error(429, "Too Many Requests: retry after 7", retry_after=7),
    ),
    "ntfy": Chat(
        ntfy, NtfyStandIn, {"topic": TOPIC, "token": TOKEN},
        Response(b'{"code":42901,"http":429,"error":"limit reached"}', 429, {"retry-after": "7"}),
    ),
    "matrix": Chat(
        matrix, MatrixStandIn, {"room": ROOM, "token": TOKEN},
        matrix_error(429, "M_LIMIT_EXCEEDED", "Too Many Requests", retry_after_ms=7000),
    ),
}  # fmt: skip
each_chat = pytest.mark.parametrize("name", list(CHATS))


@contextlib.asynccontextmanager
async def a_channel(name: str, service: ChatService, **changes: Any) -> AsyncIterator[Any]:
    chat = CHATS[name]
    async with StandIn(service.app) as server:
        settings = chat.configured(server.url, **changes)
        allowed = chat.module.endpoints(settings, "mine", frozenset())
        async with Web(user_agent="tidings-tests/1", endpoints=list(allowed)) as web:
            yield chat.module.build(settings, "mine", web, frozenset())


async def refusal(name: str, answer: Response) -> TidingsError:
    """Return what is raised for one answer; it never holds a secret."""
    async with a_channel(name, CHATS[name].stand_in([answer])) as channel:
        with pytest.raises(TidingsError) as caught:
            await channel.send(NOTICE, "0badcafe")
    assert "canary" not in f"{caught.value!r} {caught.value} {channel!r}"
    return caught.value


@each_chat
async def test_a_notice_arrives_with_title_text_facts_and_address(name: str) -> None:
    service = CHATS[name].stand_in()
    async with a_channel(name, service) as channel:
        receipt = await channel.send(NOTICE, "0badcafe")

    (message,) = service.messages
    told = str(message)
    assert receipt.answer.startswith("200")
    for part in ("A call", "Research", "15 September 2026", "Budget", "0badcafe", "example.org/a?b=1"):
        assert part in told


@each_chat
async def test_doctor_asks_and_nothing_is_sent(name: str) -> None:
    service = CHATS[name].stand_in()
    async with a_channel(name, service) as channel:
        answer = await CHATS[name].module.check(channel)

    assert answer
    assert service.messages == []


@each_chat
async def test_a_wait_is_kept_as_long_as_the_service_asks(name: str) -> None:
    error = await refusal(name, CHATS[name].slow)

    assert isinstance(error, SlowDown)
    assert error.retry_after_seconds == 7


@pytest.mark.parametrize(
    ("name", "answer", "error"),
    [
        ("slack", PlainTextResponse("no_service", 404), Misconfigured),
        ("slack", PlainTextResponse("channel_is_archived", 410), Misconfigured),
        ("slack", PlainTextResponse("posting_to_general_channel_denied", 403), Misconfigured),
        ("slack", PlainTextResponse("user_not_found", 400), Misconfigured),
        ("slack", PlainTextResponse("invalid_payload", 400), Permanent),
        ("slack", PlainTextResponse("rollup_error", 500), Ambiguous),
        ("slack", PlainTextResponse("<html>", 200), Ambiguous),
        ("telegram", telegram_error(403, "Forbidden: bot was blocked by the user"), Misconfigured),
        ("telegram", telegram_error(401, "Unauthorized"), Misconfigured),
        ("telegram", telegram_error(404, "Not Found"), Misconfigured),
        ("telegram", telegram_error(400, "Bad Request: chat not found"), Misconfigured),
        ("telegram", telegram_error(400, "Bad Request: group chat was upgraded to a supergroup chat",
                                    migrate_to_chat_id=-100), Misconfigured),
        ("telegram", telegram_error(400, "Bad Request: message is too long"), Permanent),
        ("telegram", telegram_error(502, "Bad Gateway"), Ambiguous),
        ("ntfy", ntfy_error(401, 40101, "unauthorized"), Misconfigured),
        ("ntfy", ntfy_error(403, 40301, "forbidden"), Misconfigured),
        ("ntfy", ntfy_error(429, 42908, "limit reached: daily message quota reached"), SlowDown),
        ("ntfy", ntfy_error(413, 41301, "too large"), Permanent),
        ("ntfy", ntfy_error(500, 50001, "internal"), Ambiguous),
        ("matrix", matrix_error(401, "M_UNKNOWN_TOKEN", "gone"), Misconfigured),
        ("matrix", matrix_error(403, "M_FORBIDDEN", "not in room"), Misconfigured),
        ("matrix", matrix_error(413, "M_TOO_LARGE", "too large"), Permanent),
        ("matrix", matrix_error(500, "M_UNKNOWN", "internal"), Transient),
        ("matrix", RedirectResponse("https://elsewhere.example/"), Misconfigured),
    ],
)  # fmt: skip
async def test_an_answer_says_what_happens(name: str, answer: Response, error: type[Exception]) -> None:
    assert type(await refusal(name, answer)) is error


@each_chat
async def test_a_secret_that_is_wrong_is_told_as_such_by_doctor(name: str) -> None:
    wrong = {
        "slack": {},
        "telegram": {"token": SecretStr("123456:canary-wrong-token-0000000")},
        "ntfy": {"token": SecretStr("canary-wrong-token")},
        "matrix": {"token": SecretStr("canary-wrong-token")},
    }
    service = CHATS[name].stand_in([PlainTextResponse("no_service", 404)] if name == "slack" else [])
    async with a_channel(name, service, **wrong[name]) as channel:
        with pytest.raises(Misconfigured) as caught:
            await CHATS[name].module.check(channel)

    assert "canary" not in str(caught.value)


@each_chat
async def test_an_absent_service_is_tried_again_and_its_address_is_not_told(name: str) -> None:
    chat = CHATS[name]
    settings = chat.configured("http://127.0.0.1:9")
    async with Web(user_agent="tidings-tests/1", endpoints=["http://127.0.0.1:9"]) as web:
        with pytest.raises(Transient) as caught:
            await chat.module.build(settings, "mine", web, frozenset()).send(NOTICE, "1")

    assert type(caught.value) is Transient
    assert "canary" not in str(caught.value)


@each_chat
async def test_hostile_text_of_any_length_is_taken_and_stays_text(name: str) -> None:
    service = CHATS[name].stand_in()
    async with a_channel(name, service) as channel:
        for text in [*HOSTILE.values(), "<!channel> <@U1> & | *b*\r\nBcc: x", "\ud83d\u202e\x00é", "<b>un"]:
            fields = tuple(NoticeField(text * 3, text * 400) for _ in range(30))
            await channel.send(Notice(title=text * 50, url=text, text=text * 900, fields=fields), "0badcafe")
            await channel.send(Notice(title="", text=text), "0badcafe" + str(len(service.messages)))

    assert len(service.messages) >= len(HOSTILE)
    for message in service.messages:
        assert "<!" not in str(message.get("blocks", ""))
        assert "<script" not in str(message.get("formatted_body", ""))


async def test_a_repeat_over_matrix_makes_no_second_message() -> None:
    service = MatrixStandIn(list(misbehavior(20, CHATS["matrix"].slow, 12)))
    async with a_channel("matrix", service) as channel:
        for delivery in range(4):
            while True:
                try:
                    await channel.send(NOTICE, f"delivery{delivery}")
                    break
                except Ambiguous:
                    raise
                except Transient:
                    continue

    assert len(service.messages) == 4
    assert len(service.seen) > 4


@pytest.mark.parametrize("name", ["slack", "telegram", "ntfy"])
async def test_a_message_repeats_only_where_its_outcome_was_unknown(name: str) -> None:
    service = CHATS[name].stand_in(list(misbehavior(20, CHATS[name].slow, 12)))
    doubts = 0
    async with a_channel(name, service) as channel:
        for delivery in range(4):
            while True:
                try:
                    await channel.send(NOTICE, f"delivery{delivery}")
                except Ambiguous:
                    doubts += 1
                except SlowDown:
                    pass
                else:
                    break

    assert 4 <= len(service.messages) <= 4 + doubts


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("slack", {"url": SecretStr("ftp://canary.example/x")}), ("slack", {"url": SecretStr("")}),
        ("telegram", {"token": SecretStr("canary")}), ("telegram", {"chat": "no chat"}),
        ("ntfy", {"topic": SecretStr("canary/topic")}), ("ntfy", {"server": "https://me:canary@ntfy.sh"}),
        ("matrix", {"room": "#alias:example.org"}), ("matrix", {"server": ""}),
    ],
)  # fmt: skip
def test_what_cannot_work_is_refused_at_the_start(name: str, changes: dict[str, Any]) -> None:
    with pytest.raises(Misconfigured) as caught:
        CHATS[name].module.endpoints(CHATS[name].configured("https://example.org", **changes), "mine", frozenset())

    assert "canary" not in str(caught.value)
