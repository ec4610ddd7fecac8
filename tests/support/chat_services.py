"""Stand-ins for Slack, Telegram, ntfy and Matrix, from their public documentation: strict about what those refuse.

`plan` scripts misbehavior: each request takes the next of its answers, until it is empty. An entry `None` lets the
request through; "cut" takes the message and answers nothing.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from typing import Any
from urllib.parse import unquote

import msgspec
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

TOKEN = "canary-token-7f3a9c5e1b"
BOT_TOKEN = "123456:canary-bot-token-7f3a9c5e1b"
TOPIC = "canary-topic-7f3a9c5e1b"
HOOK = "/services/T0/B0/canary-hook-7f3a9c5e1b"
ROOM = "!room:example.org"
CHAT = "-1001234567890"

Answer = Response | str | None


class ChatService:
    """What the four have in common: messages taken, a plan of misbehavior, every request seen."""

    def __init__(self, plan: list[Answer] | None = None) -> None:
        self.plan = plan or []
        self.messages: list[dict[str, Any]] = []
        self.seen: list[tuple[str, str]] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        request = Request(scope, receive)
        body = await request.body()
        self.seen.append((request.method, request.url.path))
        planned = self.plan.pop(0) if self.plan else None
        if isinstance(planned, Response):
            await planned(scope, receive, send)
            return
        answer = self.answer(request, body)
        if planned == "cut":
            raise ConnectionResetError("cut by plan")  # uvicorn answers 500: the message was taken
        await answer(scope, receive, send)

    def answer(self, request: Request, body: bytes) -> Response:
        raise NotImplementedError

    @property
    def app(self) -> ASGIApp:
        return self


class SlackStandIn(ChatService):
    """Incoming webhooks: 200 `ok`, or a status with a short text."""

    def answer(self, request: Request, body: bytes) -> Response:
        if request.url.path != HOOK:
            return PlainTextResponse("no_service", 404)
        try:
            message = msgspec.json.decode(body)
        except msgspec.DecodeError:
            return PlainTextResponse("invalid_payload", 400)
        if not message.get("text") and not message.get("blocks"):
            return PlainTextResponse("no_text", 400)
        if any(not _is_slack_block(block) for block in message.get("blocks", [])) or len(message["blocks"]) > 50:
            return PlainTextResponse("invalid_blocks", 400)
        self.messages.append(message)
        return PlainTextResponse("ok")


def _is_slack_block(block: dict[str, Any]) -> bool:
    texts = [block["text"]] if "text" in block else []
    fields = block.get("fields", [])
    if block["type"] == "section":
        sized = all(1 <= len(t["text"]) <= 3000 for t in texts) and len(fields) <= 10
        sized = sized and all(1 <= len(f["text"]) <= 2000 for f in fields)
        return sized and bool(texts or fields) and all(_is_slack_text(t) for t in [*texts, *fields])
    if block["type"] == "context":
        return 1 <= len(block["elements"]) <= 10 and all(_is_slack_text(t) for t in block["elements"])
    return False


def _is_slack_text(text: dict[str, Any]) -> bool:
    return set(text) <= {"type", "text", "verbatim", "emoji"} and text["type"] in ("mrkdwn", "plain_text")


class TelegramStandIn(ChatService):
    """The Bot API: the token in the path, HTML that must parse, 4,096 characters shown."""

    def answer(self, request: Request, body: bytes) -> Response:
        path, _, method = unquote(request.url.path).rpartition("/")
        if path != f"/bot{BOT_TOKEN}":
            return telegram_error(404, "Not Found")
        fields = msgspec.json.decode(body) if body else {}
        if str(fields.get("chat_id")) != CHAT:
            return telegram_error(400, "Bad Request: chat not found")
        if method == "getChat":
            return JSONResponse({"ok": True, "result": {"id": int(CHAT), "title": "Calls", "type": "channel"}})
        try:
            shown = telegram_text(fields["text"]) if fields.get("parse_mode") == "HTML" else fields["text"]
        except ValueError as error:
            return telegram_error(400, f"Bad Request: can't parse entities: {error}")
        if not shown.strip():
            return telegram_error(400, "Bad Request: message text is empty")
        if len(shown.encode("utf-16-le")) // 2 > 4096:
            return telegram_error(400, "Bad Request: message is too long")
        self.messages.append({**fields, "shown": shown})
        return JSONResponse({"ok": True, "result": {"message_id": len(self.messages), "chat": {"id": int(CHAT)}}})


def telegram_error(code: int, description: str, **parameters: Any) -> JSONResponse:
    """Return an answer in the form of the Bot API."""
    more = {"parameters": parameters} if parameters else {}
    return JSONResponse({"ok": False, "error_code": code, "description": description, **more}, code)


class _TelegramHtml(HTMLParser):
    TAGS = frozenset({"b", "strong", "i", "em", "u", "s", "a", "code", "pre"})

    def __init__(self) -> None:
        super().__init__(convert_charrefs=False)
        self.open: list[str] = []
        self.shown = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in self.TAGS or (attrs and tag != "a"):
            raise ValueError(f"Unsupported start tag {tag!r}")
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            raise ValueError(f"Unmatched end tag {tag!r}")

    def handle_data(self, data: str) -> None:
        if "<" in data:
            raise ValueError("Unexpected <")
        self.shown += data

    def handle_entityref(self, name: str) -> None:
        known = {"lt": "<", "gt": ">", "amp": "&", "quot": '"'}
        self.shown += known.get(name, f"&{name};")

    def handle_charref(self, name: str) -> None:
        self.shown += chr(int(name[1:], 16) if name.startswith("x") else int(name))

    def handle_comment(self, data: str) -> None:
        raise ValueError("Unsupported comment")


def telegram_text(text: str) -> str:
    """Return what Telegram shows of its HTML, or raise ValueError where it refuses it."""
    parser = _TelegramHtml()
    parser.feed(text)
    parser.close()
    if parser.open:
        raise ValueError(f"Can't find end tag corresponding to start tag {parser.open[-1]!r}")
    return parser.shown


class NtfyStandIn(ChatService):
    """A server with one protected topic; messages as JSON to its root."""

    def answer(self, request: Request, body: bytes) -> Response:
        authorized = request.headers.get("authorization") == f"Bearer {TOKEN}"
        if request.url.path == "/v1/health":
            return JSONResponse({"healthy": True})
        if request.url.path == "/v1/account":
            return JSONResponse({"username": "me"}) if authorized else ntfy_error(401, 40101, "unauthorized")
        try:
            fields = msgspec.json.decode(body)
        except msgspec.DecodeError:
            return ntfy_error(400, 40024, "invalid request: request body must be valid JSON")
        if not re.fullmatch(r"[-_A-Za-z0-9]{1,64}", fields.get("topic", "")):
            return ntfy_error(400, 40009, "invalid request: topic invalid")
        if not authorized:
            return ntfy_error(403, 40301, "forbidden")
        known = {"topic", "message", "title", "tags", "priority", "click"}
        if set(fields) - known or fields.get("priority") not in range(1, 6) or not isinstance(fields.get("tags"), list):
            return ntfy_error(400, 40007, "invalid request: parameters invalid")
        if len(fields["message"].encode()) > 4096:
            return ntfy_error(413, 41301, "attachment too large")
        self.messages.append(fields)
        return JSONResponse({"id": f"id{len(self.messages)}", "event": "message", "topic": fields["topic"]})


def ntfy_error(status: int, code: int, words: str) -> JSONResponse:
    """Return an answer in ntfy's form."""
    return JSONResponse({"code": code, "http": status, "error": words, "link": "https://ntfy.sh/docs/publish/"}, status)


