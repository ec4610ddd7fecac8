"""The whole real list of 229 entries against a stand-in GitHub, on both databases."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.acceptance.beginners_world import RESTING, Expected, beginners_world, settings_for
from tests.support.engine import Engine

from tidings.backends import backend_of
from tidings.model.clock import SystemClock
from tidings.net.client import Web
from tidings.pipelines import first_issues
from tidings.sample.github import GitHub, refusal
from tidings.sample.serving import StandIn
from tidings.serve.application import build

SOURCE = "first_issues.github"


@dataclass
class Watch:
    """The engine, the world it watches and what must come of it."""

    engine: Engine
    world: GitHub
    expected: Expected

    async def to_rest(self) -> None:
        """Ask and work, moving the clock over every wait, until nothing is left to do."""
        for _ in range(300):
            await self.engine.discover_due()
            await self.engine.work_until_idle()
            if self.is_at_rest():
                return
            self.engine.advance_clock(seconds=300)
        raise AssertionError(f"no rest: {self.engine.states('repo')} {self.engine.states('issue')}")

    def is_at_rest(self) -> bool:
        cursor, _, _ = self.engine.store.intake.cursor(SOURCE)
        return cursor == {} and {*self.engine.states("repo"), *self.engine.states("issue")} <= RESTING

    def revisions(self) -> dict[str, tuple[int, str]]:
        """Every item with its revision and when it was last processed."""
        return {
            f"{row.kind}:{row.key}": (row.revision, str(row.changed_at)) for row in self.engine.items(limit=100_000)
        }

    def calls_since(self, number: int) -> list[str]:
        return [call.path.partition("?")[0] for call in self.world.calls[number:]]


@asynccontextmanager
async def watching(database_url: str, samples: Path, *, token: bool = True) -> AsyncIterator[Watch]:
    clock = SystemClock().now_ms
    world, expected = beginners_world(samples, lambda: clock())
    async with StandIn(world.app) as server:
        settings = settings_for(server.url, token=token)
        engine = Engine(database_url, [first_issues.build(settings)], endpoints=first_issues.endpoints(settings))
        async with engine:
            clock = engine.now_ms
            yield Watch(engine, world, expected)


def shelf_of(engine: Engine) -> dict[str, bytes]:
    """Everything readers see, byte for byte."""
    entries = [*engine.store.shelf.newest("first_issues", "repos", limit=10_000)]
    entries += engine.store.shelf.newest("first_issues", "issues", limit=10_000)
    return {entry.key: entry.value for entry in entries}


def only(world: GitHub, *names: str) -> None:
    """Shorten the list to a few repositories."""
    links = {f"https://github.com/{name}" for name in names}
    world.listing["repositories"] = [each for each in world.listing["repositories"] if each["link"] in links]


async def test_the_whole_list_ends_in_the_right_states_and_only_changes_are_worked_on(
    database_url: str, samples: Path
) -> None:
    async with watching(database_url, samples) as watch:
        engine, world = watch.engine, watch.world
        world.calls_an_hour_with_token = 900
        world.secondary_calls_a_minute = 300
        await watch.to_rest()

        assert {row.key: row.state for row in engine.items("repo")} == watch.expected.states
        cards = {card["id"].lower(): card for card in engine.cards("repos")}
        assert {key: card["issues_status"] for key, card in cards.items()} == watch.expected.issues_status
        assert all(card["summary"] and card["processing_status"] == "completed" for card in cards.values())
        assert {row.key for row in engine.items("issue")} == watch.expected.issues
        issues = {card["id"]: card for card in engine.cards("issues")}
        assert len(issues) == len(watch.expected.issues)
        assert all(card["introduction"] for card in issues.values())
        assert all(card["rated"] == (card["difficulty"] is not None) for card in issues.values())
        assert {card["claimed_how"] for card in issues.values()} == {"comment", None}
        assert engine.store.item_views.dead_letters() == []
        limited = [call for call in world.calls if call.status == 403]
        assert 0 < len(limited) < 100, "limits are met, and not run into again and again"

        shelf = shelf_of(engine)
        engine.store.rebuilder.rebuild()
        assert shelf_of(engine) == shelf, "cards are a function of the bodies"

        # A second pass with nothing changed: only conditional calls, and nothing is queued.
        world.calls_an_hour_with_token = 100_000
        world.secondary_calls_a_minute = None
        engine.advance_clock(seconds=3600)
        before, calls = watch.revisions(), len(world.calls)
        (run,) = await engine.discover()
        assert (run.error, run.new, run.changed, run.rejected) == (None, 0, 0, 7)
        assert {(call.conditional, call.status) for call in world.calls[calls:]} == {(True, 304)}
        calls = len(world.calls)
        await engine.work_until_idle()
        assert watch.calls_since(calls) == []
        assert watch.revisions() == before

        # One count of open issues changes: exactly that repository is worked on.
        changed = world.repo("pandas-dev/pandas")
        changed.data["open_issues_count"] += 1
        (run,) = await engine.discover()
        assert (run.new, run.changed) == (0, 1)
        calls = len(world.calls)
        await engine.work_until_idle()
        assert set(watch.calls_since(calls)) == {f"/repositories/{changed.id}/issues"}
        after = watch.revisions()
        assert {name for name in after if after[name] != before[name]} == {"repo:pandas-dev/pandas"}

        # One issue gets a comment: the daily reading of the lists finds it, and exactly that issue is read again.
        talked = world.repo("facebook/react")
        before = watch.revisions()
        talked.add_comment(1, "newcomer", "Can I take this?", engine.now_ms())
        calls = len(world.calls)
        engine.advance_clock(seconds=24 * 3600)
        await engine.work_until_idle()
        read = watch.calls_since(calls)
        assert {path for path in read if "/repositories/" not in path} == {
            "/repos/facebook/react/issues/1",
            "/repos/facebook/react/issues/1/comments",
        }
        listed = [call for call in world.calls[calls:] if call.path.startswith("/repositories/")]
        assert all(call.conditional for call in listed if call.status != 410)
        assert [call.path.partition("?")[0] for call in listed if call.status == 200] == [
            f"/repositories/{talked.id}/issues"
        ]
        after = watch.revisions()
        again = {name for name in after if name.startswith("issue:") and after[name] != before[name]}
        assert again == {"issue:facebook/react#1"}
        card = engine.card("issues", "facebook/react/1")
        assert card is not None
        assert (card["claimed_by"], card["comments"], card["unclaimed"]) == ("newcomer", 1, False)
        shelf = shelf_of(engine)
        engine.store.rebuilder.rebuild()
        assert shelf_of(engine) == shelf


async def test_closed_issues_lost_repositories_and_renames_are_followed(database_url: str, samples: Path) -> None:
    async with watching(database_url, samples) as watch:
        engine, world = watch.engine, watch.world
        only(world, "facebook/react", "pandas-dev/pandas", "rust-lang/rust-clippy", "tiangolo/fastapi")
        await watch.to_rest()
        keys = {row.key for row in engine.items("repo")}
        assert {"facebook/react", "pandas-dev/pandas", "rust-lang/rust-clippy", "tiangolo/fastapi"} <= keys
        open_before = {row.key for row in engine.items("issue")}
        react = [key for key in open_before if key.startswith("facebook/react#")]
        assert react

        world.repo("facebook/react").issues[1] |= {"state": "closed", "closed_at": "2026-11-01T00:00:00Z"}
        world.repo("facebook/react").data["open_issues_count"] -= 1
        world.repo("pandas-dev/pandas").status = 404
        world.rename("tiangolo/fastapi", "fastapi/fastapi")
        (run,) = await engine.discover()
        await watch.to_rest()

        assert run.error is None
        states = {row.key: row.state for row in engine.items("repo")}
        assert (states["pandas-dev/pandas"], states["tiangolo/fastapi"]) == ("gone", "moved")
        assert states["fastapi/fastapi"] == "published"
        assert engine.card("repos", "pandas-dev/pandas") is None
        assert engine.card("repos", "fastapi/fastapi") is not None
        issue_states = {row.key: row.state for row in engine.items("issue")}
        assert issue_states["facebook/react#1"] == "closed"
        card = engine.card("issues", "facebook/react/1")
        assert card is not None
        assert card["state"] == "closed"
        assert {state for key, state in issue_states.items() if key.startswith("pandas-dev/")} <= {"withdrawn"}
        assert {state for key, state in issue_states.items() if key.startswith("tiangolo/")} <= {"withdrawn"}
        assert engine.store.links.children("first_issues", "issue_of", "repo:facebook/react") == [
            f"issue:{key}" for key in sorted(react, key=lambda key: int(key.partition("#")[2]))
        ]

        engine.advance_clock(seconds=31 * 86_400)
        await engine.work_until_idle()
        assert engine.card("issues", "facebook/react/1") is None


async def test_a_failing_repository_and_a_failing_issue_fail_alone_and_visibly(
    database_url: str, samples: Path
) -> None:
    async with watching(database_url, samples) as watch:
        engine, world = watch.engine, watch.world
        only(world, "facebook/react", "pandas-dev/pandas", "vuejs/vue")
        pandas = world.repo("pandas-dev/pandas")
        world.fail(f"/repositories/{pandas.id}/languages", *[refusal(500, "Oops")] * 8)
        world.fail("/repos/facebook/react/issues/1", *[refusal(500, "Oops")] * 8)
        for _ in range(40):
            await engine.discover_due()
            await engine.work_until_idle()
            engine.advance_clock(seconds=900)

        assert engine.item("repo", "pandas-dev/pandas").item.state == "failed"
        assert engine.item("issue", "facebook/react#1").item.state == "failed"
        card = engine.card("repos", "pandas-dev/pandas")
        assert card is not None
        assert (card["processing_status"], "500" in card["error"]) == ("failed", True)
        issue = engine.card("issues", "facebook/react/1")
        assert issue is not None
        assert issue["processing_status"] == "failed"
        others = [row for row in engine.items() if row.key not in ("pandas-dev/pandas", "facebook/react#1")]
        assert {row.state for row in others} == {"published"}
        assert len(engine.store.item_views.dead_letters()) == 2

        assert engine.store.operations.revive(actor="test") == 2
        await engine.work_until_idle()
        assert engine.card("repos", "pandas-dev/pandas")["processing_status"] == "completed"  # type: ignore[index]
        assert engine.card("issues", "facebook/react/1")["processing_status"] == "completed"  # type: ignore[index]


async def test_readers_ask_for_repositories_and_issues(tmp_path: Path, samples: Path) -> None:
    async with watching(f"sqlite:///{tmp_path / 'tidings.db'}", samples) as watch:
        engine, world = watch.engine, watch.world
        only(world, "MvvmCross/MvvmCross", "facebook/react", "pandas-dev/pandas", "mattermost/mattermost")
        world.repo("pandas-dev/pandas").issues[1] |= {
            "assignees": [{"login": "somebody"}],
            "updated_at": "2019-01-02T00:00:00Z",
        }
        await watch.to_rest()
        settings = {"hosts": [], "root_path": "", "cors_origins": []}
        application = build(backend_of(engine.app, settings, loopback=True))
        async with StandIn(application) as server, Web(user_agent="t/1", endpoints=[server.url]) as web:

            async def ask(path: str) -> Any:
                answer = await web.call("GET", f"{server.url}/api/v1/first_issues/{path}")
                return json.loads(answer.body) if answer.status == 200 else answer.status

            repos = await ask("repos?language=python")
            assert [repo["full_name"] for repo in repos["repos"]] == ["pandas-dev/pandas"]
            assert repos["language_counts"]["JavaScript"] == 1
            one = await ask("repos/MvvmCross/MvvmCross")
            assert (one["languages"], one["processing_status"]) == ([".NET", "Shell"], "completed")
            assert await ask("repos/nobody/nothing") == 404

            issues = await ask("issues?language=javascript&limit=500")
            assert {issue["repo"] for issue in issues["issues"]} == {"facebook/react", "mattermost/mattermost"}
            issues_all = await ask("issues")
            easy = await ask("issues?max_difficulty=5&unclaimed=true&limit=500")
            assert all(issue["difficulty"] <= 5 and issue["unclaimed"] for issue in easy["issues"])
            assert 0 < len(easy["issues"]) < issues["total"]
            stale = await ask("issues?freshness=stale")
            assert [issue["id"] for issue in stale["issues"]] == ["pandas-dev/pandas/1"]
            taken = await ask("issues?unclaimed=false&repo=pandas-dev/pandas")
            assert [issue["claimed_by"] for issue in taken["issues"]] == ["somebody"]
            recent = await ask("issues?updated_after=2020-01-01&repo=pandas-dev/pandas")
            assert "pandas-dev/pandas/1" not in [issue["id"] for issue in recent["issues"]]
            guided = await ask("issues?sign=guide&limit=500")
            assert guided["issues"]
            assert all("guide" in issue["good_signs"] for issue in guided["issues"])
            unrated = await ask("issues?rated=false&limit=500")
            assert {issue["difficulty"] for issue in unrated["issues"]} == {None}
            assert (
                len(unrated["issues"]) + len((await ask("issues?rated=true&limit=500"))["issues"])
                == issues_all["total"]
            )


async def test_without_a_token_the_list_is_read_inside_the_quota(tmp_path: Path, samples: Path) -> None:
    async with watching(f"sqlite:///{tmp_path / 'tidings.db'}", samples, token=False) as watch:
        engine, world = watch.engine, watch.world
        hours = 11
        for _ in range(hours * 6):
            await engine.discover_due()
            await engine.work_until_idle()
            engine.advance_clock(seconds=600)

        cursor, mark, _ = engine.store.intake.cursor(SOURCE)
        assert (cursor, len(mark["listed"])) == ({}, 222), "a pass ends before the next one begins"
        states = engine.states("repo")
        assert states["published"] > 20, "work goes on beside discovery"
        assert sum(states.values()) == len(watch.expected.states)
        refused = [call for call in world.calls if call.status == 403]
        assert len(refused) <= hours, "the quota is respected, not run into"
        asked = [call for call in world.calls if call.path.startswith("/repos")]
        assert len(asked) <= (hours + 1) * 60
        (budget,) = [each for each in engine.store.budgets.today() if each.name == "first_issues.calls"]
        assert (budget.limit, budget.spent > 0) == (1440, True)
