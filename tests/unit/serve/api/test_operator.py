from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest
from tests.unit.serve.asgi import Client, Listener
from tests.unit.serve.world import Story, World

from tidings.serve.application import build
from tidings.serve.backend import RequestRates
from tidings.serve.http.server import Application
from tidings.serve.http.streams import Stream


@pytest.fixture
def operator(world: World) -> Client:
    return Client(build(world.backend()), token="operator")


async def test_status_shows_times_as_text(client: Client):
    answer = await client.get("/api/v1/status")

    news = answer.json["pipelines"]["bitcoin_news"]
    assert news["states"] == {"found": 2, "fetched": 1, "published": 8}
    assert news["intake"] == {"unmerged": 0, "checkpoint": 11, "total": 11}
    assert news["sources"][0]["last_success_at"] == "2026-09-21T11:13:20.000Z"
    assert answer.json["alerts"][0]["name"] == "dead_letters"


async def test_pipelines_tell_their_workflows(client: Client):
    answer = await client.get("/api/v1/pipelines/hacker_news")

    assert answer.json["workflows"]["item"]["states"] == ["found", "completed", "failed"]
    assert answer.json["workflows"]["item"]["transitions"][1]["trigger"] == "manual"
    assert (await client.get("/api/v1/pipelines")).json["pipelines"][0]["name"] == "bitcoin_news"
    assert (await client.get("/api/v1/pipelines/none")).status == 404


async def test_items_are_listed_and_found_by_name(client: Client):
    rows = (await client.get("/api/v1/items", standing="dead")).json["items"]
    named = (await client.get("/api/v1/items", pipeline="hacker_news", kind="item", key="99")).json["items"]

    assert [row["id"] for row in rows] == ["7"]
    assert named == rows
    assert (await client.get("/api/v1/items", key="99")).status == 400


async def test_items_page_by_cursor(client: Client):
    first = await client.get("/api/v1/items", limit=1)
    second = await client.get("/api/v1/items", limit=1, cursor=first.json["next_cursor"])

    assert [first.json["items"][0]["key"], second.json["items"][0]["key"]] == ["a22", "a21"]


async def test_an_item_tells_its_life(client: Client):
    answer = await client.get("/api/v1/items/7")

    assert answer.json["life"][1]["error"] == "is_valid: type banana"
    assert answer.json["life"][1]["steps"][0]["criterion"] == "is_valid"
    assert answer.json["transitions"] == ["retry_processing"]
    assert (await client.get("/api/v1/items/800")).status == 404
    assert (await client.get("/api/v1/items/eight")).status == 400


async def test_a_manual_transition_is_performed_once_allowed(operator: Client, world: World):
    done = await operator.post("/api/v1/items/7/transitions/retry_processing", {"reason": "fixed"})
    not_now = await operator.post("/api/v1/items/7/transitions/retry_processing")
    nobody = await operator.post("/api/v1/items/800/transitions/mark_failed")

    assert [done.status, not_now.status, nobody.status] == [200, 409, 404]
    assert world.deeds() == [("99", "manual", "api (operate)")]
    assert world.item("99").item.state == done.json["item"]["state"] == "found"
    assert world.item("99").life[-1].error == "fixed"
    assert world.wakes == 1


async def test_dead_letters_are_grouped_and_revived(operator: Client, world: World):
    groups = (await operator.get("/api/v1/dead-letters")).json
    revived = await operator.post("/api/v1/dead-letters/revive", {"pipeline": "hacker_news", "cause": "is_valid: type"})
    vague = await operator.post("/api/v1/dead-letters/revive", {})
    wrong = await operator.post("/api/v1/dead-letters/revive", {"cuase": "x"})

    assert groups["total"] == 1
    assert groups["dead_letters"][0]["sample_id"] == "7"
    assert revived.json == {"revived": 1}
    assert [vague.status, wrong.status] == [400, 400]
    assert world.deeds() == [("99", "revived", "api (operate)")]
    assert world.item("99").item.standing == "open"


async def test_sources_are_checked_paused_and_resumed(operator: Client, world: World):
    await operator.post("/api/v1/sources/bitcoin_news.rss/check")
    await operator.post("/api/v1/sources/bitcoin_news.rss/pause", {"reason": "holiday"})
    paused = world.store.pauses.reasons()
    await operator.post("/api/v1/sources/bitcoin_news.rss/resume")
    await operator.post("/api/v1/pipelines/bitcoin_news/pause")
    unknown = await operator.post("/api/v1/sources/none/check")
    nowhere = await operator.post("/api/v1/channels/nowhere/pause")

    assert world.store.schedules.next_in_ms() == 0
    assert paused == {"source:bitcoin_news.rss": "holiday"}
    assert world.store.pauses.reasons() == {"pipeline:bitcoin_news": "by api (operate)"}
    assert [unknown.status, nowhere.status] == [404, 404]


