"""Who may do what: expected hosts, same-origin writes, tokens with scopes, deny by default."""

from __future__ import annotations

import asyncio
import contextlib
import re
from dataclasses import dataclass, field
from typing import Literal
from urllib.parse import urlsplit

from starlette.requests import HTTPConnection
from starlette.types import Scope as Connection

from tidings.model.errors import TidingsError
from tidings.model.marks import DEFAULT_READER
from tidings.serve.backend import ReadBackend
from tidings.serve.http.problems import Problem
from tidings.serve.http.sessions import COOKIE, Session, Sessions

Scope = Literal["public", "read", "reader", "ingest", "operate"]
RANKS: dict[str, int] = {"public": 0, "read": 1, "reader": 2, "ingest": 3, "operate": 4}
LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "[::1]"})
_HOST = re.compile(rb"(\[[0-9a-f:]{2,39}\]|[a-z0-9_.-]{1,253})(?::([0-9]{1,5}))?", re.IGNORECASE)
"""A Host header, whole: a name or address, an IPv6 address in brackets, and at most a port. Nothing else."""
_PORT_MAX = 65_535
_REMEMBER_SECONDS = 5
_REMEMBERED_MAX = 1_000
_TOKEN_LENGTH_MAX = 256
_NOTE_SECONDS = 60
"""How often the use of one token is written down at most."""


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks: the scope their token gives, or None; and the session, when they are signed in to the dashboard."""

    scope: str | None = None
    session: Session | None = None
    token: str | None = field(default=None, repr=False)
    is_local: bool = False
    """The request came to a loopback name of a server that listens on loopback only."""
    shows_dead_token: bool = False
    """They sent a token that does not live: wrong, mistyped or revoked."""
    was_signed_in: bool = False
    """Their cookie names a session that has ended, or one whose token was revoked."""

    @property
    def name(self) -> str:
        """How the journal names them."""
        way = "dashboard" if self.session is not None else "api"
        return f"{way} ({self.scope or 'demo'})"


class Access:
    """Decides who may do what: by host name, origin, token and session."""

    def __init__(self, backend: ReadBackend) -> None:
        self._backend = backend
        self._hosts = LOOPBACK_NAMES | {name.lower() for name in backend.hosts}
        self._judged: dict[bytes, Literal["", "local", "known"]] = {}
        self._scopes: dict[str, tuple[str, float]] = {}
        self._noted: dict[str, float] = {}
        self._noting: set[asyncio.Task[None]] = set()
        self.sessions = Sessions(backend.secret, backend.monotonic)

    def judge_host(self, header: bytes) -> Literal["", "local", "known"]:
        """Tell whether a Host header names us: not at all (""), by a loopback name, or by a configured one."""
        verdict = self._judged.get(header)
        if verdict is None:
            name = host_name(header)
            verdict = "" if name not in self._hosts else "local" if name in LOOPBACK_NAMES else "known"
            # Only our own names are kept: anyone can send any number of others, and the table would grow.
            if verdict and len(self._judged) < _REMEMBERED_MAX:
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
        if origin is not None and origin in self._backend.cors_origins:
            return
        if site is not None and site not in ("same-origin", "none"):
            raise _foreign()
        if site is None and origin is not None and urlsplit(origin).netloc.lower() != request.headers["host"].lower():
            raise _foreign()

    async def caller(self, request: HTTPConnection, *, is_local: bool, with_cookie: bool) -> Caller:
        """Find out who asks, by bearer token or (for pages and reads) by session cookie."""
        is_local = is_local and self._backend.loopback
        token = bearer(request.headers.get("authorization"))
        if token is not None:
            scope = await self.scope_of(token)
            return Caller(scope, token=token, is_local=is_local, shows_dead_token=scope is None)
        cookie = request.cookies.get(COOKIE) if with_cookie else None
        session = self.sessions.find(cookie)
        scope = await self._scope_of_session(session) if session is not None else None
        if scope is None:
            return Caller(is_local=is_local, was_signed_in=bool(cookie))
        return Caller(scope, session, session.token if session is not None else None, is_local)

    async def _scope_of_session(self, session: Session) -> str | None:
        return session.scope or await self.scope_of(session.token)

    async def scope_of(self, token: str) -> str | None:
        """Return a token's scope; a live one is remembered for a few seconds."""
        entry = self._scopes.get(token)
        now = self._backend.monotonic()
        if entry is not None and entry[1] > now:
            return entry[0]
        if not 0 < len(token) <= _TOKEN_LENGTH_MAX:
            return None
        scope = await self._backend.executor.read(self._backend.tokens.scope_of, token)
        if scope is None or scope not in RANKS:
            self._scopes.pop(token, None)
            return None
        if len(self._scopes) >= _REMEMBERED_MAX:
            self._scopes.clear()
        self._scopes[token] = (scope, now + _REMEMBER_SECONDS)
        self._note_use(token, now)
        return scope

    async def reader_of(self, caller: Caller) -> str:
        """Return whose marks a caller sees and sets."""
        named = (
            await self._backend.executor.read(self._backend.tokens.reader_of, caller.token) if caller.token else None
        )
        return named or DEFAULT_READER

    def _note_use(self, token: str, now: float) -> None:
        """Have the use of a token written down beside the answer, which does not wait for it."""
        if now - self._noted.get(token, float("-inf")) < _NOTE_SECONDS:
            return
        if len(self._noted) >= _REMEMBERED_MAX:
            self._noted.clear()
        self._noted[token] = now
        noting = asyncio.create_task(self._write_use(token))
        self._noting.add(noting)
        noting.add_done_callback(self._noting.discard)

    async def _write_use(self, token: str) -> None:
        # The time of last use is a convenience: a store that cannot write now is reported by readiness and alerts.
        with contextlib.suppress(TidingsError):
            await self._backend.executor.write(self._backend.tokens.note_use, token)

    def may_read_at_once(self, is_local: bool, authorization: bytes) -> bool:
        """Tell, without asking the store, whether a read is allowed. No means: ask properly."""
        if is_local and self._backend.loopback and not authorization:
            return True
        entry = self._scopes.get(bearer(authorization.decode("latin-1")) or "")
        return entry is not None and entry[1] > self._backend.monotonic()

    def is_allowed(self, caller: Caller, scope: Scope) -> bool:
        """Tell whether a caller may do what needs a scope."""
        if scope == "public" or (caller.is_local and (scope == "read" or self._backend.is_demo)):
            return True
        if scope == "reader" and caller.is_local and caller.scope is None:
            return True  # On this machine nobody needs a token to mark what they read; who shows one has its rights.
        return caller.scope is not None and RANKS[caller.scope] >= RANKS[scope]

    def require(self, caller: Caller, scope: Scope) -> None:
        """Refuse a caller without the scope, or with a token that does not live: 401; 403 where it gives less."""
        if caller.shows_dead_token and scope != "public":
            raise _dead_token()
        if self.is_allowed(caller, scope):
            return
        if caller.was_signed_in:
            raise Problem(
                401,
                "Nothing was done: you are no longer signed in.",
                helps="A session lasts 12 hours, and ends with its token or the server. Sign in again at /login.",
            )
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


def _dead_token() -> Problem:
    """Refuse even where no token is needed: a caller who sends one must learn that it gives nothing."""
    return Problem(
        401,
        "The token in the Authorization header is unknown or was revoked.",
        where="header Authorization",
        helps="`tidings token list` tells which live; `tidings token create` makes one.",
        headers={"WWW-Authenticate": 'Bearer realm="tidings", error="invalid_token"'},
    )


def _foreign() -> Problem:
    return Problem(
        403,
        "Another website asked the browser to send this.",
        where="header Origin",
        helps="Use the dashboard itself, or call the API from a program with a token.",
    )


def host_name(header: bytes) -> str:
    """Return the host of a Host header, without the port, in lower case; "" where the header is anything else."""
    read = _HOST.fullmatch(header)
    if read is None or int(read[2] or 0) > _PORT_MAX:
        return ""
    return read[1].decode("ascii").lower()


def bearer(authorization: str | None) -> str | None:
    """Return what an Authorization header shows as a token, perhaps nothing (""); None where it is of another kind."""
    kind, _, token = (authorization or "").partition(" ")
    return token.strip() if kind.lower() == "bearer" else None
