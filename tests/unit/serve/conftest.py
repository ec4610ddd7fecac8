from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.unit.serve.asgi import Client
from tests.unit.serve.world import World, a_world

from tidings.serve.application import build


@pytest.fixture
def world() -> Iterator[World]:
    with a_world() as world:
        yield world


@pytest.fixture
def client(world: World) -> Client:
    """Someone on this machine."""
    return Client(build(world.backend()))


@pytest.fixture
def stranger(world: World) -> Client:
    """Someone elsewhere, without a token."""
    backend = world.backend(loopback=False, hosts=frozenset({"tidings.example"}))
    return Client(build(backend), host="tidings.example", peer="203.0.113.9")
