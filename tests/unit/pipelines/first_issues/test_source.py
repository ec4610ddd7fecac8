"""Discovery asks once per repository, comes to its end, and goes on where it stopped."""

from __future__ import annotations

import json

import pytest
from tests.support.clock import ManualClock
from tests.unit.pipelines.first_issues.hub import NOW_MS, a_repo, listed, open_hub

from tidings.model.errors import Misconfigured, Transient
from tidings.model.pipeline import Run
from tidings.sample.github import GitHub, PathAnswer, refusal, secondary_limit


@pytest.fixture
def clock():
    return ManualClock(NOW_MS)


def a_world(clock, *names):
    repos = [a_repo(1000 + n, name) for n, name in enumerate(names)]
    return GitHub(repos, listing=listed(*names), now_ms=clock.now_ms)


def findings(pages):
    return {finding.key: finding for page in pages for finding in page.findings}


def body_of(finding):
    return json.loads(finding.payload)


def rejected(pages):
    return [each.reason for page in pages for each in page.rejected]


async def test_each_repository_costs_one_call_and_the_second_pass_only_conditional_ones(clock):
    world = a_world(clock, "a/one", "b/two", "c/three")
    async with open_hub(world, clock) as hub:
        first = await hub.discover()
        calls = len(world.calls)
        second = await hub.discover()

    assert calls == 4
    assert sum(page.credits for page in first) == 4
    assert [call.status for call in world.calls[calls:]] == [304] * 4
    assert all(call.conditional for call in world.calls[calls:])
    assert {k: f.fingerprint for k, f in findings(first).items()} == {
        k: f.fingerprint for k, f in findings(second).items()
    }


async def test_the_count_of_open_issues_and_the_label_are_what_counts(clock):
    world = a_world(clock, "a/one", "b/two", "c/three")
    async with open_hub(world, clock) as hub:
        before = findings(await hub.discover())
        world.repo("a/one").data["open_issues_count"] += 1
        world.repo("b/two").data["stargazers_count"] += 100
        world.listing["repositories"][2]["label"] = "easy"
        after = findings(await hub.discover())

    changed = [key for key in before if before[key].fingerprint != after[key].fingerprint]
    assert changed == ["a/one", "c/three"]


async def test_a_renamed_repository_is_taken_up_under_its_new_name(clock):
    world = a_world(clock, "old/name", "b/two")
    async with open_hub(world, clock) as hub:
        before = findings(await hub.discover())
        world.rename("old/name", "new/Name")
        pages = await hub.discover()
        calls = len(world.calls)
        again = await hub.discover()

    assert list(before) == ["old/name", "b/two"]
    found = findings(pages)
    assert body_of(found["new/name"])["full_name"] == "new/Name"
    assert body_of(found["old/name"])["availability"] == "moved"
    assert "new/Name" in body_of(found["old/name"])["reason"]
    assert [call.conditional for call in world.calls[calls:]] == [True] * 3
    assert {k: f.fingerprint for k, f in findings(again).items()} == {k: f.fingerprint for k, f in found.items()}


async def test_two_names_of_one_repository_are_followed_once(clock):
    world = a_world(clock, "now/here")
    world.names["once/there"] = world.names["before/that"] = world.repo("now/here").id
    world.listing = listed("once/there", "before/that")
    async with open_hub(world, clock) as hub:
        pages = await hub.discover()
        world.listing = listed("once/there", "now/here")
        with_both = await hub.discover(mark=pages[-1].mark)

    assert list(findings(pages)) == ["once/there", "now/here", "before/that"]
    assert any("before/that is now now/here" in reason for reason in rejected(pages))
    assert any("once/there is now now/here, which is listed in place 2" in reason for reason in rejected(with_both))
    assert body_of(findings(with_both)["now/here"])["listed_as"] == "now/here"


