"""Cross-origin reads and token-bearing writes for origins the operator names; off otherwise."""

from __future__ import annotations

from starlette.types import Message, Receive, Scope, Send

_ALLOWED = [
    (b"access-control-allow-methods", b"GET, HEAD, POST"),
    (b"access-control-allow-headers", b"Authorization, Content-Type, Idempotency-Key, Last-Event-ID"),
    (b"access-control-max-age", b"600"),
]


class Cors:
    """Answers for known origins. Cookies never travel across origins: a token must."""

    def __init__(self, origins: frozenset[str]) -> None:
        self._origins = {origin.encode() for origin in origins}

    def is_preflight(self, scope: Scope) -> bool:
        """Tell whether a browser asks before it asks."""
        if not self._origins or scope["method"] != "OPTIONS":
            return False
        headers = dict(scope["headers"])
        return headers.get(b"origin") in self._origins and b"access-control-request-method" in headers

    async def answer(self, _scope: Scope, _receive: Receive, send: Send) -> None:
        """Answer a preflight."""
        await send({"type": "http.response.start", "status": 204, "headers": list(_ALLOWED)})
        await send({"type": "http.response.body", "body": b""})

    def wrap(self, scope: Scope, send: Send) -> Send:
        """Add what lets a known origin read the answer."""
        if not self._origins:
            return send
        origin = dict(scope["headers"]).get(b"origin")

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = [*message.get("headers", ()), (b"vary", b"origin")]
                if origin in self._origins:
                    headers += [
                        (b"access-control-allow-origin", origin),
                        (b"access-control-expose-headers", b"ETag, Retry-After"),
                    ]
                message = {**message, "headers": headers}
            await send(message)

        return sending
