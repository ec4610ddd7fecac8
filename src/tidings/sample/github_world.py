"""The world behind the stand-in GitHub: repositories and issues in the API's own form, made of plain records."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from zlib import crc32

DAY_MS = 86_400_000
API = "https://api.github.com"


@dataclass
class Repository:
    """One repository; tests change it while it is served."""

    data: dict[str, Any]
    languages: dict[str, int] = field(default_factory=dict)
    readme: str = ""
    labels: list[dict[str, Any]] = field(default_factory=list)
    issues: dict[int, dict[str, Any]] = field(default_factory=dict)
    comments: dict[int, list[dict[str, Any]]] = field(default_factory=dict)
    status: int = 200
    """404 gone, 451 blocked; anything else answers as it stands."""
    issues_status: int = 200
    """410 disabled."""
    issue_statuses: dict[int, int] = field(default_factory=dict)
    """410 deleted, 404 gone."""
    appears_ms: dict[int, int] = field(default_factory=dict)
    """Issues that are opened later."""
    counts_issues: bool = False
    """Whether `open_issues_count` follows the issues; else it is what the data says."""

    @property
    def id(self) -> int:
        """The number that outlives every rename."""
        return int(self.data["id"])

    @property
    def full_name(self) -> str:
        """owner/name."""
        return str(self.data["full_name"])

    def listed(self, now_ms: int) -> list[dict[str, Any]]:
        """Return the issues that exist by now."""
        return [issue for number, issue in self.issues.items() if self.appears_ms.get(number, 0) <= now_ms]

    def shown(self, now_ms: int) -> dict[str, Any]:
        """Return the repository as the API shows it."""
        if not self.counts_issues:
            return self.data
        count = sum(1 for issue in self.listed(now_ms) if issue["state"] == "open")
        return {**self.data, "open_issues_count": count}

    def label(self, name: str) -> dict[str, Any]:
        """Return a label, made if there is none of that name."""
        for label in self.labels:
            if label["name"] == name:
                return label
        made = label_json(self.full_name, len(self.labels), name)
        self.labels.append(made)
        return made

    def add_comment(self, number: int, user: str, body: str, at_ms: int, association: str = "NONE") -> None:
        """Add a comment to an issue."""
        known = self.comments.setdefault(number, [])
        known.append(comment_json(self.full_name, number, len(known), user, body, at_ms, association))
        self.issues[number]["comments"] = len(known)
        self.issues[number]["updated_at"] = moment(at_ms)


def repository_json(
    repo_id: int, full_name: str, *, description: str | None = None, language: str | None = None, **more: Any
) -> dict[str, Any]:
    """Write a repository as the API does; `more` overrides any field."""
    owner, _, name = full_name.partition("/")
    return {
        "id": repo_id,
        "node_id": f"R_{repo_id}",
        "name": name,
        "full_name": full_name,
        "private": False,
        "owner": {"login": owner, "id": repo_id + 1, "type": "Organization", "site_admin": False},
        "html_url": f"https://github.com/{full_name}",
        "description": description,
        "fork": False,
        "url": f"{API}/repos/{full_name}",
        "homepage": "",
        "language": language,
        "topics": [],
        "stargazers_count": 0,
        "watchers_count": 0,
        "forks_count": 0,
        "subscribers_count": 0,
        "open_issues_count": 0,
        "has_issues": True,
        "archived": False,
        "disabled": False,
        "visibility": "public",
        "license": None,
        "default_branch": "main",
        "created_at": "2020-01-01T00:00:00Z",
        "updated_at": "2026-01-01T00:00:00Z",
        "pushed_at": "2026-01-01T00:00:00Z",
    } | more


def label_json(full_name: str, number: int, name: str, **more: Any) -> dict[str, Any]:
    """Write a label as the API does."""
    return {
        "id": 5_000_000 + number,
        "node_id": f"LA_{number}",
        "url": f"{API}/repos/{full_name}/labels/{name}",
        "name": name,
        "color": "ededed",
        "default": False,
        "description": None,
    } | more


def issue_json(
    full_name: str,
    number: int,
    title: str,
    *,
    labels: Iterable[dict[str, Any]] = (),
    user: str | None = "someone",
    **more: Any,
) -> dict[str, Any]:
    """Write an issue as the API does; `more` overrides any field."""
    address = f"{API}/repos/{full_name}/issues/{number}"
    return {
        "url": address,
        "repository_url": f"{API}/repos/{full_name}",
        "comments_url": f"{address}/comments",
        "html_url": f"https://github.com/{full_name}/issues/{number}",
        "id": crc32(f"{full_name}#{number}".encode()),
        "node_id": f"I_{number}",
        "number": number,
        "title": title,
        "user": user_json(user),
        "labels": list(labels),
        "state": "open",
        "state_reason": None,
        "locked": False,
        "assignee": None,
        "assignees": [],
        "milestone": None,
        "comments": 0,
        "created_at": "2026-01-01T00:00:00Z",
        "updated_at": "2026-01-01T00:00:00Z",
        "closed_at": None,
        "author_association": "NONE",
        "active_lock_reason": None,
        "body": None,
        "reactions": {"url": f"{address}/reactions", "total_count": 0, "+1": 0},
    } | more


def comment_json(
    full_name: str, number: int, index: int, user: str | None, body: str, at_ms: int, association: str = "NONE"
) -> dict[str, Any]:
    """Write a comment as the API does."""
    return {
        "id": number * 1000 + index,
        "html_url": f"https://github.com/{full_name}/issues/{number}#issuecomment-{number * 1000 + index}",
        "issue_url": f"{API}/repos/{full_name}/issues/{number}",
        "user": user_json(user),
        "body": body,
        "created_at": moment(at_ms),
        "updated_at": moment(at_ms),
        "author_association": association,
    }


def user_json(login: str | None) -> dict[str, Any] | None:
    """Write an account as the API does; a deleted one is null."""
    if login is None:
        return None
    kind = "Bot" if login.endswith("[bot]") else "User"
    return {"login": login, "id": crc32(login.encode()), "type": kind, "site_admin": False}


def moment(ms: int) -> str:
    """Write a time as the API does."""
    return datetime.fromtimestamp(ms / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def from_record(record: Mapping[str, Any], issues: Iterable[Mapping[str, Any]], start_ms: int) -> Repository:
    """Make a repository of the sample world's records."""
    full_name = f"{record['owner']}/{record['name']}"
    owner = {"login": record["owner"], "id": record["id"] + 1, "type": record["owner_type"], "site_admin": False}
    license_ = record["license"]
    repo = Repository(
        repository_json(
            record["id"],
            full_name,
            description=record["description"],
            language=next(iter(record["languages"]), None),
            owner=owner,
            homepage=record["homepage"],
            topics=record["topics"],
            stargazers_count=record["stars"],
            watchers_count=record["stars"],
            forks_count=record["forks"],
            subscribers_count=record["subscribers"],
            license=license_ and {"key": license_.lower(), "name": license_, "spdx_id": license_, "url": None},
            default_branch=record["default_branch"],
            archived=record["archived"],
            fork=record["fork"],
            has_issues=record["behaviour"] != "issues_disabled",
            created_at=moment(start_ms - record["created_days_ago"] * DAY_MS),
            pushed_at=moment(start_ms - record["pushed_days_ago"] * DAY_MS),
            updated_at=moment(start_ms - record["pushed_days_ago"] * DAY_MS),
        ),
        languages=dict(record["languages"]),
        readme=record["readme"],
        labels=[label_json(full_name, n, **label) for n, label in enumerate(record["labels"])],
        status={"gone": 404, "blocked": 451}.get(record["behaviour"], 200),
        issues_status=410 if record["behaviour"] == "issues_disabled" else 200,
        counts_issues=True,
    )
    for issue in issues:
        _add_issue(repo, issue, start_ms)
    return repo


