"""What every target must do, asked of each of them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from redis.asyncio import Redis
from tests.support.bucket import Bucket, a_bucket

from tidings.follow.mirrors.addresses import TargetAddress, open_target
from tidings.follow.mirrors.bucket_target import BucketTarget
from tidings.follow.mirrors.folder_target import FolderTarget
from tidings.follow.mirrors.redis_target import RedisTarget
from tidings.follow.mirrors.target import Target, WrittenByAnother
from tidings.model.errors import Misconfigured, Transient


@pytest.fixture
def bucket() -> Iterator[Bucket]:
    with a_bucket() as bucket:
        yield bucket
        assert bucket.refusals == []


@pytest.fixture(params=["redis", "folder", "bucket"])
async def target(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Target]:
    if request.param == "redis":
        made: Target = RedisTarget(request.getfixturevalue("redis_url"))
    elif request.param == "folder":
        made = FolderTarget(f"file://{tmp_path}/copy")
    else:
        made = in_bucket(request.getfixturevalue("bucket"))
    yield made
    await made.close()


def in_bucket(bucket: Bucket) -> BucketTarget:
    return BucketTarget("s3://news/copy", access_key="AKTEST", secret="hidden", endpoint=bucket.endpoint)


async def test_values_are_put_read_listed_and_removed(target: Target) -> None:
    assert await target.hold()
    values = {f"a/{number}.json": f"{number}".encode() for number in range(20)}
    assert await target.put_many(values | {"b/1.json": b"other"}) == set()

    assert await target.get_many([*values, "a/none.json"]) == values
    assert await target.keys("a/") == set(values)

    await target.delete_many(["a/3.json", "a/none.json"])
    assert await target.keys("a/") == set(values) - {"a/3.json"}
    assert await target.get_many(["a/3.json"]) == {}


async def test_a_value_is_replaced_whole(target: Target) -> None:
    await target.put_many({"a/1.json": b"long" * 1_000})
    await target.put_many({"a/1.json": b"short"})

    assert await target.get_many(["a/1.json"]) == {"a/1.json": b"short"}


async def test_of_two_who_replace_a_value_one_is_refused(target: Target) -> None:
    key = "tidings/x.json"
    assert await target.tag(key) is None
    first = await target.replace(key, b"1", None)
    assert await target.tag(key) == first
    with pytest.raises(WrittenByAnother):
        await target.replace(key, b"x", None)

    second = await target.replace(key, b"2", first)
    assert second != first
    with pytest.raises(WrittenByAnother):
        await target.replace(key, b"y", first)

    assert await target.get_many([key]) == {key: b"2"}


async def test_odd_names_are_kept_apart(target: Target) -> None:
    values = {"a/%2F%3F*.json": b"1", "a/[x].json": b"2", "a/ä ö.json": b"3"}
    await target.put_many(values)

    assert await target.get_many(list(values)) == values
    assert await target.keys("a/") == set(values)


async def test_a_folder_has_one_writer(tmp_path: Path) -> None:
    mine, theirs = FolderTarget(f"file://{tmp_path}"), FolderTarget(f"file://{tmp_path}")
    assert await mine.hold()
    assert not await theirs.hold()

    await mine.close()
    assert await theirs.hold()
    await theirs.close()


async def test_what_a_dead_process_left_half_written_is_removed(tmp_path: Path) -> None:
    (tmp_path / "api").mkdir()
    (tmp_path / "api" / ".new-1").write_bytes(b"ha")
    target = FolderTarget(f"file://{tmp_path}")
    assert await target.hold()

    assert list((tmp_path / "api").iterdir()) == []
    await target.close()


async def test_a_folder_that_cannot_be_written_is_tried_again(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    target = FolderTarget(f"file://{tmp_path}/file/copy")

    with pytest.raises(Transient, match="Not a directory"):
        await target.put_many({"a.json": b""})


async def test_objects_have_the_types_that_browsers_need(bucket: Bucket) -> None:
    await in_bucket(bucket).put_many({"a.json": b"{}", "feeds/x.rss": b"<rss/>"})

    assert bucket.types == {"copy/a.json": "application/json", "copy/feeds/x.rss": "application/rss+xml"}


async def test_a_bucket_that_does_not_answer_is_tried_again(bucket: Bucket) -> None:
    target = in_bucket(bucket)
    bucket.is_down = True
    with pytest.raises(Transient) as told:
        await target.put_many({"a.json": b"{}"})
    assert "hidden" not in str(told.value)

    bucket.is_down = False
    assert await target.put_many({"a.json": b"{}"}) == set()


@pytest.mark.parametrize(
    "url",
    [
        "gopher://x",
        "file://host/folder",
        "file:///",
        "s3:///x",
        "redis://host:port/x",
        "redis://host/0?odd=1",
        "redis://host/news",
        "redis://[::1/0",
    ],
)
def test_odd_addresses_are_refused(url: str) -> None:
    with pytest.raises(Misconfigured):
        open_target(TargetAddress(url))


async def test_keys_that_are_no_text_or_hold_no_text_are_left_alone(redis: RedisTarget, redis_server: str) -> None:
    foreign = Redis.from_url(redis_server)
    prefix = redis._name("")
    await foreign.set(prefix.encode() + b"article:\xff\xfe", b"x")
    await foreign.rpush(f"{prefix}article:list", "x")
    await redis.put_many({"article:1": b"{}"})

    assert await redis.keys("article:") == {"article:1", "article:list"}
    assert await redis.get_many(["article:1", "article:list"]) == {"article:1": b"{}"}
    assert await redis.put_many({"article:list": b"{}"}) == set()
    assert await redis.get_many(["article:list"]) == {"article:list": b"{}"}
    await foreign.aclose()


async def test_a_wrong_type_under_our_own_names_is_told(redis: RedisTarget, redis_server: str) -> None:
    foreign = Redis.from_url(redis_server)
    for name in ("tidings:writer", "tidings:tag:x"):
        await foreign.rpush(redis._name(name), "x")

    with pytest.raises(Transient, match="WRONGTYPE"):
        await redis.hold()
    with pytest.raises(Transient, match="WRONGTYPE"):
        await redis.tag("x")
    await foreign.aclose()
