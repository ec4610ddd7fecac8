"""Mirrors on what others wrote: moto's S3, and Cloudflare's own runtime. Both are installed when first wanted."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from urllib.request import urlopen

import msgspec
import pytest
from tests.support.clock import ManualClock
from tests.support.miniflare import Runtime, a_runtime
from tests.support.moto import a_moto
from tests.unit.follow.mirrors.stream import PLAN, Stream, a_mirror, follow_all

from tidings.follow.mirrors.bucket_target import BucketTarget
from tidings.follow.mirrors.check import check
from tidings.follow.mirrors.cloudflare_target import CloudflareTarget
from tidings.follow.mirrors.mirror import Mirror, MirrorPace
from tidings.follow.mirrors.target import WrittenByAnother
from tidings.model.changes import Change
from tidings.model.errors import Transient
from tidings.net.client import Web

pytestmark = pytest.mark.slow
AT_ONCE = MirrorPace(0, 0, 20_000)


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    with a_moto() as address:
        yield address


@pytest.fixture(scope="module")
def runtime() -> Iterator[Runtime]:
    with a_runtime() as found:
        yield found


def in_bucket(endpoint: str, prefix: str, bucket: str = "news") -> BucketTarget:
    return BucketTarget(f"s3://{bucket}/{prefix}", access_key="AKTEST", secret="hidden", endpoint=endpoint)


async def test_objects_are_put_read_listed_and_removed(endpoint: str) -> None:
    target = in_bucket(endpoint, "objects")
    # More than a page of a list, and more than one call of DeleteObjects takes.
    values = {f"a/{number} ä%2F[x].json": f"{number}".encode() for number in range(1_050)}
    assert await target.put_many(values | {"b/1.json": b"other"}) == set()

    assert await target.get_many([*values, "a/none.json"]) == values
    assert await target.keys("a/") == set(values)

    await target.delete_many([*values, "a/none.json"])
    assert await target.keys("a/") == set()
    assert await target.keys("b/") == {"b/1.json"}


async def test_of_two_who_replace_an_object_one_is_refused(endpoint: str) -> None:
    target, key = in_bucket(endpoint, "replaced"), "tidings/x.json"
    assert await target.tag(key) is None
    first = await target.replace(key, b"1", None)
    assert await target.tag(key) == first
    with pytest.raises(WrittenByAnother):
        await target.replace(key, b"x", None)

    await target.replace(key, b"2", first)
    with pytest.raises(WrittenByAnother):
        await target.replace(key, b"y", first)
    assert await target.get_many([key]) == {key: b"2"}


async def test_a_bucket_that_is_not_there_is_tried_again(endpoint: str) -> None:
    with pytest.raises(Transient, match="bucket nowhere"):
        await in_bucket(endpoint, "", bucket="nowhere").put_many({"a.json": b"{}"})


async def test_a_copy_in_s3_equals_the_shelf_and_survives_its_writer(
    endpoint: str, clock: ManualClock, stream: Stream
) -> None:
    target = in_bucket(endpoint, "copy")
    for number in range(30):
        stream.put(f"a/{number}", f"title {number}", sort=number)
    await written(a_mirror(target, clock, pace=AT_ONCE), stream)
    stream.withdraw("a/3")
    stream.put("a/4", "other", sort=4)
    successor = a_mirror(target, clock, pace=AT_ONCE)  # Another process: it knows only what the bucket says.
    await written(successor, stream)

    assert (await check(successor, PLAN, shown(stream))).is_none
    assert msgspec.json.decode((await target.get_many(["index/BTC_ID_INDEX.json"])).popitem()[1]) == stream.ids


async def test_a_worker_at_cloudflare_reads_what_was_mirrored(
    runtime: Runtime, clock: ManualClock, stream: Stream
) -> None:
    async with Web(user_agent="tests") as web:
        target = at_cloudflare(runtime, web)
        for number in range(120):
            stream.put(f"a:{number} ä", f"title {number}", sort=number)
        await written(a_mirror(target, clock, pace=AT_ONCE), stream)
        stream.withdraw("a:3 ä")
        stream.put("a:4 ä", "other", sort=4)
        await written(a_mirror(target, clock, pace=AT_ONCE), stream)

        seen = msgspec.json.decode(await asked(f"{runtime.worker}articles"))
        assert [card["id"] for card in seen] == stream.ids
        assert {f"article:{card['id']}": card for card in seen} == {
            key: msgspec.json.decode(value) for key, value in stream.cards.items()
        }
        assert await target.keys("article:") == set(stream.cards)


async def test_the_runtime_takes_the_longest_keys_we_make(runtime: Runtime, clock: ManualClock, stream: Stream) -> None:
    async with Web(user_agent="tests") as web:
        target = at_cloudflare(runtime, web, prefix="?prefix=long/")
        for sign in ("x", "ä", "鍵"):
            stream.put(sign * 600, "long")
        await written(a_mirror(target, clock, pace=AT_ONCE), stream)

        assert len(await target.keys("article:")) == 3
        refused = await target.put_many({"y" * 520: b"1", "short": b"1"})
        assert refused == {"y" * 520}


async def test_a_long_list_of_keys_comes_in_pages(runtime: Runtime) -> None:
    async with Web(user_agent="tests") as web:
        target = at_cloudflare(runtime, web, prefix="?prefix=pages/")
        values = {f"article:{number}": b"{}" for number in range(1_010)}
        assert await target.put_many(values) == set()

        assert await target.keys("article:") == set(values)
        assert await target.get_many(list(values)) == values
        await target.delete_many(list(values))
        assert await target.keys("article:") == set()


def at_cloudflare(runtime: Runtime, web: Web, prefix: str = "") -> CloudflareTarget:
    return CloudflareTarget(f"cloudflare-kv://acc/space{prefix}", web, token="token", endpoint=runtime.api)


async def written(mirror: Mirror, stream: Stream) -> None:
    await follow_all(mirror, stream)
    await mirror.flush(at_once=True)


def shown(stream: Stream) -> list[Change]:
    return [change for change in stream.after(None)[0] if change.value is not None]


async def asked(address: str) -> bytes:
    def read() -> bytes:
        with urlopen(address, timeout=30) as response:
            return bytes(response.read())

    return await asyncio.to_thread(read)
