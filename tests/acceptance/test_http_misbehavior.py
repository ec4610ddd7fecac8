"""Every way a server can fail us ends in the right class of error, within the limits, and leaves nothing behind."""

from __future__ import annotations

import asyncio
import socket
import ssl
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

import pytest
from tests.support.http_client import QUICK, make_certificate, nothing_leaks
from tests.support.misbehaving_web import MisbehavingWeb

from tidings.model.errors import Ambiguous, Misconfigured, Permanent, SlowDown, Transient
from tidings.model.web import Response
from tidings.net.client import Web

TIMES = 20
SECONDS_MAX = QUICK.total_seconds + 20.0
"""The servers here would hold on for ever; a busy machine may be late by some seconds."""

PAGES: list[tuple[str, type[BaseException] | None]] = [
    ("page", None),
    ("gzip", None),
    ("gzip-members", None),
    ("deflate", None),
    ("deflate/raw", None),
    ("length-too-short", None),
    ("charset-wrong", None),
    ("header-latin1", None),
    ("nul", None),
    ("surrogates", None),
    ("json/nan", None),
    ("json/deep", None),
    ("json/duplicate", None),
    ("json/integer", None),
    ("redirect-chain/5", None),
    ("redirect-bomb", None),
    ("one-byte-chunks/20000", None),
    ("status/500", Transient),
    ("status/502", Transient),
    ("status/503", Transient),
    ("status/503/garbage", Transient),
    ("status/503/-5", Transient),
    ("status/504", Transient),
    ("status/204", Transient),
    ("status/408", Transient),
    ("status/429", SlowDown),
    ("status/400", Permanent),
    ("status/401", Permanent),
    ("status/403", Permanent),
    ("status/404", Permanent),
    ("status/410", Permanent),
    ("status/451", Permanent),
    ("status/304", Permanent),
    ("silence", Transient),
    ("reset-before-headers", Transient),
    ("early-reset", Transient),
    ("hang-up", Transient),
    ("reset-mid-body", Transient),
    ("drip-headers", Transient),
    ("drip-body", Transient),
    ("endless-header", Transient),
    ("endless-headers", Transient),
    ("endless-continue", Transient),
    ("endless-body", Permanent),
    ("length-too-long", Transient),
    ("length-negative", Transient),
    ("length-twice", Transient),
    ("length-huge", Permanent),
    ("chunk-garbage", Transient),
    ("not-http", Transient),
    ("gzip-truncated", Transient),
    ("gzip-damaged", Transient),
    ("gzip-bomb", Permanent),
    ("gzip-bomb-twice", Permanent),
    ("coding/gzip%2C%20gzip", Permanent),
    ("coding/br", Permanent),
    ("coding/zstd", Permanent),
    ("coding/x", Permanent),
    ("type/image%2Fpng", Permanent),
    ("type/application%2Foctet-stream", Permanent),
    ("type/image%2Fsvg%2Bxml", Permanent),
    ("redirect-loop", Permanent),
    ("redirect-chain/30", Permanent),
    ("redirect-nowhere", Permanent),
    ("redirect/302/file:%2F%2F%2Fetc%2Fpasswd", Permanent),
    ("redirect/302/http:%2F%2F169.254.169.254%2F", Permanent),
]

# How a request that changes something ends: 2xx to 5xx come back, everything after the first byte is unknown.
POSTS: list[tuple[str, type[BaseException] | None]] = [
    ("page", None),
    ("status/204", None),
    ("status/500", None),
    ("status/429", None),
    ("rate-limit/float", None),
    ("rate-limit/global", None),
    ("rate-limit/html", None),
    ("silence", Ambiguous),
    ("reset-before-headers", Ambiguous),
    ("early-reset", Ambiguous),
    ("hang-up", Ambiguous),
    ("reset-mid-body", Ambiguous),
    ("drip-headers", Ambiguous),
    ("drip-body", Ambiguous),
    ("endless-headers", Ambiguous),
    ("endless-body", Ambiguous),
    ("length-too-long", Ambiguous),
    ("length-twice", Ambiguous),
    ("gzip-truncated", Ambiguous),
    ("gzip-bomb", Ambiguous),
    ("coding/br", Ambiguous),
    ("not-http", Ambiguous),
]


@pytest.fixture
async def bad() -> AsyncIterator[MisbehavingWeb]:
    async with MisbehavingWeb() as server:
        yield server


def a_web(*servers: MisbehavingWeb, **options: object) -> Web:
    given = {
        "user_agent": "tidings/test",
        "endpoints": [server.origin for server in servers],
        "loopback_allowed": frozenset((server.host, server.port) for server in servers),
        "per_host_delay_seconds": 0.0,
        "per_host_concurrency": 64,
        "limits": QUICK,
        "obey_robots": False,
    }
    return Web(**(given | options))  # type: ignore[arg-type]  # options of many types


