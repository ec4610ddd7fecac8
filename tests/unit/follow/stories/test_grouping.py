"""Stories: what belongs together, what does not, and that a restart changes nothing."""

from __future__ import annotations

import random

import pytest

from tidings.follow.stories import grouping
from tidings.follow.stories.copies import address_of, digest_of
from tidings.follow.stories.grouping import Grouping, Member, StoryItem
from tidings.model.clock import DAY_MS

NOON = 1_700_000_000_000
SUBJECTS = ("Acme Bank", "Harbor Tunnel", "Lunar Probe", "Riverside Museum", "Quantum Startup", "Coffee Prices")
EVENTS = ("files for bankruptcy", "opens to the public", "loses contact", "raises money", "closes after a fire")


def headlines(count: int, seed: int) -> list[StoryItem]:
    draw = random.Random(seed)
    return [
        StoryItem(
            n,
            NOON + n * 600_000,
            f"{draw.choice(SUBJECTS)} {draw.choice(EVENTS)} {draw.choice(('today', 'in May', 'again', 'at last'))}",
            " ".join(draw.choice(SUBJECTS) for _ in range(60)) if n % 3 == 0 else "",
        )
        for n in range(1, count + 1)
    ]


def stories_of(items: list[StoryItem]) -> list[int]:
    placed = Grouping()
    return [placed.place(item).story for item in items]


def item(number: int, title: str, *, hours: float = 0, url: str = "", text: str = "") -> StoryItem:
    return StoryItem(number, NOON + int(hours * 3_600_000), title, text, url)


BACKGROUND = [
    item(100 + n, title)
    for n, title in enumerate(
        ("Elephants can tell languages apart, study finds", "Spring sale of garden tools begins in Leeds",
         "Parliament debates the new fishing quota", "Local team wins the handball cup", "How to bake rye bread")
    )
]  # fmt: skip


def test_the_same_event_in_other_words_is_one_story_and_other_events_are_not() -> None:
    told = stories_of([
        *BACKGROUND,
        item(1, "Pizza maker Sbarro files for Chapter 11 bankruptcy"),
        item(2, "Sbarro files for bankruptcy for second time in 3 years", hours=1),
        item(3, "Chrysler issues two recalls of nearly 37000 vehicles", hours=1),
    ])  # fmt: skip
    assert told[-3:] == [1, 1, 3]
    assert told[: len(BACKGROUND)] == [each.id for each in BACKGROUND]


def test_what_links_to_an_article_belongs_to_it_whatever_it_is_called() -> None:
    told = stories_of([
        item(1, "Bank files for bankruptcy", url="https://www.paper.example/2024/bank?utm_source=feed"),
        item(2, "Another one bites the dust", url="http://paper.example/2024/bank/"),
        item(3, "Ask: what do you read?", url="https://paper.example/"),
        item(4, "Unrelated words entirely", url="https://paper.example"),
    ])  # fmt: skip
    assert told == [1, 1, 3, 4]


def test_a_copied_text_under_another_title_is_one_story() -> None:
    release = " ".join(f"word{n} of the release" for n in range(60))
    other = " ".join(f"thing{n} in another paper" for n in range(60))
    told = stories_of([
        item(1, "Company announces results", text=release),
        item(2, "Shares leap in late trade", text=f"By our reporter. {release}"),
        item(3, "Nothing alike whatsoever", text=other),
    ])  # fmt: skip
    assert told == [1, 1, 3]


def test_a_story_ends_when_nothing_was_told_for_days() -> None:
    title = "Pizza maker Sbarro files for Chapter 11 bankruptcy"
    assert stories_of([*BACKGROUND, item(1, title), item(2, title, hours=71)])[-2:] == [1, 1]
    assert stories_of([*BACKGROUND, item(1, title), item(2, title, hours=73)])[-2:] == [1, 2]


def test_no_story_goes_on_for_weeks() -> None:
    title = "Pizza maker Sbarro files for Chapter 11 bankruptcy"
    told = stories_of([item(n, title, hours=48 * n) for n in range(1, 10)])
    assert len(set(told)) > 1


def test_members_read_back_after_a_restart_lead_to_the_same_stories(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grouping, "WINDOW_MS", DAY_MS)
    items = headlines(600, seed=3)
    whole = Grouping()
    expected = [whole.place(each) for each in items]
    for cut in (1, 150, 433, 599):
        again = Grouping()
        for member in expected[:cut]:
            again.restore(Member(**{name: getattr(member, name) for name in Member.__slots__}))
        assert [again.place(each) for each in items[cut:]] == expected[cut:]


def test_what_was_withdrawn_leaves_no_trace() -> None:
    items = headlines(300, seed=4)
    gone, never = Grouping(), Grouping()
    for each in items[:150]:
        gone.place(each)
    for each in items[:150]:
        gone.remove(each.id)
    assert [gone.place(each) for each in items[150:]] == [never.place(each) for each in items[150:]]


def test_a_person_may_say_where_an_item_belongs() -> None:
    placed = Grouping()
    placed.place(item(1, "Pizza maker Sbarro files for bankruptcy"))
    assert placed.place(item(2, "Weather in spring"), story=1).story == 1
    assert placed.place(item(3, "Pizza maker Sbarro files for bankruptcy"), story=3).story == 3


@pytest.mark.parametrize("url", ["", "no address", "ftp://x.example/a", "http://[", "https://paper.example/"])
def test_an_address_that_names_no_page_groups_nothing(url: str) -> None:
    assert address_of(url) == ""


def test_an_item_without_words_is_a_story_of_its_own() -> None:
    assert stories_of([item(1, ""), item(2, ""), item(3, "the of and", text="!"), item(4, "\0 \ud800")]) == [1, 2, 3, 4]


def test_a_short_text_has_no_digest() -> None:
    assert digest_of("too short to be a copy") == b""
