import asyncio
import json
import logging
import traceback
from urllib.parse import quote

import msgspec
import pytest
from tests.support.http_client import QUICK
from tests.support.misbehaving_web import MisbehavingWeb

from tidings.model.errors import Ambiguous, Misconfigured, Permanent, SlowDown, Transient
from tidings.net.cache import MemoryCache
from tidings.net.client import FetchLimits, FormPart, Web


def test_the_defaults_are_the_promise():
    limits = FetchLimits()
    assert (limits.redirects, limits.first_byte_seconds, limits.total_seconds) == (5, 10, 30)
    assert (limits.wire_bytes, limits.body_bytes) == (5 * 1024 * 1024, 20 * 1024 * 1024)


# Pages


async def test_a_page_arrives_with_its_address_and_headers(bad, web):
    response = await web.page(f"{bad.origin}/page?a=1#part")
    assert response.status == 200
    assert response.url == f"{bad.origin}/page?a=1"
    assert response.headers["content-type"] == "text/html; charset=utf-8"
    assert b"All is well" in response.body


async def test_we_say_who_we_are(bad, web):
    told = json.loads((await web.page(f"{bad.origin}/echo")).body)["headers"]
    assert told["user-agent"] == "tidings/test (+https://example.com)"
    assert "cookie" not in told


async def test_cookies_are_neither_shown_nor_sent_back(bad, web):
    assert "set-cookie" not in (await web.page(f"{bad.origin}/cookie")).headers
    await web.page(f"{bad.origin}/cookie")
    assert all("cookie" not in seen.headers for seen in bad.seen)


async def test_a_permanent_move_is_reported_as_far_as_it_is_permanent(bad, web):
    moved = await web.page(f"{bad.origin}/redirect-chain/3")
    assert moved.permanently_moved_to == moved.url == f"{bad.origin}/page"
    there = quote("/redirect/302/%2Fpage", safe="")
    partly = await web.page(f"{bad.origin}/redirect/308/{there}")
    assert partly.permanently_moved_to == f"{bad.origin}/redirect/302/%2Fpage"
    assert (await web.page(f"{bad.origin}/redirect/302/%2Fpage")).permanently_moved_to is None


async def test_a_smaller_cap_can_be_asked_for(bad, web):
    with pytest.raises(Permanent, match="too large"):
        await web.page(f"{bad.origin}/page", max_bytes=10)


async def test_robots_txt_is_asked_first_and_obeyed(a_web):
    async with MisbehavingWeb(robots=b"User-agent: *\nDisallow: /page\n") as site:
        async with a_web(loopback_allowed=frozenset({(site.host, site.port)})) as web:
            with pytest.raises(Permanent, match="robots"):
                await web.page(f"{site.origin}/page")
            await web.page(f"{site.origin}/echo")
            await web.page(f"{site.origin}/page", robots=False)
            with pytest.raises(Permanent, match="robots"):
                await web.page(f"{site.origin}/redirect/302/%2Fpage")
        assert [seen.path for seen in site.seen].count("/robots.txt") == 1
        async with a_web(loopback_allowed=frozenset({(site.host, site.port)}), obey_robots=False) as web:
            await web.page(f"{site.origin}/page")


async def test_a_host_that_wants_a_pause_is_not_asked_again(bad, web):
    with pytest.raises(SlowDown) as first:
        await web.page(f"{bad.origin}/status/429/30")
    assert first.value.retry_after_seconds == 30
    asked = len(bad.seen)
    with pytest.raises(SlowDown):
        await web.page(f"{bad.origin}/page")
    assert len(bad.seen) == asked


async def test_stand_ins_that_share_loopback_are_not_silenced_together(bad, a_web):
    other = MisbehavingWeb()
    async with other, a_web(loopback_allowed=frozenset({(bad.host, bad.port), (other.host, other.port)})) as web:
        with pytest.raises(SlowDown):
            await web.page(f"{bad.origin}/status/429/30")
        assert (await web.page(f"{other.origin}/page")).status == 200


