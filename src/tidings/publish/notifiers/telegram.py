"""Sends notices to a Telegram chat by a bot. The bot's token is part of every address, and appears nowhere else."""

from __future__ import annotations

import html
import re
from typing import Any

from pydantic import SecretStr

from tidings.model.contracts import Fetcher, Receipt
from tidings.model.errors import Ambiguous, Misconfigured, TidingsError
from tidings.model.publication import Notice
from tidings.model.urls import link_address
from tidings.model.web import Response
from tidings.publish.notifiers import ChannelSettings
from tidings.publish.service import Service, json_object, number, origin, secret_value
from tidings.publish.wording import facts, fit, one_line, units

API = "https://api.telegram.org"
TEXT_MAX = 4096
"""Counted after the markup is taken away."""
TITLE_MAX = 300
TEXT_RESERVE = 1500
"""What facts leave to the text, where it needs that much."""
URL_MAX = 2000
PRODUCT = "tidings"

_TOKEN = re.compile(r"\d{3,20}:[A-Za-z0-9_-]{20,100}")
_CHAT = re.compile(r"-?\d{1,20}|@[A-Za-z][A-Za-z0-9_]{3,40}")
_NEEDS_A_PERSON = re.compile(
    r"chat not found|upgraded to a supergroup|peer_id_invalid|not enough rights|chat_write_forbidden|"
    r"need administrator rights|message thread not found|topic_closed|topic_deleted|group is deactivated|"
    r"have no rights to send|bot is not a member|user is deactivated",
    re.IGNORECASE,
)
"""What Telegram answers with 400, where no message to this chat will go through."""


class Settings(ChannelSettings):
    """A Telegram chat, by a bot."""

    chat: str = ""
    """The chat's number, such as -1001234567890, or a public channel's name with its @."""
    token: SecretStr | None = None
    """The bot's token, from @BotFather. Only by environment or file: TIDINGS_NOTIFIERS__TELEGRAM__<NAME>__TOKEN."""
    thread: int | None = None
    """The topic's number, in a group with topics."""
    api: str = API
    """Where the Bot API is; another address for a server of your own."""


def endpoints(settings: Settings, name: str, loopback: frozenset[tuple[str, int]]) -> tuple[str, ...]:  # noqa: ARG001  # the web client knows them
    """Return the API's origin; refuse a token or a chat that cannot be one."""
    if not _TOKEN.fullmatch(secret_value(settings.token)):
        raise Misconfigured(f"telegram:{name}: the token must look like 123456:ABC..., as @BotFather gives it")
    if not _CHAT.fullmatch(settings.chat):
        raise Misconfigured(f"telegram:{name}: chat must be a number or a public name with its @")
    return (origin(settings.api, f"telegram:{name}"),)


def build(settings: Settings, name: str, fetcher: Fetcher, loopback: frozenset[tuple[str, int]]) -> Telegram:  # noqa: ARG001
    """Return the notifier of one chat."""
    return Telegram(settings, name, fetcher)


async def check(notifier: Telegram) -> str:
    """Ask Telegram about the chat; nothing is sent."""
    return await notifier.check()


def preview(settings: Settings, notice: Notice) -> dict[str, Any]:
    """Return the body of the request."""
    return message(settings, notice, "preview")


class Telegram:
    """The notifier of one chat."""

    per_minute = 20
    """What Telegram lets a bot send to one group in a minute."""

    def __init__(self, settings: Settings, name: str, fetcher: Fetcher) -> None:
        self.name = name
        token = secret_value(settings.token)
        self._settings = settings
        self._base = f"{settings.api.rstrip('/')}/bot{token}"
        self._service = Service(f"telegram:{name}", fetcher, (token, token.partition(":")[2]))

    def __repr__(self) -> str:
        return f"Telegram({self._service.who})"

    async def send(self, notice: Notice, delivery_id: str) -> Receipt:
        """Send one message and keep its number."""
        response = await self._service.call("POST", f"{self._base}/sendMessage", json=self.render(notice, delivery_id))
        reply = json_object(response)
        if response.status != 200 or reply.get("ok") is not True:
            raise self._failure(response, reply)
        sent = reply.get("result")
        if not isinstance(sent, dict) or "message_id" not in sent:
            raise Ambiguous(f"{self._service.who} answered 200 with a reply that cannot be read")
        return Receipt(str(sent["message_id"]), f"200 ok, message {sent['message_id']}")

    def render(self, notice: Notice, delivery_id: str) -> dict[str, Any]:
        """Return the message as it would be sent."""
        return message(self._settings, notice, delivery_id)

    async def check(self) -> str:
        """Return what the chat is called, or raise what is wrong."""
        response = await self._service.call("POST", f"{self._base}/getChat", json={"chat_id": self._settings.chat})
        reply = json_object(response)
        if response.status != 200:
            raise self._failure(response, reply)
        chat = reply.get("result")
        called = chat.get("title") or chat.get("username") or chat.get("first_name") if isinstance(chat, dict) else None
        return f"the bot sees the chat {str(called)[:60]!r}; whether it may post there, a test tells"

    def _failure(self, response: Response, reply: dict[str, Any]) -> TidingsError:
        words = str(reply.get("description", ""))
        more = reply.get("parameters")
        parameters = more if isinstance(more, dict) else {}
        if response.status == 429:
            return self._service.slow_down(response, number(parameters.get("retry_after")))
        if response.status == 404:
            return self._service.disabled(f"answered 404: there is no bot with this token ({words})")
        if response.status == 400 and _NEEDS_A_PERSON.search(words):
            moved = (
                f"; its number is now {parameters['migrate_to_chat_id']}" if "migrate_to_chat_id" in parameters else ""
            )
            return self._service.disabled(f"answered 400: {words}{moved}")
        return self._service.failure(response, words)


def message(settings: Settings, notice: Notice, delivery_id: str) -> dict[str, Any]:
    """Return the body of sendMessage."""
    body: dict[str, Any] = {
        "chat_id": settings.chat,
        "text": markup(notice, delivery_id),
        "parse_mode": "HTML",
        "link_preview_options": {"is_disabled": True},
    }
    return body if settings.thread is None else {**body, "message_thread_id": settings.thread}


def markup(notice: Notice, delivery_id: str) -> str:
    """Draw a notice in the few tags Telegram knows; what is shown of it fits its limit."""
    title = one_line(notice.title, TITLE_MAX) or "Untitled"
    footer = f"{one_line(notice.footer, 300) or PRODUCT} • {delivery_id}"
    address = link_address(notice.url)
    heading = f"<b>{_escape(title)}</b>"
    if address is not None and len(address) <= URL_MAX:
        heading = f'<a href="{html.escape(address, quote=True)}">{heading}</a>'
    room = TEXT_MAX - units(title) - units(footer) - 6
    reserve = min(units(fit(notice.text, TEXT_MAX, markdown=False)), TEXT_RESERVE)
    lines: list[str] = []
    for name, value in facts(notice):
        line = f"<b>{_escape(name)}:</b> {_escape(value)}"
        room -= units(name) + units(value) + 3
        if room < reserve:
            room += units(name) + units(value) + 3
            break
        lines.append(line)
    text = _escape(fit(notice.text, room, markdown=False))
    return "\n\n".join(part for part in (heading, text, "\n".join(lines), f"<i>{_escape(footer)}</i>") if part)


def _escape(text: str) -> str:
    return html.escape(text, quote=False)
