from __future__ import annotations

from collections.abc import AsyncIterator, Callable

import pytest
from tests.support.http_client import QUICK
from tests.support.misbehaving_web import MisbehavingWeb

from tidings.net.client import Web


@pytest.fixture
async def bad() -> AsyncIterator[MisbehavingWeb]:
    async with MisbehavingWeb() as server:
        yield server


@pytest.fixture
def a_web(bad: MisbehavingWeb) -> Callable[..., Web]:
    """Build a client that may reach the stand-in, both as a page and as an endpoint."""

    def build(**options: object) -> Web:
        given = {
            "user_agent": "tidings/test (+https://example.com)",
            "endpoints": [bad.origin],
            "loopback_allowed": frozenset({(bad.host, bad.port)}),
            "per_host_delay_seconds": 0.0,
            "limits": QUICK,
        }
        return Web(**(given | options))  # type: ignore[arg-type]  # options of many types

    return build


@pytest.fixture
async def web(a_web: Callable[..., Web]) -> AsyncIterator[Web]:
    async with a_web() as client:
        yield client
