"""A small world to serve, on a real store: a pipeline with an id index, a threaded one that takes posts, some work."""

from __future__ import annotations

import atexit
import io
import shutil
import tempfile
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec
from tests.support.clock import ManualClock
from tests.support.followed_search import FollowedSearch
from tests.support.store import Ground

from tidings.discover.upload import read_lines
from tidings.model.backoff import RetryPolicy
from tidings.model.clock import rfc3339
from tidings.model.contracts import Kit
from tidings.model.errors import BadInput, Misconfigured, Permanent, StoreUnavailable
from tidings.model.item import Finding, Link, fingerprint, ref
from tidings.model.item_views import ItemView
from tidings.model.outcome import Advance, No, Outcome, Verdict
from tidings.model.pipeline import Page, Pipeline, Run, Schedule, Source
from tidings.model.previews import Preview, Trial
from tidings.model.publication import Collection, Document, Filter, FullText, IdIndex, Presentation
from tidings.model.source_definition import checked_definition
from tidings.model.views import RunView
from tidings.model.workflow import ANY, Transition, Work, Workflow
from tidings.pipelines.bitcoin_news.cards import MOODS
from tidings.pipelines.hacker_news.cards import is_front
from tidings.serve.backend import Backend
from tidings.store.cards import drop_entry
from tidings.store.db.database import connect
from tidings.store.db.sqlite import SqliteDatabase
from tidings.store.upkeep.migrate import migrate

NOW_MS = 1_790_000_000_000
HOUR_MS = 3_600_000
TOKENS = {"reader": "read", "marker": "reader", "sender": "ingest", "operator": "operate"}
SOURCE, CHANNEL = "bitcoin_news.rss", "discord:news"
LANES = ("pure", "fetch", "notify")
ONCE = RetryPolicy(attempts=1)


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
    templates="tidings.pipelines.bitcoin_news",
    chart=MOODS,
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
    templates="tidings.pipelines.hacker_news",
    html_fields=("text",),
    is_front=is_front,
    summary_field="text",
    time_field="time",
    example=Story(id=1, type="story", by="ada", title="A story", score=10),
)


class ArticleBody(Article, frozen=True, kw_only=True):
    """What the store keeps of an article: the card, where it is sorted, and what is to become of it."""

    sort: int
    fate: str = ""
    """die, park: how fetching it ends; hold: it waits to be fetched, and is not listed yet."""


class StoryBody(Story, frozen=True, kw_only=True, omit_defaults=True):
    """What the store keeps of a story."""

    sort: int = 0
    fate: str = ""
    """Why it cannot be completed."""
    is_loose: bool = False
    """It does not say below what it stands."""


class DeliveryBody(msgspec.Struct, frozen=True, kw_only=True):
    """What the store keeps of a delivery."""

    channel: str
    parent: str
    notice: dict[str, str]
    sent_at: int | None = None
    message_id: str | None = None
    answer: str | None = None


@dataclass
class QuietSource:
    """A source that nobody asks here."""

    name: str = SOURCE
    schedule: Schedule = Schedule(every_seconds=3600)

    async def pages(self, run: Run, kit: Kit) -> AsyncIterator[Page]:
        """Yield an empty page."""
        yield Page(())


def news_pipeline(*sources: Source) -> Pipeline:
    """The one with an id index."""
    article = Workflow(
        "article",
        "found",
        ("found", "fetched", "published"),
        (
            Transition("fetch", "found", "fetched", fetch, lane="fetch", retry=ONCE),
            Transition("publish", "fetched", "published", publish, publishes=True),
        ),
        terminal=frozenset({"published"}),
        body=ArticleBody,
        fuse=False,
    )
    delivery = Workflow(
        "delivery",
        "queued",
        ("queued", "sent"),
        (Transition("send", "queued", "sent", send, lane="notify", retry=ONCE),),
        terminal=frozenset({"sent"}),
        body=DeliveryBody,
    )
    return Pipeline(
        name="bitcoin_news",
        title="Bitcoin news",
        about="Articles about Bitcoin, with a summary and a mood.",
        workflows={"article": article, "delivery": delivery},
        sources=sources or (QuietSource(),),
        collections=(ARTICLES,),
        presenters={"article": show_article},
        first_cards={"article": lambda key, body: None if body.fate else show_article(key, body)},
        id_index=IdIndex("articles"),
    )


