"""No address that untrusted content chooses is ever connected to unless it is public: watched at the socket layer."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from urllib.parse import quote

import aiohttp
import pytest
from tests.support.addresses import FORBIDDEN_V4, FORBIDDEN_V6, PUBLIC, addresses, hosts, literals
from tests.support.http_client import QUICK, Names, connects, nothing_leaks
from tests.support.misbehaving_web import MisbehavingWeb

from tidings.model.errors import Permanent, Transient
from tidings.net import client
from tidings.net.client import Web

PUBLIC_ADDRESS = "93.184.216.34"


def a_web(answer: Callable[[str], Sequence[str]] = lambda _: [PUBLIC_ADDRESS], **options: object) -> Web:
    given = {
        "user_agent": "tidings/test",
        "resolver": Names(answer),
        "limits": QUICK,
        "per_host_delay_seconds": 0.0,
        "obey_robots": False,
    }
    return Web(**(given | options))  # type: ignore[arg-type]  # options of many types


def resolved_badly() -> list[list[str]]:
    """Return answers a name server may give: forbidden ones alone, and hidden among public ones."""
    bare = [host.strip("[]") for host in literals()]
    mixed = [[PUBLIC_ADDRESS, address] for address in bare[::2]] + [[address, PUBLIC_ADDRESS] for address in bare[1::2]]
    return [[address] for address in bare] + mixed


def test_the_corpus_is_large_enough():
    assert len(set(addresses())) + len(resolved_badly()) + len(set(hosts())) >= 400
    assert len(FORBIDDEN_V4) + len(FORBIDDEN_V6) >= 40


async def test_no_forbidden_spelling_makes_a_connection():
    with connects() as made:
        async with nothing_leaks(), a_web() as web:
            for url in addresses():
                with pytest.raises(Permanent):
                    await web.page(url)
    assert made == []


async def test_no_name_with_a_forbidden_answer_makes_a_connection():
    answers: dict[str, Sequence[str]] = {f"site{n}.example": found for n, found in enumerate(resolved_badly())}
    with connects() as made:
        async with nothing_leaks(), a_web(lambda host: answers[host]) as web:
            for host in answers:
                with pytest.raises(Permanent):
                    await web.page(f"http://{host}/")
    assert made == []


async def test_no_redirect_leads_inside():
    targets = [f"http://{host}/" for host in literals()[::2]]
    targets += [
        "file:///etc/passwd",
        "ftp://example.com/",
        "gopher://example.com/",
        "//169.254.169.254/latest/meta-data",
    ]
    targets += [
        "http://localhost/",
        "http://2130706433/",
        "http://127.0.0.1:1/",
        "\\\\169.254.169.254\\",
        "http://a@b/",
    ]
    async with MisbehavingWeb() as bad:
        allowed = (bad.host, bad.port)
        with connects() as made:
            async with nothing_leaks(), a_web(loopback_allowed=frozenset({allowed})) as web:
                for target in targets:
                    with pytest.raises(Permanent):
                        await web.page(f"{bad.origin}/redirect/302/{quote(target, safe='')}")
        assert set(made) == {allowed}
        assert len(bad.seen) == len(targets)


async def test_a_name_that_turns_inward_between_two_requests_is_judged_again():
    turns = itertools.cycle([[PUBLIC_ADDRESS], ["127.0.0.1"], ["169.254.169.254"], [PUBLIC_ADDRESS, "10.0.0.1"]])
    with connects() as made:
        async with a_web(lambda _: next(turns)) as web:
            for expected in itertools.islice(itertools.cycle([Transient, Permanent, Permanent, Permanent]), 40):
                with pytest.raises(expected):
                    await web.page("http://rebinding.example/")
    assert made == [(PUBLIC_ADDRESS, 80)] * 10


async def test_a_redirect_to_the_same_name_is_resolved_and_judged_again():
    async with MisbehavingWeb() as bad:
        with connects() as made:
            async with a_web(lambda _: ["127.0.0.1"], loopback_allowed=frozenset({(bad.host, bad.port)})) as web:
                with pytest.raises(Permanent):
                    await web.page(f"{bad.origin}/redirect/302/{quote('http://rebound.example/', safe='')}")
        assert set(made) == {(bad.host, bad.port)}


async def test_the_socket_gate_holds_when_the_resolver_gate_is_gone(monkeypatch):
    monkeypatch.setattr(client, "GuardedResolver", lambda inner, guard: inner)
    bare = [host.strip("[]") for host in literals()]
    answers = {f"site{n}.example": [address] for n, address in enumerate(bare)}
    with connects() as made:
        async with nothing_leaks(), a_web(lambda host: answers[host]) as web:
            for host in answers:
                with pytest.raises(Permanent):
                    await web.page(f"http://{host}/")
    assert made == []


@pytest.mark.parametrize("address", PUBLIC)
async def test_public_hosts_are_reached(address):
    with connects() as made:
        async with a_web(lambda _: [address]) as web:
            with pytest.raises(Transient):
                await web.page("https://public.example/")
    assert made == [(address, 443)]


async def test_proxy_variables_are_ignored(monkeypatch):
    for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    async with MisbehavingWeb() as bad:
        with connects() as made:
            async with a_web(loopback_allowed=frozenset({(bad.host, bad.port)}), endpoints=[bad.origin]) as web:
                await web.page(f"{bad.origin}/page")
                await web.call("POST", f"{bad.origin}/echo", json={})
        assert set(made) == {(bad.host, bad.port)}


async def test_a_trusted_endpoint_does_not_open_the_same_address_to_pages():
    async with MisbehavingWeb() as bad, a_web(endpoints=[bad.origin]) as web:
        assert (await web.call("GET", f"{bad.origin}/page")).status == 200
        with pytest.raises(Permanent):
            await web.page(f"{bad.origin}/page")


def test_the_client_library_still_has_the_seam_the_guard_stands_on():
    assert "socket_factory" in aiohttp.TCPConnector.__init__.__annotations__