def _add_issue(repo: Repository, record: Mapping[str, Any], start_ms: int) -> None:
    number = record["number"]
    arrives = record.get("arrives_after_seconds")
    created_ms = start_ms + arrives * 1000 if arrives is not None else start_ms - record["days_ago"] * DAY_MS
    updated_ms = created_ms if arrives is not None else start_ms - record["updated_days_ago"] * DAY_MS
    people = [user_json(login) for login in record["assignees"]]
    issue = issue_json(
        repo.full_name,
        number,
        record["title"],
        labels=[repo.label(name) for name in record["labels"]],
        user=record["user"],
        id=record["id"],
        body=record["body"],
        author_association=record["author_association"],
        assignees=people,
        assignee=people[0] if people else None,
        comments=len(record["comments"]),
        state=record["state"],
        locked=record["locked"],
        reactions={"url": "", "total_count": sum(record["reactions"].values()), **record["reactions"]},
        created_at=moment(created_ms),
        updated_at=moment(updated_ms),
    )
    if record["pull_request"]:
        issue["draft"] = record["draft"]
        issue["html_url"] = f"https://github.com/{repo.full_name}/pull/{number}"
        issue["pull_request"] = {"url": f"{API}/repos/{repo.full_name}/pulls/{number}", "html_url": issue["html_url"]}
    repo.issues[number] = issue
    repo.comments[number] = [
        comment_json(
            repo.full_name,
            number,
            index,
            comment["user"],
            comment["body"],
            start_ms - comment["days_ago"] * DAY_MS,
            comment["author_association"],
        )
        for index, comment in enumerate(record["comments"])
    ]
    if arrives is not None:
        repo.appears_ms[number] = created_ms
