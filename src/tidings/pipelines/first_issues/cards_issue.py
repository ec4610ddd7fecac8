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
    rated: bool
    reasons: list[str]
    first_steps: list[str]
    good_signs: list[str]
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
            text="\n".join(part for part in (body.introduction, *card.first_steps, body.text) if part),
            author=body.author,
            type="issue",
            score=card.difficulty,
            time_ms=changed,
            url=body.url,
            attributes=search_attributes(body),
        ),
    )


def issue_card(body: IssueBody) -> IssueCard:
    """Draw an issue."""
    judged = is_judged(body)
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
        difficulty=body.difficulty if judged else None,
        rated=judged and body.difficulty is not None,
        reasons=body.reasons if judged else [],
        first_steps=body.first_steps if judged else [],
        good_signs=good_signs(body),
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


def is_judged(body: IssueBody) -> bool:
    """Tell whether the analysis means what it means today: earlier, the local default gave everything a number."""
    is_local = body.analyzed_by is None or body.analyzed_by.model == "local"
    return body.analysis_version > FIRST_VERSION or not is_local


def good_signs(body: IssueBody) -> list[str]:
    """Return what speaks for choosing this issue, as far as it is known."""
    holds = {
        "unclaimed": is_free(body),
        "fresh": body.state == "open" and body.freshness == "fresh",
        "answered": body.answered is True,
        "small": body.names_little,
        "reproducible": body.has_steps,
        "guide": body.has_guide,
    }
    return [sign for sign in SIGNS if holds[sign]]


def search_attributes(body: IssueBody) -> dict[str, str | int | float | list[str] | None]:
    """Return what a search or a route may ask of an issue."""
    card = issue_card(body)
    return {
        "repo": body.repo,
        "language": body.languages,
        "label": body.labels,
        "difficulty": card.difficulty,
        "rated": "yes" if card.rated else "no",
        "sign": card.good_signs,
        "state": body.state,
        "freshness": body.freshness,
        "claimed": "no" if is_free(body) else "yes",
    }


FRESHNESS = ("fresh", "quiet", "stale")
SIGNS = ("unclaimed", "fresh", "answered", "small", "reproducible", "guide")
"""What helps a beginner and can be known."""
SIGN_WORDS = {
    "unclaimed": "unclaimed",
    "fresh": "fresh",
    "answered": "answered by a maintainer",
    "small": "names one or two places",
    "reproducible": "tells how to reproduce it",
    "guide": "has a contribution guide",
}
FIRST_VERSION = 1
EXAMPLE_ISSUE = IssueBody(
    repo="lamplighter-tools/wick",
    repo_key="lamplighter-tools/wick",
    number=845,
    state="open",
    language="Python",
    languages=["Python", "HTML"],
    title="Document the `--drafts` flag",
    url="https://github.com/lamplighter-tools/wick/issues/845",
    labels=["difficulty: easy", "documentation", "good first issue"],
    introduction="The flag is in the command's help but nowhere in the manual.",
    difficulty=3,
    reasons=["the project labels it “difficulty: easy”"],
    first_steps=["Open docs/commands.md.", "Search the code for --drafts."],
    names_little=True,
    answered=True,
    analysis_version=2,
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
        Filter(
            "max_difficulty", "difficulty", "at_most", "integer", help="rated, and no harder than this, from 1 to 10"
        ),
        Filter("rated", "rated", "is", "boolean", help="true: there is evidence of how hard it is"),
        Filter("sign", "good_signs", "has", values=SIGNS, help="what speaks for it"),
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
        "rated": ("yes", "no"),
        "sign": SIGNS,
    },
    templates=__package__,
    steps_field="first_steps",
    summary_field="introduction",
    time_field="updated_at",
    example=issue_card(EXAMPLE_ISSUE),
)
