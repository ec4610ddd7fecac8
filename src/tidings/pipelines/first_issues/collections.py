"""The two published lists: repositories and issues for beginners, with what they can be asked."""

from __future__ import annotations

from tidings.model.publication import Collection, Filter
from tidings.pipelines.first_issues.bodies import IssueBody, RepoBody
from tidings.pipelines.first_issues.cards import IssueCard, RepoCard, issue_card, repo_card

FRESHNESS = ("fresh", "quiet", "stale")
PROCESSING = ("pending", "completed", "failed")

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

COLLECTIONS = (
    Collection(
        name="repos",
        singular="repo",
        kind="repo",
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
        template="repo",
        title_field="full_name",
        time_field="pushed_at",
        example=repo_card(_EXAMPLE_REPO),
    ),
    Collection(
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
        template="issue",
        summary_field="introduction",
        time_field="updated_at",
        example=issue_card(EXAMPLE_ISSUE),
    ),
)
