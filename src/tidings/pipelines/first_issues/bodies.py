"""What is remembered of a repository and of an issue while they are worked on."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Literal

import msgspec

from tidings.model.answers import Provenance
from tidings.pipelines.first_issues.labels import LabelStatus
from tidings.pipelines.first_issues.listing import Entry

PIPELINE = "first_issues"
Availability = Literal["available", "gone", "blocked", "moved", "unlisted"]
"""gone: GitHub shows no such repository. blocked: for legal reasons. moved: it has a new name, and an item under it.
unlisted: nobody lists it any more."""
IssuesStatus = Literal["unread", "listed", "cut", "disabled", "archived", "no_label"]
"""listed: all open ones are known. cut: there are more than we read. The others say why there are none."""
IssueState = Literal["open", "closed", "unlisted", "deleted", "moved"]
"""unlisted: open perhaps, but no longer labelled for beginners, or its repository is out of reach."""

TEXT_CHARS_MAX = 20_000
DESCRIPTION_CHARS_MAX = 1_000


class RepoBody(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A repository: what the list says, what GitHub says, and what we made of it."""

    full_name: str
    """Its name on GitHub today."""
    listed_as: str
    """Its name in the list, which may be an old one."""
    tag: str | None = None
    source: str = ""
    technologies: list[str] = []
    availability: Availability = "available"
    reason: str | None = None
    """Why it is out of reach."""
    found_at: int = 0

    id: int | None = None
    url: str = ""
    description: str | None = None
    homepage: str | None = None
    language: str | None = None
    topics: list[str] = []
    stars: int = 0
    forks: int = 0
    watchers: int = 0
    open_issues_count: int = 0
    """As GitHub counts: pull requests too."""
    archived: bool = False
    has_issues: bool = True
    license: str | None = None
    created_at: str | None = None
    pushed_at: str | None = None

    languages: dict[str, int] = {}
    """Bytes by language, as GitHub tells them."""
    readme: str = ""
    labels: list[str] = []
    label_status: LabelStatus = "missing"
    label_note: str | None = None
    issues_status: IssuesStatus = "unread"
    issues: list[int] = []
    """Numbers of the open issues for beginners."""
    surveyed_at: int | None = None
    facts_at: int | None = None
    """When languages, README and labels were read."""

    summary: str | None = None
    summary_of: str | None = None
    """Fingerprint of the facts the summary was made of."""
    summarized_by: Provenance | None = None
    processed_at: int | None = None
    error: str | None = None

    @property
    def languages_ordered(self) -> list[str]:
        """The languages, most bytes first."""
        return sorted(self.languages, key=lambda name: (-self.languages[name], name))


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
    detailed_at: int | None = None

    introduction: str | None = None
    difficulty: int | None = None
    reasons: list[str] = []
    first_steps: list[str] = []
    analysis_of: str | None = None
    """Fingerprint of the facts the analysis was made of."""
    analyzed_by: Provenance | None = None
    processed_at: int | None = None
    first_shown_at: int | None = None
    forgotten: bool = False
    error: str | None = None


def issue_key(repo_key: str, number: int) -> str:
    """Name an issue's item."""
    return f"{repo_key}#{number}"


def repo_from(entry: Entry, metadata: Any, found_at: int) -> RepoBody:
    """Make a repository's first body of its list entry and GitHub's answer."""
    return with_metadata(
        RepoBody(
            full_name=entry.full_name,
            listed_as=entry.full_name,
            tag=entry.tag,
            source=entry.source,
            technologies=list(entry.technologies),
            description=entry.description,
            url=f"https://github.com/{entry.full_name}",
            found_at=found_at,
        ),
        metadata,
    )


def with_metadata(body: RepoBody, metadata: Any) -> RepoBody:
    """Take over what `GET /repos/{owner}/{name}` says."""
    license_ = metadata.get("license")
    topics = metadata.get("topics")
    return msgspec.structs.replace(
        body,
        full_name=text_of(metadata, "full_name") or body.full_name,
        id=number_of(metadata, "id") or None,
        url=web_address(text_of(metadata, "html_url")) or body.url,
        description=(text_of(metadata, "description") or body.description or "")[:DESCRIPTION_CHARS_MAX] or None,
        homepage=web_address(text_of(metadata, "homepage")),
        language=text_of(metadata, "language"),
        topics=[topic for topic in topics if isinstance(topic, str)] if isinstance(topics, list) else [],
        stars=number_of(metadata, "stargazers_count"),
        forks=number_of(metadata, "forks_count"),
        watchers=number_of(metadata, "subscribers_count"),
        open_issues_count=number_of(metadata, "open_issues_count"),
        archived=bool(metadata.get("archived")) or bool(metadata.get("disabled")),
        has_issues=metadata.get("has_issues") is not False,
        license=text_of(license_, "spdx_id") if isinstance(license_, dict) else None,
        created_at=text_of(metadata, "created_at"),
        pushed_at=text_of(metadata, "pushed_at"),
    )


def issue_from(repo: RepoBody, repo_key: str, data: Any, found_at: int) -> IssueBody:
    """Make an issue's first body of one entry of the list of issues; its text comes with the details."""
    primary = repo.language or next(iter(repo.languages_ordered), None)
    bare = IssueBody(
        repo=repo.full_name,
        repo_key=repo_key,
        number=data["number"],
        language=primary,
        languages=repo.languages_ordered,
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
        url=web_address(text_of(data, "html_url")) or f"https://github.com/{body.repo}/issues/{body.number}",
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


def label_names(labels: Any) -> list[str]:
    """Read an issue's labels; the schema allows objects and plain strings."""
    if not isinstance(labels, list):
        return []
    names = [each.get("name") if isinstance(each, dict) else each for each in labels]
    return [name for name in names if isinstance(name, str)]


def assignees_of(data: Any) -> list[str]:
    """Read who is assigned, from the list or the older single field."""
    listed = data.get("assignees")
    people = listed if isinstance(listed, list) and listed else [data.get("assignee")]
    return sorted(login for each in people if isinstance(each, dict) and (login := text_of(each, "login")))


def is_pull_request(data: Any) -> bool:
    """Tell a pull request from an issue; old answers carry the key on both, with null addresses."""
    pull_request = data.get("pull_request")
    return isinstance(pull_request, dict) and any(pull_request.get(name) for name in ("url", "html_url"))


def text_of(data: Any, name: str) -> str | None:
    """Return a field if it holds text."""
    value = data.get(name)
    # PostgreSQL keeps no NUL in text.
    return value.replace("\0", "") or None if isinstance(value, str) else None


def number_of(data: Any, name: str) -> int:
    """Return a field if it holds a whole number of at least 0, else 0."""
    value = data.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**63 else 0


def web_address(text: str | None) -> str | None:
    """Return an address a reader may follow."""
    return text if text is not None and text.startswith(("https://", "http://")) and len(text) <= 2_000 else None


def time_ms(text: str | None) -> int | None:
    """Read one of GitHub's times."""
    try:
        moment = datetime.fromisoformat((text or "").replace("Z", "+00:00"))
    except ValueError:
        return None
    return int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)
