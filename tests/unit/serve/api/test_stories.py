"""Stories over HTTP and on pages: told once, folded where they are listed, split and joined by operators."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.support.news import TOLD, group, pipelines, telling, told
from tests.unit.serve.asgi import Client
from tests.unit.serve.world import World

from tidings.serve.api.story_cards import summary_of
from tidings.serve.application import build


@pytest.fixture
def world() -> Iterator[World]:
    with World(*pipelines().values()) as world:
        told(
            world.ground,
            telling("a", TOLD[0], "https://one.example/sbarro", 0),
            telling("b", f"{TOLD[0]} again", "https://two.example/pizza", 30, pipeline="wire"),
            telling("c", TOLD[1], "https://one.example/tunnel", 40),
            telling("d", "Is this tunnel real?", "https://one.example/tunnel", 50, pipeline="wire"),
            telling("e", "Nobody else says so", "https://one.example/e", 60),
        )
        group(world.store, world.pipelines)
        yield world


@pytest.fixture
def client(world: World) -> Client:
    return Client(build(world.backend()))


async def test_stories_are_listed_newest_first_page_by_page(client: Client) -> None:
    first = (await client.get("/api/v1/stories", limit=1)).json
    second = (await client.get("/api/v1/stories", limit=1, cursor=first["next_cursor"])).json
    stories = [*first["stories"], *second["stories"]]
    assert [{member["id"] for member in story["members"]} for story in stories] == [{"c", "d"}, {"a", "b"}]
    assert stories[1]["sources"] == ["one.example", "two.example"]
    assert (stories[1]["size"], stories[1]["first_at"], stories[1]["last_at"]) == (
        2, "2023-11-14T22:13:20.000Z", "2023-11-14T22:43:20.000Z",
    )  # fmt: skip
    one = await client.get(f"/api/v1/stories/{stories[1]['id']}")
    assert one.json == stories[1]
    assert [s["sources"] for s in (await client.get("/api/v1/stories", sources=2)).json["stories"]] == [
        ["one.example", "two.example"]
    ]
    assert (await client.get("/api/v1/stories/999")).status == 404


async def test_one_that_was_away_hears_what_changed(client: Client, world: World) -> None:
    page = (await client.get("/api/v1/stories/changes", limit=500)).json
    assert len(page["changes"]) == 3
    numbers = [each["id"] for each in (await client.get("/api/v1/stories")).json["stories"]]
    world.store.stories.join(numbers[0], [numbers[1]], actor="test")

    changes = (await client.get("/api/v1/stories/changes", after=page["next_cursor"])).json
    assert {c["id"]: c["story"] and c["story"]["size"] for c in changes["changes"]} == {numbers[0]: 4, numbers[1]: None}
    again = (await client.get("/api/v1/stories/changes", after=changes["next_cursor"])).json
    assert again == {"changes": [], "next_cursor": changes["next_cursor"], "has_more": False}


async def test_operators_split_and_join(client: Client) -> None:
    stories = (await client.get("/api/v1/stories")).json["stories"]
    item, number = stories[1]["members"][1]["item"], stories[1]["id"]
    operator = Client(client.app, token="operator")

    split = await operator.post(f"/api/v1/stories/{number}/split", {"items": [item]})
    assert split.status == 200, split.text
    other = split.json["story"]
    assert (await client.get(f"/api/v1/stories/{number}")).json["size"] == 1
    joined = await operator.post(f"/api/v1/stories/{number}/join", {"stories": [other]})
    assert joined.json == {"moved": 1}
    assert (await client.get(f"/api/v1/stories/{number}")).json["size"] == 2
    assert (
        await operator.post(f"/api/v1/stories/{number}/split", {"items": [stories[0]["members"][0]["item"]]})
    ).status == 409
    assert (await operator.post(f"/api/v1/stories/{number}/join", {"stories": [12_345]})).status == 409


async def test_a_list_shows_a_story_once_and_folds_the_others(world: World) -> None:
    told(world.ground, telling("f", TOLD[0], "https://three.example/f", 70))
    group(world.store, world.pipelines)
    client = Client(build(world.backend()))
    text = (await client.get("/pipelines/example/things")).text
    assert "/pipelines/example/things/f" in text
    assert "/pipelines/example/things/a" not in text
    assert "/pipelines/example/things/c" in text
    item = (await client.get("/pipelines/example/things/a")).text
    assert "Others tell this" in item
    assert "/pipelines/wire/things/b" in item


async def test_pages_show_stories_and_one_of_them(client: Client) -> None:
    listed = await client.get("/stories")
    assert listed.status == 200
    assert TOLD[1] in listed.text
    number = (await client.get("/api/v1/stories")).json["stories"][0]["id"]
    page = await client.get(f"/stories/{number}")
    assert "Is this tunnel real?" in page.text
    assert f"tidings story join {number} OTHER" in page.text
    assert (await client.get("/stories/999")).status == 404
    assert "No story is told by so many" in (await client.get("/stories", sources=9)).text


async def test_a_feed_has_one_entry_for_each_story(client: Client) -> None:
    feed = (await client.get("/feeds/stories.json", sources=2)).json
    assert [entry["title"] for entry in feed["items"]] == [TOLD[0]]
    assert (await client.get("/feeds/stories.rss")).status == 200
    assert (await client.get("/feeds/stories.atom")).status == 200


async def test_without_groups_there_are_no_stories(world: World) -> None:
    client = Client(build(world.backend(stories=None)))
    assert (await client.get("/stories")).status == 404
    assert (await client.get("/api/v1/stories")).status == 404
    assert 'href="/stories"' not in (await client.get("/")).text


def test_a_summary_is_the_shared_lead_and_what_others_add() -> None:
    assert summary_of([
        "Opinion: look at this.",
        "The harbor tunnel opened to traffic on Thursday after eleven years of work.",
        "The harbor tunnel opened on Thursday. The contractor Brand & Sons was fined nine million for the delay.",
    ]) == (
        "The harbor tunnel opened to traffic on Thursday after eleven years of work. "
        "The contractor Brand & Sons was fined nine million for the delay."
    )  # fmt: skip
    assert summary_of([]) == ""
