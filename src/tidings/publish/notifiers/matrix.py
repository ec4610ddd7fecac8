"""Sends notices to a Matrix room. The delivery's id is the transaction's: a server takes each of them once.

That is why nothing is of unknown outcome here: whatever happened to a request, the same one is sent again.
"""

from __future__ import annotations

import html
import re
from typing import Any
from urllib.parse import quote

from pydantic import SecretStr

from tidings.model.contracts import Fetcher, Receipt
from tidings.model.errors import Misconfigured, TidingsError, Transient
from tidings.model.publication import Notice
from tidings.model.urls import link_address
from tidings.model.web import Response
from tidings.publish.notifiers import ChannelSettings
from tidings.publish.service import Service, json_object, number, origin, secret_value
from tidings.publish.wording import facts, fit, one_line

API = "/_matrix/client/v3"
TITLE_MAX = 300
TEXT_MAX = 3000
"""Text stands twice in an event, plain and as HTML; a whole event may have 65,536 bytes."""
FACTS_MAX = 10
LABEL_MAX = 80
VALUE_MAX = 400
PRODUCT = "tidings"

_ROOM = re.compile(r"![^\s/?#]{1,250}")


class Settings(ChannelSettings):
    """A Matrix room."""

    server: str = ""
    """The homeserver, such as https://matrix.example.org."""
    room: str = ""
    """The room's own id, which begins with an exclamation mark; not its alias."""
    token: SecretStr | None = None
    """The access token of a user in the room. Only by environment or file: TIDINGS_NOTIFIERS__MATRIX__<NAME>__TOKEN."""


def endpoints(settings: Settings, name: str, loopback: frozenset[tuple[str, int]]) -> tuple[str, ...]:  # noqa: ARG001  # the web client knows them
    """Return the homeserver's origin; refuse a room that cannot be one."""
    if not _ROOM.fullmatch(settings.room):
        raise Misconfigured(f"matrix:{name}: room must be an id such as !abc:example.org, not an alias")
    return (origin(settings.server, f"matrix:{name}"),)


def build(settings: Settings, name: str, fetcher: Fetcher, loopback: frozenset[tuple[str, int]]) -> Matrix:  # noqa: ARG001
    """Return the notifier of one room."""
    return Matrix(settings, name, fetcher)


async def check(notifier: Matrix) -> str:
    """Ask the server who we are and whether we are in the room; nothing is sent."""
    return await notifier.check()


def preview(settings: Settings, notice: Notice) -> dict[str, Any]:  # noqa: ARG001  # it looks the same everywhere
    """Return the event's content."""
    return content(notice, "preview")


class Matrix:
    """The notifier of one room."""

    def __init__(self, settings: Settings, name: str, fetcher: Fetcher) -> None:
        self.name = name
        token = secret_value(settings.token)
        self._room = settings.room
        self._base = f"{settings.server.rstrip('/')}{API}"
        self._headers = {"authorization": f"Bearer {token}"}
        self._service = Service(f"matrix:{name}", fetcher, (token,))

    def __repr__(self) -> str:
        return f"Matrix({self._service.who})"

    async def send(self, notice: Notice, delivery_id: str) -> Receipt:
        """Send one event and keep its id; the same delivery makes the same event."""
        place = f"{self._base}/rooms/{quote(self._room, safe='')}/send/m.room.message/{quote(delivery_id, safe='')}"
        response = await self._service.call("PUT", place, headers=self._headers, json=self.render(notice, delivery_id))
        if response.status != 200:
            raise self._failure(response)
        event_id = json_object(response).get("event_id")
        if not isinstance(event_id, str):
            raise Transient(f"{self._service.who} answered 200 with a reply that cannot be read; it is asked again")
        return Receipt(event_id, f"200 OK, event {event_id[:80]}")

    def render(self, notice: Notice, delivery_id: str) -> dict[str, Any]:
        """Return the event's content."""
        return content(notice, delivery_id)

    async def check(self) -> str:
        """Return who we are in the room, or raise what is wrong."""
        who = await self._get("/account/whoami")
        rooms = (await self._get("/joined_rooms")).get("joined_rooms")
        if not isinstance(rooms, list) or self._room not in rooms:
            raise Misconfigured(
                f"{self._service.who}: {who.get('user_id')} is not in the room; invite it and let it join"
            )
        return f"signed in as {str(who.get('user_id'))[:80]}, which is in the room"

    async def _get(self, path: str) -> dict[str, Any]:
        response = await self._service.call("GET", f"{self._base}{path}", headers=self._headers)
        if response.status != 200:
            raise self._failure(response)
        return json_object(response)

    def _failure(self, response: Response) -> TidingsError:
        reply = json_object(response)
        words = f"{reply.get('errcode', '')} {reply.get('error', '')}".strip()
        wait_ms = number(reply.get("retry_after_ms"))
        wait = None if wait_ms is None or "retry-after" in response.headers else wait_ms / 1000
        return self._service.failure(response, words, wait_seconds=wait, idempotent=True)


def content(notice: Notice, delivery_id: str) -> dict[str, Any]:
    """Return an event that plain and rich clients can show; it mentions nobody."""
    title = one_line(notice.title, TITLE_MAX) or "Untitled"
    text = fit(notice.text, TEXT_MAX, markdown=False)
    pairs = facts(notice)[:FACTS_MAX]
    lines = [(one_line(name, LABEL_MAX), fit(value, VALUE_MAX, markdown=False)) for name, value in pairs]
    footer = f"{one_line(notice.footer, 300) or PRODUCT} • {delivery_id}"
    address = link_address(notice.url)
    shown = [title, text, "\n".join(f"{name}: {value}" for name, value in lines), address or "", footer]
    heading = f"<strong>{_escape(title)}</strong>"
    rich = [f'<p><a href="{_escape(address)}">{heading}</a></p>' if address else f"<p>{heading}</p>"]
    rich += [f"<p>{_escape(text)}</p>"] if text else []
    rich += (
        ["<ul>", *(f"<li><strong>{_escape(n)}:</strong> {_escape(v)}</li>" for n, v in lines), "</ul>"] if lines else []
    )
    rich.append(f"<p><sub>{_escape(footer)}</sub></p>")
    return {
        "msgtype": "m.notice",
        "body": "\n\n".join(part for part in shown if part),
        "format": "org.matrix.custom.html",
        "formatted_body": "".join(rich),
        "m.mentions": {},
    }


def _escape(text: str) -> str:
    return html.escape(text, quote=True).replace("\n", "<br>")
