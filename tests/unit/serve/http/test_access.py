from __future__ import annotations

import asyncio

import pytest
from tests.unit.serve.asgi import Client
from tests.unit.serve.world import NOW_MS, World

from tidings.model.errors import StoreUnavailable
from tidings.serve.application import build
from tidings.serve.backend import RequestRates
from tidings.serve.http.access import RANKS
from tidings.serve.http.rates import Rate
from tidings.serve.http.server import Application

STATUS = "/api/v1/status"
REVIVE = "/api/v1/dead-letters/revive"
EVERYTHING = {"all": True}


def outside(world: World, token: str | None = None, **changes: object) -> Client:
    backend = world.backend(loopback=False, hosts=frozenset({"tidings.example"}), **changes)
    return Client(build(backend), host="tidings.example", token=token, peer="203.0.113.9")


async def test_reads_are_open_on_loopback(client: Client):
    assert (await client.get(STATUS)).status == 200


async def test_reads_elsewhere_need_a_token(world: World):
    assert (await outside(world).get(STATUS)).status == 401
    assert (await outside(world, "nobody's").get(STATUS)).status == 401
    assert (await outside(world, "reader").get(STATUS)).status == 200


async def test_a_configured_name_is_no_loopback_name_even_behind_a_proxy(world: World):
    app = build(world.backend(loopback=True, hosts=frozenset({"tidings.example"})))

    assert (await Client(app, host="tidings.example").get(STATUS)).status == 401
    assert (await Client(app, host="localhost:8000").get(STATUS)).status == 200
    assert (await Client(app, host="[::1]:8000").get(STATUS)).status == 200


async def test_writes_need_the_right_scope_even_on_loopback(client: Client, world: World):
    nobody = await client.post(REVIVE, EVERYTHING)
    reader = await client.post(REVIVE, EVERYTHING, headers={"authorization": "Bearer reader"})
    sender = await client.post(REVIVE, EVERYTHING, headers={"authorization": "Bearer sender"})
    operator = await client.post(REVIVE, EVERYTHING, headers={"authorization": "Bearer operator"})

    assert [each.status for each in (nobody, reader, sender, operator)] == [401, 403, 403, 200]
    assert nobody.headers["www-authenticate"].startswith("Bearer")
    assert "tidings token create --scope operate" in nobody.json["help"]
    assert world.deeds() == [("99", "revived", "api (operate)")]


async def test_the_demo_on_loopback_asks_for_no_token(world: World):
    inside = Client(build(world.backend(is_demo=True)))
    outside_demo = outside(world, is_demo=True)

    assert (await inside.post(REVIVE, EVERYTHING)).status == 200
    assert (await outside_demo.post(REVIVE, EVERYTHING)).status == 401


async def test_every_scoped_operation_refuses_nobody_and_lesser_scopes(world: World):
    app = build(world.backend(loopback=False, hosts=frozenset({"tidings.example"})))
    assert isinstance(app, Application)
    tokens = {"read": "reader", "ingest": "sender", "reader": "marker", "operate": "operator"}
    checked = 0
    for operation in app.operations:
        if operation.scope == "public" or operation.is_page:
            continue
        path = operation.path.replace("{id:path}", "1").replace("{id}", "1")
        for name in ("pipeline", "name", "source", "channel"):
            path = path.replace(f"{{{name}}}", "x")
        nobody = Client(app, host="tidings.example")
        assert (await nobody.send(operation.method, path)).status == 401, path
        for scope, token in tokens.items():
            if RANKS[scope] < RANKS[operation.scope]:
                lesser = Client(app, host="tidings.example", token=token)
                assert (await lesser.send(operation.method, path)).status == 403, path
                checked += 1
    assert checked > 10


async def test_every_route_was_declared_with_a_scope(world: World):
    app = build(world.backend())
    assert isinstance(app, Application)

    assert len(app.routes) == len(app.operations)
    assert all(operation.scope in RANKS for operation in app.operations)
    # The protocol of Google Reader has a header of its own and checks it itself (tests/unit/serve/api/test_greader.py).
    ours = [each for each in app.operations if each.path.startswith("/api/") and "greader" not in each.path]
    assert all(operation.scope != "public" for operation in ours)


