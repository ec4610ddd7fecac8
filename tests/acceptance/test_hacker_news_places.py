"""One truth on what stands below what: card, list, search, export and rebuilt shelf name the same parent.

On both databases, whichever item comes first; and parents that are not here are noted until they come.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import AsyncIterator
from itertools import permutations
from typing import Any

import pytest
from tests.acceptance.test_hacker_news import a_comment, a_story, pipeline, upload
from tests.support.engine import Engine
from tests.support.followed_search import FollowedSearch
from tests.support.hacker_news import client_of
from tests.support.logs import listening

from tidings.model.query_tree import InThread
from tidings.process.lanes import Lane
from tidings.store.items import settle
from tidings.store.items.restarts import Awaiting
from tidings.watch.logs import Seldom

WORLD = {1: a_story(1), 2: a_comment(2, 1, kids=[3]), 3: a_comment(3, 1, text="a quiet remark")}
"""3 names 1; 2 names 3 as its kid, and what a parent says counts."""


@pytest.fixture
async def engine(database_url: str) -> AsyncIterator[Engine]:
    async with Engine(database_url, [pipeline()], endpoints=["http://127.0.0.1:9"]) as engine:
        yield engine


def parent_of(engine: Engine, number: int) -> Any:
    """Return the parent that every way of reading tells, or all of them where they differ."""
    listed = next(card for card in engine.cards("items") if card["id"] == number).get("parent")
    links = engine.store.links.parents("hacker_news", "reply", f"item:{number}")
    found = [int(hit.key) for hit in engine.search(f"parent:{listed}") if hit.key == str(number)]
    told = {listed, (engine.card("items", str(number)) or {}).get("parent"), int(links[0].removeprefix("item:"))}
    return listed if len(told) == 1 and found == [number] else (told, found)


@pytest.mark.parametrize("order", list(permutations(WORLD)))
async def test_every_reading_names_the_parent_that_claims_an_item(engine: Engine, order: tuple[int, ...]) -> None:
    for number in order:
        upload(engine, [WORLD[number]], way="POST")
        await engine.work_until_idle()

    assert parent_of(engine, 3) == 2
    assert [hit.key for hit in engine.search("parent:1")] == ["2"]
    notes = [move.note for row in engine.item("item", "3").life for move in row.steps if move.note]
    assert any("stands below 2, which names it; it names 1 itself" in note for note in notes)
    engine.store.rebuilder.rebuild()
    assert parent_of(engine, 3) == 2
    assert engine.states("item") == {"completed": 3}


async def test_all_in_one_batch_end_alike(engine: Engine) -> None:
    upload(engine, [WORLD[number] for number in (3, 2, 1)])
    await engine.work_until_idle()

    assert parent_of(engine, 3) == 2


async def test_a_claim_that_ends_gives_the_item_its_own_parent_back(engine: Engine) -> None:
    upload(engine, WORLD.values(), way="FIREBASE")
    await engine.work_until_idle()
    assert parent_of(engine, 3) == 2

    upload(engine, [a_comment(2, 1)], way="FIREBASE")
    await engine.work_until_idle()
    assert parent_of(engine, 3) == 1

    upload(engine, [a_comment(2, 1, kids=[3]), a_comment(3, 1, text="a quiet remark, edited")], way="FIREBASE")
    await engine.work_until_idle()
    assert parent_of(engine, 3) == 2


async def test_a_poll_that_names_an_option_has_it(engine: Engine) -> None:
    option = {"id": 5, "type": "pollopt", "by": "a", "time": 1_700_000_000, "poll": 1, "text": "maybe"}
    upload(engine, [option, a_story(1, type="poll"), a_story(2, type="poll", parts=[5])])
    await engine.work_until_idle()

    card = engine.card("items", "5")
    assert card is not None
    assert card["poll"] == 2
    assert [hit.key for hit in engine.search("poll:2")] == ["5"]


async def test_a_marked_item_is_placed_by_the_next_sweep(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever found it was killed before the transaction that begins the item again."""
    items = engine.store.items
    monkeypatch.setattr(type(items), "place_again", lambda *_: 0)
    upload(engine, WORLD.values())
    await engine.work_until_idle()
    assert (engine.card("items", "3") or {})["parent"] == 1

    monkeypatch.undo()
    items.sweep()
    await engine.work_until_idle()
    assert parent_of(engine, 3) == 2


async def test_a_missing_parent_is_noted_until_it_comes(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settle, "_seldom", Seldom())
    with listening() as lines:
        upload(engine, [a_comment(7, 4)], way="POST")
        await engine.work_until_idle()
    before = engine.item("item", "7")

    assert [line for line in lines.told if "parents missing" in line and "item:7 names item:4" in line]
    assert before.waits_for == "Nothing: it is finished. Its parent item:4 is not here yet."
    assert "item:4 is not here yet" in [move.note for row in before.life for move in row.steps]

    upload(engine, [a_story(4)], way="POST")
    await engine.work_until_idle()
    after = engine.item("item", "7")

    assert after.waits_for == "Nothing: it is finished."
    assert "item:4 was not here yet; it is by now" in [move.note for row in after.life for move in row.steps]
    upload(engine, [a_comment(8, 4)], way="POST")
    await engine.work_until_idle()
    assert [move.note for row in engine.item("item", "8").life for move in row.steps if move.note] == []


