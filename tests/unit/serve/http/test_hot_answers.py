"""What the server keeps in memory stays within its limit, whatever is asked."""

from __future__ import annotations

import random
from functools import partial
from typing import Any

from tests.unit.serve.asgi import Client
from tests.unit.serve.world import World

from tidings.serve.application import build
from tidings.serve.http.hot_answers import HotAnswers
from tidings.serve.http.replies import Encoded

LIMIT = 500_000


async def nothing(_message: Any) -> None:
    return None


async def test_kept_answers_stay_within_their_bytes_compressed_ones_too(world: World):
    hot = HotAnswers(world.executor, world.store.shelf, ["bitcoin_news"], bytes_max=LIMIT)
    rng = random.Random(7)
    keys = [("/somewhere", b"q=%d" % number) for number in range(400)]
    most = 0
    for key in keys:
        # Noise does not become smaller: the compressed copy takes as much again.
        body = rng.randbytes(rng.randint(2_000, 20_000))
        encoded = await hot.get(key, "bitcoin_news", "/somewhere", partial(made, body))
        await encoded.send(nothing, b"gzip", b"")
        kept = [answer.encoded for each in keys if (answer := hot.now(each)) is not None]
        most = max(most, sum(memory_of(each) for each in kept))

    assert 0 < most <= LIMIT


async def made(body: bytes) -> Encoded:
    return Encoded(body)


def memory_of(encoded: Encoded) -> int:
    return len(encoded.body) + sum(len(message["body"]) for message in (encoded._gzip or ()) if "body" in message)


async def test_an_answer_larger_than_everything_is_given_and_not_kept(world: World):
    hot = HotAnswers(world.executor, world.store.shelf, ["bitcoin_news"], bytes_max=LIMIT)
    key = ("/large", b"")

    encoded = await hot.get(key, "bitcoin_news", "/large", partial(made, b"x" * LIMIT))

    assert len(encoded.body) == LIMIT
    assert hot.now(key) is None


async def test_host_names_that_strangers_invent_are_not_remembered(world: World):
    app = build(world.backend())
    for number in range(3_000):
        assert (await Client(app, host=f"{number}.evil.example").get("/healthz")).status == 400
    assert (await Client(app).get("/healthz")).status == 200
    assert len(app._access._judged) == 1
