"""Beginner-friendly issues on GitHub: finds repositories that welcome newcomers, and the issues they may start with."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, SecretStr, field_validator

from tidings.model.contracts import Kit, Probe
from tidings.model.durations import duration_seconds
from tidings.model.errors import Transient
from tidings.model.pipeline import Pipeline, Schedule
from tidings.net.client import raise_for_status
from tidings.pipelines.first_issues.body_repo import PIPELINE
from tidings.pipelines.first_issues.cards_issue import EXAMPLE_ISSUE, ISSUES, present_issue
from tidings.pipelines.first_issues.cards_repo import REPOS, present_repo
from tidings.pipelines.first_issues.client import GitHubClient, failure
from tidings.pipelines.first_issues.lists import RepoList, collect, read_awesome, read_configured, split_name
from tidings.pipelines.first_issues.lookup import Lookup
from tidings.pipelines.first_issues.notices_issue import announce_issue, issue_notice, renew_issue
from tidings.pipelines.first_issues.processors_issue import Details
from tidings.pipelines.first_issues.processors_repo import Survey
from tidings.pipelines.first_issues.source import Discovery
from tidings.pipelines.first_issues.workflow_issue import issue_workflow
from tidings.pipelines.first_issues.workflow_repo import repo_workflow

LIST_URL = "https://raw.githubusercontent.com/MunGell/awesome-for-beginners/main/data.json"
CALLS_AN_HOUR, CALLS_AN_HOUR_WITH_TOKEN = 60, 5_000

Seconds = Annotated[float, BeforeValidator(duration_seconds), Field(gt=0)]


class RepositorySetting(BaseModel):
    """A repository to watch besides the list."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)

    name: str
    """owner/name"""
    label: str | None = None
    """Its label for beginners; without one, `good first issue`."""

    @field_validator("name")
    @classmethod
    def _could_exist(cls, name: str) -> str:
        if split_name(name.strip()) is None:
            raise ValueError("write a repository as owner/name")
        return name.strip()


def _named(value: Any) -> Any:
    return {"name": value} if isinstance(value, str) else value


class Settings(BaseModel):
    """What can be set under [pipelines.first_issues]."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)

    every: Seconds = 12 * 3600.0
    """How often the lists are read."""
    reread_issues_every: Seconds = 24 * 3600.0
    """How often the issues of a repository are read even if nothing seems to have changed."""
    list_url: str = LIST_URL
    """The beginners' list; empty leaves it out."""
    repositories: list[Annotated[RepositorySetting, BeforeValidator(_named)]] = []
    """More repositories: "owner/name", or {name, label}."""
    github_url: str = "https://api.github.com"
    """The address of GitHub's API."""
    token: SecretStr | None = None
    """A GitHub token without any scope; raises the limit from 60 to 5,000 calls an hour."""
    daily_calls: Annotated[int, Field(gt=0)] | None = None
    """The most calls a day; by default 1,440 without a token and 20,000 with one."""
    issue_pages_max: Annotated[int, Field(ge=1, le=100)] = 10
    """Pages of 100 issues read per repository."""
    claim_days: Annotated[float, Field(gt=0)] = 45
    """How long "I'd like to work on this" counts."""
    keep_closed_days: Annotated[float, Field(gt=0)] = 30
    """How long a closed issue stays visible, marked as closed."""
    recheck_gone_every: Seconds = 7 * 86_400.0
    """How often a repository that is gone or blocked is asked about again."""


def build(settings: Settings) -> Pipeline:
    """Declare the pipeline."""
    github = GitHubClient(
        base_url=settings.github_url,
        token=settings.token.get_secret_value() if settings.token else None,
        daily_calls=daily_calls(settings),
    )
    day_ms = 86_400_000
    details = Details(github, claim_holds_ms=round(settings.claim_days * day_ms))
    return Pipeline(
        name=PIPELINE,
        title="First issues",
        about="Repositories that welcome beginners, and the issues to start with.",
        workflows={
            "repo": repo_workflow(
                Survey(github, settings.issue_pages_max), reread_seconds=settings.reread_issues_every
            ),
            "issue": issue_workflow(details, keep_closed_ms=round(settings.keep_closed_days * day_ms)),
        },
        sources=(
            Discovery(
                name=f"{PIPELINE}.github",
                schedule=Schedule(every_seconds=settings.every),
                read_lists=partial(read_lists, url=settings.list_url, repositories=settings.repositories),
                lookup=Lookup(github, settings.recheck_gone_every),
            ),
        ),
        collections=(REPOS, ISSUES),
        presenters={"repo": present_repo, "issue": present_issue},
        first_cards={"repo": present_repo},
        announce={"issue": announce_issue},
        renew={"issue": renew_issue},
        sample_notice=issue_notice(EXAMPLE_ISSUE),
    )


async def read_lists(kit: Kit, *, url: str, repositories: list[RepositorySetting]) -> RepoList:
    """Read the configured repositories and the beginners' list; without the latter, the former still count."""
    entries = read_configured([(each.name, each.label) for each in repositories])
    if not url:
        return collect(entries)
    try:
        response = await kit.fetcher.call("GET", url, conditional=True, follow_redirects=True, retries=2)
        raise_for_status(response, "the beginners' list", now=kit.clock.now_ms() / 1000)
        return collect([*entries, *read_awesome(response.body)])
    except Transient as error:
        if not entries:
            raise
        return collect(entries, error)


def daily_calls(settings: Settings) -> int:
    """Return the most calls a day."""
    if settings.daily_calls is not None:
        return settings.daily_calls
    return 20_000 if settings.token else 24 * CALLS_AN_HOUR


def endpoints(settings: Settings) -> tuple[str, ...]:
    """Return the outside services this pipeline calls."""
    return (settings.github_url, *([settings.list_url] if settings.list_url else []))


def probes(settings: Settings) -> dict[str, Probe]:
    """Return what asks GitHub with the token, which costs none of its calls, and what asks for the list."""
    found: dict[str, Probe] = {"first_issues": partial(_take_token, settings)}
    if settings.list_url:
        found["first_issues list"] = partial(_reach_list, settings.list_url)
    return found


async def _take_token(settings: Settings, kit: Kit) -> str:
    token = settings.token.get_secret_value() if settings.token else ""
    headers = {"authorization": f"Bearer {token}"} if token else {}
    response = await kit.fetcher.call("GET", f"{settings.github_url.rstrip('/')}/rate_limit", headers=headers)
    if response.status != 200:
        raise failure(response, "/rate_limit", kit.clock.now_ms())
    return "GitHub takes the token" if token else "GitHub answers without a token"


async def _reach_list(address: str, kit: Kit) -> str:
    raise_for_status(await kit.fetcher.call("GET", address), "the list of repositories")
    return "the list of repositories answers"


def advice(settings: Settings) -> list[str]:
    """Say what an operator could improve."""
    if settings.token:
        return []
    return [
        f"first_issues works without a GitHub token: {CALLS_AN_HOUR} calls an hour, so that reading the list takes "
        f"about four hours and all repositories and issues a few days. A token without any scope "
        f"(TIDINGS_PIPELINES__FIRST_ISSUES__TOKEN) allows {CALLS_AN_HOUR_WITH_TOKEN:,}: minutes instead, and unchanged "
        f"answers are free."
    ]
