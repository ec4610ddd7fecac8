"""An issue is read whole, judged, shown, and taken back when it is over."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from tests.support.clock import ManualClock
from tests.unit.pipelines.first_issues.hub import DAY_MS, NOW_MS, a_repo, an_issue, open_hub

from tidings.model.item import Link
from tidings.pipelines.first_issues import cards_issue, notices_issue, processors_issue
from tidings.pipelines.first_issues.body_issue import IssueBody
from tidings.sample.github import GitHub, moved
from tidings.sample.github_world import moment

present_issue: Any = cards_issue.present_issue
announce_issue: Any = notices_issue.announce_issue
mark_failed: Any = processors_issue.mark_failed
BARE = IssueBody(repo="a/one", repo_key="a/one", number=1, language="Python", languages=["Python"], found_at=NOW_MS)


@pytest.fixture
def clock():
    return ManualClock(NOW_MS)


@pytest.fixture
def world(clock):
    return GitHub([a_repo(1000, "a/one")], now_ms=clock.now_ms)


async def details(hub, body=BARE, accepted=None):
    return await hub.perform("issue", "read_details", hub.work("issue", "a/one#1", body, accepted))


async def published(hub, body=BARE, accepted=None):
    read = await details(hub, body, accepted)
    analyzed = await hub.perform("issue", "analyze", hub.work("issue", "a/one#1", read.body, accepted))
    work = hub.work("issue", "a/one#1", analyzed.body or read.body, accepted)
    return hub.processor("issue", "publish")(work)


def target(hub, body):
    work = hub.work("issue", "a/one#1", body, state="detailed")
    ways: Any = hub.pipeline.workflows["issue"].automatic_from("detailed")
    return [way.target for way in ways if way.criterion(work)]


async def test_details_are_read_and_the_issue_belongs_to_its_repository(world, clock):
    async with open_hub(world, clock) as hub:
        outcome = await details(hub)
        way = target(hub, outcome.body)

    body: IssueBody = outcome.body
    assert body.text.startswith("The page lacks an example.")
    assert (body.state, body.freshness, body.author) == ("open", "fresh", "someone")
    assert outcome.links == (Link("issue:a/one#1", "repo:a/one", "issue_of", 1),)
    assert way == ["analyzed"]
    assert len(world.calls) == 1


async def test_comments_are_read_only_where_there_are_some(world, clock):
    repo = world.repo("a/one")
    repo.add_comment(1, "carebot[bot]", "I'd like to work on this", NOW_MS - DAY_MS)
    repo.add_comment(1, "bob", "I'd like to work on this", NOW_MS - 2 * DAY_MS)
    async with open_hub(world, clock) as hub:
        outcome = await details(hub)

    assert (outcome.body.claimed_by, outcome.body.claimed_how) == ("bob", "comment")
    assert outcome.body.claimed_at == "2027-01-13T08:00:00.000Z"
    assert [path.partition("?")[0] for path in hub.paths()] == [
        "/repos/a/one/issues/1",
        "/repos/a/one/issues/1/comments",
    ]


async def test_a_maintainers_comment_answers_rates_and_points(world, clock):
    repo = world.repo("a/one")
    repo.add_comment(1, "bob", "Any news? This should be an easy fix.", NOW_MS - 2 * DAY_MS)
    async with open_hub(world, clock) as hub:
        unanswered = await published(hub)
        repo.add_comment(1, "ada", "This should be an easy fix, see `lib/io.py`.", NOW_MS - DAY_MS, "MEMBER")
        answered = await published(hub)

    before, after = (present_issue("a/one#1", each.body).card for each in (unanswered, answered))
    assert (before.difficulty, before.good_signs) == (None, ["unclaimed", "fresh", "small"])
    assert (after.difficulty, after.rated) == (3, True)
    assert after.good_signs == ["unclaimed", "fresh", "answered", "small"]
    assert after.first_steps == ["Open lib/io.py, which a maintainer names.", "Open docs/index.md."]
    notice = notices_issue.issue_notice(answered.body)
    assert {field.name: field.value for field in notice.fields}["Difficulty"] == "3 of 10"
    assert notice.attributes["sign"] == after.good_signs
    assert "Difficulty" not in {field.name for field in notices_issue.issue_notice(unanswered.body).fields}


async def test_numbers_that_meant_nothing_are_no_longer_shown(world, clock):
    async with open_hub(world, clock) as hub:
        first = await published(hub)
        old = msgspec.structs.replace(
            first.body, difficulty=5, reasons=["is long"], first_steps=["Read the discussion."], analysis_version=1
        )
        card = present_issue("a/one#1", old).card
        read = await details(hub, BARE, old)
        renewed = await hub.perform("issue", "analyze", hub.work("issue", "a/one#1", read.body, old))

    assert (card.difficulty, card.reasons, card.first_steps) == (None, [], [])
    assert renewed.body.first_steps == ["Open docs/index.md."]


async def test_of_a_long_conversation_the_end_counts_too(world, clock):
    repo = world.repo("a/one")
    for n in range(350):
        repo.add_comment(1, f"user{n}", "This happens to me too.", NOW_MS - 40 * DAY_MS)
    repo.add_comment(1, "eve", "Can I take this?", NOW_MS - DAY_MS)
    async with open_hub(world, clock) as hub:
        outcome = await details(hub)

    assert outcome.body.claimed_by == "eve"
    assert len(world.calls) == 3


async def test_an_assigned_issue_needs_no_comments(world, clock):
    repo = world.repo("a/one")
    repo.add_comment(1, "bob", "I'd like to work on this", NOW_MS)
    repo.issues[1]["assignees"] = [{"login": "eve"}]
    async with open_hub(world, clock) as hub:
        outcome = await details(hub)
        shown = present_issue("a/one#1", outcome.body).card

    assert (outcome.body.claimed_by, outcome.body.claimed_how) == ("eve", "assigned")
    assert not shown.unclaimed
    assert len(world.calls) == 1


@pytest.mark.parametrize(
    ("days", "expected"), [(0, "fresh"), (29, "fresh"), (30, "quiet"), (179, "quiet"), (181, "stale")]
)
async def test_freshness_follows_the_last_change(world, clock, days, expected):
    world.repo("a/one").issues[1]["updated_at"] = moment(NOW_MS - days * DAY_MS)
    async with open_hub(world, clock) as hub:
        outcome = await details(hub)

    assert outcome.body.freshness == expected


async def test_time_alone_brings_an_issue_back(world, clock):
    world.repo("a/one").issues[1]["updated_at"] = moment(NOW_MS - 5 * DAY_MS)
    async with open_hub(world, clock) as hub:
        fresh = await published(hub)
        clock.advance(seconds=25 * 86_400)
        quiet = await published(hub, fresh.body)
        world.repo("a/one").add_comment(1, "bob", "I'd like to work on this", clock.now_ms())
        claimed = await published(hub, quiet.body)

    assert fresh.due_at == NOW_MS + 25 * DAY_MS
    assert quiet.body.freshness == "quiet"
    assert quiet.due_at == clock.now_ms() + 90 * DAY_MS
    assert claimed.due_at == clock.now_ms() + 30 * DAY_MS


async def test_an_analysis_stands_while_its_facts_do(world, clock):
    async with open_hub(world, clock) as hub:
        first = await published(hub)
        clock.advance(seconds=86_400)
        read = await details(hub, BARE, first.body)
        same = await hub.perform("issue", "analyze", hub.work("issue", "a/one#1", read.body, first.body))
        world.repo("a/one").add_comment(1, "bob", "Any news?", NOW_MS)
        read = await details(hub, BARE, first.body)
        other = await hub.perform("issue", "analyze", hub.work("issue", "a/one#1", read.body, first.body))

    assert first.body.difficulty is None
    assert first.body.first_steps == ["Open docs/index.md."]
    assert first.body.introduction
    assert same.body is None
    assert "stands" in same.note
    assert other.body.analysis_of != first.body.analysis_of


async def test_a_closed_issue_is_marked_and_forgotten_later(world, clock):
    async with open_hub(world, clock) as hub:
        first = await published(hub)
        world.repo("a/one").issues[1] |= {"state": "closed", "closed_at": moment(NOW_MS), "state_reason": "completed"}
        vanished = msgspec.structs.replace(BARE, vanished=True)
        read = await details(hub, vanished, first.body)
        way = target(hub, read.body)
        closed = hub.processor("issue", "close")(hub.work("issue", "a/one#1", read.body))
        forgotten = hub.processor("issue", "forget")(hub.work("issue", "a/one#1", closed.body))

    assert way == ["closed"]
    card = present_issue("a/one#1", closed.body).card
    assert (card.state, card.unclaimed, card.introduction) == ("closed", False, first.body.introduction)
    assert closed.due_at == NOW_MS + 30 * DAY_MS
    assert present_issue("a/one#1", forgotten.body) is None


@pytest.mark.parametrize("status", [404, 410])
async def test_a_deleted_issue_is_withdrawn(world, clock, status):
    world.repo("a/one").issue_statuses[1] = status
    async with open_hub(world, clock) as hub:
        read = await details(hub)
        way = target(hub, read.body)

    assert (read.body.state, way) == ("deleted", ["withdrawn"])
    assert present_issue("a/one#1", read.body) is None


async def test_an_issue_whose_label_was_taken_off_is_withdrawn(world, clock):
    async with open_hub(world, clock) as hub:
        read = await details(hub, msgspec.structs.replace(BARE, vanished=True))
        way = target(hub, read.body)

    assert (read.body.state, way) == ("unlisted", ["withdrawn"])


async def test_an_issue_of_a_lost_repository_is_withdrawn_without_a_call(world, clock):
    async with open_hub(world, clock) as hub:
        first = await published(hub)
        calls = len(world.calls)
        read = await details(hub, msgspec.structs.replace(BARE, state="unlisted"), first.body)

    assert len(world.calls) == calls
    assert read.body.state == "unlisted"


async def test_a_renamed_repository_still_has_the_issue_and_a_transferred_one_is_gone(world, clock):
    async with open_hub(world, clock) as hub:
        world.rename("a/one", "b/two")
        renamed = await details(hub)
        other = world.add(a_repo(2000, "c/three", issues=0))
        other.issues[7] = an_issue(other, 7)
        world.fail("/repos/a/one/issues/1", moved(f"{hub.url}/repos/c/three/issues/7"))
        transferred = await details(hub)

    assert renamed.body.state == "open"
    assert transferred.body.state == "moved"


async def test_a_pull_request_is_no_issue_for_beginners(world, clock):
    world.repo("a/one").issues[1]["pull_request"] = {"url": "https://api.github.com/repos/a/one/pulls/1"}
    async with open_hub(world, clock) as hub:
        read = await details(hub)

    assert read.body.state == "unlisted"


async def test_odd_issues_are_read(world, clock):
    world.repo("a/one").issues[1] |= {
        "body": None,
        "user": None,
        "labels": ["a plain string", {"name": "good first issue"}, {"color": "fff"}],
        "assignees": None,
        "assignee": None,
        "reactions": None,
        "updated_at": None,
        "title": "  NUL\0 inside  ",
    }
    async with open_hub(world, clock) as hub:
        outcome = await published(hub)

    body: IssueBody = outcome.body
    assert (body.text, body.author, body.labels) == ("", None, ["a plain string", "good first issue"])
    assert body.title == "NUL inside"
    card = present_issue("a/one#1", body).card
    assert (card.difficulty, card.rated) == (None, False)


async def test_a_new_issue_is_announced_once(world, clock):
    world.repo("a/one").issues[1]["created_at"] = moment(NOW_MS - DAY_MS)
    async with open_hub(world, clock) as hub:
        first = await published(hub)
        told = announce_issue(hub.work("issue", "a/one#1", first.body))
        clock.advance(seconds=60)
        again = await published(hub, first.body)
        told_again = announce_issue(hub.work("issue", "a/one#1", again.body))
        changed = await published(hub, BARE, first.body)
        told_of_a_change = announce_issue(hub.work("issue", "a/one#1", changed.body, first.body))

    assert [notice.title for notice in told] == ["Improve thing 1"]
    assert told[0].attributes["language"] == ["Python"]
    assert told_again == told_of_a_change == ()


async def test_old_or_taken_issues_are_no_news(world, clock):
    async with open_hub(world, clock) as hub:
        old = await published(hub)
        world.repo("a/one").issues[1] |= {"created_at": moment(NOW_MS), "assignees": [{"login": "eve"}]}
        taken = await published(hub)

    assert announce_issue(hub.work("issue", "a/one#1", old.body)) == ()
    assert announce_issue(hub.work("issue", "a/one#1", taken.body)) == ()


async def test_a_failure_is_shown_beside_what_readers_had(world, clock):
    async with open_hub(world, clock) as hub:
        first = await published(hub)
        work = hub.work("issue", "a/one#1", msgspec.structs.replace(BARE, title="New title", comments=3), first.body)
        work.error = "GitHub answered 500"
        failed = mark_failed(work)

    card = present_issue("a/one#1", failed.body).card
    assert (card.processing_status, card.error, card.title) == ("failed", "GitHub answered 500", "New title")
    assert card.introduction == first.body.introduction


async def test_the_card_has_an_address_of_its_own(world, clock):
    async with open_hub(world, clock) as hub:
        shown = present_issue("a/one#1", (await published(hub)).body)

    assert (shown.id, shown.card.id, shown.card.repo, shown.card.number) == ("a/one/1", "a/one/1", "a/one", 1)
    assert shown.card.unclaimed
    assert shown.document().attributes["claimed"] == "no"
    assert shown.document().type == "issue"