class MatrixStandIn(ChatService):
    """A homeserver with one user in one room; transactions are remembered, as the specification asks."""

    def __init__(self, plan: list[Answer] | None = None) -> None:
        super().__init__(plan)
        self.transactions: dict[str, str] = {}
        self.joined = [ROOM]

    def answer(self, request: Request, body: bytes) -> Response:
        if request.headers.get("authorization") != f"Bearer {TOKEN}":
            return matrix_error(401, "M_UNKNOWN_TOKEN", "Unrecognised access token")
        path = request.url.path
        if path == "/_matrix/client/v3/account/whoami":
            return JSONResponse({"user_id": "@bot:example.org"})
        if path == "/_matrix/client/v3/joined_rooms":
            return JSONResponse({"joined_rooms": self.joined})
        found = re.fullmatch(r"/_matrix/client/v3/rooms/([^/]+)/send/m\.room\.message/([^/]+)", path)
        if found is None or request.method != "PUT":
            return matrix_error(404, "M_UNRECOGNIZED", "Unrecognized request")
        if unquote(found[1]) not in self.joined:
            return matrix_error(403, "M_FORBIDDEN", "User not in room")
        if len(body) > 65_536:
            return matrix_error(413, "M_TOO_LARGE", "event too large")
        content = msgspec.json.decode(body)
        if not isinstance(content.get("body"), str) or not isinstance(content.get("msgtype"), str):
            return matrix_error(400, "M_BAD_JSON", "body and msgtype are needed")
        if found[2] not in self.transactions:
            self.messages.append(content)
            self.transactions[found[2]] = f"$event{len(self.messages)}"
        return JSONResponse({"event_id": self.transactions[found[2]]})


def matrix_error(status: int, code: str, words: str, **more: Any) -> JSONResponse:
    """Return an answer in Matrix's form."""
    return JSONResponse({"errcode": code, "error": words, **more}, status)


def misbehavior(seed: int, slow: Response, count: int) -> Iterator[Answer]:
    """Yield a seeded mix of waits, broken gateways, cut answers and peace."""
    chance = random.Random(seed)
    gateway = PlainTextResponse("<html>502 Bad Gateway</html>", 502)
    for _ in range(count):
        yield chance.choice([slow, gateway, "cut", None])
