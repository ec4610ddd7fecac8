"""Calls trusted endpoints: exact origins from the configuration, every status returned, unknown outcomes told apart."""

from __future__ import annotations

import asyncio
import random
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import aiohttp
import msgspec
from yarl import URL

from tidings.model.errors import Ambiguous, Misconfigured, TidingsError, Transient
from tidings.model.web import Response
from tidings.net.bodies import ACCEPT_ENCODING, read_body
from tidings.net.cache import HttpCache, Stored, decode, encode, stored_key, worth_storing
from tidings.net.failures import FAILURES, call_failure
from tidings.net.limits import FetchLimits
from tidings.net.multipart import FormPart, encode_parts
from tidings.net.pages import PERMANENT_REDIRECTS, REDIRECTS, plain_headers
from tidings.net.statuses import retry_after_seconds

IDEMPOTENT = frozenset({"GET", "HEAD", "OPTIONS", "PUT", "DELETE"})
_READS = frozenset({"GET", "HEAD"})
_WORTH_ANOTHER_TRY = frozenset({500, 502, 503, 504})


@dataclass(frozen=True, slots=True)
class Request:
    """One request, ready to be sent."""

    method: str
    url: URL
    headers: Mapping[str, str]
    body: bytes | None
    timeout_seconds: float
    conditional: bool
    follow_redirects: bool


class Endpoints:
    """The trusted face of the web client."""

    def __init__(
        self,
        kept: aiohttp.ClientSession,
        fresh: aiohttp.ClientSession,
        *,
        places: asyncio.Semaphore,
        cache: HttpCache,
        limits: FetchLimits,
        rng: random.Random,
    ) -> None:
        self._kept = kept
        self._fresh = fresh
        self._places = places
        self._cache = cache
        self._limits = limits
        self._rng = rng

    async def call(self, request: Request, origins: frozenset[URL], retries: int) -> Response:
        """Send a request, again where that is safe; return whatever the endpoint answers."""
        for attempt in range(retries + 1):
            last = attempt == retries
            wait = self._backoff_seconds(attempt)
            try:
                response = await self._follow(request, origins)
            except Ambiguous:
                raise
            except Transient:
                if last:
                    raise
            else:
                wish_seconds = retry_after_seconds(response.headers) or 0.0
                again = response.status in _WORTH_ANOTHER_TRY and request.method in IDEMPOTENT
                if last or not again or wish_seconds > self._limits.backoff_cap_seconds:
                    return response
                wait = max(wait, wish_seconds)
            await asyncio.sleep(wait)
        raise AssertionError("unreachable: the last attempt returns or raises")

    def _backoff_seconds(self, attempt: int) -> float:
        wait = self._limits.backoff_base_seconds * 2.0**attempt
        return min(self._limits.backoff_cap_seconds, wait) * self._rng.uniform(0.8, 1.2)

    async def _follow(self, request: Request, origins: frozenset[URL]) -> Response:
        moved_to: str | None = None
        moved_for_good = True
        for _ in range(self._limits.redirects + 1):
            response = await self._once(request)
            follow = request.follow_redirects and request.method in _READS and response.status in REDIRECTS
            if not follow or "location" not in response.headers:
                return replace(response, permanently_moved_to=moved_to)
            target = _target(request.url, response.headers["location"], origins)
            moved_for_good = moved_for_good and response.status in PERMANENT_REDIRECTS
            if moved_for_good:
                moved_to = _without_query(target)
            headers = request.headers if target.origin() == request.url.origin() else {}
            request = replace(request, url=target, headers=headers)
        raise Misconfigured(
            f"{request.url.host} redirects more than {self._limits.redirects} times; update its address"
        )

    async def _once(self, request: Request) -> Response:
        headers = {"accept-encoding": ACCEPT_ENCODING, **{k.lower(): v for k, v in request.headers.items()}}
        key = stored_key(request.method, str(request.url), headers) if request.conditional else ""
        stored = decode(await self._cache.get(key)) if request.conditional else None
        if stored is not None:
            headers |= stored.validators()
        response = await self._send(replace(request, headers=headers), stored)
        if request.conditional and not response.not_modified:
            keep = worth_storing(response, self._limits.cached_body_bytes)
            if keep is not None:
                await self._cache.put(key, encode(keep), self._limits.cached_seconds)
        return response

    async def _send(self, request: Request, stored: Stored | None) -> Response:
        idempotent = request.method in IDEMPOTENT
        # A connection kept from an earlier call may be half closed, and a request lost on it would be of unknown
        # outcome. Requests that change things therefore get a connection of their own.
        session = self._kept if idempotent else self._fresh
        progress = SimpleNamespace(sent=False)
        try:
            async with self._places, asyncio.timeout(request.timeout_seconds):
                answer = await session.request(
                    request.method,
                    request.url,
                    headers=request.headers,
                    data=request.body,
                    allow_redirects=False,
                    trace_request_ctx=progress,
                )
                async with answer:
                    try:
                        return await self._read(answer, request, stored)
                    except BaseException:
                        answer.close()
                        raise
        except (TidingsError, *FAILURES) as error:
            shown = request.url.host or "the endpoint"
            raise call_failure(error, shown, sent=progress.sent, idempotent=idempotent) from None

    async def _read(self, answer: aiohttp.ClientResponse, request: Request, stored: Stored | None) -> Response:
        headers = plain_headers(answer.headers)
        url = _without_query(request.url)
        if answer.status == 304 and stored is not None:
            return Response(stored.status, url, stored.headers | headers, stored.body, not_modified=True)
        if request.method == "HEAD":
            return Response(answer.status, url, headers)
        limits = self._limits
        body = await read_body(
            answer.content,
            headers,
            request.url.host or "the endpoint",
            wire_bytes=limits.endpoint_wire_bytes,
            body_bytes=limits.endpoint_body_bytes,
        )
        return Response(answer.status, url, headers, body)


