"""Dashboard sessions: an opaque cookie, kept in memory, that stands for a token; and the tokens forms carry."""

from __future__ import annotations

import hmac
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256

COOKIE = "tidings_session"
_SESSIONS_MAX = 1_000
_LIFE_SECONDS = 12 * 3600
_MASK_BYTES = 16


@dataclass(frozen=True, slots=True)
class Session:
    """Someone who signed in with a token. The token stays here: revoking it ends the session."""

    id: str
    token: str
    ends_at: float
    scope: str | None = None
    """What it may do, where it began by an invitation and stands for no token."""


class Sessions:
    """Who is signed in."""

    def __init__(self, secret: bytes, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._secret = secret
        self._monotonic = monotonic
        self._by_digest: dict[bytes, Session] = {}

    def begin(self, token: str, scope: str | None = None) -> Session:
        """Start a session for someone who showed a token, or who was invited to a scope."""
        now = self._monotonic()
        self._by_digest = {key: each for key, each in self._by_digest.items() if each.ends_at > now}
        while len(self._by_digest) >= _SESSIONS_MAX:
            del self._by_digest[next(iter(self._by_digest))]
        session = Session(secrets.token_urlsafe(32), token, now + _LIFE_SECONDS, scope)
        self._by_digest[_digest(session.id)] = session
        return session

    def find(self, session_id: str | None) -> Session | None:
        """Return the session a cookie names, while it lasts."""
        session = self._by_digest.get(_digest(session_id)) if session_id else None
        return session if session is not None and session.ends_at > self._monotonic() else None

    def end(self, session_id: str | None) -> None:
        """Sign out."""
        if session_id:
            self._by_digest.pop(_digest(session_id), None)

    def form_token(self, session: Session | None) -> str:
        """Return a token for a form. It differs on every page, so that compression tells nothing about it."""
        mask = secrets.token_bytes(_MASK_BYTES)
        return (mask + _masked(self._proof(session), mask)).hex()

    def is_form_token(self, session: Session | None, token: str) -> bool:
        """Tell whether a form came from one of our pages, shown to the same session."""
        try:
            given = bytes.fromhex(token)
        except ValueError:
            return False
        if len(given) != 2 * _MASK_BYTES:
            return False
        return hmac.compare_digest(_masked(given[_MASK_BYTES:], given[:_MASK_BYTES]), self._proof(session))

    def _proof(self, session: Session | None) -> bytes:
        subject = session.id if session is not None else "nobody"
        return hmac.digest(self._secret, subject.encode(), "sha256")[:_MASK_BYTES]


def _digest(session_id: str) -> bytes:
    return sha256(session_id.encode()).digest()


def _masked(value: bytes, mask: bytes) -> bytes:
    return bytes(a ^ b for a, b in zip(value, mask, strict=True))