async def test_an_unchanged_page_comes_from_the_stored_copy(bad, a_web):
    cache = MemoryCache()
    async with a_web(cache=cache) as web:
        first = await web.page(f"{bad.origin}/with-etag", conditional=True)
    async with a_web(cache=cache) as web:
        second = await web.page(f"{bad.origin}/with-etag", conditional=True)
        fresh = await web.page(f"{bad.origin}/with-etag")
    assert not first.not_modified
    assert second.not_modified
    assert second.body == first.body == fresh.body
    assert second.status == 200
    assert second.headers["content-type"] == first.headers["content-type"]
    assert not fresh.not_modified


async def test_undecodable_header_values_become_text(bad, web):
    note = (await web.page(f"{bad.origin}/header-latin1")).headers["x-note"]
    note.encode("utf-8")


async def test_messages_show_no_query_string(bad, web):
    secret = "key=canary"
    for path in ("silence", "status/500", "gzip-bomb", "redirect-loop", "type/image%2Fpng", "not-http", "hang-up"):
        with pytest.raises((Transient, Permanent)) as failed:
            await web.page(f"{bad.origin}/{path}?{secret}")
        assert secret not in "".join(traceback.format_exception(failed.value))


async def test_a_cancelled_fetch_leaves_nothing_behind(bad, web):
    task = asyncio.create_task(web.page(f"{bad.origin}/silence"))
    await asyncio.sleep(0.05)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (await web.page(f"{bad.origin}/page")).status == 200


async def test_no_more_connections_than_allowed(bad, a_web):
    async with a_web(max_connections=3, per_host_concurrency=50) as web:
        await asyncio.gather(*(web.page(f"{bad.origin}/echo?{n}", robots=False) for n in range(30)))
    assert bad.most_at_once <= 3


async def test_outside_its_block_the_client_refuses():
    web = Web(user_agent="tidings/test")
    with pytest.raises(RuntimeError):
        await web.page("https://example.com/")
    with pytest.raises(RuntimeError):
        await web.call("GET", "https://example.com/")


# Endpoints


async def test_only_exact_origins_are_called(bad, web):
    assert (await web.call("GET", f"{bad.origin}/page")).status == 200
    for other in (
        f"https://127.0.0.1:{bad.port}/",
        f"http://127.0.0.1:{bad.port + 1}/",
        f"http://localhost:{bad.port}/",
    ):
        with pytest.raises(Misconfigured):
            await web.call("GET", other)
    for nonsense in ("", "file:///etc/passwd", "http://", f"http://user:pw@127.0.0.1:{bad.port}/"):
        with pytest.raises(Misconfigured):
            await web.call("GET", nonsense)
    web.allow_endpoint("https://api.example.com/some/base/path")
    assert len(bad.seen) == 1


@pytest.mark.parametrize("status", [200, 204, 302, 400, 401, 404, 429, 500, 503])
async def test_every_status_comes_back(bad, web, status):
    assert (await web.call("GET", f"{bad.origin}/status/{status}")).status == status


async def test_json_parameters_and_headers_are_sent(bad, web):
    class Question(msgspec.Struct):
        text: str

    response = await web.call(
        "post",
        f"{bad.origin}/echo?a=1",
        params={"b": "ü&"},
        json=Question("why"),
        headers={"Authorization": "Bearer x"},
    )
    told = json.loads(response.body)
    assert told["method"] == "POST"
    assert told["path"] == "/echo?a=1&b=%C3%BC%26"
    assert told["headers"]["authorization"] == "Bearer x"
    assert told["headers"]["content-type"] == "application/json"
    assert told["body"] == '{"text":"why"}'
    assert response.url == f"{bad.origin}/echo"


async def test_forms_are_sent_in_parts(bad, web):
    parts = [FormPart("query", b'{"a":1}', "application/json", filename="blob"), FormPart("languages", b"en")]
    await web.call("POST", f"{bad.origin}/echo", data=parts)
    sent = bad.seen[-1]
    assert sent.headers["content-type"].startswith("multipart/form-data; boundary=")
    boundary = sent.headers["content-type"].partition("boundary=")[2].encode()
    assert sent.body.count(b"--" + boundary) == 3
    assert b'name="query"; filename="blob"\r\nContent-Type: application/json\r\n\r\n{"a":1}\r\n' in sent.body
    with pytest.raises(ValueError, match="unsafe"):
        await web.call("POST", f"{bad.origin}/echo", data=[FormPart('a"; evil="', b"")])