def fetch(work: Work) -> Outcome:
    """Fetch an article, where its fate allows."""
    if work.body.fate == "die":
        raise Permanent("it broke", cause="it broke")
    if work.body.fate == "park":
        raise Misconfigured("it broke")
    return Advance()


def publish(work: Work) -> Outcome:
    """Publish an article, and announce the first one."""
    if work.key != "a0":
        return Advance()
    body = DeliveryBody(channel=CHANNEL, parent="article:a0", notice={"title": work.body.title})
    key = f"{CHANNEL}/article/a0/{work.revision}"
    return Advance(children=(Finding(work.pipeline, "delivery", key, "1", msgspec.json.encode(body)),))


def send(work: Work) -> Outcome:
    """Deliver a notice."""
    body = msgspec.structs.replace(work.body, sent_at=work.now_ms, message_id="123", answer="200 OK, message 123")
    return Advance(body=body)


def show_article(key: str, body: ArticleBody) -> Presentation:
    """Show an article."""
    card = Article(**{name: getattr(body, name) for name in Article.__struct_fields__})
    document = Document(card.title, card.summary or "", card.source, None, None, body.sort, card.link, {})
    return Presentation("articles", key, card, body.sort, lambda: document)


def threaded_pipeline() -> Pipeline:
    """The one with threads, which takes posts."""
    workflow = Workflow(
        "item",
        "found",
        ("found", "completed", "failed"),
        (
            Transition(
                "complete",
                "found",
                "completed",
                complete,
                is_valid,
                publishes=True,
                retry=RetryPolicy(attempts=1, refused="mark_failed"),
            ),
            Transition("mark_failed", ANY, "failed", trigger="manual"),
            Transition("retry_processing", "failed", "found", trigger="manual"),
        ),
        terminal=frozenset({"completed"}),
        failures=frozenset({"failed"}),
        body=StoryBody,
    )
    return Pipeline(
        name="hacker_news",
        title="Hacker News",
        about="Stories and the talk below them.",
        workflows={"item": workflow},
        collections=(STORIES,),
        presenters={"item": show_story},
        admit=admit,
    )


def is_valid(work: Work) -> Verdict:
    """Refuse fruit."""
    return No("type banana", "type") if work.body.type == "banana" else True


def complete(work: Work) -> Outcome:
    """Complete a story: it names its parent and its kids."""
    body = work.body
    if body.fate:
        raise Permanent(body.fate, cause=body.fate)
    own = ref("item", work.key)
    links = [Link(ref("item", str(kid)), own, "reply", position) for position, kid in enumerate(body.kids)]
    if body.parent is not None and not body.is_loose:
        links.append(Link(own, ref("item", str(body.parent)), "reply"))
    return Advance(links=tuple(links))


def show_story(key: str, body: StoryBody) -> Presentation:
    """Show a story; a deleted one is not found by the search."""
    card = Story(**{name: getattr(body, name) for name in Story.__struct_fields__})
    document = Document(card.title or "", card.text or "", card.by, card.type, card.score, body.sort, card.url, {})
    return Presentation("items", key, card, body.sort, None if card.deleted else lambda: document)


def admit(value: Any, *, way: str) -> Finding:
    """Take anything with a positive id."""
    if not isinstance(value, dict) or not isinstance(value.get("id"), int) or value["id"] < 1:
        raise BadInput("needs a positive whole number as id")
    payload = msgspec.json.encode(value)
    return Finding("hacker_news", "item", str(value["id"]), fingerprint(value), payload)


def showcase(pipeline: Pipeline) -> Pipeline:
    """Return a pipeline that publishes any card it is handed, whatever its own workflows would make of it."""
    workflow = {
        each.kind: Workflow(
            each.kind,
            "found",
            ("found", "shown"),
            (Transition("show", "found", "shown", publishes=True),),
            terminal=frozenset({"shown"}),
        )
        for each in pipeline.collections
    }
    shown = dict.fromkeys(workflow, show_anything)
    first = shown if pipeline.id_index is not None else {}
    full = dict.fromkeys(pipeline.full_texts, tell_anything)
    return replace(
        pipeline, workflows=workflow, presenters=shown, first_cards=first, full_texts=full, announce={}, retention=()
    )