async def test_repositories_out_of_reach_are_told_and_rarely_asked_again(clock):
    world = a_world(clock, "a/gone", "b/blocked", "c/fine")
    world.repo("a/gone").status = 404
    world.repo("b/blocked").status = 451
    async with open_hub(world, clock) as hub:
        found = findings(await hub.discover())
        calls = len(world.calls)
        clock.advance(seconds=12 * 3600)
        await hub.discover()
        within_the_week = hub.paths()[calls:]
        clock.advance(seconds=7 * 86_400)
        world.repo("a/gone").status = 200
        later = findings(await hub.discover())

    assert body_of(found["a/gone"])["availability"] == "gone"
    assert body_of(found["b/blocked"])["availability"] == "blocked"
    assert "dmca" in body_of(found["b/blocked"])["reason"]
    assert "availability" not in body_of(found["c/fine"])
    assert "/repos/a/gone" not in within_the_week
    assert later["a/gone"].fingerprint != found["a/gone"].fingerprint


async def test_a_failing_repository_never_stops_the_run_and_is_asked_again(clock):
    world = a_world(clock, "a/one", "b/two", "c/three")
    broken = PathAnswer(503, "<html><title>Unicorn!</title></html>")
    world.fail("/repos/b/two", broken, broken)
    world.fail("/repos/c/three", PathAnswer(200, "<html>a proxy's page</html>"))
    async with open_hub(world, clock) as hub:
        first = await hub.discover()
        second = await hub.discover(cursor=first[-1].cursor)
        third = await hub.discover(cursor=second[-1].cursor)

    assert list(findings(first)) == ["a/one"]
    assert len(rejected(first)) == 2
    assert first[-1].next_check_seconds == 300
    assert list(findings(second)) == ["c/three"]
    assert second[-1].next_check_seconds == 600
    assert list(findings(third)) == ["b/two"]
    assert third[-1].next_check_seconds is None
    assert third[-1].cursor == {}


async def test_repeated_failure_ends_the_pass_at_last(clock):
    world = a_world(clock, "a/one", "b/two")
    world.repo("b/two").status = 500
    cursor, runs = None, 0
    async with open_hub(world, clock) as hub:
        while cursor != {}:
            pages = await hub.discover(cursor=cursor)
            cursor, runs = pages[-1].cursor, runs + 1

    assert runs == 4
    assert any("500" in reason for reason in rejected(pages))


async def test_without_a_token_a_pass_is_spread_over_the_hours(clock):
    names = [f"owner/repo-{n:03}" for n in range(150)]
    world = a_world(clock, *names)
    found: dict = {}
    waits: list[float] = []
    cursor = None
    async with open_hub(world, clock, token=False) as hub:
        while True:
            pages = await hub.discover(cursor=cursor)
            found |= findings(pages)
            cursor = pages[-1].cursor
            if not pages[-1].next_check_seconds:
                break
            waits.append(pages[-1].next_check_seconds)
            assert "the pass waits" in str(pages[-1].note)
            clock.advance(seconds=pages[-1].next_check_seconds)

    assert sorted(found) == names
    assert len(waits) == 2
    assert all(0 < wait <= 3600 for wait in waits)
    assert not [call for call in world.calls if call.status == 403]
    asked = [call.path for call in world.calls if call.path.startswith("/repos/")]
    assert len(asked) == len(set(asked))


async def test_a_secondary_limit_pauses_the_pass_for_as_long_as_asked(clock):
    world = a_world(clock, "a/one", "b/two", "c/three")
    world.fail("/repos/b/two", secondary_limit(retry_after=90))
    async with open_hub(world, clock) as hub:
        first = await hub.discover()
        calls = len(world.calls)
        too_soon = await hub.discover(cursor=first[-1].cursor)
        clock.advance(seconds=91)
        second = await hub.discover(cursor=too_soon[-1].cursor)

    assert list(findings(first)) == ["a/one"]
    assert first[-1].next_check_seconds == pytest.approx(90)
    assert first[-1].cursor == {"after": "a/one"}
    assert findings(too_soon) == {}
    assert [path for path in hub.paths()[calls:] if path.startswith("/repos")] == ["/repos/b/two", "/repos/c/three"]
    assert list(findings(second)) == ["b/two", "c/three"]


async def test_pages_are_small_and_carry_the_cursor(clock):
    names = [f"owner/repo-{n:02}" for n in range(45)]
    async with open_hub(a_world(clock, *names), clock) as hub:
        pages = await hub.discover()
        resumed = await hub.discover(cursor=pages[1].cursor)

    assert [len(page.findings) for page in pages] == [0, 10, 10, 10, 10, 5]
    assert pages[1].cursor == {"after": "owner/repo-09"}
    assert list(findings(resumed)) == names[10:]


