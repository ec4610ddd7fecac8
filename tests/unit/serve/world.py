"""A small world to serve: a pipeline with an id index, a threaded one that takes posts, and a desk with work on it."""

from __future__ import annotations

import io
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec
from tests.unit.serve.memory import (
    InlineExecutor,
    MemoryDesk,
    MemoryIndex,
    MemoryIntake,
    MemoryLinks,
    MemoryShelf,
    present,
)

from tidings.discover.upload import read_lines
from tidings.model.clock import ManualClock, rfc3339
from tidings.model.errors import BadInput
from tidings.model.item import Finding, Step, fingerprint
from tidings.model.pipeline import Pipeline
from tidings.model.publication import Collection, Document, Filter, IdIndex, Presentation
from tidings.model.views import (
    AlertView,
    ChannelView,
    DeadGroup,
    DeliveryView,
    Event,
    IntakeView,
    ItemRow,
    ItemView,
    PipelineView,
    Point,
    SourceView,
    StepView,
)
from tidings.model.workflow import ANY, Transition, Workflow
from tidings.serve.parts import Parts

NOW_MS = 1_790_000_000_000
HOUR_MS = 3_600_000
TOKENS = {"reader": "read", "sender": "ingest", "operator": "operate"}


class Article(msgspec.Struct, frozen=True, kw_only=True):
    """An article."""

    id: str
    title: str
    link: str
    source: str | None = None
    published_at: str | None = None
    sentiment: str | None = None
    summary: str | None = None
    needs_sentiment: bool = False
    needs_summary: bool = False


