"""An S3-compatible store as a target, `s3://BUCKET/PREFIX`: a static copy that a CDN gives out."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

from tidings.follow.mirrors.target import KEY_BYTES_MAX, WrittenByAnother
from tidings.model.errors import Misconfigured, Transient

AT_ONCE = 16
"""How many requests are under way at once."""
CALL_SECONDS = 30
TYPES = {"json": "application/json", "rss": "application/rss+xml", "atom": "application/atom+xml"}


class BucketTarget:
    """Objects below one prefix of a bucket. The catalog is put conditionally: of two writers one is refused."""

    has_paths = True
    key_bytes_max = KEY_BYTES_MAX
    batch_max = 500

    def __init__(
        self, url: str, *, access_key: str = "", secret: str | None = None, region: str = "", endpoint: str = ""
    ) -> None:
        try:
            import obstore
            from obstore.store import S3Store
        except ImportError:
            raise Misconfigured("s3:// needs the extra: pip install 'tidings[mirrors]'") from None
        parts = urlsplit(url)
        if not parts.hostname:
            raise Misconfigured("the address of a bucket is s3://BUCKET/PREFIX")
        if access_key and not secret:
            raise Misconfigured("the secret key of S3 is missing; it comes by environment or file")
        self._api: Any = obstore
        self.place = f"bucket {parts.netloc}"
        options: dict[str, Any] = {"region": region or "us-east-1"}
        if access_key:
            options |= {"access_key_id": access_key, "secret_access_key": secret}
        # Stores other than Amazon's seldom resolve a host name for every bucket.
        if endpoint:
            options |= {"endpoint": endpoint, "virtual_hosted_style_request": False}
        client: Any = {"timeout": f"{CALL_SECONDS}s", "allow_http": endpoint.startswith("http://")}
        self._store: Any = S3Store(
            parts.netloc,
            prefix=parts.path.strip("/") or None,
            client_options=client,
            retry_config={"max_retries": 2},
            **options,
        )
        self._places = asyncio.Semaphore(AT_ONCE)

    async def hold(self) -> bool:
        """Every process may try; conditional puts tell whether another one writes."""
        return True

    async def get_many(self, keys: Sequence[str]) -> dict[str, bytes]:
        """Return the objects that exist."""
        values = await asyncio.gather(*(self._get(key) for key in keys))
        return {key: value for key, value in zip(keys, values, strict=True) if value is not None}

    async def _get(self, key: str) -> bytes | None:
        async with self._places, self._translated():
            try:
                found = await self._api.get_async(self._store, key)
                return bytes(await found.bytes_async())
            except _missing():
                return None

    async def put_many(self, values: Mapping[str, bytes]) -> set[str]:
        """Put objects; those that failed are to be tried again."""
        keys = list(values)
        done = await asyncio.gather(*(self._put(key, values[key]) for key in keys), return_exceptions=True)
        for each in done:
            if isinstance(each, BaseException) and not isinstance(each, Transient):
                raise each
        failed = {key for key, each in zip(keys, done, strict=True) if isinstance(each, Transient)}
        # If all failed, the store is away, and its own words say more than "500 cards were not taken".
        if len(failed) == len(keys) and isinstance(done[0], Transient):
            raise done[0]
        return failed

    async def _put(self, key: str, value: bytes, mode: Any = "overwrite") -> str | None:
        kind = TYPES.get(key.rpartition(".")[2], "application/octet-stream")
        async with self._places, self._translated():
            done = await self._api.put_async(
                self._store, key, value, mode=mode, attributes={"Content-Type": kind}, use_multipart=False
            )
        tag: str | None = done["e_tag"]
        return tag

    async def delete_many(self, keys: Sequence[str]) -> None:
        """Remove objects; one that is missing is no error to S3."""
        if keys:
            async with self._translated():
                await self._api.delete_async(self._store, list(keys))

    async def keys(self, prefix: str) -> set[str]:
        """Return every object whose key begins so; a prefix is a folder."""
        found: set[str] = set()
        async with self._translated():
            async for page in self._api.list(self._store, prefix=prefix.rstrip("/")):
                found |= {each["path"] for each in page}
        return found

    async def tag(self, key: str) -> str | None:
        """Return the object's entity tag."""
        async with self._places, self._translated():
            try:
                tag: str | None = (await self._api.head_async(self._store, key))["e_tag"]
                return tag
            except _missing():
                return None

    async def replace(self, key: str, value: bytes, tag: str | None) -> str | None:
        """Put one object under the condition that it is the one that was read, or that there is none."""
        from obstore.exceptions import AlreadyExistsError, PreconditionError

        try:
            return await self._put(key, value, "create" if tag is None else {"e_tag": tag})
        except Transient as error:
            if isinstance(error.__cause__, (AlreadyExistsError, PreconditionError)):
                raise WrittenByAnother(f"{self.place}: another process wrote {key}") from error
            raise

    async def close(self) -> None:
        """Nothing is held open."""

    @asynccontextmanager
    async def _translated(self) -> AsyncIterator[None]:
        from obstore.exceptions import BaseError

        try:
            yield
        except (BaseError, OSError) as error:
            # What obstore says goes on over several lines, with the whole request in it.
            said = str(error).strip().partition("\n")[0][:200]
            raise Transient(f"{self.place}: {type(error).__name__}: {said}") from error


def _missing() -> tuple[type[Exception], ...]:
    """Return how obstore says that there is no such object."""
    from obstore.exceptions import NotFoundError

    return FileNotFoundError, NotFoundError
