"""The one client for everything that leaves the process, with two faces: untrusted pages and trusted endpoints."""

from __future__ import annotations

import asyncio
import random
import ssl
import time
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack
from types import TracebackType
from typing import Any

import aiohttp
from aiohttp.abc import AbstractResolver
from yarl import URL

from tidings.model.clock import Clock, SystemClock
from tidings.model.errors import Misconfigured
from tidings.model.web import Response, ServerEvent
from tidings.net.cache import HttpCache, MemoryCache
from tidings.net.endpoints import Endpoints, endpoint_url, note_sent, prepared
from tidings.net.event_stream import read_events
from tidings.net.guard import Guard, GuardedResolver
from tidings.net.hosts import Hosts
from tidings.net.limits import FetchLimits
from tidings.net.multipart import FormPart
from tidings.net.pages import Pages
from tidings.net.statuses import raise_for_status, retry_after_seconds

__all__ = ["FetchLimits", "FormPart", "HttpCache", "MemoryCache", "Web", "raise_for_status", "retry_after_seconds"]


class Web:
    """Everything we ask of other people's servers; an async context manager."""

    def __init__(
        self,
        *,
        user_agent: str,
        endpoints: Iterable[str] = (),
        cache: HttpCache | None = None,
        clock: Clock | None = None,
        rng: random.Random | None = None,
        per_host_concurrency: int = 4,
        per_host_delay_seconds: float = 0.5,
        obey_robots: bool = True,
        loopback_allowed: frozenset[tuple[str, int]] = frozenset(),
        max_connections: int = 100,
        limits: FetchLimits | None = None,
        resolver: AbstractResolver | None = None,
        ssl_context: ssl.SSLContext | None = None,
    ) -> None:
        self._user_agent = user_agent
        self._cache = cache or MemoryCache()
        self._clock = clock or SystemClock()
        self._rng = rng or random.Random()
        self._per_host_concurrency = per_host_concurrency
        self._per_host_delay_seconds = per_host_delay_seconds
        self._robot = user_agent.partition("/")[0] if obey_robots else None
        self._guard = Guard(loopback_allowed)
        self._max_connections = max_connections
        self._limits = limits or FetchLimits()
        self._resolver = resolver
        self._ssl: ssl.SSLContext | bool = ssl_context or True
        self._origins = frozenset(endpoint_url(url).origin() for url in endpoints)
        self._open = AsyncExitStack()
        self._pages: Pages | None = None
        self._endpoints: Endpoints | None = None
        self._streams: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Web:
        places = asyncio.Semaphore(self._max_connections)
        resolver = self._resolver or aiohttp.ThreadedResolver()
        hosts = Hosts(
            concurrency=self._per_host_concurrency,
            delay_seconds=self._per_host_delay_seconds,
            wait_seconds_max=self._limits.host_wait_seconds,
            clock=time.monotonic,
        )
        guarded = self._connector(
            resolver=GuardedResolver(resolver, self._guard), socket_factory=self._guard.open_socket
        )
        self._pages = Pages(
            await self._session(guarded),
            guard=self._guard,
            hosts=hosts,
            places=places,
            cache=self._cache,
            limits=self._limits,
            robot=self._robot,
            clock=time.monotonic,
            now=lambda: self._clock.now_ms() / 1000,
        )
        self._streams = await self._session(self._connector(resolver=resolver, force_close=True))
        self._endpoints = Endpoints(
            await self._session(self._connector(resolver=resolver)),
            await self._session(self._connector(resolver=resolver, force_close=True), note_sent()),
            places=places,
            cache=self._cache,
            limits=self._limits,
            rng=self._rng,
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._pages = self._endpoints = self._streams = None
        await self._open.aclose()

    async def page(
        self,
        url: str,
        *,
        accept: str | None = None,
        max_bytes: int | None = None,
        robots: bool = True,
        conditional: bool = False,
    ) -> Response:
        """Fetch an untrusted page or feed. Return only a success, or the stored copy; raise for everything else.

        Forbidden, refused or oversized pages are Permanent, a host that wants a pause is SlowDown, the rest Transient.
        """
        if self._pages is None:
            raise RuntimeError("the web client is used outside its `async with` block")
        return await self._pages.page(url, accept=accept, max_bytes=max_bytes, robots=robots, conditional=conditional)

    async def call(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        params: Mapping[str, str] | None = None,
        json: Any = None,
        data: bytes | Sequence[FormPart] | None = None,
        timeout_seconds: float = 30,
        conditional: bool = False,
        follow_redirects: bool = False,
        retries: int = 0,
    ) -> Response:
        """Call a configured endpoint and return its answer, whatever the status; callers decide.

        Raise Transient if it was not reached or may be asked again, Ambiguous if a request that changes things was
        sent and its outcome is unknown, Misconfigured for an origin nobody allowed and for bad certificates.
        """
        if self._endpoints is None:
            raise RuntimeError("the web client is used outside its `async with` block")
        request = prepared(
            method,
            self._trusted(url),
            headers=headers,
            params=params,
            json=json,
            data=data,
            timeout_seconds=timeout_seconds,
            conditional=conditional,
            follow_redirects=follow_redirects,
        )
        return await self._endpoints.call(request, self._origins, retries)

    def events(self, url: str, *, silence_seconds: float = 75) -> AsyncIterator[ServerEvent]:
        """Yield the server-sent events of a configured endpoint; raise when the stream ends, breaks or falls silent."""
        if self._streams is None:
            raise RuntimeError("the web client is used outside its `async with` block")
        return read_events(self._streams, self._trusted(url), silence_seconds=silence_seconds, limits=self._limits)

    def _trusted(self, url: str) -> URL:
        address = endpoint_url(url)
        if address.origin() not in self._origins:
            raise Misconfigured(f"{address.host} is not a configured endpoint")
        return address

    def allow_endpoint(self, url: str) -> None:
        """Trust one exact origin (scheme, host and port) for `call`."""
        self._origins |= {endpoint_url(url).origin()}

    def _connector(self, **options: Any) -> aiohttp.TCPConnector:
        # No cache of names: a verdict on an address is only worth something at the moment of connecting. Connections
        # are counted by us, before the clock of a request starts, so the connector sets no limit of its own.
        return aiohttp.TCPConnector(limit=0, use_dns_cache=False, ssl=self._ssl, **options)

    async def _session(
        self, connector: aiohttp.TCPConnector, trace: aiohttp.TraceConfig | None = None
    ) -> aiohttp.ClientSession:
        session = aiohttp.ClientSession(
            connector=connector,
            headers={"user-agent": self._user_agent},
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(total=None),
            trust_env=False,
            auto_decompress=False,
            max_line_size=self._limits.header_bytes,
            max_field_size=self._limits.header_bytes,
            max_headers=self._limits.headers,
            trace_configs=[trace] if trace else None,
        )
        return await self._open.enter_async_context(session)
