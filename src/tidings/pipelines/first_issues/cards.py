"""What readers see of repositories and issues."""

from __future__ import annotations

import msgspec

from tidings.model.clock import rfc3339
from tidings.model.publication import Document, Notice, NoticeField, Presentation
from tidings.model.workflow import Work
from tidings.pipelines.first_issues.bodies import IssueBody, RepoBody, time_ms

ANNOUNCED_FOR_MS = 7 * 86_400_000
"""An issue opened longer ago is no news, however new it is to us."""


class RepoCard(msgspec.Struct, frozen=True, kw_only=True):
    """A repository that welcomes beginners."""

    id: str
    full_name: str
    owner: str
    name: str
    url: str
    description: str | None
    homepage: str | None
    summary: str | None
    language: str | None
    languages: list[str]
    languages_bytes: dict[str, int]
    topics: list[str]
    stars: int
    forks: int
    license: str | None
    archived: bool
    open_issues_count: int
    beginner_issues: int
    label: str | None
    label_status: str
    issues_status: str
    source: str
    listed_as: str
    processing_status: str
    error: str | None
    created_at: str | None
    pushed_at: str | None
    processed_at: str | None


class IssueCard(msgspec.Struct, frozen=True, kw_only=True):
    """An issue a beginner may take."""

    id: str
    repo: str
    number: int
    title: str
    url: str
    state: str
    author: str | None
    labels: list[str]
    language: str | None
    languages: list[str]
    introduction: str | None
    difficulty: int | None
    reasons: list[str]
    first_steps: list[str]
    unclaimed: bool
    claimed_by: str | None
    claimed_how: str | None
    claimed_at: str | None
    freshness: str
    assignees: list[str]
    comments: int
    reactions: int
    locked: bool
    created_at: str | None
    updated_at: str | None
    closed_at: str | None
    processing_status: str
    error: str | None
    processed_at: str | None


def present_repo(_key: str, body: RepoBody) -> Presentation | None:
    """Show a repository; one that is out of reach is withdrawn."""
    if body.availability != "available":
        return None
    card = repo_card(body)
    return Presentation(
        collection="repos",
        id=body.full_name,
        card=card,
        sort=time_ms(body.pushed_at) or body.found_at,
        document=Document(
            title=body.full_name,
            text="\n".join(part for part in (body.description, body.summary, " ".join(body.topics)) if part),
            author=card.owner,
            type="repo",
            score=body.stars,
            time_ms=time_ms(body.pushed_at) or body.found_at,
            url=body.url,
            attributes={"language": card.languages, "topic": body.topics, "issues": len(body.issues)},
        ),
    )


def repo_card(body: RepoBody) -> RepoCard:
    """Draw a repository."""
    owner, _, name = body.full_name.partition("/")
    languages = body.languages_ordered or ([body.language] if body.language else [])
    return RepoCard(
        id=body.full_name,
        full_name=body.full_name,
        owner=owner,
        name=name,
        url=body.url,
        description=body.description,
        homepage=body.homepage,
        summary=body.summary,
        language=body.language or next(iter(languages), None),
        languages=languages,
        languages_bytes=body.languages,
        topics=body.topics,
        stars=body.stars,
        forks=body.forks,
        license=body.license,
        archived=body.archived,
        open_issues_count=body.open_issues_count,
        beginner_issues=len(body.issues),
        label=", ".join(body.labels) or body.tag,
        label_status=body.label_status,
        issues_status=body.issues_status,
        source=body.source,
        listed_as=body.listed_as,
        processing_status=_processing(body),
        error=body.error,
        created_at=body.created_at,
        pushed_at=body.pushed_at,
        processed_at=rfc3339(body.processed_at),
    )


def present_issue(_key: str, body: IssueBody) -> Presentation | None:
    """Show an open or lately closed issue; any other is withdrawn."""
    if body.forgotten or body.state not in ("open", "closed"):
        return None
    card = issue_card(body)
    changed = time_ms(body.updated_at) or body.found_at
    return Presentation(
        collection="issues",
        id=card.id,
        card=card,
        sort=changed,
        document=Document(
            title=body.title,
            text="\n".join(part for part in (body.introduction, *body.first_steps, body.text) if part),
            author=body.author,
            type="issue",
            score=body.difficulty,
            time_ms=changed,
            url=body.url,
            attributes=_attributes(body),
        ),
    )


def issue_card(body: IssueBody) -> IssueCard:
    """Draw an issue."""
    return IssueCard(
        id=f"{body.repo}/{body.number}",
        repo=body.repo,
        number=body.number,
        title=body.title,
        url=body.url,
        state=body.state,
        author=body.author,
        labels=body.labels,
        language=body.language,
        languages=body.languages,
        introduction=body.introduction,
        difficulty=body.difficulty,
        reasons=body.reasons,
        first_steps=body.first_steps,
        unclaimed=is_free(body),
        claimed_by=body.claimed_by,
        claimed_how=body.claimed_how,
        claimed_at=body.claimed_at,
        freshness=body.freshness,
        assignees=body.assignees,
        comments=body.comments,
        reactions=body.reactions,
        locked=body.locked,
        created_at=body.created_at,
        updated_at=body.updated_at,
        closed_at=body.closed_at,
        processing_status=_processing(body),
        error=body.error,
        processed_at=rfc3339(body.processed_at),
    )


def is_free(body: IssueBody) -> bool:
    """Tell whether a beginner may take the issue: open, not locked, nobody on it."""
    return body.state == "open" and not body.locked and body.claimed_by is None


def announce_issue(work: Work) -> tuple[Notice, ...]:
    """Tell people of an issue once: when it is new, to us and on GitHub, and free."""
    body: IssueBody = work.body
    opened = time_ms(body.created_at)
    is_news = opened is not None and work.now_ms - opened <= ANNOUNCED_FOR_MS
    is_first = body.first_shown_at is not None and body.first_shown_at == body.processed_at
    if not is_first or not is_news or not is_free(body):
        return ()
    return (issue_notice(body),)


def issue_notice(body: IssueBody) -> Notice:
    """Write the notice of an issue."""
    fields = [NoticeField("Repository", body.repo)]
    if body.difficulty is not None:
        fields.append(NoticeField("Difficulty", f"{body.difficulty} of 10"))
    if body.language:
        fields.append(NoticeField("Language", body.language))
    if body.first_steps:
        fields.append(NoticeField("First steps", "\n".join(body.first_steps[:3]), inline=False))
    return Notice(
        title=body.title,
        url=body.url,
        text=body.introduction or "",
        color=0x7057FF,
        fields=tuple(fields),
        time=body.created_at,
        attributes=_attributes(body),
    )


def _attributes(body: IssueBody) -> dict[str, str | int | float | list[str] | None]:
    return {
        "repo": body.repo,
        "language": body.languages,
        "label": body.labels,
        "difficulty": body.difficulty,
        "state": body.state,
        "freshness": body.freshness,
        "claimed": "no" if is_free(body) else "yes",
    }


def _processing(body: RepoBody | IssueBody) -> str:
    if body.error is not None:
        return "failed"
    return "completed" if body.processed_at is not None else "pending"