async def test_every_step_of_an_item_is_logged_for_debugging(engine: Engine, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, logger="tidings"), listening() as lines:
        upload(engine, [a_story(1), a_story(2, score=-1)])
        await engine.work_until_idle()
        engine.advance_clock(seconds=61)
        await engine.work_until_idle()

    for state, transition in (("ingested", "auto_ingest"), ("indexed", "index_item")):
        assert any(f"'item:1', 'transition': '{transition}', 'state': '{state}'" in line for line in lines.told)
    for transition in ("mark_failed", "retry_processing"):
        assert any(f"'item:2', 'transition': '{transition}'" in line for line in lines.told)


def found(search: FollowedSearch, story: str) -> set[str]:
    return {hit.key for hit in search.search(InThread(story)).hits}


async def test_a_thread_is_found_whole_whichever_item_came_first(engine: Engine) -> None:
    """A comment that was here before what stands above it, and a whole branch that is moved to another story."""
    search = FollowedSearch(engine.store, engine.app.pipelines, engine.store.now_ms)
    for item in (a_comment(5, 4), a_comment(4, 2), a_comment(2, 1), a_story(1)):
        upload(engine, [item], way="POST")
        await engine.work_until_idle()
        search.catch_up()
    assert found(search, "1") == {"1", "2", "4", "5"}

    upload(engine, [a_story(3, kids=[2])], way="POST")
    await engine.work_until_idle()
    assert found(search, "3") == {"3", "2", "4", "5"}
    assert found(search, "1") == {"1"}


async def test_workers_at_once_leave_no_card_with_a_wrong_parent(database_url: str) -> None:
    """Each sees what the other states, in whichever order they commit; half of the comments are claimed by others."""
    rng = random.Random(4)
    parents = {number: rng.randrange(1, number) for number in range(2, 301)}
    kids: dict[int, list[int]] = {}
    for number in rng.sample(sorted(parents), 150):
        kids.setdefault(rng.randrange(1, number), []).append(number)
    items = [a_story(1, kids=kids.get(1, []))]
    items += [a_comment(number, parent, kids=kids.get(number, [])) for number, parent in parents.items()]
    rng.shuffle(items)
    lanes = {"pure": Lane(concurrency=2, batch=7)}
    wiring: dict[str, Any] = {"endpoints": ["http://127.0.0.1:9"], "lanes": lanes}
    async with (
        Engine(database_url, [pipeline()], **wiring) as one,
        Engine(database_url, [pipeline()], **wiring) as other,
    ):
        for start in range(0, 300, 60):
            upload(one, items[start : start + 60])
            await asyncio.gather(one.work_until_idle(), other.work_until_idle())
        await one.sweep()
        await one.work_until_idle()

        shown = {card["id"]: card.get("parent") for card in one.cards("items")}
        claimed = {kid: parent for parent, those in kids.items() for kid in those}
        assert shown == {1: None} | parents | claimed
        with one.app.database.reading() as tx:
            assert tx.rows(Awaiting, "misplaced", pipeline="hacker_news", limit=10) == []


@pytest.mark.parametrize("order", [(1, 2, 3), (2, 1, 3), (3, 2, 1)])
async def test_replies_are_counted_that_the_source_does_not_name(engine: Engine, order: tuple[int, ...]) -> None:
    world = {1: a_story(1, kids=[2]), 2: a_comment(2, 1), 3: a_comment(3, 1)}
    for number in order:
        upload(engine, [world[number]], way="POST")
        await engine.work_until_idle()
        await engine.follow()

    client = client_of(engine)
    listed = {card["id"]: card for card in (await client.get("/api/v1/hacker_news/items")).json["items"]}
    for number in world:
        one = (await client.get(f"/api/v1/hacker_news/items/{number}")).json
        thread = (await client.get(f"/api/v1/hacker_news/items/{number}/thread")).json
        assert listed[number] == one
        assert one.get("kids", []) == [child["id"] for child in thread["children"]]
    for query, keys in {"replies:2": ["1"], "replies:1": [], "replies:0": ["2", "3"]}.items():
        answer = await client.get("/api/v1/search", q=query)
        assert sorted(hit["id"] for hit in answer.json["hits"]) == keys, query


async def test_a_story_that_another_names_as_its_kid_belongs_to_nothing(engine: Engine) -> None:
    upload(engine, [a_story(1, kids=[2, 3]), a_comment(2, 1), a_story(3)])
    await engine.work_until_idle()

    assert engine.item("item", "3").parents == []
    assert engine.item("item", "1").children == ["item:2"]
