"""Fetches untrusted pages and feeds: every hop judged, everything bounded, hosts treated politely."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import aiohttp
from yarl import URL

from tidings.model.errors import Permanent
from tidings.model.urls import shown_url
from tidings.model.web import Response
from tidings.net.bodies import ACCEPT_ENCODING, check_type, check_untyped, read_body
from tidings.net.cache import HttpCache, Stored, decode, encode, stored_key, worth_storing
from tidings.net.failures import FAILURES, cause, page_failure
from tidings.net.guard import PUBLIC_PORTS, Guard
from tidings.net.hosts import Hosts
from tidings.net.limits import FetchLimits
from tidings.net.robots import Robots
from tidings.net.statuses import raise_for_status, retry_after_seconds

ACCEPT_PAGES = (
    "text/html, application/xhtml+xml, application/rss+xml, application/atom+xml, application/feed+json, "
    "application/xml;q=0.9, application/json;q=0.8, text/plain;q=0.7, */*;q=0.1"
)
REDIRECTS = frozenset({301, 302, 303, 307, 308})
PERMANENT_REDIRECTS = frozenset({301, 308})


@dataclass(frozen=True, slots=True)
class Wish:
    """How one page is to be fetched."""

    accept: str
    wire_bytes: int
    body_bytes: int
    robots: bool
    conditional: bool
    any_type: bool = False


@dataclass(slots=True)
class Budget:
    """The seconds left for all hops of one page."""

    seconds: float


class Pages:
    """The untrusted face of the web client."""

    def __init__(
        self,
        session: aiohttp.ClientSession,
        *,
        guard: Guard,
        hosts: Hosts,
        places: asyncio.Semaphore,
        cache: HttpCache,
        limits: FetchLimits,
        robot: str | None,
        clock: Callable[[], float],
        now: Callable[[], float],
    ) -> None:
        self._session = session
        self._guard = guard
        self._hosts = hosts
        self._places = places
        self._cache = cache
        self._limits = limits
        self._clock = clock
        self._now = now
        self._robots: Robots | None = None
        if robot:
            self._robots = Robots(
                self._robots_txt,
                robot=robot,
                fresh_seconds=limits.robots_seconds,
                retry_seconds=limits.robots_retry_seconds,
                clock=clock,
            )

    async def page(
        self, url: str, *, accept: str | None, max_bytes: int | None, robots: bool, conditional: bool
    ) -> Response:
        """Fetch one page through all its redirects, or raise."""
        limits = self._limits
        wish = Wish(
            accept=accept or ACCEPT_PAGES,
            wire_bytes=min(limits.body_bytes, max_bytes or limits.wire_bytes),
            body_bytes=min(limits.body_bytes, max_bytes or limits.body_bytes),
            robots=robots,
            conditional=conditional,
        )
        return await self._follow(url, wish)

    async def _follow(self, text: str, wish: Wish) -> Response:
        url = self._guard.checked(text)
        budget = Budget(self._limits.total_seconds)
        moved_to: str | None = None
        moved_for_good = True
        for _ in range(self._limits.redirects + 1):
            answer = await self._hop(url, wish, budget)
            if isinstance(answer, Response):
                return replace(answer, permanently_moved_to=moved_to) if moved_to else answer
            status, target = answer
            moved_for_good = moved_for_good and status in PERMANENT_REDIRECTS
            if moved_for_good:
                moved_to = str(target)
            url = target
        raise Permanent(f"{shown_url(text)} redirects more than {self._limits.redirects} times")

    async def _hop(self, url: URL, wish: Wish, budget: Budget) -> Response | tuple[int, URL]:
        """Ask one address politely: its robots.txt first, then its turn, then the request."""
        text, host = str(url), _neighbor(url)
        shown = shown_url(text)
        if wish.robots and self._robots is not None:
            delay = await self._robots.check(str(url.origin()), text, shown)
            if delay:
                self._hosts.slow_to(host, min(delay, self._limits.crawl_delay_seconds_max))
        async with self._hosts.turn(host), self._places:
            return await self._ask(url, wish, budget, shown)

    async def _ask(self, url: URL, wish: Wish, budget: Budget, shown: str) -> Response | tuple[int, URL]:
        headers = {"accept": wish.accept, "accept-encoding": ACCEPT_ENCODING}
        key = stored_key("GET", str(url), headers) if wish.conditional else ""
        stored = decode(await self._cache.get(key)) if wish.conditional else None
        if stored is not None:
            headers |= stored.validators()
        started = self._clock()
        try:
            async with asyncio.timeout(budget.seconds):
                answer = await self._request(url, headers, wish, stored, shown)
        except FAILURES as error:
            raise page_failure(error, shown) from cause(error)
        finally:
            budget.seconds -= self._clock() - started
        if isinstance(answer, Response) and wish.conditional and not answer.not_modified:
            keep = worth_storing(answer, self._limits.cached_body_bytes)
            if keep is not None:
                await self._cache.put(key, encode(keep), self._limits.cached_seconds)
        return answer

    async def _request(
        self, url: URL, headers: Mapping[str, str], wish: Wish, stored: Stored | None, shown: str
    ) -> Response | tuple[int, URL]:
        async with asyncio.timeout(self._limits.first_byte_seconds):
            answer = await self._session.get(url, headers=headers, allow_redirects=False)
        async with answer:
            try:
                return await self._judge(answer, url, wish, stored, shown)
            except BaseException:
                answer.close()  # What is left unread must not be waited for, nor the connection be used again.
                raise

    async def _judge(
        self, answer: aiohttp.ClientResponse, url: URL, wish: Wish, stored: Stored | None, shown: str
    ) -> Response | tuple[int, URL]:
        headers = plain_headers(answer.headers)
        if answer.status in REDIRECTS and "location" in headers:
            answer.close()
            return answer.status, self._guard.next_hop(url, headers["location"])
        if answer.status == 304 and stored is not None:
            return Response(stored.status, str(url), stored.headers | headers, stored.body, not_modified=True)
        self._respect(url, answer.status, headers)
        empty = Response(answer.status, str(url), headers)
        raise_for_status(empty, shown, trusted=False, now=self._now())
        if not wish.any_type:
            check_type(headers, shown, wish.accept)
        body = await read_body(answer.content, headers, shown, wire_bytes=wish.wire_bytes, body_bytes=wish.body_bytes)
        check_untyped(headers, body, shown)
        return replace(empty, body=body)

    def _respect(self, url: URL, status: int, headers: Mapping[str, str]) -> None:
        wait = retry_after_seconds(headers, self._now()) if status in (429, 503) else None
        if wait:
            self._hosts.be_silent(_neighbor(url), wait)

    async def _robots_txt(self, url: str) -> Response:
        size = self._limits.robots_bytes
        return await self._follow(url, Wish("text/plain, */*;q=0.1", size, size, False, False, any_type=True))


def _neighbor(url: URL) -> str:
    """Name the unit that per-host limits count: a host, or on loopback one of the stand-ins that share it."""
    return url.raw_host or "" if url.port in PUBLIC_PORTS else url.authority


def plain_headers(raw: Mapping[str, str]) -> dict[str, str]:
    """Return headers in lower case, repeated ones joined, cookies left out, every value valid text."""
    plain: dict[str, str] = {}
    for name, value in raw.items():
        key = name.lower()
        if key == "set-cookie":
            continue
        text = value if value.isascii() else value.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
        plain[key] = f"{plain[key]}, {text}" if key in plain else text
    return plain
