from __future__ import annotations

import pytest
from tests.unit.serve.asgi import Client
from tests.unit.serve.world import World, a_world

from tidings.serve.server import build


@pytest.fixture
def world() -> World:
    return a_world()


@pytest.fixture
def client(world: World) -> Client:
    """Someone on this machine."""
    return Client(build(world.parts()))


@pytest.fixture
def stranger(world: World) -> Client:
    """Someone elsewhere, without a token."""
    parts = world.parts(loopback=False, hosts=frozenset({"tidings.example"}))
    return Client(build(parts), host="tidings.example", peer="203.0.113.9")
