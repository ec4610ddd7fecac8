"""A repository: what is remembered of it while it is worked on."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from tidings.model.answers import Provenance
from tidings.model.urls import link_address
from tidings.pipelines.first_issues.client import number_of, text_of
from tidings.pipelines.first_issues.labels import LabelStatus
from tidings.pipelines.first_issues.lists import ListedRepo

PIPELINE = "first_issues"
Availability = Literal["available", "gone", "blocked", "moved", "unlisted"]
"""gone: GitHub shows no such repository. blocked: for legal reasons. moved: it has a new name, and an item under it.
unlisted: nobody lists it any more."""
IssuesStatus = Literal["unread", "listed", "cut", "disabled", "archived", "no_label"]
"""listed: all open ones are known. cut: there are more than we read. The others say why there are none."""

TEXT_CHARS_MAX = 20_000
DESCRIPTION_CHARS_MAX = 1_000
PROCESSING = ("pending", "completed", "failed")


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
    has_guide: bool = False
    """Its README leads to a contribution guide."""
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


def repo_from(entry: ListedRepo, metadata: Any, found_at: int) -> RepoBody:
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
        url=link_address(text_of(metadata, "html_url")) or body.url,
        description=(text_of(metadata, "description") or body.description or "")[:DESCRIPTION_CHARS_MAX] or None,
        homepage=link_address(text_of(metadata, "homepage")),
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


def processing_status(error: str | None, processed_at: int | None) -> str:
    """Say how far we are with a repository or an issue."""
    if error is not None:
        return "failed"
    return "completed" if processed_at is not None else "pending"