OURS = frozenset({"tidings.example", "News.Example", "a-b.c_d.example", "[2001:db8::7]", "192.0.2.7"})
"""Names an operator gave the server, besides the loopback ones."""
GOOD_HOSTS = (
    "localhost",
    "LOCALHOST",
    "LocalHost:8000",
    "localhost:1",
    "localhost:65535",
    "localhost:080",
    "127.0.0.1",
    "127.0.0.1:8000",
    "[::1]",
    "[::1]:8000",
    "tidings.example",
    "tidings.example:443",
    "TIDINGS.EXAMPLE",
    "news.example",
    "NEWS.example:8443",
    "a-b.c_d.example",
    "[2001:db8::7]",
    "[2001:DB8::7]:443",
    "192.0.2.7",
    "192.0.2.7:80",
)
BAD_HOSTS = (
    "",
    " ",
    ":",
    ":8000",
    "evil.example",
    "evil.example:8000",
    "127.0.0.1.evil.example",
    "localhost.evil.example",
    "evil.localhost",
    "localhost.",
    "localhost.:8000",
    "127.0.0.1.",
    "tidings.example.",
    "tidings.example..",
    ".tidings.example",
    "xtidings.example",
    "tidings.example.evil.example",
    "[::1]evil.com",
    "[::1]:evil.com",
    "[::1].evil.com",
    "[::1]:80evil.com",
    "[::1]]",
    "[::1",
    "[[::1]]",
    "::1",
    "::1:8000",
    "[::1%lo]",
    "[::1%25lo]:8000",
    "[fe80::1%25eth0]",
    "[::2]:80",
    "[0:0:0:0:0:0:0:1]",
    "[::ffff:127.0.0.1]",
    "127.0.0.1:evil.com",
    "127.0.0.1:8000:9000",
    "127.0.0.1:8000@evil.com",
    "127.0.0.1:",
    "localhost:",
    "localhost:-1",
    "localhost:+80",
    "localhost:8 0",
    "localhost:80a",
    "localhost:99999",
    "localhost:65536",
    "localhost:0000000080",
    "localhost:\xb2",
    "user@localhost",
    "user:secret@127.0.0.1",
    "evil.com@localhost",
    "localhost@evil.com",
    " localhost",
    "localhost ",
    "local host",
    "localhost\t",
    "localhost\x00",
    "localhost,evil.com",
    "localhost, localhost",
    "localhost/evil",
    "localhost#",
    "localhost?",
    "localhost\\@evil.com",
    "http://localhost",
    "//localhost",
    "127.0.0.2",
    "127.1",
    "0177.0.0.1",
    "2130706433",
    "0x7f000001",
    "0.0.0.0",
    "127.0.0.1%00",
    "l\xf3calhost",
    "localhost" + "." + "a" * 300,
)


@pytest.mark.parametrize("host", GOOD_HOSTS)
async def test_a_host_that_names_us_is_let_in(world: World, host: str):
    client = Client(build(world.backend(hosts=OURS)), host=host, token="reader")

    assert (await client.get(STATUS)).status == 200
    assert (await client.get("/healthz")).status == 200


@pytest.mark.parametrize("host", BAD_HOSTS)
async def test_an_unexpected_host_is_refused_for_reads_too(world: World, host: str):
    client = Client(build(world.backend(hosts=OURS)), host=host)

    for path in (STATUS, "/healthz", "/nowhere", "/api/v1/bitcoin_news/articles"):
        answer = await client.get(path)
        assert answer.status == 400
        assert answer.headers["content-type"] == "application/problem+json"
        assert "evil" not in answer.text


async def test_a_hot_answer_is_not_given_to_an_unexpected_host(client: Client):
    path = "/api/v1/bitcoin_news/articles"
    await client.get(path)

    assert (await client.get(path, headers={"host": "evil.example"})).status == 400


async def test_a_hot_answer_is_not_given_to_a_stranger(world: World):
    app = build(world.backend(loopback=False, hosts=frozenset({"tidings.example"})))
    path = "/api/v1/bitcoin_news/articles"
    reader = Client(app, host="tidings.example", token="reader")

    assert (await reader.get(path)).status == 200
    assert (await reader.get(path)).status == 200
    assert (await Client(app, host="tidings.example").get(path)).status == 401
    assert (await Client(app, host="tidings.example", token="wrong").get(path)).status == 401


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"sec-fetch-site": "same-origin"}, 200),
        ({"sec-fetch-site": "none"}, 200),
        ({"sec-fetch-site": "cross-site"}, 403),
        ({"sec-fetch-site": "same-site"}, 403),
        ({"origin": "http://127.0.0.1:8000"}, 200),
        ({"origin": "http://127.0.0.1:9999"}, 403),
        ({"origin": "https://evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"origin": "https://evil.example", "sec-fetch-site": "cross-site"}, 403),
    ],
)
async def test_writes_of_foreign_pages_are_refused(world: World, headers: dict[str, str], status: int):
    client = Client(build(world.backend(is_demo=True)))

    assert (await client.post(REVIVE, EVERYTHING, headers=headers)).status == status


