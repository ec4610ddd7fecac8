"""Reads server-sent events of a trusted endpoint: redirects to its siblings followed, silence and size bounded."""

from __future__ import annotations

from collections.abc import AsyncIterator
from ipaddress import ip_address

import aiohttp
from yarl import URL

from tidings.model.errors import Misconfigured, TidingsError, Transient
from tidings.model.web import Response, ServerEvent
from tidings.net.failures import FAILURES, call_failure
from tidings.net.limits import FetchLimits
from tidings.net.pages import REDIRECTS, plain_headers
from tidings.net.statuses import raise_for_status

EVENT_BYTES_MAX = 1 << 20
ACCEPT = "text/event-stream"


async def read_events(
    session: aiohttp.ClientSession, url: URL, *, silence_seconds: float, limits: FetchLimits
) -> AsyncIterator[ServerEvent]:
    """Yield events until the server ends the stream; that, silence and everything else that ends it is raised."""
    timeout = aiohttp.ClientTimeout(total=None, connect=limits.first_byte_seconds, sock_read=silence_seconds)
    headers = {"accept": ACCEPT, "accept-encoding": "identity", "cache-control": "no-cache"}
    for _ in range(limits.redirects + 1):
        shown = url.host or "the endpoint"
        try:
            async with session.get(url, headers=headers, allow_redirects=False, timeout=timeout) as answer:
                if answer.status in REDIRECTS and "location" in answer.headers:
                    url = sibling(url, answer.headers["location"])
                    continue
                _check(answer, shown)
                async for event in _parsed(answer.content, shown):
                    yield event
        except (TidingsError, *FAILURES) as error:
            if isinstance(error, aiohttp.SocketTimeoutError):
                raise Transient(f"{shown} was silent for {silence_seconds:g} s") from None
            raise call_failure(error, shown, sent=True, idempotent=True) from None
        raise Transient(f"{shown} ended its stream")
    raise Misconfigured(f"{url.host} redirects more than {limits.redirects} times; update its address")


def sibling(current: URL, location: str) -> URL:
    """Return where a redirect leads: the same host, or a machine beside it; never down from https to http."""
    try:
        target = current.join(URL(location))
    except ValueError:
        raise Misconfigured(f"{current.host} redirects to an unreadable address") from None
    here, there = current.host or "", target.host or ""
    domain = here.partition(".")[2]
    is_beside = not _is_literal(here) and "." in domain and there.endswith(f".{domain}")
    if target.scheme not in ("http", "https") or (current.scheme == "https" and target.scheme != "https"):
        raise Misconfigured(f"{here} redirects from https to {target.scheme or 'nothing'}")
    if target.raw_user is not None or not (there == here or is_beside):
        raise Misconfigured(f"{here} redirects to {there}, which is not beside it; update its address")
    return target


def _is_literal(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def _check(answer: aiohttp.ClientResponse, shown: str) -> None:
    headers = plain_headers(answer.headers)
    raise_for_status(Response(answer.status, str(answer.url.with_query(None)), headers), f"the stream of {shown}")
    if not headers.get("content-type", "").startswith(ACCEPT):
        raise Transient(f"{shown} answers without streaming")


async def _parsed(content: aiohttp.StreamReader, shown: str) -> AsyncIterator[ServerEvent]:
    """Split the stream into events; comments and fields we do not use are skipped."""
    rest, name, data = b"", "message", list[str]()
    async for chunk in content.iter_any():
        *lines, rest = (rest + chunk).split(b"\n")
        if len(rest) + sum(map(len, data)) > EVENT_BYTES_MAX:
            raise Transient(f"{shown} sent an event above {EVENT_BYTES_MAX} bytes")
        for line in lines:
            field, _, value = line.rstrip(b"\r").decode("utf-8", "replace").partition(":")
            value = value.removeprefix(" ")
            if field == "event":
                name = value
            elif field == "data":
                data.append(value)
            elif not line.rstrip(b"\r"):
                if data or name != "message":
                    yield ServerEvent(name, "\n".join(data))
                name, data = "message", []
