"""Stories that follow the shelf: who tells what, whatever happens to processes, items and decisions."""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from tests.support.environment import clean_environment
from tests.support.news import NAMES, TOLD, group, pipelines, telling, told
from tests.support.store import Ground
from tests.support.waiting import wait_until

from tidings.follow.stories import follower
from tidings.follow.stories.grouping import WINDOW_MS
from tidings.model.errors import BadInput
from tidings.store.cards import drop_shown
from tidings.store.stories import KEPT_MS, StoryStore

ROOT = Path(__file__).parents[2]


@pytest.fixture
def news(open_ground: Callable[..., Ground]) -> Ground:
    return open_ground(*pipelines().values())


def groups(ground: Ground) -> set[frozenset[str]]:
    """Return who tells what together, by pipeline and key."""
    stories = [row.id for row in ground.store.stories.newest(1_000)]
    members = ground.store.stories.members(stories).values()
    return {frozenset(f"{each.pipeline}/{each.key.partition(':')[2]}" for each in story) for story in members}


def grouped(ground: Ground, *findings: object, owner: str = "test") -> set[frozenset[str]]:
    told(ground, *findings)  # type: ignore[arg-type]
    group(ground.store, ground.pipelines, owner=owner)
    return groups(ground)


def numbers(ground: Ground) -> dict[int, list[int]]:
    """Return the members of every story by its number, those of one member too."""
    rows = ground.sql("SELECT item, story FROM story_members WHERE gone_at IS NULL ORDER BY item")
    found: dict[int, list[int]] = {}
    for item, story in rows:
        found.setdefault(story, []).append(item)
    return found


def mixed(count: int, seed: int) -> list[object]:
    """Draw news of both pipelines: some tell the same event, some share an address, none comes in order of time."""
    draw = random.Random(seed)
    return [
        telling(
            f"n{number}",
            f"{draw.choice(TOLD)} {draw.choice(('today', 'at last', 'again', 'officials say', 'report'))}",
            draw.choice(("", f"https://{draw.choice('abc')}.example/{draw.randrange(8)}")),
            draw.randrange(12_000),
            pipeline=draw.choice(NAMES),
        )
        for number in range(count)
    ]


def test_pipelines_tell_one_story_together_and_an_address_is_enough(news: Ground) -> None:
    assert grouped(
        news,
        telling("a", "Sbarro files for bankruptcy", "https://one.example/sbarro", 0),
        telling("b", "Pizza chain Sbarro files for bankruptcy again", "https://two.example/pizza", 30, pipeline="wire"),
        telling("c", "Something else altogether", "https://three.example/x", 40),
        telling("d", "Ask: is this page real?", "https://www.three.example/x/?utm_source=feed", 50, pipeline="wire"),
        telling("e", "Nobody else tells of the harbor tunnel", "https://one.example/", 60),
    ) == {frozenset({"example/a", "wire/b"}), frozenset({"example/c", "wire/d"})}
    row = news.store.stories.newest(10)[1]
    assert (row.size, row.sources, row.last_ms - row.first_ms) == (2, 2, 30 * 60_000)


