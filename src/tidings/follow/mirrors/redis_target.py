"""Redis and Valkey as a target: `redis://HOST:PORT/NUMBER?prefix=TEXT`, or `rediss://` with TLS."""

from __future__ import annotations

import re
import secrets
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from tidings.follow.mirrors.target import KEY_BYTES_MAX, WrittenByAnother
from tidings.model.errors import Misconfigured, Transient

CALL_SECONDS = 10
HOLD_MS = 30_000
_PAGE = 500
# Compare and set: a script runs alone, and values and tags change together.
_REPLACE = """
if (redis.call('GET', KEYS[2]) or '') ~= ARGV[2] then return 0 end
redis.call('SET', KEYS[1], ARGV[1])
redis.call('SET', KEYS[2], ARGV[3])
return 1
"""
_HOLD = """
local owner = redis.call('GET', KEYS[1])
if owner and owner ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1
"""
_LET_GO = "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0"


class RedisTarget:
    """Keys of one Redis database that begin with a prefix."""

    has_paths = False
    key_bytes_max = KEY_BYTES_MAX
    batch_max = _PAGE

    def __init__(self, url: str, *, password: str | None = None) -> None:
        try:
            import redis
            import redis.asyncio
        except ImportError:
            raise Misconfigured("redis:// needs the extra: pip install 'tidings[mirrors]'") from None
        parts = urlsplit(url)
        query = dict(parse_qsl(parts.query))
        self._prefix = query.pop("prefix", "")
        if odd := [name for name in query if not name.startswith("ssl_")]:
            raise Misconfigured(f"an address of redis knows prefix and ssl_… behind the question mark, not {odd[0]}")
        if not re.fullmatch(r"/?\d*", parts.path):  # The client would take any other path for database 0.
            raise Misconfigured("the database of a redis address is a number, as in redis://HOST:PORT/0")
        self.place = f"redis {parts.hostname or 'localhost'}"
        self._error: type[Exception] = redis.RedisError
        options: dict[str, Any] = {"socket_timeout": CALL_SECONDS, "socket_connect_timeout": CALL_SECONDS}
        if password:
            options["password"] = password
        try:
            self._redis: Any = redis.asyncio.Redis.from_url(
                urlunsplit(parts._replace(query=urlencode(query))), **options
            )
        except (ValueError, TypeError):
            raise Misconfigured("a redis address is redis://HOST:PORT/NUMBER, with ?prefix=TEXT if wanted") from None
        self._owner = secrets.token_hex(8)

    async def hold(self) -> bool:
        """Become the one writer for half a minute, or stay it."""
        async with self._translated():
            return bool(await self._redis.eval(_HOLD, 1, self._name("tidings:writer"), self._owner, HOLD_MS))

    async def get_many(self, keys: Sequence[str]) -> dict[str, bytes]:
        """Return the values that exist."""
        found: dict[str, bytes] = {}
        async with self._translated():
            for start in range(0, len(keys), _PAGE):
                page = keys[start : start + _PAGE]
                values = await self._redis.mget([self._name(key) for key in page])
                found |= {key: value for key, value in zip(page, values, strict=True) if value is not None}
        return found

    async def put_many(self, values: Mapping[str, bytes]) -> set[str]:
        """Write all values in one step."""
        async with self._translated():
            await self._redis.mset({self._name(key): value for key, value in values.items()})
        return set()

    async def delete_many(self, keys: Sequence[str]) -> None:
        """Remove keys."""
        async with self._translated():
            for start in range(0, len(keys), _PAGE):
                await self._redis.delete(*(self._name(key) for key in keys[start : start + _PAGE]))

    async def keys(self, prefix: str) -> set[str]:
        """Return every key that begins so; SCAN may name one twice."""
        # Ids come from outside: a `*` or `[` in one would match other keys.
        pattern = self._name(prefix).translate({ord(sign): f"\\{sign}" for sign in "*?[]\\^"}) + "*"
        async with self._translated():
            found = [key async for key in self._redis.scan_iter(match=pattern, count=_PAGE)]
        texts = [key.decode(errors="ignore") for key in found]
        # A key that is no text is none of ours.
        return {text.removeprefix(self._prefix) for text, key in zip(texts, found, strict=True) if text.encode() == key}

    async def tag(self, key: str) -> str | None:
        """Return what `replace` wrote beside the value."""
        async with self._translated():
            value = await self._redis.get(self._name(f"tidings:tag:{key}"))
        return value.decode() if value is not None else None

    async def replace(self, key: str, value: bytes, tag: str | None) -> str | None:
        """Write one value unless its tag is another by now."""
        following = secrets.token_hex(8)
        names = self._name(key), self._name(f"tidings:tag:{key}")
        async with self._translated():
            # `MULTI` could not compare, and `WATCH` needs a connection of its own.
            done = await self._redis.eval(_REPLACE, 2, *names, value, tag or "", following)
        if not done:
            raise WrittenByAnother(f"{self.place}: another process wrote {key}")
        return following

    async def close(self) -> None:
        """Let another process write at once, and close the connections."""
        try:
            async with self._translated():
                await self._redis.eval(_LET_GO, 1, self._name("tidings:writer"), self._owner)
        except Transient:
            pass  # The right runs out by itself.
        finally:
            await self._redis.aclose()

    def _name(self, key: str) -> str:
        return f"{self._prefix}{key}"

    @asynccontextmanager
    async def _translated(self) -> AsyncIterator[None]:
        try:
            yield
        except (self._error, OSError) as error:
            raise Transient(f"{self.place}: {type(error).__name__}: {error}") from error
