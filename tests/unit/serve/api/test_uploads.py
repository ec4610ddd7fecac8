from __future__ import annotations

import asyncio
import gzip
import json

import pytest
from tests.unit.serve.asgi import Client
from tests.unit.serve.world import World

from tidings.serve.application import build
from tidings.serve.backend import UploadLimits

ITEMS = "/api/v1/hacker_news/items"
BULK = f"{ITEMS}/bulk"


@pytest.fixture
def sender(world: World) -> Client:
    return Client(build(world.backend()), token="sender")


async def test_one_item_is_accepted_and_wakes_the_workers(sender: Client, world: World):
    answer = await sender.post(ITEMS, {"id": 5, "type": "story"})

    assert answer.status == 202
    assert answer.json == {"accepted": 1, "duplicate": 0, "rejected": [], "new": 1, "changed": 0}
    assert world.wakes == 1


async def test_one_item_may_be_laid_out_over_lines(sender: Client):
    answer = await sender.post(ITEMS, content=b'{\n  "id": 5,\n  "type": "story"\n}\n')

    assert answer.status == 202


async def test_known_and_changed_items_are_told_apart(sender: Client):
    await sender.post(ITEMS, {"id": 5, "score": 1})

    again = await sender.post(ITEMS, {"id": 5, "score": 1})
    changed = await sender.post(ITEMS, {"id": 5, "score": 2})

    assert again.json["duplicate"] == 1
    assert again.json["accepted"] == 0
    assert changed.json["changed"] == 1


async def test_a_refused_item_says_why(sender: Client, world: World):
    answer = await sender.post(ITEMS, {"type": "story"})

    assert answer.status == 422
    assert "positive whole number" in answer.json["detail"]
    assert world.executor.calls.count("append") == 0


@pytest.mark.parametrize(
    "body", [b"", b"{", b"{} {}", b'{"id":1},{"id":2}', b'{"id":1}],[{"id":2}', b'{"id": NaN}', b'{"id":1,"id":2}']
)
async def test_what_is_not_exactly_one_object_is_refused(sender: Client, world: World, body: bytes):
    answer = await sender.post(ITEMS, content=body)

    assert answer.status in (400, 422)
    assert world.executor.calls.count("append") == 0


@pytest.mark.parametrize(
    ("body", "detail"),
    [
        (b'{"id": 5', "The body cannot be read: cut off: it ends inside a value."),
        (b'{"id": 5]', "The body cannot be read: no JSON: expected ',' or '}' (byte 8)."),
        (b"", "The body must hold exactly one JSON object."),
    ],
)
async def test_what_cannot_be_read_is_told_in_the_senders_terms(sender: Client, body: bytes, detail: str):
    assert (await sender.post(ITEMS, content=body, headers={"content-type": "application/json"})).json[
        "detail"
    ] == detail


@pytest.mark.parametrize("media_type", ["application/json", "application/x-ndjson"])
async def test_many_come_as_an_array_or_as_lines(sender: Client, media_type: str):
    values = [{"id": 1}, {"id": 2}, {"nope": 1}, {"id": 1}]
    lines = "\n".join(json.dumps(value) for value in values)
    body = json.dumps(values) if media_type == "application/json" else lines

    answer = await sender.post(BULK, content=body.encode(), headers={"content-type": media_type})

    assert answer.status == 202
    assert answer.json["accepted"] == 2
    assert answer.json["duplicate"] == 1
    assert [each["line"] for each in answer.json["rejected"]] == [3]
    assert answer.json["accepted"] + answer.json["duplicate"] + len(answer.json["rejected"]) == 4


async def test_a_bad_line_stops_nobody(sender: Client):
    answer = await sender.post(
        BULK, content=b'{"id":1}\n{oops\n{"id":2}\n', headers={"content-type": "application/x-ndjson"}
    )

    assert answer.json["accepted"] == 2
    assert answer.json["rejected"][0]["line"] == 2