async def test_retries_are_for_requests_that_may_be_repeated(bad, web):
    assert (await web.call("GET", f"{bad.origin}/status/503", retries=2)).status == 503
    assert len(bad.seen) == 3
    assert (await web.call("POST", f"{bad.origin}/status/503", retries=2, data=b"x")).status == 503
    assert len(bad.seen) == 4
    with pytest.raises(Ambiguous):
        await web.call("POST", f"{bad.origin}/hang-up", retries=2, data=b"x")
    assert len(bad.seen) == 5
    assert (await web.call("GET", f"{bad.origin}/status/404", retries=2)).status == 404
    assert len(bad.seen) == 6


async def test_a_long_wait_is_the_callers_decision(bad, web):
    assert (await web.call("GET", f"{bad.origin}/status/503/120", retries=5)).status == 503
    assert len(bad.seen) == 1


async def test_redirects_are_followed_on_request_and_only_to_known_origins(bad, web):
    url = f"{bad.origin}/redirect/301/%2Fecho"
    assert (await web.call("GET", url)).status == 301
    followed = await web.call("GET", url, follow_redirects=True, headers={"Authorization": "Bearer x"})
    assert followed.permanently_moved_to == f"{bad.origin}/echo"
    assert json.loads(followed.body)["headers"]["authorization"] == "Bearer x"
    with pytest.raises(Misconfigured, match=r"elsewhere\.example"):
        await web.call("GET", f"{bad.origin}/redirect/301/http:%2F%2Felsewhere.example%2F", follow_redirects=True)
    assert (await web.call("POST", url, follow_redirects=True, data=b"x")).status == 301


async def test_our_headers_do_not_cross_to_another_origin(bad, web):
    async with MisbehavingWeb() as other:
        web.allow_endpoint(other.origin)
        there = quote(f"{other.origin}/echo", safe="")
        await web.call(
            "GET",
            f"{bad.origin}/redirect/302/{there}",
            follow_redirects=True,
            headers={"Authorization": "Bearer canary"},
        )
        assert "canary" not in repr(other.seen[-1].headers)


async def test_conditional_calls_keep_rate_limit_headers_fresh(bad, web):
    await web.call("GET", f"{bad.origin}/with-etag", conditional=True)
    again = await web.call("GET", f"{bad.origin}/with-etag", conditional=True)
    assert again.not_modified
    assert again.body
    assert again.headers["x-ratelimit-remaining"] == "7"
    other = await web.call("GET", f"{bad.origin}/with-etag", conditional=True, headers={"Authorization": "other"})
    assert not other.not_modified


async def test_changes_travel_on_a_connection_of_their_own(bad, web):
    await web.call("POST", f"{bad.origin}/echo", data=b"1")
    await web.call("POST", f"{bad.origin}/echo", data=b"2")
    assert [seen.headers.get("connection") for seen in bad.seen] == ["close", "close"]


async def test_secrets_of_endpoints_stay_out_of_errors_and_logs(bad, web, caplog):
    caplog.set_level(logging.DEBUG)
    for path in ("silence", "hang-up", "gzip-bomb", "not-http", "drip-headers", "length-too-long"):
        for method in ("GET", "POST"):
            with pytest.raises((Transient, Permanent)) as failed:
                await web.call(
                    method,
                    f"{bad.origin}/{path}/canary-path?key=canary-query",
                    headers={"Authorization": "canary-header"},
                    timeout_seconds=0.2,
                    data=b"canary-body",
                )
            assert "canary" not in "".join(traceback.format_exception(failed.value))
    assert "canary" not in caplog.text


async def test_a_nested_answer_is_within_the_callers_parser(bad, web):
    response = await web.call("GET", f"{bad.origin}/json/deep")
    with pytest.raises(RecursionError):
        msgspec.json.decode(response.body)


def test_short_limits_do_not_loosen_anything():
    assert QUICK.redirects == FetchLimits().redirects
