from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from itertools import count

import pytest
from tests.support.clock import ManualClock
from tests.support.redis import a_redis
from tests.unit.follow.mirrors.stream import NOW_MS, Stream

from tidings.follow.mirrors.redis_target import RedisTarget

_numbers = count()


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(NOW_MS)


@pytest.fixture
def stream(clock: ManualClock) -> Stream:
    return Stream(clock)


@pytest.fixture(scope="session")
def redis_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with a_redis(tmp_path_factory.mktemp("redis")) as url:
        yield url


@pytest.fixture
def redis_url(redis_server: str) -> str:
    """A part of the server that no other test uses."""
    return f"{redis_server}?prefix=test{next(_numbers)}/"


@pytest.fixture
async def redis(redis_url: str) -> AsyncIterator[RedisTarget]:
    target = RedisTarget(redis_url)
    yield target
    await target.close()