async def test_a_repeated_key_gets_the_same_answer_and_appends_once(sender: Client, world: World):
    headers = {"idempotency-key": "k-1"}

    first = await sender.post(BULK, [{"id": 1}], headers=headers)
    second = await sender.post(BULK, [{"id": 1}], headers=headers)
    other = await sender.post(BULK, [{"id": 2}], headers=headers)

    assert first.json == second.json
    assert second.headers["idempotency-replayed"] == "true"
    assert other.status == 422
    assert world.executor.calls.count("append") == 1


async def test_keys_of_other_callers_are_other_keys(world: World):
    app = build(world.backend())
    headers = {"idempotency-key": "k-1"}

    await Client(app, token="sender").post(ITEMS, {"id": 1}, headers=headers)
    other = await Client(app, token="operator").post(ITEMS, {"id": 2}, headers=headers)

    assert other.status == 202
    assert other.json["accepted"] == 1


async def test_bodies_have_limits(world: World):
    limits = UploadLimits(one_bytes_max=100, bulk_bytes_max=1_000, bulk_lines_max=3)
    sender = Client(build(world.backend(limits=limits)), token="sender")
    lines = {"content-type": "application/x-ndjson"}

    large = await sender.post(ITEMS, {"id": 1, "text": "x" * 200})
    lying = await sender.post(ITEMS, content=b"x" * 200, headers={"content-length": "5"})
    many = await sender.post(BULK, content=b'{"id":1}\n' * 4, headers=lines)
    huge = await sender.post(BULK, content=b'{"id":1}\n' * 400, headers=lines)

    assert [each.status for each in (large, lying, many, huge)] == [413, 413, 413, 413]
    assert world.executor.calls.count("append") == 0


async def test_types_and_codings_are_checked(sender: Client):
    form = await sender.post(ITEMS, content=b"{}", headers={"content-type": "application/x-www-form-urlencoded"})
    none = await sender.post(ITEMS, content=b"{}", headers={"content-type": ""})
    packed = await sender.post(ITEMS, content=b"{}", headers={"content-encoding": "br"})

    assert [each.status for each in (form, none, packed)] == [415, 415, 415]
    assert "gzip" in packed.text


async def test_compressed_bodies_are_read_within_the_limits_of_plain_ones(world: World):
    limits = UploadLimits(one_bytes_max=100, bulk_bytes_max=1_000, bulk_lines_max=30)
    sender = Client(build(world.backend(limits=limits)), token="sender")
    packed = {"content-type": "application/x-ndjson", "content-encoding": "gzip"}
    one, other = gzip.compress(b'{"id":801,"type":"story"}\n'), gzip.compress(b'{"id":802,"type":"story"}\n')

    both = await sender.post(BULK, content=one + other, headers=packed)
    bomb = await sender.post(BULK, content=gzip.compress(b" " * 5_000_000)[:900], headers=packed)
    cut = await sender.post(BULK, content=one[:-12], headers=packed)
    torn = await sender.post(BULK, content=b"{}", headers=packed)

    assert (both.status, both.json["accepted"]) == (202, 2)
    assert [each.status for each in (bomb, cut, torn)] == [413, 400, 400]


async def test_a_store_that_is_away_acknowledges_nothing(sender: Client, world: World):
    await sender.get("/healthz")
    await sender.post(ITEMS, {"id": 1})
    world.executor.is_down = True

    answer = await sender.post(ITEMS, {"id": 2})

    assert answer.status == 503
    assert "accepted" not in answer.json


async def test_the_same_key_at_the_same_time_is_a_conflict(world: World):
    sender = Client(build(world.backend()), token="sender")
    gate = asyncio.Event()
    write = world.executor.write

    async def slow(*args: object, **kwargs: object) -> object:
        await gate.wait()
        return await write(*args, **kwargs)  # type: ignore[arg-type]

    world.executor.write = slow  # type: ignore[method-assign]
    headers = {"idempotency-key": "k-1"}
    posts = [asyncio.create_task(sender.post(ITEMS, {"id": 1}, headers=headers)) for _ in range(2)]
    await asyncio.wait(posts, return_when=asyncio.FIRST_COMPLETED, timeout=5)
    gate.set()

    assert sorted(answer.status for answer in await asyncio.gather(*posts)) == [202, 409]