def test_a_grouping_from_the_beginning_comes_to_the_same(news: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    draw = random.Random(5)
    monkeypatch.setattr(follower, "BATCH", 7)
    for number in range(0, 90, 15):
        grouped(news, *mixed(120, 3)[number : number + 15])
        withdraw(news, f"n{draw.randrange(number + 15)}")
        group(news.store, news.pipelines)
    before = numbers(news)
    assert len(before) < 80 < sum(map(len, before.values()))

    assert news.store.stories.begin_again() > 80
    assert groups(news) == set()
    group(news.store, news.pipelines, owner="test")
    assert numbers(news) == before


def withdraw(ground: Ground, key: str) -> None:
    for name in ground.pipelines:
        item = ground.store.items.find(name, "thing", key)
        if item is not None:
            with ground.database.transaction() as tx:
                drop_shown(tx, [item.id])


def test_what_is_withdrawn_leaves_and_may_come_back(news: Ground) -> None:
    both = {frozenset({"example/a", "wire/b"})}
    assert grouped(news, telling("a", TOLD[0]), telling("b", TOLD[0], pipeline="wire")) == both
    version = news.store.stories.version()

    withdraw(news, "b")
    assert grouped(news) == set()
    (left,) = news.store.stories.changed(version, 10)
    assert left.size == 1

    assert grouped(news, telling("b", f"{TOLD[0]} today", pipeline="wire")) == both


def test_what_goes_before_it_was_grouped_leaves_no_trace(news: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(follower.StoryFollower, "group", no_group)
    grouped(news, telling("a", TOLD[0]), telling("b", TOLD[0]))
    withdraw(news, "a")
    grouped(news)
    monkeypatch.undo()
    grouped(news)
    assert news.sql("SELECT COUNT(*) FROM story_members") == [(1,)]


async def no_group(*_: object) -> int:
    return 0


def test_two_processes_that_group_at_once_are_never_both_right(news: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    waiting, is_first = StoryStore.waiting, True

    def beaten(self: StoryStore, limit: int, *, before: int | None = None) -> object:
        nonlocal is_first
        seen = waiting(self, limit, before=before)
        if is_first:
            is_first = False
            group(news.store, news.pipelines, owner="other")
        return seen

    monkeypatch.setattr(StoryStore, "waiting", beaten)
    monkeypatch.setattr(StoryStore, "take_turn", lambda *_: True)
    grouped(news, *mixed(20, 9))
    monkeypatch.undo()
    places = [row[0] for row in news.sql("SELECT place FROM story_members ORDER BY place")]
    assert places == list(range(1, 21))
    before = numbers(news)
    news.store.stories.begin_again()
    group(news.store, news.pipelines)
    assert numbers(news) == before


def test_one_process_groups_and_another_takes_over_when_it_is_gone(news: Ground) -> None:
    assert news.store.stories.take_turn("one", 15_000)
    assert not news.store.stories.take_turn("two", 15_000)
    news.advance(seconds=16)
    assert news.store.stories.take_turn("two", 15_000)
    news.store.stories.leave_turn("two")
    assert news.store.stories.take_turn("one", 15_000)


def test_decisions_hold_through_a_grouping_from_the_beginning(news: Ground) -> None:
    grouped(news, *mixed(40, 4))
    stories = news.store.stories
    largest = max(stories.newest(100), key=lambda row: row.size)
    members = [each.item for each in stories.members([largest.id])[largest.id]]
    split = stories.split(members[:2], actor="test")
    one, other = [row.id for row in stories.newest(100) if row.id not in (split, largest.id)][:2]
    size = len(stories.members([one])[one])
    assert stories.join(other, [one], actor="test") == size
    grouped(news, *mixed(60, 4)[40:])
    before = numbers(news)
    assert set(members[:2]) <= set(before[split])
    assert one not in before

    assert stories.begin_again()
    with pytest.raises(BadInput, match="grouped again"):
        stories.join(split, [other], actor="test")
    group(news.store, news.pipelines)
    assert numbers(news) == before


def test_decisions_about_nothing_are_refused(news: Ground) -> None:
    grouped(news, telling("a", TOLD[0]), telling("b", TOLD[0], minutes=1), telling("c", TOLD[1], minutes=2))
    stories = news.store.stories
    (story,) = (row.id for row in stories.newest(10))
    items = [each.item for each in stories.members([story])[story]]
    other = news.item("c").id
    for call, message in (
        (lambda: stories.split(items, actor="x"), "the whole story"),
        (lambda: stories.split([items[0], other], actor="x"), "several stories"),
        (lambda: stories.split([999], actor="x"), "item 999 is in no story"),
        (lambda: stories.join(story, [998], actor="x"), "no story 998"),
        (lambda: stories.join(story, [story], actor="x"), "another story"),
    ):
        with pytest.raises(BadInput, match=message):
            call()
    assert len(stories.newest(10)) == 1


def test_a_restored_database_keeps_its_stories(news: Ground) -> None:
    grouped(news, *mixed(30, 6))
    before = numbers(news)
    news.write("UPDATE meta SET value = 'another' WHERE name = 'stream'")
    group(news.store, news.pipelines)
    assert numbers(news) == before


def test_what_is_gone_for_long_is_forgotten_and_the_rest_stays_as_it_is(news: Ground) -> None:
    grouped(news, telling("a", TOLD[0]), telling("b", TOLD[0], minutes=5))
    withdraw(news, "a")
    late = 60 * 24 * 9
    grouped(news, telling("c", TOLD[1], minutes=late), telling("d", TOLD[1], minutes=late + 1))
    news.advance(seconds=KEPT_MS / 1000 + 60)
    assert news.store.stories.tidy(WINDOW_MS) == 1
    before = numbers(news)
    assert news.store.stories.begin_again() == 2
    group(news.store, news.pipelines, owner="later")
    assert numbers(news) == before


def test_a_date_ahead_of_time_stops_nobody(news: Ground) -> None:
    ahead = 60 * 24 * 365 * 60
    assert grouped(
        news, telling("a", "Far ahead", minutes=ahead), telling("b", TOLD[0]), telling("c", TOLD[0], minutes=1)
    ) == {frozenset({"example/b", "example/c"})}


def has_grouped(ground: Ground, more_than: int) -> bool:
    return ground.store.stories.state().place > more_than


@pytest.mark.slow
def test_kills_lose_no_item_and_group_none_twice(news: Ground, database_url: str) -> None:
    chance, rows = random.Random(8), mixed(60, 8)
    for number in range(0, 60, 10):
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.story_process", database_url], cwd=ROOT, env=clean_environment()
        )
        try:
            told(news, *rows[number : number + 10])  # type: ignore[arg-type]
            enough = chance.randrange(number + 1)
            wait_until(partial(has_grouped, news, enough))
        finally:
            process.kill()
            process.wait()
    news.advance(seconds=follower.TURN_SECONDS + 1)
    group(news.store, news.pipelines)
    places = [row[0] for row in news.sql("SELECT place FROM story_members ORDER BY place")]
    assert places == list(range(1, 61))
    before = numbers(news)
    news.store.stories.begin_again()
    group(news.store, news.pipelines)
    assert numbers(news) == before