async def test_a_cursor_that_points_nowhere_starts_the_pass_again(clock):
    async with open_hub(a_world(clock, "a/one"), clock) as hub:
        for cursor in ({"after": "no/longer"}, {"after": 7}, "nonsense", {"again": ["no/longer"], "tries": 1}):
            pages = await hub.discover(cursor=cursor)
            expected = [] if isinstance(cursor, dict) and cursor.get("tries") else ["a/one"]
            assert list(findings(pages)) == expected


async def test_what_is_taken_off_the_lists_is_withdrawn(clock):
    world = a_world(clock, "a/one", "b/two", "c/three")
    world.rename("b/two", "b/new")
    async with open_hub(world, clock) as hub:
        first = await hub.discover()
        world.listing = listed("a/one")
        second = await hub.discover(mark=first[-1].mark)
        third = await hub.discover(mark=second[-1].mark)

    withdrawn = {k for k, f in findings(second).items() if body_of(f).get("availability") == "unlisted"}
    assert withdrawn == {"b/two", "b/new", "c/three"}
    assert list(findings(third)) == ["a/one"]


async def test_a_list_that_lost_most_of_itself_withdraws_nothing(clock):
    names = [f"owner/repo-{n:02}" for n in range(20)]
    world = a_world(clock, *names)
    async with open_hub(world, clock) as hub:
        first = await hub.discover()
        world.listing = listed(*names[:3])
        second = await hub.discover(mark=first[-1].mark)

    assert list(findings(second)) == names[:3]


async def test_configured_repositories_are_read_even_without_the_list(clock):
    world = a_world(clock, "my/own", "a/one")
    async with open_hub(world, clock, repositories=["my/own"], list_url="http://127.0.0.1:9/data.json") as hub:
        walk = hub.source.pages(Run(hub.source.name, hub.clock.now_ms()), hub.kit)
        pages = [await anext(walk), await anext(walk)]
        with pytest.raises(Transient):
            await anext(walk)

    assert list(findings(pages)) == ["my/own"]


async def test_both_lists_together_name_a_repository_once(clock):
    world = a_world(clock, "my/own", "a/one")
    repositories = [{"name": "My/Own", "label": "easy"}]
    async with open_hub(world, clock, repositories=repositories) as hub:
        pages = await hub.discover()

    found = findings(pages)
    assert list(found) == ["my/own", "a/one"]
    assert (body_of(found["my/own"])["tag"], body_of(found["my/own"])["source"]) == ("easy", "configuration")
    assert rejected(pages) == ["my/own is already listed in place 1"]


async def test_bad_credentials_stop_the_run_and_say_what_to_check(clock):
    world = a_world(clock, "a/one")
    async with open_hub(world, clock) as hub:
        world.tokens.clear()
        with pytest.raises(Misconfigured, match="token"):
            await hub.discover()


async def test_a_plain_refusal_is_no_rate_limit(clock):
    world = a_world(clock, "a/one", "b/two")
    world.fail("/repos/a/one", refusal(403, "Resource not accessible"))
    async with open_hub(world, clock) as hub:
        pages = await hub.discover()

    assert list(findings(pages)) == ["b/two"]
    assert rejected(pages) == ["a/one: GitHub answered 403 for /repos/a/one: Resource not accessible"]


async def test_the_daily_budget_of_calls_holds(clock):
    world = a_world(clock, "a/one", "b/two", "c/three")
    async with open_hub(world, clock, daily_calls=2) as hub:
        pages = await hub.discover()
        clock.advance(seconds=86_400)
        rest = await hub.discover(cursor=pages[-1].cursor)

    assert list(findings(pages)) == ["a/one", "b/two"]
    assert "budget of 2" in str(pages[-1].note)
    assert list(findings(rest)) == ["c/three"]


async def test_a_token_never_leaves_for_another_host(clock):
    world = a_world(clock, "a/one", "c/three")
    elsewhere = {"location": "https://evil.example/repositories/1001"}
    world.fail("/repos/a/one", PathAnswer(301, {"message": "Moved Permanently"}, elsewhere))
    async with open_hub(world, clock) as hub:
        pages = await hub.discover()

    assert "/repositories/1001" in hub.paths()
    assert "c/three" in findings(pages)