class Story(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A story or a comment, with Firebase's names."""

    id: int
    type: str
    by: str | None = None
    time: int | None = None
    title: str | None = None
    url: str | None = None
    text: str | None = None
    score: int | None = None
    descendants: int | None = None
    parent: int | None = None
    kids: list[int] = []
    deleted: bool = False
    dead: bool = False


ARTICLES = Collection(
    name="articles",
    singular="article",
    kind="article",
    card=Article,
    title="Articles",
    filters=(Filter("sentiment", "sentiment", values=("positive", "negative", "neutral", "unknown")),),
    facets=("sentiment",),
    facet_values={"sentiment": ("positive", "negative", "neutral")},
    id_index=True,
    template="news",
    link_field="link",
    example=Article(id="a1", title="Fees fall", link="https://news.example/a1", sentiment="positive"),
)
STORIES = Collection(
    name="items",
    singular="item",
    kind="item",
    card=Story,
    title="Hacker News",
    filters=(
        Filter("type", "type", values=("story", "comment", "job")),
        Filter("by", "by"),
        Filter("min_score", "score", "at_least", "integer"),
        Filter("before", "time", "before", "date"),
    ),
    facets=("type",),
    relation="reply",
    accepts_posts=True,
    template="thread",
    summary_field="text",
    time_field="time",
    example=Story(id=1, type="story", by="ada", title="A story", score=10),
)


def news_pipeline() -> Pipeline:
    """The one with an id index."""
    workflow = Workflow(
        "article",
        "found",
        ("found", "fetched", "published"),
        (
            Transition("fetch", "found", "fetched", lane="fetch"),
            Transition("publish", "fetched", "published", publishes=True),
        ),
        terminal=frozenset({"published"}),
    )
    return Pipeline(
        name="bitcoin_news",
        title="Bitcoin news",
        about="Articles about Bitcoin, with a summary and a mood.",
        workflows={"article": workflow},
        collections=(ARTICLES,),
        id_index=IdIndex("articles"),
    )


def threaded_pipeline() -> Pipeline:
    """The one with threads, which takes posts."""
    workflow = Workflow(
        "item",
        "found",
        ("found", "completed", "failed"),
        (
            Transition("complete", "found", "completed", publishes=True),
            Transition("mark_failed", ANY, "failed", trigger="manual"),
            Transition("retry_processing", "failed", "found", trigger="manual"),
        ),
        terminal=frozenset({"completed"}),
        failures=frozenset({"failed"}),
    )
    return Pipeline(
        name="hacker_news",
        title="Hacker News",
        about="Stories and the talk below them.",
        workflows={"item": workflow},
        collections=(STORIES,),
        admit=admit,
    )


def admit(value: Any, *, way: str) -> Finding:
    """Take anything with a positive id."""
    if not isinstance(value, dict) or not isinstance(value.get("id"), int) or value["id"] < 1:
        raise BadInput("needs a positive whole number as id")
    payload = msgspec.json.encode(value)
    return Finding("hacker_news", "item", str(value["id"]), fingerprint(value), payload)


@dataclass
class World:
    """Everything behind the server, within the test's reach."""

    executor: InlineExecutor = field(default_factory=InlineExecutor)
    shelf: MemoryShelf = field(default_factory=MemoryShelf)
    index: MemoryIndex = field(default_factory=MemoryIndex)
    links: MemoryLinks = field(default_factory=MemoryLinks)
    intake: MemoryIntake = field(default_factory=MemoryIntake)
    desk: MemoryDesk = field(default_factory=lambda: MemoryDesk(dict(TOKENS)))
    clock: ManualClock = field(default_factory=lambda: ManualClock(NOW_MS))
    problems: dict[str, str] = field(default_factory=dict)
    wakes: int = 0
    observed: list[tuple[str, int]] = field(default_factory=list)

    def parts(self, **changes: Any) -> Parts:
        """Return what the server is given."""
        parts = Parts(
            pipelines={each.name: each for each in (news_pipeline(), threaded_pipeline())},
            executor=self.executor,
            shelf=self.shelf,
            index=self.index,
            links=self.links,
            intake=self.intake,
            desk=self.desk,
            parse_lines=lambda body: read_lines(io.BytesIO(body), gzip_allowed=False),
            metrics=lambda: (b"tidings_build_info 1\n", "text/plain; version=0.0.4"),
            ready=lambda: self.problems,
            wake=self._wake,
            observe=lambda route, status, _seconds: self.observed.append((route, status)),
            clock=self.clock,
            version="1.2.3",
        )
        return replace(parts, **changes)

    def _wake(self) -> None:
        self.wakes += 1

    def add_article(self, card: Article, age_hours: float = 1) -> None:
        """Publish an article and list it in the id index."""
        sort = NOW_MS - round(age_hours * HOUR_MS)
        document = Document(card.title, card.summary or "", card.source, None, None, sort, card.link, {})
        shown = Presentation("articles", card.id, card, sort, document)
        present(self.shelf, self.index, "bitcoin_news", "article", "article", shown)
        self.list_articles()

    def list_articles(self, *extra: str) -> None:
        """Write the id index as the merge does: newest first."""
        entries = self.shelf.newest("bitcoin_news", "articles", limit=500)
        ids = [entry.key.partition(":")[2] for entry in entries] + list(extra)
        value = {"ids": ids, "sorts": [entry.sort for entry in entries] + [0] * len(extra)}
        self.shelf.put("bitcoin_news", "index:articles", value)

    def add_story(self, card: Story, age_hours: float = 1) -> None:
        """Publish a story or comment."""
        sort = card.time * 1000 if card.time is not None else NOW_MS - round(age_hours * HOUR_MS)
        document = Document(card.title or "", card.text or "", card.by, card.type, card.score, sort, card.url, {})
        shown = Presentation("items", str(card.id), card, sort, None if card.deleted else document)
        present(self.shelf, self.index, "hacker_news", "item", "item", shown)
        if card.parent is not None:
            self.links.below.setdefault(f"item:{card.parent}", []).append(f"item:{card.id}")


def a_world() -> World:
    """Return a world with a bit of everything."""
    world = World()
    moods = ("positive", "negative", "neutral", None)
    for number in range(8):
        card = Article(
            id=f"a{number}",
            title=f"Headline {number}",
            link=f"https://news.example/{number}",
            source="The Ledger Post",
            published_at=rfc3339(NOW_MS - number * HOUR_MS),
            sentiment=moods[number % 4],
            summary=f"Summary of {number}: fees fell." if number % 4 != 3 else None,
            needs_summary=number % 4 == 3,
        )
        world.add_article(card, age_hours=number)
    seconds = NOW_MS // 1000
    world.add_story(
        Story(
            id=1,
            type="story",
            by="ada",
            time=seconds - 7200,
            title="One file and a loop",
            url="https://blog.example/loop",
            score=120,
            descendants=3,
            kids=[3, 2],
        )
    )
    world.add_story(
        Story(id=3, type="comment", by="bob", time=seconds - 3000, text="<p>First <i>thought</i></p>", parent=1)
    )
    world.add_story(Story(id=2, type="comment", by="cyd", time=seconds - 5000, text="Older", parent=1, kids=[4]))
    world.add_story(Story(id=4, type="comment", time=seconds - 4000, parent=2, deleted=True))
    world.add_story(Story(id=10, type="job", by="eve", time=seconds - 9000, title="We hire", score=1))
    fill_desk(world.desk)
    return world


def fill_desk(desk: MemoryDesk) -> None:
    """Give the operator something to see."""
    desk.now_ms = NOW_MS
    source = SourceView(
        name="bitcoin_news.rss",
        pipeline="bitcoin_news",
        health="failing",
        schedule="every 1 h",
        last_success_at=NOW_MS - 3 * HOUR_MS,
        next_check_at=NOW_MS + 60_000,
        failures=2,
        error="news.example answered 503",
    )
    desk.source_views = [source]
    desk.pipelines = {
        "bitcoin_news": PipelineView(
            states={"found": 2, "fetched": 1, "published": 8},
            kinds={"article": {"found": 2, "fetched": 1, "published": 8}},
            standings={"open": 3, "done": 8},
            due=2,
            leased=1,
            oldest_due_seconds=4,
            intake=IntakeView(0, 11, 11),
            settled_last_hour=9,
            published_last_hour=8,
            sources=[source],
        ),
        "hacker_news": PipelineView(
            states={"completed": 5, "failed": 1},
            kinds={"item": {"completed": 5, "failed": 1}},
            standings={"done": 5, "dead": 1},
            dead_letters=1,
            intake=IntakeView(0, 6, 6),
            settled_last_hour=6,
        ),
    }
    row = ItemRow(
        id=7,
        pipeline="hacker_news",
        kind="item",
        key="99",
        title="A broken item",
        state="failed",
        standing="dead",
        attempts=3,
        last_error="is_valid: type banana",
        cause="is_valid: type",
        created_at=NOW_MS - HOUR_MS,
        changed_at=NOW_MS - 1000,
    )
    life = [
        StepView(at=NOW_MS - HOUR_MS, kind="born", attempt=0, from_state="", to_state="found", ended="born"),
        StepView(
            at=NOW_MS - 1000,
            kind="attempt",
            attempt=3,
            from_state="found",
            to_state="failed",
            ended="failed",
            error="is_valid: type banana",
            steps=[Step("complete", "found", "failed", 1.5, "is_valid", "type banana")],
        ),
    ]
    good = ItemRow(
        id=5,
        pipeline="hacker_news",
        kind="item",
        key="1",
        title="One file and a loop",
        state="completed",
        standing="done",
        attempts=1,
        created_at=NOW_MS - HOUR_MS,
        changed_at=NOW_MS - HOUR_MS,
    )
    desk.views = {
        5: ItemView(item=good, body={"id": 1}, accepted={"id": 1}, life=life[:1], transitions=["mark_failed"]),
        7: ItemView(item=row, body={"id": 99}, life=life, transitions=["retry_processing"], waits_for="a person"),
    }
    desk.dead = [
        DeadGroup(
            pipeline="hacker_news",
            kind="item",
            state="failed",
            cause="is_valid: type",
            count=1,
            first_at=NOW_MS - HOUR_MS,
            last_at=NOW_MS - 1000,
            sample_id=7,
            sample_key="99",
        )
    ]
    desk.firing = [
        AlertView(
            name="dead_letters",
            subject="hacker_news",
            message="21 dead letters",
            help="tidings dead list",
            value=21,
            threshold=20,
            fired_at=NOW_MS - 60_000,
        )
    ]
    desk.delivery_views = [
        DeliveryView(
            id=20,
            pipeline="bitcoin_news",
            key="discord:news/article/a0/1",
            channel="discord:news",
            title="Headline 0",
            parent="article:a0",
            state="sent",
            standing="done",
            attempts=1,
            sent_at=NOW_MS - 5000,
            message_id="123",
            created_at=NOW_MS - 6000,
        )
    ]
    desk.channel_views = [ChannelView(name="discord:news", kind="discord", paused=False, sent_last_minute=1)]
    desk.series = {"settled:bitcoin_news": [Point(NOW_MS - i * 60_000, float(i % 7)) for i in range(60, 0, -1)]}
    desk.happened = [
        Event(
            id=number,
            at=NOW_MS,
            pipeline="hacker_news",
            kind="item",
            key="1",
            what="advanced",
            from_state="found",
            to_state="completed",
            item=5,
        )
        for number in (1, 2, 3)
    ]
