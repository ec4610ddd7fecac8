"""A small stand-in GitHub over real HTTP, and a kit to reach it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from pydantic import SecretStr
from tests.support.clock import ManualClock

from tidings.model.contracts import Kit
from tidings.model.pipeline import Page, Pipeline, Run
from tidings.model.workflow import Work
from tidings.net.client import Web
from tidings.pipelines import first_issues
from tidings.process.enrich.enricher import MeteredEnricher
from tidings.process.extract.extractor import ChildExtractor
from tidings.process.memory_ledger import MemoryLedger
from tidings.sample.github import LIST_PATH, GitHub
from tidings.sample.github_world import Repository, issue_json, label_json, moment, repository_json
from tidings.sample.serving import StandIn

NOW_MS = 1_800_000_000_000
DAY_MS = 86_400_000
TOKEN = "a-token-for-the-stand-in"


@dataclass
class Hub:
    """Everything a test touches."""

    world: GitHub
    url: str
    kit: Kit
    clock: ManualClock
    settings: first_issues.Settings
    pipeline: Pipeline

    @property
    def source(self) -> Any:
        return self.pipeline.sources[0]

    async def discover(self, cursor: Any = None, mark: Any = None) -> list[Page]:
        run = Run(self.source.name, self.clock.now_ms(), cursor=cursor, mark=mark)
        return [page async for page in self.source.pages(run, self.kit)]

    async def perform(self, kind: str, name: str, work: Work) -> Any:
        return await self.processor(kind, name)(work, self.kit)

    def processor(self, kind: str, name: str) -> Any:
        return self.pipeline.workflows[kind].named(name).processor

    def work(self, kind: str, key: str, body: Any, accepted: Any = None, state: str = "found") -> Work:
        return Work("first_issues", kind, key, state, 1, 1, self.clock.now_ms(), body, accepted)

    def paths(self) -> list[str]:
        return [call.path for call in self.world.calls]


@asynccontextmanager
async def open_hub(world: GitHub, clock: ManualClock, *, token: bool = True, **settings: Any) -> AsyncIterator[Hub]:
    """Serve a world and build the pipeline that watches it."""
    world.tokens.add(TOKEN)
    async with StandIn(world.app) as server:
        chosen = first_issues.Settings(
            github_url=server.url,
            list_url=settings.pop("list_url", server.url + LIST_PATH),
            token=SecretStr(TOKEN) if token else None,
            **settings,
        )
        async with Web(user_agent="tidings-test/1", endpoints=first_issues.endpoints(chosen), clock=clock) as web:
            ledger = MemoryLedger(clock)
            kit = Kit(web, ChildExtractor(), MeteredEnricher(ledger, clock=clock), ledger, clock)
            yield Hub(world, server.url, kit, clock, chosen, first_issues.build(chosen))


def listed(*names: str, label: str | None = "good first issue") -> dict[str, Any]:
    """Write a beginners' list."""
    entries: list[Any] = [
        {"name": name, "link": f"https://github.com/{name}", "label": label, "technologies": [], "description": name}
        for name in names
    ]
    return {"sponsors": [], "technologies": {}, "repositories": entries}


def a_repo(number: int, full_name: str, *, label: str = "good first issue", issues: int = 2, **more: Any) -> Repository:
    """Make a repository with a few issues."""
    repo = Repository(
        repository_json(number, full_name, description=f"About {full_name}.", language="Python", **more),
        languages={"Shell": 2048, "Python": 123_456},
        readme=f"# {full_name}\n\nThis project counts sheep so that you need not. It is written with care.\n",
        labels=[label_json(full_name, 0, "bug"), label_json(full_name, 1, label)],
    )
    for n in range(1, issues + 1):
        repo.issues[n] = an_issue(repo, n)
    repo.data["open_issues_count"] = issues
    return repo


def an_issue(repo: Repository, number: int, **more: Any) -> dict[str, Any]:
    """Make an issue with the repository's label for beginners."""
    fields = {
        "labels": [repo.labels[-1]],
        "body": "The page lacks an example. See `docs/index.md`.",
        "created_at": moment(NOW_MS - 10 * DAY_MS),
        "updated_at": moment(NOW_MS - 5 * DAY_MS),
    }
    return issue_json(repo.full_name, number, f"Improve thing {number}", **(fields | more))
