"""The whole real list of repositories for beginners, served by a stand-in GitHub with everything that can go wrong."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import SecretStr

from tidings.pipelines import first_issues
from tidings.pipelines.first_issues.lists import ListedRepo, collect, read_awesome
from tidings.sample.github import LIST_PATH, GitHub, PathAnswer, refusal
from tidings.sample.github_world import Repository, issue_json, label_json, moment, repository_json

TOKEN = "a-token-for-the-stand-in"
DAY_MS = 86_400_000
RESTING = {"published", "closed", "withdrawn", "gone", "blocked", "moved", "unlisted"}
MANY = {3: 130, 60: 215}
"""Repositories, by place, with more issues than a page holds."""


@dataclass
class Expected:
    """What the list must lead to."""

    states: dict[str, str] = field(default_factory=dict)
    """Repository key -> state."""
    issues_status: dict[str, str] = field(default_factory=dict)
    issues: set[str] = field(default_factory=set)
    """Keys of the issues that are published."""


def beginners_world(samples: Path, now_ms: Callable[[], int]) -> tuple[GitHub, Expected]:
    """Build the stand-in and what must come of it."""
    data = (samples / "github" / "awesome_for_beginners_data.json").read_bytes()
    world, expected = GitHub(listing=json.loads(data), now_ms=now_ms), Expected()
    world.tokens.add(TOKEN)
    for place, entry in enumerate(collect(read_awesome(data)).entries):
        _add(world, expected, place, entry, now_ms())
    return world, expected


def settings_for(url: str, *, token: bool = True) -> first_issues.Settings:
    """Point the pipeline at a stand-in."""
    secret = SecretStr(TOKEN) if token else None
    return first_issues.Settings(github_url=url, list_url=url + LIST_PATH, token=secret)


def _add(world: GitHub, expected: Expected, place: int, entry: ListedRepo, now_ms: int) -> None:
    is_renamed = place % 37 == 5
    full_name = f"renamed-{entry.owner}/{entry.name}"[:100] if is_renamed else entry.full_name
    labels = real_labels(entry.tag or "", place)
    repo = Repository(
        repository_json(
            10_000 + place,
            full_name,
            description=entry.description,
            language=next(iter(entry.technologies), None),
            archived=place % 53 == 17,
        ),
        languages={name: 10_000 - n for n, name in enumerate((*entry.technologies, "Shell"))},
        readme=f"# {entry.name}\n\n{entry.description}\n\n## Contributing\n\nEverybody is welcome to open a request.\n",
        labels=[label_json(full_name, n, name) for n, name in enumerate(["bug", "documentation", *labels])],
        status=404 if place % 41 == 7 else 451 if place % 59 == 11 else 200,
        issues_status=410 if place % 43 == 13 else 200,
    )
    world.add(repo, former_name=entry.full_name if is_renamed else None)
    _add_issues(repo, labels, place, now_ms)
    _add_faults(world, repo, entry, place)
    _expect(expected, repo, entry, labels)


def real_labels(tag: str, place: int) -> list[str]:
    """Return the labels the repository really has for a listed one; none where the list only points elsewhere."""
    if tag == "See Description":
        return []
    named = [part.strip() for part in tag.split(",")]
    named = [part.replace("-:wave:", " :wave:").replace("-:1st_place_medal:", " 🥇") for part in named]
    if ":-" in tag or place % 2:
        named = [part.replace("-", " ") for part in named]
    return named


def _add_issues(repo: Repository, labels: list[str], place: int, now_ms: int) -> None:
    carried = [repo.label(name) for name in labels]
    for number in range(1, MANY.get(place, place * 7 % 5) + 1):
        updated_ms = now_ms - (3 + number % 14) * DAY_MS
        repo.issues[number] = issue_json(
            repo.full_name,
            number,
            f"Improve the error shown when file {number} is missing",
            labels=carried,
            body="Steps to reproduce:\n\n1. Remove `config.yml`\n2. Start the app\n\nExpected: a clear message.",
            created_at=moment(updated_ms - 20 * DAY_MS),
            updated_at=moment(updated_ms),
        )
        if number % 4 == 0:
            repo.add_comment(number, "keen-newcomer", "I'd like to work on this!", updated_ms)
    if place % 3 == 0:
        repo.issues[900] = issue_json(repo.full_name, 900, "A pull request", labels=carried)
        repo.issues[900]["pull_request"] = {"url": "https://api.github.com/x", "html_url": "https://github.com/x"}
    repo.data["open_issues_count"] = len(repo.issues)


def _add_faults(world: GitHub, repo: Repository, entry: ListedRepo, place: int) -> None:
    if place % 29 == 3:
        world.fail(f"/repos/{entry.full_name}", refusal(503, "We couldn't respond to your request in time."))
    if place % 31 == 4:
        world.fail(f"/repositories/{repo.id}/languages", PathAnswer(502, "<html><title>Unicorn!</title></html>"))
    if place % 47 == 9:
        world.fail(f"/repositories/{repo.id}/issues", *[refusal(503, "Sorry about that.")] * 2)
    if place % 23 == 6:
        world.fail(f"/repos/{repo.full_name}/issues/1", refusal(500, "Oops"))


def _expect(expected: Expected, repo: Repository, entry: ListedRepo, labels: list[str]) -> None:
    key = repo.full_name.lower()
    if repo.status != 200:
        # GitHub answers for the old name too, so a lost repository is known by the name it is listed under.
        expected.states[entry.key] = "gone" if repo.status == 404 else "blocked"
        return
    if key != entry.key:
        expected.states[entry.key] = "moved"
    expected.states[key] = "published"
    if repo.data["archived"]:
        expected.issues_status[key] = "archived"
    elif not labels:
        expected.issues_status[key] = "no_label"
    elif repo.issues_status == 410:
        expected.issues_status[key] = "disabled"
    else:
        expected.issues_status[key] = "listed"
        expected.issues |= {f"{key}#{number}" for number in repo.issues if number != 900}
