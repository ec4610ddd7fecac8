"""An issue: what is remembered of it while it is worked on."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from tidings.model.answers import Provenance
from tidings.model.urls import link_address
from tidings.pipelines.first_issues.body_repo import RepoBody
from tidings.pipelines.first_issues.client import assignees_of, label_names, number_of, text_of

IssueState = Literal["open", "closed", "unlisted", "deleted", "moved"]
"""unlisted: open perhaps, but no longer labelled for beginners, or its repository is out of reach."""


class IssueBody(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An issue: what the list of issues says, its details, and what we made of it."""

    repo: str
    """The repository's name on GitHub today."""
    repo_key: str
    """The repository's key here."""
    number: int
    state: IssueState = "open"
    vanished: bool = False
    """It was in the list of its label and is no more; its details say why."""
    language: str | None = None
    languages: list[str] = []
    found_at: int = 0

    id: int | None = None
    title: str = ""
    url: str = ""
    text: str = ""
    author: str | None = None
    """None for accounts that were deleted."""
    author_association: str | None = None
    labels: list[str] = []
    assignees: list[str] = []
    comments: int = 0
    reactions: int = 0
    locked: bool = False
    created_at: str | None = None
    updated_at: str | None = None
    closed_at: str | None = None
    state_reason: str | None = None

    claimed_by: str | None = None
    claimed_how: Literal["assigned", "comment"] | None = None
    claimed_at: str | None = None
    freshness: Literal["fresh", "quiet", "stale"] = "fresh"
    answered: bool | None = None
    """Whether a maintainer other than its author commented; None where its comments were not read."""
    maintainer_comments: list[str] = []
    has_guide: bool = False
    """The project's README leads to a contribution guide."""
    detailed_at: int | None = None

    introduction: str | None = None
    difficulty: int | None = None
    """None where nothing says how hard it is."""
    reasons: list[str] = []
    first_steps: list[str] = []
    names_little: bool = False
    """It names one or two places in the code and asks for no more."""
    has_steps: bool = False
    """It tells how to see the problem."""
    analysis_of: str | None = None
    """Fingerprint of the facts the analysis was made of."""
    analysis_version: int = 1
    analyzed_by: Provenance | None = None
    processed_at: int | None = None
    first_shown_at: int | None = None
    forgotten: bool = False
    error: str | None = None


def issue_key(repo_key: str, number: int) -> str:
    """Name an issue's item."""
    return f"{repo_key}#{number}"


def issue_from(repo: RepoBody, repo_key: str, data: Any, found_at: int) -> IssueBody:
    """Make an issue's first body of one entry of the list of issues; its text comes with the details."""
    primary = repo.language or next(iter(repo.languages_ordered), None)
    bare = IssueBody(
        repo=repo.full_name,
        repo_key=repo_key,
        number=data["number"],
        language=primary,
        languages=repo.languages_ordered,
        has_guide=repo.has_guide,
        found_at=found_at,
    )
    return with_issue(bare, data)


def with_issue(body: IssueBody, data: Any) -> IssueBody:
    """Take over what GitHub says of an issue, in a list or alone, except its text."""
    user = data.get("user")
    reactions = data.get("reactions")
    return msgspec.structs.replace(
        body,
        state="closed" if data.get("state") == "closed" else "open",
        id=number_of(data, "id") or None,
        title=(text_of(data, "title") or f"{body.repo}#{body.number}").strip()[:500],
        url=link_address(text_of(data, "html_url")) or f"https://github.com/{body.repo}/issues/{body.number}",
        author=text_of(user, "login") if isinstance(user, dict) else None,
        author_association=text_of(data, "author_association"),
        labels=label_names(data.get("labels")),
        assignees=assignees_of(data),
        comments=number_of(data, "comments"),
        reactions=number_of(reactions, "total_count") if isinstance(reactions, dict) else 0,
        locked=bool(data.get("locked")),
        created_at=text_of(data, "created_at"),
        updated_at=text_of(data, "updated_at"),
        closed_at=text_of(data, "closed_at"),
        state_reason=text_of(data, "state_reason"),
    )
