"""`?since=` in the thread API: only what came since a mark or a time."""

from __future__ import annotations

import pytest
from tests.unit.serve.asgi import Client
from tests.unit.serve.world import NOW_MS, Story, World

from tidings.serve.api.thread_news import tell_news
from tidings.serve.api.threads import ThreadPlace
from tidings.serve.application import build
from tidings.serve.http.problems import Problem

THREAD = "/api/v1/hacker_news/items/1/thread"
SECONDS = NOW_MS // 1000


async def test_since_a_mark_only_what_arrived_later_is_given_with_what_is_above_it(client: Client, world: World):
    mark = (await client.get(THREAD)).json["mark"]
    before = (await client.get(THREAD, since=mark)).json
    # An old comment that arrives late is new to who has the mark.
    world.add_story(Story(id=7, type="comment", by="dot", time=SECONDS - 50_000, text="Late", parent=4))
    client = Client(build(world.backend()))
    after = (await client.get(THREAD, since=mark)).json

    assert (before["new_places"], before["children"], before["mark"]) == (0, [], mark)
    (older,) = after["children"]
    (gone,) = older["children"]
    (late,) = gone["children"]
    assert [place["id"] for place in (older, gone, late)] == [2, 4, 7]
    assert ["new" in place for place in (older, gone, late)] == [False, False, True]
    assert after["new_places"] == 1
    assert (await client.get(THREAD, since=after["mark"])).json["new_places"] == 0


async def test_a_changed_comment_is_not_new(client: Client, world: World):
    mark = (await client.get(THREAD)).json["mark"]
    world.add_story(Story(id=3, type="comment", by="bob", time=SECONDS - 3000, text="Edited", parent=1))

    assert (await client.get(THREAD, since=mark)).json["new_places"] == 0


async def test_since_a_time_the_time_of_the_comment_counts(client: Client):
    since = "2026-09-21T13:20:00Z"
    answer = (await client.get(THREAD, since=since)).json

    assert [(child["id"], child["new"]) for child in answer["children"]] == [(3, True)]
    assert answer["new_places"] == 1


@pytest.mark.parametrize("since", ["m", "m-1", "mm1", "m1.5", "yesterday", "m" + "9" * 19, "2026-13-45", "0"])
async def test_a_bad_mark_is_refused(client: Client, since: str):
    answer = await client.get(THREAD, since=since)

    assert answer.status == 400
    assert answer.json["where"] == "query parameter since"


async def test_the_document_describes_since_and_the_mark(client: Client):
    described = (await client.get("/openapi.json")).json["paths"]["/api/v1/hacker_news/items/{id}/thread"]["get"]

    (since,) = [each for each in described["parameters"] if each["name"] == "since"]
    assert since["schema"]["pattern"].startswith("^(m")
    answer = described["responses"]["200"]["content"]["application/json"]
    assert {"mark", "new", "new_places", "children"} <= answer["schema"]["properties"].keys()
    assert answer["example"]["mark"] == "m1234"


async def test_a_page_tells_the_script_which_comments_came_when(client: Client, world: World):
    page = (await client.get("/pipelines/hacker_news/items/1", headers={"accept": "text/html"})).text

    assert f'id="c3" data-number="{world.item("3").item.id}"' in page


def test_a_copy_without_numbers_gives_no_mark_and_refuses_one() -> None:
    """A mirror has cards and no items: a mark there would always say that nothing is new."""
    root = ThreadPlace("1", 0, b'{"id":1}', {"id": 1})
    tell_news(root, None)
    assert "mark" not in root.card

    with pytest.raises(Problem) as caught:
        tell_news(root, "m0")
    assert caught.value.status == 400
