"""Who may do what: expected hosts, same-origin writes, tokens with scopes, deny by default."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Literal
from urllib.parse import urlsplit

from starlette.requests import HTTPConnection
from starlette.types import Scope as Connection

from tidings.serve.parts import Parts
from tidings.serve.problems import Problem
from tidings.serve.sessions import COOKIE, Session, Sessions

Scope = Literal["public", "read", "ingest", "operate"]
RANKS: dict[str, int] = {"public": 0, "read": 1, "ingest": 2, "operate": 3}
LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "[::1]"})
_REMEMBER_SECONDS = 5
_REMEMBERED_MAX = 1_000
_TOKEN_LENGTH_MAX = 256


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks: the scope their token gives, or None; and the session, when they are signed in to the dashboard."""

    scope: str | None = None
    session: Session | None = None
    is_local: bool = False
    """The request came to a loopback name of a server that listens on loopback only."""

    @property
    def name(self) -> str:
        """How the journal names them."""
        way = "dashboard" if self.session is not None else "api"
        return f"{way} ({self.scope or 'demo'})"


class Access:
    """The door."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._hosts = LOOPBACK_NAMES | {name.lower() for name in parts.hosts}
        self._judged: dict[bytes, Literal["", "local", "known"]] = {}
        self._scopes: dict[str, tuple[str, float]] = {}
        self.sessions = Sessions(parts.secret)

    def judge_host(self, header: bytes) -> Literal["", "local", "known"]:
        """Tell whether a Host header names us: not at all (""), by a loopback name, or by a configured one."""
        verdict = self._judged.get(header)
        if verdict is None:
            name = host_name(header)
            verdict = "" if name not in self._hosts else "local" if name in LOOPBACK_NAMES else "known"
            if len(self._judged) < _REMEMBERED_MAX:
                self._judged[header] = verdict
        return verdict

    def check_host(self, connection: Connection) -> bool:
        """Refuse requests that call us by a name we do not expect; return whether the name is a loopback one."""
        named = [value for name, value in connection["headers"] if name == b"host"]
        verdict = self.judge_host(named[0]) if len(named) == 1 else ""
        if not verdict:
            raise Problem(
                400,
                "The Host header names a host that this server does not expect.",
                where="header Host",
                helps="Add the name to server.hosts in tidings.toml if people are to use it.",
            )
        return verdict == "local"

    def check_origin(self, request: HTTPConnection) -> None:
        """Refuse writes that a foreign web page makes a browser send; programs send neither header."""
        site, origin = request.headers.get("sec-fetch-site"), request.headers.get("origin")
        if origin is not None and origin in self._parts.cors_origins:
            return
        if site is not None and site not in ("same-origin", "none"):
            raise _foreign()
        if site is None and origin is not None and urlsplit(origin).netloc.lower() != request.headers["host"].lower():
            raise _foreign()

    async def caller(self, request: HTTPConnection, *, is_local: bool, with_cookie: bool) -> Caller:
        """Find out who asks, by bearer token or (for pages and reads) by session cookie."""
        token, session = bearer(request.headers.get("authorization")), None
        if token is None and with_cookie:
            session = self.sessions.find(request.cookies.get(COOKIE))
            token = session.token if session is not None else None
        scope = await self.scope_of(token) if token is not None else None
        is_local = is_local and self._parts.loopback
        return Caller(scope, session if scope is not None else None, is_local)

    async def scope_of(self, token: str) -> str | None:
        """Return a token's scope; a live one is remembered for a few seconds."""
        known = self._scopes.get(token)
        now = time.monotonic()
        if known is not None and known[1] > now:
            return known[0]
        scope = await self._parts.executor.read(self._parts.desk.scope_of, token)
        if scope is None or scope not in RANKS:
            self._scopes.pop(token, None)
            return None
        if len(self._scopes) >= _REMEMBERED_MAX:
            self._scopes.clear()
        self._scopes[token] = (scope, now + _REMEMBER_SECONDS)
        return scope

    def may_read_at_once(self, is_local: bool, authorization: bytes) -> bool:
        """Tell, without asking the store, whether a read is allowed. No means: ask properly."""
        if is_local and self._parts.loopback:
            return True
        known = self._scopes.get(bearer(authorization.decode("latin-1")) or "")
        return known is not None and known[1] > time.monotonic()

    def is_allowed(self, caller: Caller, scope: Scope) -> bool:
        """Tell whether a caller may do what needs a scope."""
        if scope == "public" or (caller.is_local and (scope == "read" or self._parts.is_demo)):
            return True
        return caller.scope is not None and RANKS[caller.scope] >= RANKS[scope]

    def require(self, caller: Caller, scope: Scope) -> None:
        """Refuse a caller without the scope: 401 for nobody, 403 for somebody with less."""
        if self.is_allowed(caller, scope):
            return
        if caller.scope is None:
            raise Problem(
                401,
                f"This needs a token with the scope {scope}.",
                where="header Authorization",
                helps=f"Make one with `tidings token create --scope {scope}` and send it as `Authorization: Bearer …`.",
                headers={"WWW-Authenticate": 'Bearer realm="tidings"'},
            )
        raise Problem(
            403,
            f"This needs the scope {scope}; the token's scope is {caller.scope}.",
            where="header Authorization",
            helps=f"Make a token with `tidings token create --scope {scope}`.",
        )


def _foreign() -> Problem:
    return Problem(
        403,
        "Another website asked the browser to send this.",
        where="header Origin",
        helps="Use the dashboard itself, or call the API from a program with a token.",
    )


def host_name(header: bytes) -> str:
    """Return the host of a Host header, without the port, in lower case."""
    text = header.decode("latin-1").strip().lower()
    if text.startswith("["):
        return text.partition("]")[0] + "]"
    return text.partition(":")[0]


def bearer(authorization: str | None) -> str | None:
    """Return the token of an Authorization header; anything else counts as none."""
    kind, _, token = (authorization or "").partition(" ")
    token = token.strip()
    return token if kind.lower() == "bearer" and 0 < len(token) <= _TOKEN_LENGTH_MAX else None
