"""The stand-in GitHub answers as the real one does."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from tests.support.clock import ManualClock

from tidings.net.client import Web
from tidings.sample.github import LIST_PATH, GitHub
from tidings.sample.github_world import Repository, issue_json, label_json, repository_json
from tidings.sample.serving import StandIn

NOW_MS = 1_800_000_000_000


class Caller:
    """Calls a stand-in."""

    def __init__(self, web: Web, url: str) -> None:
        self._web, self.url = web, url

    async def get(self, path: str, token: str | None = None, **options: Any) -> Any:
        headers = {"authorization": f"Bearer {token}"} if token else {}
        address = path if path.startswith("http") else self.url + path
        return await self._web.call("GET", address, headers=headers, **options)


@asynccontextmanager
async def calling(world: GitHub) -> AsyncIterator[Caller]:
    async with StandIn(world.app) as server, Web(user_agent="t/1", endpoints=[server.url]) as web:
        yield Caller(web, server.url)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(NOW_MS)


@pytest.fixture
def world(clock: ManualClock) -> GitHub:
    repo = Repository(repository_json(7, "a/one"), labels=[label_json("a/one", 0, "easy")], languages={"Go": 1})
    for number in range(1, 6):
        repo.issues[number] = issue_json("a/one", number, f"Issue {number}", labels=repo.labels)
    made = GitHub([repo], now_ms=clock.now_ms)
    made.tokens.add("good")
    return made


async def test_pages_are_linked_by_number(world: GitHub) -> None:
    async with calling(world) as caller:
        first = await caller.get("/repos/a/one/issues?labels=easy&per_page=2")
        second = await caller.get("/repositories/7/issues?labels=easy&per_page=2&page=2")
        last = await caller.get("/repositories/7/issues?labels=easy&per_page=2&page=3")

    base = f"{caller.url}/repositories/7/issues?labels=easy&per_page=2"
    assert first.headers["link"] == f'<{base}&page=2>; rel="next", <{base}&page=3>; rel="last"'
    assert 'rel="prev"' in second.headers["link"]
    assert 'rel="next"' not in last.headers["link"]
    assert [len(json.loads(each.body)) for each in (first, second, last)] == [2, 2, 1]


async def test_an_unknown_label_is_an_empty_list_and_the_wrong_parameter_is_ignored(world: GitHub) -> None:
    async with calling(world) as caller:
        unknown = await caller.get("/repos/a/one/issues?labels=nope")
        wrong = await caller.get("/repos/a/one/issues?label=nope")

    assert (unknown.status, unknown.body) == (200, b"[]")
    assert len(json.loads(wrong.body)) == 5


async def test_unchanged_answers_are_free_with_a_token_only(world: GitHub) -> None:
    async with calling(world) as caller:
        for token in (None, "good"):
            for _ in range(3):
                answer = await caller.get("/repos/a/one", token, conditional=True)
            assert answer.not_modified
            assert answer.headers["x-ratelimit-used"] == ("1" if token else "3")


async def test_the_hourly_limit_holds_and_ends(world: GitHub, clock: ManualClock) -> None:
    world.calls_an_hour = 2
    async with calling(world) as caller:
        statuses = [(await caller.get("/repos/a/one")).status for _ in range(3)]
        refused = await caller.get("/repos/a/one")
        clock.advance(seconds=3600)
        later = await caller.get("/repos/a/one")

    assert statuses == [200, 200, 403]
    assert refused.headers["x-ratelimit-remaining"] == "0"
    assert int(refused.headers["x-ratelimit-reset"]) == NOW_MS // 1000 + 3600
    assert "rate limit exceeded" in json.loads(refused.body)["message"]
    assert later.status == 200


async def test_the_secondary_limit_asks_to_wait(world: GitHub, clock: ManualClock) -> None:
    world.secondary_calls_a_minute = 1
    async with calling(world) as caller:
        await caller.get("/repos/a/one", "good")
        refused = await caller.get("/repos/a/one", "good")
        clock.advance(seconds=61)
        later = await caller.get("/repos/a/one", "good")

    assert (refused.status, refused.headers["retry-after"], later.status) == (403, "60", 200)
    assert "secondary rate limit" in json.loads(refused.body)["message"]


async def test_renames_redirect_every_path(world: GitHub) -> None:
    world.rename("a/one", "b/two")
    async with calling(world) as caller:
        moved = await caller.get("/repos/a/one/issues/1")
        followed = await caller.get(moved.headers["location"])

    assert (moved.status, moved.headers["location"]) == (301, f"{caller.url}/repositories/7/issues/1")
    assert json.loads(followed.body)["number"] == 1


async def test_refusals_have_the_real_ones_shape(world: GitHub) -> None:
    world.repo("a/one").issues_status = 410
    async with calling(world) as caller:
        answers = {
            "unknown": await caller.get("/repos/a/none"),
            "disabled": await caller.get("/repos/a/one/issues"),
            "credentials": await caller.get("/repos/a/one", "bad"),
            "readme": await caller.get("/repos/a/one/readme"),
        }
        world.repo("a/one").status = 451
        answers["blocked"] = await caller.get("/repos/a/one")

    assert {name: answer.status for name, answer in answers.items()} == {
        "unknown": 404,
        "disabled": 410,
        "credentials": 401,
        "readme": 404,
        "blocked": 451,
    }
    assert json.loads(answers["credentials"].body)["message"] == "Bad credentials"
    assert json.loads(answers["blocked"].body)["block"]["reason"] == "dmca"


async def test_the_world_that_ships_is_whole(clock: ManualClock) -> None:
    world = GitHub.from_package(clock.now_ms)
    async with calling(world) as caller:
        listing = json.loads((await caller.get(LIST_PATH)).body)
        names = [
            entry["link"].removeprefix("https://github.com/")
            for entry in listing["repositories"]
            if "//github.com/" in entry["link"]
        ]
        before = {name: await caller.get(f"/repos/{name}") for name in names}
        counts = sum(json.loads(each.body)["open_issues_count"] for each in before.values() if each.status == 200)
        clock.advance(seconds=600)
        after = [await caller.get(f"/repos/{name}") for name in names]
        later = sum(json.loads(each.body)["open_issues_count"] for each in after if each.status == 200)

    assert len(names) > 20
    assert {each.status for each in before.values()} == {200, 301, 404, 451}
    assert later > counts, "issues are opened while the demo runs"
