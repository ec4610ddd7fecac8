"""What readers see of an issue: its card, its document for the search, and the collection they stand in."""

from __future__ import annotations

import msgspec

from tidings.model.clock import read_time, rfc3339
from tidings.model.publication import Collection, Document, Filter, Presentation
from tidings.pipelines.first_issues.body_issue import IssueBody
from tidings.pipelines.first_issues.body_repo import PROCESSING, processing_status


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


def present_issue(_key: str, body: IssueBody) -> Presentation | None:
    """Show an open or lately closed issue; any other is withdrawn."""
    if body.forgotten or body.state not in ("open", "closed"):
        return None
    card = issue_card(body)
    changed = read_time(body.updated_at) or body.found_at
    return Presentation(
        collection="issues",
        id=card.id,
        card=card,
        sort=changed,
        document=lambda: Document(
            title=body.title,
            text="\n".join(part for part in (body.introduction, *body.first_steps, body.text) if part),
            author=body.author,
            type="issue",
            score=body.difficulty,
            time_ms=changed,
            url=body.url,
            attributes=search_attributes(body),
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
        processing_status=processing_status(body.error, body.processed_at),
        error=body.error,
        processed_at=rfc3339(body.processed_at),
    )


def is_free(body: IssueBody) -> bool:
    """Tell whether a beginner may take the issue: open, not locked, nobody on it."""
    return body.state == "open" and not body.locked and body.claimed_by is None


def search_attributes(body: IssueBody) -> dict[str, str | int | float | list[str] | None]:
    """Return what a search or a route may ask of an issue."""
    return {
        "repo": body.repo,
        "language": body.languages,
        "label": body.labels,
        "difficulty": body.difficulty,
        "state": body.state,
        "freshness": body.freshness,
        "claimed": "no" if is_free(body) else "yes",
    }


FRESHNESS = ("fresh", "quiet", "stale")
EXAMPLE_ISSUE = IssueBody(
    repo="lamplighter-tools/wick",
    repo_key="lamplighter-tools/wick",
    number=845,
    state="open",
    language="Python",
    languages=["Python", "HTML"],
    title="Document the `--drafts` flag",
    url="https://github.com/lamplighter-tools/wick/issues/845",
    labels=["documentation", "good first issue"],
    introduction="The flag is in the command's help but nowhere in the manual.",
    difficulty=2,
    reasons=["It asks for documentation."],
    first_steps=["Open `docs/commands.md`."],
    created_at="2026-01-01T00:00:00Z",
    updated_at="2026-01-01T00:00:00Z",
    processed_at=1_767_225_600_000,
)

ISSUES = Collection(
    name="issues",
    singular="issue",
    kind="issue",
    card=IssueCard,
    title="Issues for beginners",
    filters=(
        Filter("language", "languages", "has", help="a language of the repository"),
        Filter("max_difficulty", "difficulty", "at_most", "integer", help="no harder than this, from 1 to 10"),
        Filter("unclaimed", "unclaimed", "is", "boolean", help="true: open and nobody is on it"),
        Filter("freshness", "freshness", values=FRESHNESS, help="when it last moved: 30 days, 180 days, longer"),
        Filter("updated_after", "updated_at", "at_least", "date", help="moved on or after this day"),
        Filter("state", "state", values=("open", "closed"), help="open, or lately closed"),
        Filter("repo", "repo", help="owner/name"),
        Filter("label", "labels", "has", help="a label of the issue"),
        Filter("status", "processing_status", values=PROCESSING, help="how far we are with it"),
    ),
    facets=("language", "freshness", "state"),
    facet_values={"freshness": FRESHNESS, "state": ("open", "closed")},
    attributes={
        "type": ("issue",),
        "state": ("open", "closed"),
        "freshness": FRESHNESS,
        "claimed": ("yes", "no"),
        "repo": (),
        "language": (),
        "label": (),
        "difficulty": (),
    },
    templates=__package__,
    steps_field="first_steps",
    summary_field="introduction",
    time_field="updated_at",
    example=issue_card(EXAMPLE_ISSUE),
)