def tell_anything(body: Any) -> FullText:
    """Tell in full what the document says, taken for HTML."""
    return FullText(body["document"]["text"], body["document"]["text"])


def show_anything(key: str, body: Any) -> Presentation:
    """Show what the body says."""
    return Presentation(
        body["collection"], key, body["card"], NOW_MS, lambda: msgspec.convert(body["document"], Document)
    )


class Line:
    """The way to the store, on which tests count and which they may cut: for everything, or for single calls."""

    def __init__(self) -> None:
        self.is_down = False
        self.calls: list[str] = []
        self.faults: dict[str, Exception] = {}
        self.reads = 0

    async def write(self, call: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        return self._run(call, *args, **kwargs)

    async def read(self, call: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        self.reads += 1
        return self._run(call, *args, **kwargs)

    def _run(self, call: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        if self.is_down:
            raise StoreUnavailable("the database does not answer")
        name = call.__name__
        self.calls.append(name)
        if name in self.faults:
            raise self.faults[name]
        return call(*args, **kwargs)


class NoWeb:
    """Previews where there is no web: the acceptance tests look at real sites."""

    async def look(self, pipeline: str, raw: Mapping[str, Any]) -> Trial:
        definition = checked_definition(raw)
        error = "there is no web here"
        return Trial(Preview(pipeline=pipeline, kind=definition.kind, address=definition.address, error=error))


class World:
    """Everything behind the server, within the test's reach. Its clock, the database's too, stands still at NOW_MS."""

    def __init__(self, *pipelines: Pipeline, tokens: dict[str, str] = TOKENS, copy_of: Path | None = None) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="world")
        self.file = Path(self._folder.name) / "tidings.db"
        shutil.copyfile(copy_of or empty_file(), self.file)
        self.clock = ManualClock(NOW_MS)
        database = SqliteDatabase(str(self.file), durability="crash-safe", clock=self.clock)
        declared = pipelines or (news_pipeline(), threaded_pipeline())
        self.ground = Ground(f"sqlite:///{self.file}", *declared, database=database, channels={CHANNEL: "discord"})
        self.store = self.ground.store
        self.pipelines = self.ground.pipelines
        self.executor = Line()
        self.search = FollowedSearch(self.store, self.pipelines, self.clock.now_ms)
        self.problems: dict[str, str] = {}
        self.wakes = 0
        self.observed: list[tuple[str, int]] = []
        if copy_of is None:
            for name, scope in tokens.items():
                self.add_token(name, scope)

    def __enter__(self) -> World:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the store and remove its file."""
        self.ground.close()
        self._folder.cleanup()

    def backend(self, **changes: Any) -> Backend:
        """Return what the server is given."""
        backend = Backend(
            pipelines=self.pipelines,
            executor=self.executor,
            shelf=self.store.shelf,
            search=self.search,
            changes=self.store.changes,
            links=self.store.links,
            intake=self.store.intake,
            status_views=self.store.status_views,
            item_views=self.store.item_views,
            item_actions=self.store.operations,
            burials=self.store.retention,
            switches=self.store.switches,
            source_changes=self.store.source_edits,
            previews=NoWeb(),
            tokens=self.store.tokens,
            tracks=self.store.tracks,
            accepted=self.store.changes.accepted,
            marks=self.store.marks,
            stories=self.store.stories,
            wishes=self.store.wishes,
            parse_lines=lambda body: read_lines(io.BytesIO(body), gzip_allowed=False),
            metrics=lambda: (b"tidings_build_info 1\n", "text/plain; version=0.0.4"),
            ready=lambda: self.problems,
            wake=self._wake,
            observe=lambda route, status, _seconds: self.observed.append((route, status)),
            clock=self.clock,
            version="1.2.3",
        )
        return replace(backend, **changes)

    def _wake(self) -> None:
        self.wakes += 1

    def add_token(self, token: str, scope: str) -> None:
        """Make a token with a text of the test's own; those the store makes are random."""
        self.ground.write(
            "INSERT INTO tokens (hash, name, scope, created_at) VALUES (:hash, :name, :scope, :at)",
            hash=sha256(token.encode()).hexdigest(), name=token, scope=scope, at=NOW_MS,
        )  # fmt: skip

    def revoke(self, token: str) -> None:
        """End a token."""
        assert self.store.tokens.revoke(token) == 1

    def last_use(self, token: str) -> int | None:
        """Return when a token was last used, as far as that was noted."""
        return next(each.last_used_at for each in self.store.tokens.list() if each.name == token)

    def add_article(self, card: Article, age_hours: float = 1, fate: str = "") -> None:
        """Find an article and work on it until it rests."""
        self.find([article_finding(card, age_hours, fate)])
        self.work("bitcoin_news")

    def add_story(self, card: Story, age_hours: float = 1, **more: Any) -> None:
        """Find a story or comment and complete it."""
        self.add_stories([card], age_hours, **more)

    def add_stories(self, cards: Iterable[Story], age_hours: float = 1, **more: Any) -> None:
        """Find stories and comments and complete them."""
        self.find([story_finding(card, age_hours, **more) for card in cards])
        self.work("hacker_news")

    def show(self, pipeline: str, collection: Collection, cards: dict[str, Any], document: Document) -> None:
        """Publish any cards in a collection of a `showcase`, each found by the document's words."""
        told = {key: {"collection": collection.name, "card": card, "document": document} for key, card in cards.items()}
        self.find([Finding(pipeline, collection.kind, k, "1", msgspec.json.encode(body)) for k, body in told.items()])
        self.work(pipeline)

    def find(self, findings: Sequence[Finding]) -> None:
        """Let findings be born."""
        self._of(findings[0].pipeline).record(*findings)

    def work(self, pipeline: str, lanes: Sequence[str] = LANES) -> None:
        """Work on whatever is due in a pipeline."""
        ground, busy = self._of(pipeline), True
        while busy:
            busy = False
            for lane in lanes:
                while leases := ground.claim(100, lane=lane):
                    ground.settle(*leases)
                    busy = True

    def _of(self, pipeline: str) -> Ground:
        self.ground.name = pipeline
        return self.ground

    def withdraw(self, key: str) -> None:
        """Take a story's card off the shelf."""
        with self.ground.database.transaction() as tx:
            drop_entry(tx, "hacker_news", f"item:{key}")

    def list_ghost(self) -> None:
        """Enter an article in the id index that is not on the shelf."""
        self.ground.write(
            "UPDATE shelf SET value = CAST(json_insert(CAST(value AS TEXT), '$.ids[#]', 'ghost', '$.sorts[#]', 0) "
            "AS BLOB) WHERE key = 'index:articles'"
        )
        self.ground.write("UPDATE shelf_versions SET version = version + 1")

    def link(self, parent: str, *children: str) -> None:
        """State that items, known or not, stand below another."""
        self.ground.write(
            "INSERT INTO links (pipeline, relation, child, said_by, parent, position) "
            "SELECT 'hacker_news', 'reply', value, 0, :parent, key FROM json_each(:children)",
            parent=parent,
            children=msgspec.json.encode(children).decode(),
        )

    def item(self, key: str, kind: str = "item", pipeline: str = "hacker_news") -> ItemView:
        """Return one item, whole."""
        view = self.store.item_views.find(pipeline, kind, key)
        assert view is not None
        return view

    def deeds(self) -> list[tuple[str, str, str]]:
        """Return what people did to items: the item's key, what, and who."""
        rows = self.ground.sql(
            "SELECT i.key, j.ended, j.actor FROM journal j JOIN items i ON i.id = j.item "
            "WHERE j.actor IS NOT NULL ORDER BY j.id"
        )
        return [(str(key), str(what), str(actor)) for key, what, actor in rows]

    def measure(self, **series: dict[int, float]) -> None:
        """Replace the history: steps by pipeline and time."""
        self.ground.write("DELETE FROM samples")
        self.store.alerts.put_samples(
            [(f"settled:{name}:w", at, value) for name, points in series.items() for at, value in points.items()]
        )


def article_finding(card: Article, age_hours: float = 1, fate: str = "") -> Finding:
    """Report an article."""
    values = {name: getattr(card, name) for name in Article.__struct_fields__}
    body = ArticleBody(**values, sort=NOW_MS - round(age_hours * HOUR_MS), fate=fate)
    return Finding(
        "bitcoin_news", "article", card.id, fingerprint(msgspec.structs.asdict(body)), msgspec.json.encode(body)
    )


def story_finding(card: Story, age_hours: float = 1, **more: Any) -> Finding:
    """Report a story or comment."""
    sort = card.time * 1000 if card.time is not None else NOW_MS - round(age_hours * HOUR_MS)
    body = StoryBody(**{name: getattr(card, name) for name in Story.__struct_fields__}, sort=sort, **more)
    key = str(card.id)
    return Finding("hacker_news", "item", key, fingerprint(msgspec.structs.asdict(body)), msgspec.json.encode(body))


@cache
def template_folder() -> Path:
    """Return a folder that is gone with this process."""
    folder = tempfile.mkdtemp(prefix="world_templates")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)


@cache
def empty_file() -> Path:
    """Return a database with our tables and nothing in them."""
    file = template_folder() / "empty.db"
    database = connect(f"sqlite:///{file}")
    migrate(database)
    database.close()
    return file


@cache
def filled_file() -> Path:
    """Return a database with a bit of everything; filled once, copied for every test."""
    file = template_folder() / "filled.db"
    with World() as world:
        fill(world)
        world.ground.database.close()
        shutil.copyfile(world.file, file)
    return file


def a_world() -> World:
    """Return a world with a bit of everything."""
    return World(copy_of=filled_file())


def fill(world: World) -> None:
    """Publish articles and a thread; give the operator something to see: item 5 is well, item 7 a dead letter."""
    world.clock.advance(seconds=-3600)
    news = [article_finding(an_article(number), number) for number in range(8)]
    held = [article_finding(an_article(number), number, "hold") for number in range(20, 23)]
    world.store.intake.append("bitcoin_news", [*news, *held])
    world.find([story_finding(card) for card in the_stories()])
    world.store.intake.merge("bitcoin_news", 1)
    world.work("hacker_news")
    world.find([story_finding(Story(id=99, type="banana", title="A broken item"))])
    world.work("hacker_news")
    world.store.intake.merge("bitcoin_news", 7)
    world.work("bitcoin_news")
    fill_operations(world)
    world.clock.advance(seconds=3596)
    world.store.intake.merge("bitcoin_news")
    world.ground.name = "bitcoin_news"
    world.ground.settle(world.ground.claim_one(lane="fetch"))
    world.clock.advance(seconds=4)


def an_article(number: int) -> Article:
    """Return an article, `number` hours old."""
    mood = ("positive", "negative", "neutral", None)[number % 4]
    return Article(
        id=f"a{number}",
        title=f"Headline {number}",
        link=f"https://news.example/{number}",
        source="The Ledger Post",
        published_at=rfc3339(NOW_MS - number * HOUR_MS),
        sentiment=mood,
        summary=f"Summary of {number}: fees fell." if number % 4 != 3 else None,
        needs_summary=number % 4 == 3,
    )


def the_stories() -> list[Story]:
    """Return a story with three comments, and a job; the story is born last of them, as item 5."""
    seconds = NOW_MS // 1000
    return [
        Story(id=3, type="comment", by="bob", time=seconds - 3000, text="<p>First <i>thought</i></p>", parent=1),
        Story(id=2, type="comment", by="cyd", time=seconds - 5000, text="Older", parent=1, kids=[4]),
        Story(id=4, type="comment", time=seconds - 4000, parent=2, deleted=True),
        Story(id=10, type="job", by="eve", time=seconds - 9000, title="We hire", score=1),
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
        ),
    ]


def fill_operations(world: World) -> None:
    """A source that fails, an alert that fires, and an hour of history; the clock stands an hour before NOW_MS."""
    schedules, run = world.store.schedules, RunView(source=SOURCE, started_at=0)
    schedules.declare(SOURCE, "bitcoin_news")
    world.clock.advance(seconds=-2 * 3600)
    for error in (None, "news.example answered 503", "news.example answered 503"):
        turn = schedules.claim(SOURCE, "poller", 60, force=True)
        assert turn is not None
        schedules.close(turn, msgspec.structs.replace(run, error=error), next_in_seconds=3 * 3600 + 60)
    world.clock.advance(seconds=2 * 3600)
    world.store.alerts.fire("dead_letters", "hacker_news", "21 dead letters", "tidings dead list", 21, 20)
    minutes = {NOW_MS - minute * 60_000: float(minute <= 9) for minute in range(60, 0, -1)}
    world.measure(bitcoin_news=minutes, hacker_news={NOW_MS - 60_000: 6.0})
