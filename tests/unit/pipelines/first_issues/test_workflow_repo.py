"""A repository is surveyed with few calls, and its issues are born, changed and closed with it."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from tests.support.clock import ManualClock
from tests.unit.pipelines.first_issues.hub import DAY_MS, NOW_MS, a_repo, an_issue, listed, open_hub

from tidings.model.errors import SlowDown, Transient
from tidings.model.outcome import Advance
from tidings.model.workflow import Work
from tidings.pipelines.first_issues import cards_repo, criteria_repo, processors_repo
from tidings.pipelines.first_issues.body_issue import IssueBody
from tidings.pipelines.first_issues.body_repo import RepoBody, repo_from
from tidings.pipelines.first_issues.lists import ListedRepo
from tidings.sample.github import GitHub, refusal, secondary_limit
from tidings.sample.github_world import label_json, moment

present_repo: Any = cards_repo.present_repo
mark_failed: Any = processors_repo.mark_failed
is_available: Any = criteria_repo.is_available


@pytest.fixture
def clock():
    return ManualClock(NOW_MS)


@pytest.fixture
def world(clock):
    return GitHub([a_repo(1000, "a/one")], listing=listed("a/one"), now_ms=clock.now_ms)


def found(world, name="a/one", tag="good first issue"):
    """The body discovery would report."""
    repo = world.repo(name)
    owner, _, short = repo.full_name.partition("/")
    return repo_from(ListedRepo(1, owner, short, tag, "awesome-for-beginners"), repo.shown(NOW_MS), NOW_MS)


async def survey(hub, body, accepted=None):
    return await hub.perform("repo", "survey", hub.work("repo", body.full_name.lower(), body, accepted))


async def processed(hub, body, accepted=None):
    """Survey, summarize and publish."""
    surveyed = await survey(hub, body, accepted)
    summarized = await hub.perform("repo", "summarize", hub.work("repo", "a/one", surveyed.body, accepted))
    body = summarized.body or surveyed.body
    published = hub.processor("repo", "publish")(hub.work("repo", "a/one", body))
    return surveyed, published


def children(outcome):
    return {child.key: child for child in outcome.children}


def issue_of(finding):
    return msgspec.json.decode(finding.payload, type=IssueBody)


async def test_a_survey_reads_languages_readme_labels_and_issues(world, clock):
    async with open_hub(world, clock) as hub:
        outcome = await survey(hub, found(world))

    body: RepoBody = outcome.body
    assert body.languages_ordered == ["Python", "Shell"]
    assert body.languages == {"Shell": 2048, "Python": 123_456}
    assert body.readme.startswith("# a/one")
    assert (body.labels, body.label_status) == (["good first issue"], "exact")
    assert (body.issues, body.issues_status) == ([1, 2], "listed")
    assert sorted(children(outcome)) == ["a/one#1", "a/one#2"]
    child = issue_of(children(outcome)["a/one#1"])
    assert (child.repo, child.repo_key, child.language, child.title) == ("a/one", "a/one", "Python", "Improve thing 1")
    assert len(world.calls) == 4


async def test_all_pages_are_read_and_pull_requests_dropped(world, clock):
    repo = world.repo("a/one")
    for number in range(3, 250):
        repo.issues[number] = an_issue(repo, number)
    for number in range(300, 310):
        repo.issues[number] = an_issue(repo, number, pull_request={"url": "https://api.github.com/x"})
    repo.issues[400] = an_issue(repo, 400, pull_request={"url": None, "html_url": None})
    repo.issues[401] = an_issue(repo, 401, labels=[])
    async with open_hub(world, clock) as hub:
        outcome = await survey(hub, found(world))

    assert outcome.body.issues == [*range(1, 250), 400]
    assert sum("/issues?" in path for path in hub.paths()) == 3


async def test_a_list_that_is_too_long_is_cut_and_closes_nothing(world, clock):
    repo = world.repo("a/one")
    for number in range(1, 251):
        repo.issues[number] = an_issue(repo, number)
    async with open_hub(world, clock, issue_pages_max=2) as hub:
        outcome = await survey(hub, found(world))
        again = await survey(hub, msgspec.structs.replace(outcome.body, issues=[*outcome.body.issues, 999]))

    assert outcome.body.issues_status == "cut"
    assert len(outcome.children) == 200
    assert "there are more" in outcome.note
    assert 999 in again.body.issues
    assert len(again.children) == 200


async def test_a_label_spelled_otherwise_is_found_and_told(clock):
    world = GitHub([a_repo(1000, "a/one", label="Type: Jump In")], now_ms=clock.now_ms)
    async with open_hub(world, clock) as hub:
        outcome = await survey(hub, found(world, tag="Type:-Jump-In"))

    assert (outcome.body.labels, outcome.body.label_status) == (["Type: Jump In"], "respelled")
    assert outcome.body.issues == [1, 2]
    assert "'Type:-Jump-In' is spelled 'Type: Jump In' on GitHub" in outcome.note


async def test_two_labels_in_one_must_both_be_carried(clock):
    repo = a_repo(1000, "a/one", label="Good First Issue")
    easy = label_json("a/one", 9, "Difficulty/1:Easy")
    repo.labels.append(easy)
    repo.issues[1]["labels"].append(easy)
    repo.issues[2]["labels"] = [repo.labels[1]]
    world = GitHub([repo], now_ms=clock.now_ms)
    async with open_hub(world, clock) as hub:
        outcome = await survey(hub, found(world, tag="Good First Issue, Difficulty/1:Easy"))

    assert outcome.body.labels == ["Good First Issue", "Difficulty/1:Easy"]
    assert outcome.body.issues == [1]


async def test_a_label_with_a_comma_is_filtered_here(clock):
    world = GitHub([a_repo(1000, "a/one", label="easy, really")], now_ms=clock.now_ms)
    world.repo("a/one").issues[3] = an_issue(world.repo("a/one"), 3, labels=[])
    async with open_hub(world, clock) as hub:
        outcome = await survey(hub, found(world, tag="easy, really"))

    assert outcome.body.issues == [1, 2]
    assert not any("labels=" in path for path in hub.paths() if "/issues" in path)


async def test_an_unknown_label_is_told_from_no_open_issues(world, clock):
    async with open_hub(world, clock) as hub:
        unknown = await survey(hub, found(world, tag="See Description"))
        for issue in world.repo("a/one").issues.values():
            issue["state"] = "closed"
        none = await survey(hub, found(world))

    assert (unknown.body.issues_status, unknown.body.label_status) == ("no_label", "unknown")
    assert (none.body.issues_status, none.body.label_status, none.body.issues) == ("listed", "exact", [])


async def test_disabled_and_archived_repositories_have_no_issues(world, clock):
    repo = world.repo("a/one")
    repo.issues_status = 410
    async with open_hub(world, clock) as hub:
        disabled = await survey(hub, found(world))
        repo.data["has_issues"] = False
        said_so = await survey(hub, found(world))
        repo.data |= {"archived": True, "has_issues": True}
        archived = await survey(hub, found(world))

    assert disabled.body.issues_status == said_so.body.issues_status == "disabled"
    assert archived.body.issues_status == "archived"
    assert not disabled.children
    assert not archived.children


async def test_unchanged_issues_have_the_same_fingerprint_and_changed_ones_another(world, clock):
    repo = world.repo("a/one")
    repo.issues[3] = an_issue(repo, 3)
    async with open_hub(world, clock) as hub:
        before, published = await processed(hub, found(world))
        repo.add_comment(2, "bob", "Can I take this?", NOW_MS)
        repo.issues[3] |= {"assignees": [{"login": "eve"}], "title": "Another title"}
        repo.issues[1] |= {"title": "A better title", "labels": [*repo.issues[1]["labels"], repo.labels[0]]}
        after = await survey(hub, found(world), published.body)

    old, new = children(before), children(after)
    changed = [key for key in old if old[key].fingerprint != new[key].fingerprint]
    assert sorted(changed) == ["a/one#2", "a/one#3"]


@pytest.mark.parametrize("edit", [{"title": "A better title"}, {"body": "A better text."}])
async def test_an_edit_of_title_or_text_is_noticed(world, clock, edit):
    async with open_hub(world, clock) as hub:
        before, published = await processed(hub, found(world))
        world.repo("a/one").issues[1] |= edit | {"updated_at": moment(NOW_MS)}
        after = await survey(hub, found(world), published.body)

    old, new = children(before), children(after)
    assert [key for key in old if old[key].fingerprint != new[key].fingerprint] == ["a/one#1"]


async def test_issues_that_vanish_from_the_list_are_looked_at_again(world, clock):
    async with open_hub(world, clock) as hub:
        _, published = await processed(hub, found(world))
        world.repo("a/one").issues[2]["state"] = "closed"
        after = await survey(hub, found(world), published.body)

    assert after.body.issues == [1]
    assert issue_of(children(after)["a/one#2"]).vanished


async def test_a_changed_count_costs_one_call_because_the_rest_is_known(world, clock):
    async with open_hub(world, clock) as hub:
        _, published = await processed(hub, found(world))
        calls = len(world.calls)
        world.repo("a/one").data["open_issues_count"] += 1
        after, _ = await processed(hub, found(world), published.body)

    assert [(call.conditional, call.status) for call in world.calls[calls:]] == [(True, 304)]
    assert after.body.open_issues_count == 3
    assert after.body.languages == published.body.languages
    assert after.body.summary == published.body.summary


async def test_a_reread_asks_for_the_issues_only_and_sometimes_for_everything(world, clock):
    async with open_hub(world, clock) as hub:
        await hub.discover()
        _, published = await processed(hub, found(world))
        assert published.due_at == NOW_MS + DAY_MS
        body = published.body
        for day in range(1, 7):
            clock.advance(seconds=86_400)
            calls = len(world.calls)
            body = (await survey(hub, body)).body
            expected = 1 if day < 6 else 5
            assert [call.conditional for call in world.calls[calls:]] == [True] * expected


async def test_a_changed_label_in_the_list_is_matched_anew(world, clock):
    async with open_hub(world, clock) as hub:
        _, published = await processed(hub, found(world))
        after = await survey(hub, found(world, tag="bug"), published.body)

    assert after.body.labels == ["bug"]
    assert after.body.issues == []
    assert sorted(children(after)) == ["a/one#1", "a/one#2"]


@pytest.mark.parametrize("availability", ["gone", "blocked", "moved", "unlisted"])
async def test_a_repository_out_of_reach_takes_its_issues_along(world, clock, availability):
    async with open_hub(world, clock) as hub:
        _, published = await processed(hub, found(world))
        calls = len(world.calls)
        lost = msgspec.structs.replace(found(world), availability=availability, reason="because")
        outcome = await survey(hub, lost, published.body)
        workflow = hub.pipeline.workflows["repo"]
        ways: Any = workflow.automatic_from("surveyed")
        chosen = [way for way in ways if way.criterion(hub.work("repo", "a/one", outcome.body, state="surveyed"))]

    assert len(world.calls) == calls
    assert [issue_of(child).state for child in outcome.children] == ["unlisted", "unlisted"]
    assert [way.target for way in chosen] == [availability]
    assert present_repo("a/one", outcome.body) is None


async def test_trouble_on_the_way_is_transient_and_limits_cost_no_attempt(world, clock):
    async with open_hub(world, clock) as hub:
        world.fail("/repositories/1000/languages", refusal(503, "unavailable"))
        with pytest.raises(Transient, match="503"):
            await survey(hub, found(world))
        world.fail("/repositories/1000/labels", refusal(404, "Not Found"))
        with pytest.raises(Transient, match="labels"):
            await survey(hub, found(world))
        world.fail("/repositories/1000/issues", secondary_limit())
        with pytest.raises(SlowDown) as slow:
            await survey(hub, found(world))

    assert slow.value.retry_after_seconds == pytest.approx(60)


async def test_a_missing_readme_is_no_failure(world, clock):
    world.repo("a/one").readme = ""
    async with open_hub(world, clock) as hub:
        surveyed, published = await processed(hub, found(world))

    assert surveyed.body.readme == ""
    assert published.body.summary


async def test_a_summary_stands_while_its_facts_do(world, clock):
    async with open_hub(world, clock) as hub:
        _, published = await processed(hub, found(world))
        again = await hub.perform("repo", "summarize", hub.work("repo", "a/one", published.body))
        changed = msgspec.structs.replace(published.body, readme="# Another\n\nNow it herds cats across the network.\n")
        other = await hub.perform("repo", "summarize", hub.work("repo", "a/one", changed))

    assert again == Advance(note="the facts are the same, the summary stands")
    assert other.body.summary_of != published.body.summary_of


async def test_a_failure_is_shown_beside_what_readers_had(world, clock):
    async with open_hub(world, clock) as hub:
        _, published = await processed(hub, found(world))
        work = hub.work("repo", "a/one", found(world), published.body)
        work.error = "GitHub answered 500"
        failed = mark_failed(work)
        fresh = hub.work("repo", "a/one", found(world))
        fresh.error = "GitHub answered 500"
        never_shown = mark_failed(fresh)

    card = present_repo("a/one", failed.body).card
    assert (card.processing_status, card.error) == ("failed", "GitHub answered 500")
    assert (card.summary, card.beginner_issues) == (published.body.summary, 2)
    assert present_repo("a/one", never_shown.body).card.processing_status == "failed"


async def test_the_card_tells_what_the_api_promises(world, clock):
    async with open_hub(world, clock) as hub:
        pending = present_repo("a/one", found(world)).card
        _, published = await processed(hub, found(world))
        shown = present_repo("a/one", published.body)

    assert pending.processing_status == "pending"
    assert shown.id == "a/one"
    assert shown.card.languages == ["Python", "Shell"]
    assert shown.card.languages_bytes == {"Shell": 2048, "Python": 123_456}
    assert shown.card.processing_status == "completed"
    assert shown.card.beginner_issues == 2
    assert shown.document().attributes["language"] == ["Python", "Shell"]


def test_criteria_say_why_not():
    lost = RepoBody(full_name="a/one", listed_as="a/one", availability="gone", reason="Not Found")
    work = Work("first_issues", "repo", "a/one", "surveyed", 1, 1, NOW_MS, lost)
    verdict = is_available(work)
    assert not verdict
    assert verdict.reason == "a/one is gone: Not Found"
    assert criteria_repo.is_out_of_reach(work, because="gone")
    assert not criteria_repo.is_out_of_reach(work, because="moved")
