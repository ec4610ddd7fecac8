"""A route that asks for stories: each is announced once, when enough sources tell it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.support.engine import Engine, discord_channel
from tests.support.news import pipelines, present, telling

from tidings.model.publication import Notice, Route
from tidings.model.workflow import Work

CHANNEL = discord_channel("room", "https://discord.com/api/webhooks/1/a-token")
NEWS = "The harbor tunnel opens to the public"


def announce(work: Work) -> tuple[Notice, ...]:
    shown = present(work.key, work.body)
    return (Notice(title=shown.card.text),)


def an_engine(url: str, *, query: str = "") -> Engine:
    named = [replace(each, announce={"thing": announce}) for each in pipelines().values()]
    return Engine(url, named, channels=[CHANNEL], routes=[Route("wire", "room", query, stories=3)])


async def tell(engine: Engine, *hosts: str, pipeline: str = "wire", hours_ago: int = 1) -> None:
    noon = 1_700_000_000_000
    minutes = (engine.now_ms() - noon) // 60_000 - hours_ago * 60
    for host in hosts:
        finding = telling(host, f"{NEWS} {host}", f"https://{host}.example/x/{host}", minutes, pipeline=pipeline)
        engine.store.intake.append(pipeline, [finding])
    for name in ("example", "wire"):
        while engine.store.intake.merge(name).read:
            pass
    await engine.app.worker(only_lane="pure").until_idle()
    await engine.follow()
    for name in ("example", "wire"):
        while engine.store.intake.merge(name).read:
            pass


def deliveries(engine: Engine) -> list[str]:
    return [row.key for row in engine.items("delivery")]


async def test_a_story_is_announced_once_when_the_third_source_tells_it(database_url: str) -> None:
    async with an_engine(database_url) as engine:
        await tell(engine, "one")
        await tell(engine, "two", pipeline="example")
        assert deliveries(engine) == []
        await tell(engine, "three")
        (key,) = deliveries(engine)
        assert key == f"room/story/{engine.store.stories.newest(1)[0].id}/1"

        await tell(engine, "four", "five")
        engine.store.stories.begin_again()
        await engine.follow()
        engine.store.stories.note_position("announced stories", "0")
        await tell(engine)
        assert deliveries(engine) == [key]


@pytest.mark.parametrize("query", ["", "tunnel", "-tunnel"])
async def test_a_query_chooses_among_stories(database_url: str, query: str) -> None:
    async with an_engine(database_url, query=query) as engine:
        await tell(engine, "one", "two", "three")
        assert len(deliveries(engine)) == (0 if query == "-tunnel" else 1)


async def test_stories_that_no_item_of_the_pipeline_tells_and_old_ones_are_left_out(database_url: str) -> None:
    async with an_engine(database_url) as engine:
        await tell(engine, "one", "two", "three", pipeline="example")
        await tell(engine, "four", "five", "six", hours_ago=24 * 5)
        assert deliveries(engine) == []