def note_sent() -> aiohttp.TraceConfig:
    """Return a tracer that marks the moment from which a request may have been received."""
    trace = aiohttp.TraceConfig()

    async def mark(_session: aiohttp.ClientSession, context: SimpleNamespace, _params: Any) -> None:
        context.trace_request_ctx.sent = True

    trace.on_request_headers_sent.append(mark)
    return trace


def prepared(
    method: str,
    url: URL,
    *,
    headers: Mapping[str, str] | None,
    params: Mapping[str, str] | None,
    json: Any,
    data: bytes | Sequence[FormPart] | None,
    timeout_seconds: float,
    conditional: bool,
    follow_redirects: bool,
) -> Request:
    """Turn a caller's wish into a request with its body encoded."""
    sent = dict(headers or {})
    body: bytes | None = None
    if json is not None and data is not None:
        raise ValueError("give json or data, not both")
    if json is not None:
        body = msgspec.json.encode(json)
        sent.setdefault("content-type", "application/json")
    elif isinstance(data, bytes):
        body = data
    elif data is not None:
        boundary = secrets.token_hex(16)
        body = encode_parts(data, boundary)
        sent["content-type"] = f"multipart/form-data; boundary={boundary}"
    if params:
        url = url.extend_query({name: str(value) for name, value in params.items()})
    return Request(method.upper(), url, sent, body, timeout_seconds, conditional, follow_redirects)


def endpoint_url(text: str) -> URL:
    """Read the address of an endpoint; raise Misconfigured without repeating it, since it may hold a credential."""
    try:
        url = URL(text)
        usable = url.scheme in ("http", "https") and bool(url.raw_host) and url.port is not None
    except (ValueError, TypeError):
        usable = False
    if not usable:
        raise Misconfigured("an endpoint's address must be an absolute http or https address")
    if url.raw_user is not None or url.raw_password is not None:
        raise Misconfigured(f"the address of {url.host} must not hold credentials; use a header")
    return url.with_fragment(None)


def _target(current: URL, location: str, origins: frozenset[URL]) -> URL:
    try:
        target = current.join(URL(location))
        is_configured = target.origin() in origins
    except ValueError:
        raise Misconfigured(f"{current.host} redirects to an unreadable address") from None
    if not is_configured:
        raise Misconfigured(f"{current.host} redirects to {target.host}, which is not configured; update its address")
    return target


def _without_query(url: URL) -> str:
    """Addresses of endpoints carry keys in their query; answers do not repeat them."""
    return str(url.with_query(None))