async def test_replay_counts_first_when_asked(operator: Client, world: World):
    answer = await operator.post("/api/v1/pipelines/hacker_news/replay", {"state": "found", "dry_run": True})

    assert answer.json == {"replayed": 6, "skipped": 0, "dry_run": True}
    assert world.deeds() == []


async def test_a_replay_of_everything_must_be_asked_for(operator: Client, world: World):
    path = "/api/v1/pipelines/hacker_news/replay"
    refused = await operator.post(path, {})

    assert refused.status == 400
    assert "all" in refused.json["detail"]
    assert world.deeds() == []
    assert (await operator.post(path, {"all": True})).json == {"replayed": 6, "skipped": 0, "dry_run": False}


async def test_history_deliveries_channels_and_alerts_are_there(client: Client, world: World):
    (sent,) = world.store.item_views.items(kind="delivery")
    assert len((await client.get("/api/v1/history", series="settled:bitcoin_news")).json["points"]) == 60
    assert (await client.get("/api/v1/history")).status == 400
    assert (await client.get("/api/v1/deliveries", channel="discord:news")).json["deliveries"][0]["id"] == str(sent.id)
    assert (await client.get("/api/v1/deliveries", channel="none")).status == 400
    assert (await client.get("/api/v1/channels")).json["channels"][0]["name"] == "discord:news"
    assert len((await client.get("/api/v1/alerts", all="true")).json["alerts"]) == 1


async def test_health_and_readiness_are_public(stranger: Client, world: World):
    assert (await stranger.get("/healthz")).json == {"status": "alive"}
    assert (await stranger.get("/readyz")).status == 200
    world.problems["database"] = "migrations are missing"
    not_ready = await stranger.get("/readyz")

    assert not_ready.status == 503
    assert not_ready.json["problems"] == {"database": "migrations are missing"}
    assert (await stranger.get("/metrics")).status == 401


async def test_metrics_are_passed_on(client: Client):
    answer = await client.get("/metrics")

    assert answer.text == "tidings_build_info 1\n"
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")


async def test_a_stream_resumes_behind_the_last_event_seen(world: World):
    listener = Listener(build(world.backend()), {"last-event-id": "1"})

    await listener.until(b"id: 3")
    await listener.leave()

    assert b"id: 1\n" not in listener.received
    data = listener.received.split(b"data: ")[1].split(b"\n")[0]
    assert msgspec.json.decode(data)["item"] == "2"


async def test_a_stream_tells_what_happens_from_now_on(world: World):
    stream = Stream(world.backend(), poll_seconds=0.01, heartbeat_seconds=0.05)
    operation = stream.operations()[0]
    app = Application(world.backend(), *_door(world), [stream], [operation], _no_pages)  # type: ignore[arg-type]
    listener = Listener(app)

    await listener.until(b": still here")
    (last,) = world.store.item_views.events(after=-1)
    world.add_story(Story(id=70, type="story", title="Just now"))
    await listener.until(b"id: %d" % (last.id + 2))
    await listener.leave()

    assert b"id: %d\n" % (last.id + 1) in listener.received
    assert b"id: %d\n" % last.id not in listener.received


def _door(world: World) -> tuple[Any, Any]:
    from tidings.serve.http.access import Access
    from tidings.serve.http.hot_answers import HotAnswers

    return Access(world.backend()), HotAnswers(world.executor, world.store.shelf, ["hacker_news"])


async def _no_pages(*_: Any) -> None:
    raise AssertionError("no page is asked for")


async def test_streams_are_bounded_and_closed_with_the_server(world: World):
    app = build(world.backend(rates=RequestRates(streams=1)))
    assert isinstance(app, Application)
    first = Listener(app)
    await first.until(b"retry")

    second = await Client(app).get("/api/v1/events")
    await app.close()
    async with asyncio.timeout(60):
        await first.task

    assert second.status == 503
    assert second.headers["retry-after"] == "10"


async def test_events_of_an_unknown_pipeline_are_refused(client: Client):
    answer = await client.get("/api/v1/events", pipeline="zz")

    assert (answer.status, answer.json["where"]) == (400, "query parameter pipeline")