async def test_every_answer_carries_the_security_headers(client: Client):
    paths = ["/healthz", "/api/v1/bitcoin_news/articles", "/nowhere", "/api/v1/items/999", "/metrics"]
    for path in [*paths, *paths]:
        headers = (await client.get(path)).headers
        assert headers["content-security-policy"].startswith("default-src 'none'")
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["cross-origin-opener-policy"] == "same-origin"
        assert headers["cross-origin-resource-policy"] == "same-origin"
        assert "access-control-allow-origin" not in headers


async def test_cross_origin_reads_are_for_named_origins(world: World):
    client = Client(build(world.backend(cors_origins=frozenset({"https://app.example"}))))

    known = await client.get(STATUS, headers={"origin": "https://app.example"})
    unknown = await client.get(STATUS, headers={"origin": "https://evil.example"})
    preflight = await client.send(
        "OPTIONS",
        "/api/v1/hacker_news/items",
        headers={"origin": "https://app.example", "access-control-request-method": "POST"},
    )

    assert known.headers["access-control-allow-origin"] == "https://app.example"
    assert "access-control-allow-origin" not in unknown.headers
    assert "access-control-allow-credentials" not in known.headers
    assert preflight.status == 200
    assert "authorization" in preflight.headers["access-control-allow-headers"].lower()
    assert preflight.headers["content-security-policy"].startswith("default-src 'none'")


async def test_a_preflight_of_an_unnamed_origin_or_without_any_is_refused(world: World):
    named = Client(build(world.backend(cors_origins=frozenset({"https://app.example"}))))
    off = Client(build(world.backend()))
    asks = {"origin": "https://evil.example", "access-control-request-method": "POST"}

    for client in (named, off):
        answer = await client.send("OPTIONS", "/api/v1/hacker_news/items", headers=asks)
        assert answer.status in (400, 405)
        assert "access-control-allow-origin" not in answer.headers


async def test_cross_origin_answers_carry_the_header_when_hot_too(world: World):
    client = Client(build(world.backend(cors_origins=frozenset({"https://app.example"}))))
    path = "/api/v1/bitcoin_news/articles"
    await client.get(path)

    hot = await client.get(path, headers={"origin": "https://app.example"})

    assert hot.headers["access-control-allow-origin"] == "https://app.example"


async def test_an_asterisk_names_no_origin(world: World):
    client = Client(build(world.backend(cors_origins=frozenset({"*"}))))

    answer = await client.get(STATUS, headers={"origin": "https://evil.example"})

    assert "access-control-allow-origin" not in answer.headers


async def test_what_one_origin_is_told_is_not_kept_for_others(world: World):
    client = Client(build(world.backend(cors_origins=frozenset({"https://app.example", "https://other.example"}))))
    path = "/api/v1/bitcoin_news/articles"
    await client.get(path, headers={"origin": "https://app.example"})

    other = await client.get(path, headers={"origin": "https://other.example"})
    nobody = await client.get(path)

    assert other.headers["access-control-allow-origin"] == "https://other.example"
    assert "access-control-allow-origin" not in nobody.headers


async def test_too_many_requests_are_told_when_to_come_back(world: World):
    client = outside(world, "reader", rates=RequestRates(reads_per_minute=3))

    statuses = [(await client.get(STATUS)).status for _ in range(4)]
    last = await client.get(STATUS)

    assert statuses == [200, 200, 200, 429]
    assert 1 <= int(last.headers["retry-after"]) <= 21


async def test_hot_answers_are_limited_too(world: World):
    client = outside(world, "reader", rates=RequestRates(reads_per_minute=3))

    statuses = [(await client.get("/api/v1/bitcoin_news/articles")).status for _ in range(5)]

    assert statuses[:3] == [200, 200, 200]
    assert statuses[-1] == 429


def test_a_rate_refills_evenly():
    now = 0.0
    rate = Rate(60, monotonic=lambda: now)
    assert all(rate.wait_seconds("a") == 0 for _ in range(60))

    assert 0 < rate.wait_seconds("a") <= 1
    assert rate.wait_seconds("b") == 0
    now = 1.0
    assert rate.wait_seconds("a") == 0
    assert rate.wait_seconds("a") > 0


