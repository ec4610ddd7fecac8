"""Somebody who asked for an issue has it, until they let go or go quiet."""

from __future__ import annotations

import time

import pytest

from tidings.pipelines.first_issues.claims import Claim, Comment, claims, find_claim, releases

DAY_MS = 86_400_000
NOW_MS = 1_800_000_000_000


@pytest.mark.parametrize(
    "text",
    [
        "I'd like to work on this",
        "I’d like to work on this.",
        "Hi! I would love to work on this issue, could you assign it to me?",
        "Can I work on this?",
        "can i take this one up please",
        "May I pick this up?",
        "Could I please try this issue",
        "I'll take this",
        "I will work on it this weekend",
        "I am working on this",
        "I'm currently working on it",
        "I want to work on this issue",
        "Let me work on this",
        "Let me give it a try",
        "I'm interested in working on this.",
        "I would be happy to take this on",
        "I'd be interested in tackling this.",
        "Please assign this to me",
        "please assign me",
        "Can you assign it to me?",
        "Could this be assigned to me please?",
        "I've started working on this",
        "I have opened a PR for this",
        "Just saw this. I've just submitted a pull request: #123",
        "/assign",
        ".take",
        "take",
        "dibs!",
        "Mind if I take this?",
        "I plan to implement this next week",
        "> can someone take this?\n\nI can work on this!",
        "Hello, I'm new here.\n\nI'd really like to fix this bug.",
        "I'm going to start on this tomorrow",
    ],
)
def test_whoever_asks_for_an_issue_claims_it(text):
    assert claims(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Is anyone working on this?",
        "Would you like to work on this?",
        "Feel free to work on this!",
        "@alice do you want to take this?",
        "Somebody should fix this.",
        "> I'd like to work on this\n\nGo ahead!",
        "```\nI'd like to work on this\n```\nis what people write",
        "I don't think I want to work on this",
        "I'm not sure I can fix this.",
        "This still happens in 2.3 for me.",
        "I can reproduce this.",
        "I can confirm that it works.",
        "+1",
        "We would accept a pull request for this.",
        "The docs say `assign me` is not a command",
        "Thanks, I like this idea a lot.",
        "It would take this long to load",
        "Can we get an update?",
        "/assign @bob",
    ],
)
def test_other_words_claim_nothing(text):
    assert not claims(text)


@pytest.mark.parametrize(
    "text",
    [
        "I'm no longer working on this",
        "Sorry, I can't work on this any more",
        "I won't be able to finish, feel free to take it",
        "I don't have time for this, sorry",
        "/unassign",
        "Unassigning myself.",
        "This is up for grabs again",
    ],
)
def test_whoever_lets_go_releases(text):
    assert releases(text)


def test_an_assignee_has_the_issue_whatever_is_said():
    said = [Comment("bob", "I'd like to work on this", NOW_MS)]

    assert find_claim(["alice"], said, now_ms=NOW_MS, holds_ms=DAY_MS) == Claim("alice", "assigned")


def test_the_last_who_asked_has_the_issue():
    said = [_said("bob", 5, "Can I take this?"), _said("eve", 2, "I'd like to work on this")]

    assert find_claim([], said, now_ms=NOW_MS, holds_ms=30 * DAY_MS) == Claim("eve", "comment", NOW_MS - 2 * DAY_MS)


def test_a_claim_ends_when_its_holder_lets_go():
    said = [_said("bob", 5, "Can I take this?"), _said("bob", 2, "I no longer have time, feel free to take it")]

    assert find_claim([], said, now_ms=NOW_MS, holds_ms=30 * DAY_MS) is None


def test_a_claim_ends_by_silence_and_lasts_by_taking_part():
    silent = [_said("bob", 50, "Can I take this?")]
    active = [*silent, _said("bob", 20, "Half way there, the parser is done.")]

    assert find_claim([], silent, now_ms=NOW_MS, holds_ms=45 * DAY_MS) is None
    assert find_claim([], active, now_ms=NOW_MS, holds_ms=45 * DAY_MS) == Claim("bob", "comment", NOW_MS - 20 * DAY_MS)


def test_hostile_comments_cost_little_time():
    started = time.process_time()
    for unit in (
        "<!--",
        "```",
        "`",
        "i would like to ",
        "not sure ",
        "can i ",
        "> ",
        "i'm " * 3,
        "~~~",
        "\n\n",
        "assign ",
    ):
        claims(unit * 20_000)
        releases(unit * 20_000)

    assert time.process_time() - started < 2


def _said(author, days_ago, text):
    return Comment(author, text, NOW_MS - days_ago * DAY_MS)