@pytest.mark.parametrize(("path", "expected"), PAGES)
async def test_a_page_that_misbehaves(bad, path, expected):
    async with nothing_leaks(), a_web(bad) as web:
        started = time.monotonic()
        endings = await asyncio.gather(
            *(web.page(f"{bad.origin}/{path}") for _ in range(TIMES)), return_exceptions=True
        )
        assert time.monotonic() - started < SECONDS_MAX
    check(endings, expected)


@pytest.mark.parametrize(("path", "expected"), POSTS)
async def test_an_endpoint_that_misbehaves_after_the_request_was_sent(bad, path, expected):
    async with nothing_leaks(), a_web(bad) as web:
        calls = (web.call("POST", f"{bad.origin}/{path}", json={"n": 1}, timeout_seconds=1.5) for _ in range(TIMES))
        endings = await asyncio.gather(*calls, return_exceptions=True)
    check(endings, expected)
    assert len(bad.seen) == TIMES  # Nothing that changes things is ever sent twice by itself.


def check(endings: list[Response | BaseException], expected: type[BaseException] | None) -> None:
    for ending in endings:
        if expected is None:
            assert isinstance(ending, Response), ending
        else:
            assert type(ending) is expected or (expected is Permanent and isinstance(ending, Permanent)), repr(ending)
            assert "127.0.0.1" in str(ending) or "refused" in str(ending)


@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_nobody_listens(bad, method):
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        origin = f"http://127.0.0.1:{closed.getsockname()[1]}"
    async with nothing_leaks(), a_web(bad, endpoints=[origin]) as web:
        for _ in range(TIMES):
            with pytest.raises(Transient) as failed:
                await web.call(method, f"{origin}/page", data=b"x")
            assert not isinstance(failed.value, Ambiguous)


async def test_a_black_hole_that_never_accepts_is_no_unknown_outcome(bad):
    with socket.socket() as hole:
        hole.bind(("127.0.0.1", 0))
        hole.listen(0)
        fillers = [socket.socket() for _ in range(3)]
        for filler in fillers:
            filler.setblocking(False)
            filler.connect_ex(hole.getsockname())
        origin = f"http://127.0.0.1:{hole.getsockname()[1]}"
        async with nothing_leaks(), a_web(bad, endpoints=[origin]) as web:
            with pytest.raises(Transient) as failed:
                await web.call("POST", f"{origin}/page", data=b"x", timeout_seconds=1.0)
            assert not isinstance(failed.value, Ambiguous)
        for filler in fillers:
            filler.close()


async def test_a_million_one_byte_chunks_end_within_the_time_limit(bad):
    async with nothing_leaks(), a_web(bad) as web:
        started = time.monotonic()
        with suppress(Transient):  # A fast machine reads them all in time.
            await web.page(f"{bad.origin}/one-byte-chunks/1000000")
        assert time.monotonic() - started < SECONDS_MAX


def tls_server(certificate: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    return context


@pytest.mark.parametrize(
    ("name", "options", "trusted"),
    [
        ("expired", {"expired": True}, True),
        ("wrong-host", {"host": "DNS:elsewhere.example"}, True),
        ("self-signed", {}, False),
    ],
)
async def test_certificates_that_cannot_be_trusted(tmp_path, name, options, trusted):
    certificate = make_certificate(tmp_path, name, **options)
    client = ssl.create_default_context(cafile=str(certificate.with_suffix(".crt")) if trusted else None)
    async with MisbehavingWeb(tls=tls_server(certificate)) as server:
        async with nothing_leaks(), a_web(server, ssl_context=client) as web:
            with pytest.raises(Permanent, match="certificate"):
                await web.page(f"{server.origin}/page")
            with pytest.raises(Misconfigured, match="certificate"):
                await web.call("POST", f"{server.origin}/page", json={})
        assert server.seen == []


async def test_a_good_certificate_is_trusted_and_never_left_for_plain_http(tmp_path, bad):
    certificate = make_certificate(tmp_path, "good")
    client = ssl.create_default_context(cafile=str(certificate.with_suffix(".crt")))
    async with MisbehavingWeb(tls=tls_server(certificate)) as server:
        async with nothing_leaks(), a_web(server, bad, ssl_context=client) as web:
            assert (await web.page(f"{server.origin}/page")).status == 200
            with pytest.raises(Permanent, match="plain http"):
                await web.page(f"{server.origin}/redirect/302/{bad.origin.replace('/', '%2F')}%2Fpage")
        assert bad.seen == []


async def test_plain_http_on_a_tls_port_is_transient(bad):
    origin = bad.origin.replace("http:", "https:")
    async with nothing_leaks(), a_web(bad, endpoints=[origin]) as web:
        with pytest.raises(Transient):
            await web.page(f"{origin}/page")
        with pytest.raises(Transient) as failed:
            await web.call("POST", f"{origin}/page", json={}, timeout_seconds=1.5)
        assert not isinstance(failed.value, Ambiguous)
