"""What is withdrawn is gone from every output, and every card tells its item's state: one walk over all of them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.commands import tidings
from tests.support.engine import Engine
from tests.support.firebase import FirebaseApi
from tests.support.hacker_news import ask, client_of, engine_on

ITEMS = "/api/v1/hacker_news/items"
WORDS = {1: "alder", 2: "birch", 3: "cedar", 4: "dogwood", 5: "elder", 6: "filbert", 7: "gorse", 8: "hazel"}
"""A word that only the title or text of this item has."""
FAILED, DELETED, DEAD, WORSE = (2, 5), (3, 6), (4, 7), 8
"""A comment and a story each that is marked as failed by hand, deleted, dead; and one whose newer copy is no good."""
ADDRESSES = {
    "list": f"{ITEMS}?limit=500",
    "list of a type": f"{ITEMS}?limit=500&type=comment",
    "list of an author": f"{ITEMS}?limit=500&by=ada",
    "thread": f"{ITEMS}/1/thread",
    "ranking": "/api/v1/hacker_news/lists/top",
    "similar": f"{ITEMS}/1/similar?limit=50",
    "search": "/api/v1/hacker_news/search?q=tree&limit=500",
    "search everywhere": "/api/v1/search?q=by:ada&limit=500&facets=true",
    "thread search": "/api/v1/search?q=story:1&limit=500",
    "changes": "/api/v1/changes?pipeline=hacker_news&limit=500",
    "rss": "/feeds/hacker_news.rss?limit=200",
    "atom": "/feeds/all.atom?limit=200&q=tree",
    "json feed": "/feeds/hacker_news.json?limit=200",
    "feed of the ranking": "/feeds/hacker_news/lists/top.rss",
    "page": "/pipelines/hacker_news/items?all=true",
    "front page": "/pipelines/hacker_news/items",
    "thread page": "/pipelines/hacker_news/items/1",
    "ranking page": "/pipelines/hacker_news/lists/top",
    "search page": "/search?q=tree",
    **{f"card {number}": f"{ITEMS}/{number}" for number in WORDS},
    **{f"suggestion {word}": f"/api/v1/suggest?q={word[:4]}" for word in WORDS.values()},
}
FEEDS = ("rss", "atom", "json feed", "feed of the ranking", "feeds of the mirror")


@pytest.fixture
def api() -> FirebaseApi:
    api = FirebaseApi(seed=5)
    api.add(1, title="The alder tree", by="ada", kids=[2, 3, 4], descendants=3)
    for number in (2, 3, 4):
        api.add(number, type="comment", parent=1, title=None, by="ada", text=f"A tree: {WORDS[number]}")
    for number in (5, 6, 7, 8):
        api.add(number, title=f"The {WORDS[number]} tree", by="ada")
    api.lists = {"topstories": [5, 6, 7, 8, 1]}
    return api


async def test_no_output_shows_what_is_withdrawn_or_tells_a_wrong_state(
    database_url: str, api: FirebaseApi, tmp_path: Path, no_settings: None
) -> None:
    configure(tmp_path, database_url)
    async with engine_on(database_url, api) as engine:
        await settle(engine)
        before = await outputs(engine, tmp_path)
        for number, word in WORDS.items():
            places = {name for name, text in before.items() if word in text}
            assert {"list", "search", "changes", "jsonl", "csv", "mirror", "command"} <= places, number
        assert_states_are_told(engine, before)

        for number in FAILED:
            item = engine.item("item", str(number)).item.id
            engine.store.operations.transition(item, "mark_failed", actor="tester", reason="a look at it")
        for number in DELETED:
            api.change(number, deleted=True, title=None, text=None, by=None)
        for number in DEAD:
            api.change(number, dead=True)
        api.change(WORSE, url="no address")
        await settle(engine)
        after = await outputs(engine, tmp_path)

        for number in (*FAILED, *DELETED):
            assert [name for name, text in after.items() if WORDS[number] in text] == [], number
        for number in DEAD:
            assert [name for name in FEEDS if WORDS[number] in after[name]] == [], number
        assert_states_are_told(engine, after)
        cards = {card["id"]: card for card in cards_in(json.loads(after["list"]))}
        assert sorted(cards) == [1, 3, 4, 6, 7, 8]
        assert [cards[number]["deleted"] for number in DELETED] == [True, True]
        assert [cards[number]["dead"] for number in DEAD] == [True, True]
        assert cards[WORSE]["state"] == "failed"
        children = json.loads(after["thread"])["children"]
        assert [child.get("missing") or child.get("deleted") or child.get("dead") for child in children] == [True] * 3


async def settle(engine: Engine) -> None:
    await ask(engine)
    await engine.work_until_idle()
    await engine.follow()


async def outputs(engine: Engine, folder: Path) -> dict[str, str]:
    """Read everything that readers can read."""
    client = client_of(engine)
    texts = {name: (await client.get(address)).text for name, address in ADDRESSES.items()}
    config = ("--config", str(folder / "tidings.toml"))
    commands = {
        "jsonl": ("export", "hacker_news"),
        "csv": ("export", "hacker_news", "--format", "csv"),
        "command": ("search", "tree", "--json"),
    }
    for name, command in commands.items():
        ended = await asyncio.to_thread(tidings, *command, *config)
        assert ended.code == 0, ended.err
        texts[name] = ended.out
    repaired = await asyncio.to_thread(tidings, "mirror", "repair", "site", *config)
    assert repaired.code == 0, repaired.err
    files = [each for each in sorted((folder / "site").rglob("*")) if each.is_file()]
    texts["mirror"] = "\n".join(each.read_text() for each in files)
    texts["feeds of the mirror"] = "\n".join(each.read_text() for each in files if "feeds" in each.parts)
    assert "alder" in texts["feeds of the mirror"]
    return texts


def assert_states_are_told(engine: Engine, texts: dict[str, str]) -> None:
    """Compare every card in every output with the item it stands for."""
    states = {row.key: row.state for row in engine.items("item")}
    counted = 0
    for name, text in texts.items():
        lines = [text] if name == "command" else [line for line in text.splitlines() if line.startswith("{")]
        for card in cards_in([json.loads(line) for line in lines]):
            counted += 1
            assert card["state"] == states[str(card["id"])], (name, card)
    assert counted > 30


def cards_in(value: Any) -> Iterator[dict[str, Any]]:
    """Find the cards in an answer, however deep."""
    if isinstance(value, dict):
        if {"id", "type", "state"} <= value.keys():
            yield value
        for each in value.values():
            yield from cards_in(each)
    elif isinstance(value, list):
        for each in value:
            yield from cards_in(each)


def configure(folder: Path, database_url: str) -> None:
    (folder / "tidings.toml").write_text(
        f'database_url = "{database_url}"\nindex_dir = "{folder / "index"}"\n[pipelines.hacker_news]\n'
        f'[mirrors.site]\nurl = "file://{folder / "site"}"\npublic_url = "https://news.example"\n'
    )
