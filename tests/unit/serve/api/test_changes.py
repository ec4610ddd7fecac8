"""The stream of changes over HTTP: pages that go on where they ended, and events that do too."""

from __future__ import annotations

from typing import Any

import msgspec
from tests.unit.serve.asgi import Client, Listener
from tests.unit.serve.world import Story, World

from tidings.serve.application import build

PATH = "/api/v1/changes"


async def told(client: Client, after: str | None = None, limit: int = 2) -> tuple[list[dict[str, Any]], str]:
    """Read all pages behind a cursor."""
    changes: list[dict[str, Any]] = []
    while True:
        query: dict[str, Any] = {
            "pipeline": "hacker_news",
            "limit": limit,
            **({} if after is None else {"after": after}),
        }
        answer = await client.get(PATH, **query)
        assert answer.status == 200, answer.text
        changes, after = [*changes, *answer.json["changes"]], answer.json["next_cursor"]
        if not answer.json["has_more"]:
            return changes, str(after)


async def test_every_card_is_told_once_as_the_collection_shows_it(client: Client) -> None:
    changes, _ = await told(client)

    listed = (await client.get("/api/v1/hacker_news/items", limit=500)).json["items"]
    assert {str(change["id"]) for change in changes} >= {str(card["id"]) for card in listed}
    assert len({change["id"] for change in changes}) == len(changes)
    one = changes[0]
    assert one["card"] == (await client.get(f"/api/v1/hacker_news/items/{one['id']}")).json


async def test_one_that_was_away_hears_what_came_and_what_went(client: Client, world: World) -> None:
    _, cursor = await told(client)
    world.add_story(Story(id=70, type="story", title="Just now"))
    world.withdraw("70")

    changes, cursor = await told(client, cursor)

    assert [(change["id"], change["card"]) for change in changes] == [("70", None)]
    assert (await told(client, cursor))[0] == []


async def test_a_cursor_of_nowhere_is_gone(client: Client) -> None:
    answer = await client.get(PATH, pipeline="hacker_news", after="elsewhere.3")

    assert answer.status == 410
    assert "start over" in answer.text


async def test_a_pipeline_has_to_be_named(client: Client) -> None:
    answer = await client.get(PATH)

    assert answer.status == 400
    assert "hacker_news" in answer.text
    assert (await client.get(PATH, pipeline="nope")).status == 400


async def test_events_go_on_behind_the_last_one_seen(client: Client, world: World) -> None:
    changes, _ = await told(client)
    headers = {"accept": "text/event-stream", "last-event-id": changes[-2]["cursor"]}
    listener = Listener(build(world.backend()), headers, PATH, "pipeline=hacker_news")

    await listener.until(f"id: {changes[-1]['cursor']}\n".encode())
    world.add_story(Story(id=70, type="story", title="Just now"))
    await listener.until(b"Just now")
    await listener.leave()

    data = [line.removeprefix(b"data: ") for line in listener.received.split(b"\n") if line.startswith(b"data: ")]
    assert [msgspec.json.decode(each)["id"] for each in data] == [changes[-1]["id"], "70"]
