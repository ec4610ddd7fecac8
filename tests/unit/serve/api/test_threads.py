from __future__ import annotations

import msgspec
from tests.unit.serve.asgi import Client
from tests.unit.serve.world import Story, World

from tidings.model.contracts import ThreadNode
from tidings.serve.api.threads import NODES_MAX, encode_thread, nest


async def test_a_thread_comes_whole_and_in_the_given_order(client: Client):
    answer = await client.get("/api/v1/hacker_news/items/1/thread")

    assert answer.status == 200
    assert answer.json["title"] == "One file and a loop"
    assert [child["id"] for child in answer.json["children"]] == [3, 2]
    assert answer.json["children"][1]["children"] == [
        {"id": 4, "type": "comment", "parent": 2, "deleted": True, "time": 1789996000, "children": []}
    ]


async def test_a_place_without_a_card_keeps_what_hangs_below(client: Client, world: World):
    world.link("item:3", "item:50")
    world.link("item:50", "item:51")
    world.add_story(Story(id=51, type="comment", by="deep", text="still here"))

    answer = await client.get("/api/v1/hacker_news/items/1/thread")

    missing = answer.json["children"][0]["children"][0]
    assert (missing["id"], missing["missing"]) == (50, True)
    assert missing["children"][0]["by"] == "deep"


async def test_cards_name_the_neighbors_they_have_not_the_ones_their_source_said(client: Client, world: World):
    world.add_story(Story(id=60, type="comment", by="lost", text="said to be elsewhere", parent=9), is_loose=True)
    world.link("item:3", "item:60", "item:61")

    thread = await client.get("/api/v1/hacker_news/items/1/thread")
    kid = await client.get("/api/v1/hacker_news/items/60")
    parent = await client.get("/api/v1/hacker_news/items/3")
    page = await client.get("/pipelines/hacker_news/items/60")

    place = thread.json["children"][0]
    assert (place["id"], place["kids"]) == (3, [60, 61])
    assert (place["children"][0]["id"], place["children"][0]["parent"]) == (60, 3)
    assert kid.json["parent"] == 3
    assert parent.json["kids"] == [60, 61]
    assert '/items/3">parent</a>' in page.text
    assert "/items/9" not in page.text


async def test_a_story_that_somebody_claims_as_a_reply_stays_a_story(client: Client, world: World):
    world.link("item:3", "item:1")

    assert "parent" not in (await client.get("/api/v1/hacker_news/items/1")).json


async def test_a_thread_too_large_for_one_answer_says_so(client: Client, world: World):
    world.link("item:3", *(f"item:{number}" for number in range(100, 100 + NODES_MAX)))

    whole = await client.get("/api/v1/hacker_news/items/2/thread")
    cut = await client.get("/api/v1/hacker_news/items/1/thread")

    assert "truncated" not in whole.json
    assert cut.json["truncated"] is True


async def test_a_thread_of_nothing_is_a_404(client: Client):
    assert (await client.get("/api/v1/hacker_news/items/777/thread")).status == 404


def test_depth_has_no_limit_of_ours():
    depth = 5_000
    nodes = [ThreadNode(f"item:{n}", f"item:{n - 1}", 0, n) for n in range(1, depth)]
    cards = {str(n): msgspec.json.encode({"id": n}) for n in range(depth)}

    raw = encode_thread(nest("item:0", nodes, cards))

    assert raw.count(b'"children":[') == depth
    assert raw.startswith(b'{"id":0,"children":[{"id":1,')
    assert raw.endswith(b"]}]}")


def test_a_cycle_is_shown_once():
    nodes = [ThreadNode("item:1", "item:0", 0, 1), ThreadNode("item:0", "item:1", 0, 2)]

    root = nest("item:0", nodes, {})

    assert [child.id for child in root.children] == ["1"]
    assert root.children[0].children == []


def test_siblings_without_a_position_stand_behind_the_others_by_number():
    nodes = [
        ThreadNode("item:20", "item:0", None, 1),
        ThreadNode("item:9", "item:0", None, 1),
        ThreadNode("item:30", "item:0", 0, 1),
    ]

    root = nest("item:0", nodes, {})

    assert [child.id for child in root.children] == ["30", "9", "20"]
    assert root.below == 3
