"""What readers see of a repository: its card, its document for the search, and the collection they stand in."""

from __future__ import annotations

import msgspec

from tidings.model.clock import read_time, rfc3339
from tidings.model.publication import Collection, Document, Filter, Presentation
from tidings.pipelines.first_issues.body_repo import PROCESSING, RepoBody, processing_status


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


def present_repo(_key: str, body: RepoBody) -> Presentation | None:
    """Show a repository; one that is out of reach is withdrawn."""
    if body.availability != "available":
        return None
    card = repo_card(body)
    return Presentation(
        collection="repos",
        id=body.full_name,
        card=card,
        sort=read_time(body.pushed_at) or body.found_at,
        document=lambda: Document(
            title=body.full_name,
            text="\n".join(part for part in (body.description, body.summary, " ".join(body.topics)) if part),
            author=card.owner,
            type="repo",
            score=body.stars,
            time_ms=read_time(body.pushed_at) or body.found_at,
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
        processing_status=processing_status(body.error, body.processed_at),
        error=body.error,
        created_at=body.created_at,
        pushed_at=body.pushed_at,
        processed_at=rfc3339(body.processed_at),
    )


_EXAMPLE_REPO = RepoBody(
    full_name="lamplighter-tools/wick",
    listed_as="lamplighter-tools/wick",
    tag="good first issue",
    source="awesome-for-beginners",
    url="https://github.com/lamplighter-tools/wick",
    description="A small static site generator.",
    language="Python",
    languages={"Python": 412_310, "HTML": 38_120},
    labels=["good first issue"],
    label_status="exact",
    issues_status="listed",
    issues=[812, 845],
    stars=2140,
    open_issues_count=31,
    summary="Turns a folder of Markdown into a website and rebuilds only what changed.",
    processed_at=1_767_225_600_000,
)

REPOS = Collection(
    name="repos",
    singular="repo",
    kind="repo",
    stories="on request",
    card=RepoCard,
    title="Repositories for beginners",
    filters=(
        Filter("language", "languages", "has", help="a language of the repository"),
        Filter("topic", "topics", "has", help="a topic of the repository"),
        Filter("min_stars", "stars", "at_least", "integer", help="at least so many stars"),
        Filter("min_issues", "beginner_issues", "at_least", "integer", help="at least so many beginners' issues"),
        Filter("archived", "archived", "is", "boolean", help="whether the repository is archived"),
        Filter("status", "processing_status", values=PROCESSING, help="how far we are with it"),
    ),
    facets=("language", "processing_status", "issues_status"),
    facet_values={"processing_status": PROCESSING},
    attributes={"type": ("repo",), "language": (), "topic": (), "issues": ()},
    templates=__package__,
    title_field="full_name",
    time_field="pushed_at",
    example=repo_card(_EXAMPLE_REPO),
)