async def test_a_revoked_token_stops_working_within_seconds(world: World):
    client = outside(world, "reader")
    assert (await client.get(STATUS)).status == 200
    world.revoke("reader")
    fresh = outside(world, "reader")

    assert (await fresh.get(STATUS)).status == 401


async def test_a_wrong_token_is_refused_where_none_is_needed(client: Client, world: World):
    """A caller that sends a token relies on it; a read that is open anyway must not hide that it is dead."""
    paths = (STATUS, "/metrics", "/api/v1/bitcoin_news/articles", "/api/v1/events", "/feeds/hacker_news.rss")
    for path in (*paths, *paths):  # the second time some answers are hot
        for header in ("Bearer wrong", "bearer wrong", "Bearer", "Bearer ", f"Bearer {'x' * 500}"):
            answer = await client.get(path, headers={"authorization": header})
            assert answer.status == 401, (path, header)
            assert 'error="invalid_token"' in answer.headers["www-authenticate"]
            assert "wrong" not in answer.text
        if path != "/api/v1/events":
            assert (await client.get(path, headers={"authorization": "Bearer reader"})).status == 200
            assert (await client.get(path)).status == 200


async def test_a_token_revoked_meanwhile_is_refused_on_loopback_too(world: World):
    now = 0.0
    client = Client(build(world.backend(monotonic=lambda: now)), token="reader")
    path = "/api/v1/bitcoin_news/articles"
    assert (await client.get(path)).status == 200
    world.revoke("reader")

    now = 10.0

    assert (await client.get(path)).status == 401
    assert (await client.get(STATUS)).status == 401


async def test_a_wrong_token_is_refused_in_the_demo_too(world: World):
    client = Client(build(world.backend(is_demo=True)), token="wrong")

    assert (await client.post(REVIVE, EVERYTHING)).status == 401
    assert world.deeds() == []


async def test_probes_and_other_kinds_of_authorization_are_let_be(client: Client):
    assert (await client.get("/healthz", headers={"authorization": "Bearer wrong"})).status == 200
    assert (await client.get("/readyz", headers={"authorization": "Bearer wrong"})).status == 200
    # A proxy that asks for a password of its own passes it on.
    assert (await client.get(STATUS, headers={"authorization": "Basic dXNlcjpwYXNz"})).status == 200


async def test_the_use_of_a_token_is_noted_once_a_minute(world: World):
    now = 100.0
    client = Client(build(world.backend(monotonic=lambda: now)), token="reader")
    for _ in range(50):
        assert (await client.get(STATUS)).status == 200
        now += 1
    await settled()
    assert world.executor.calls.count("note_use") == 1
    assert world.last_use("reader") == NOW_MS

    now += 30
    assert (await client.get(STATUS)).status == 200
    await settled()
    assert world.executor.calls.count("note_use") == 2


async def test_a_store_that_cannot_note_a_use_still_answers(world: World):
    world.executor.faults["note_use"] = StoreUnavailable("the disk is full")
    client = Client(build(world.backend()), token="reader")

    assert (await client.get(STATUS)).status == 200
    await settled()
    assert (await client.get(STATUS)).status == 200


async def settled() -> None:
    """Let what runs beside the answers come to its end."""
    others = asyncio.all_tasks() - {asyncio.current_task()}
    await asyncio.wait_for(asyncio.gather(*others), 5) if others else None


async def test_a_server_below_a_path_answers_with_and_without_it(world: World):
    client = Client(build(world.backend(root_path="/tidings")))

    assert (await client.get("/tidings/healthz")).status == 200
    assert (await client.get("/tidings/tidings/healthz")).status == 200
    assert (await client.get("/healthz")).status == 200


async def test_errors_of_ours_tell_nothing(world: World):
    world.executor.faults["status"] = RuntimeError("the secret is 42")

    answer = await Client(build(world.backend())).get(STATUS)

    assert answer.status == 500
    assert "42" not in answer.text
    assert world.observed[-1] == (STATUS, 500)


async def test_methods_that_are_not_there_are_named(client: Client):
    answer = await client.send("DELETE", "/api/v1/status")

    assert answer.status == 405
    assert answer.headers["allow"] == "GET, HEAD, OPTIONS"
    shared = await client.send("DELETE", "/api/v1/hacker_news/items")
    assert shared.headers["allow"] == "GET, HEAD, OPTIONS, POST"
    assert answer.headers["content-type"] == "application/problem+json"
