from tidings.model.web import Response
from tidings.net.cache import MemoryCache, decode, encode, stored_key, worth_storing


async def test_values_expire():
    now = [0.0]
    cache = MemoryCache(clock=lambda: now[0])
    await cache.put("a", b"1", 10)
    assert await cache.get("a") == b"1"
    now[0] = 10.0
    assert await cache.get("a") is None


async def test_the_least_used_gives_way():
    cache = MemoryCache(size_bytes_max=10)
    await cache.put("a", b"12345", 60)
    await cache.put("b", b"12345", 60)
    await cache.get("a")
    await cache.put("c", b"123", 60)
    assert await cache.get("b") is None
    assert await cache.get("a") == b"12345"


def test_only_answers_that_can_be_asked_about_again_are_kept():
    def stored(status: int = 200, **headers: str) -> bool:
        return (
            worth_storing(Response(status, "u", {k.replace("_", "-"): v for k, v in headers.items()}, b"x"), 10)
            is not None
        )

    assert stored(etag='"1"')
    assert stored(last_modified="Tue, 14 Nov 2023 22:13:20 GMT")
    assert not stored()
    assert not stored(404, etag='"1"')
    assert not stored(etag='"1"', cache_control="private, No-Store")
    assert worth_storing(Response(200, "u", {"etag": "1"}, b"x" * 11), 10) is None


def test_stored_answers_survive_and_strange_ones_count_as_absent():
    kept = worth_storing(Response(200, "u", {"etag": "1", "content-type": "text/html"}, b"x"), 10)
    assert kept is not None
    assert decode(encode(kept)) == kept
    assert decode(b"\xc1 not msgpack") is None
    assert decode(b"\x81\xa1a\x01") is None


def test_keys_tell_callers_apart_without_naming_them():
    keys = {stored_key("GET", "https://e.com/?key=canary", {"authorization": a}) for a in ("canary1", "canary2")}
    assert len(keys) == 2
    assert not any("canary" in key for key in keys)
