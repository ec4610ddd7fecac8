"""Bitcoin news from discovery to the shelf: real store, real loops, real HTTP to the stand-ins."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import apsw
import msgspec
import pytest
from starlette.responses import HTMLResponse
from tests.support.engine import Engine
from tests.support.own_sql import own_sql
from tests.support.waiting import until
from tests.unit.serve.asgi import Client

from tidings.backends import backend_of
from tidings.config.tables import Server
from tidings.net.client import FetchLimits
from tidings.pipelines.bitcoin_news import Settings, build, endpoints
from tidings.pipelines.bitcoin_news.sightings import article_id
from tidings.sample.ai_endpoint import AiEndpoint
from tidings.sample.ai_endpoint import build as ai_app
from tidings.sample.news import APITUBE, NEWSDATA, News
from tidings.sample.news_apis import apitube_id, newsdata_id
from tidings.sample.serving import StandIn
from tidings.serve.application import build as serving
from tidings.wiring import AiSpec

HOUR_MS = 3_600_000
TROUBLE = {"settling failed", "claiming failed"}
OUTLETS: list[dict[str, Any]] = [
    {
        "id": "post",
        "name": "The Post",
        "host": "post.example",
        "rss_path": "/rss",
        "menu": ["Home", "Markets"],
        "cookie_notice": "We store small files on your device.",
        "newsletter_box": "Five paragraphs at noon.",
        "footer": "Nothing here is advice.",
    }
]
WORDS = (
    "The exchange said on {n} that withdrawals of bitcoin had risen for the week, and that every one of them was paid.",
    "Miners in the north added {n} machines while the price of power fell, the grid operator reports in its bulletin.",
    "A regulator asked for comments on rule {n} before the end of the quarter; two banks have already answered it.",
    "Analysts at a small desk in the harbour counted {n} large transfers and saw no sign of a hurried sale in them.",
)


class Town:
    """A running engine in a world of news."""

    def __init__(self, world: News, engine: Engine, url: str) -> None:
        self.world = world
        self.engine = engine
        self.url = url

    def publish(self, name: str, *, hours_ago: float = 0.5, **fields: Any) -> str:
        """Publish a story and return the id its article will have."""
        given: dict[str, Any] = {
            "outlet": "post",
            "path": f"/n/{name}",
            "title": f"Bitcoin story {name}",
            "description": f"What happened in {name}.",
            "paragraphs": [line.format(n=f"{name} {k}") for k in range(3) for line in WORDS],
            "published_ms": self.world.now_ms() - round(hours_ago * HOUR_MS),
        }
        return self.id_of(self.world.add(id=name, **given | fields).id)

    def id_of(self, name: str) -> str:
        return article_id(self.world.link(self.world.stories[name], self.url))

    def card(self, name: str) -> dict[str, Any]:
        card = self.engine.card("articles", self.id_of(name))
        assert card is not None
        return card

    def row(self, name: str) -> Any:
        return self.engine.item("article", self.id_of(name)).item

    async def until_parked(self, name: str) -> None:
        """Work, moving the clock over the short waits, until an article's waits become long."""
        for _ in range(12):
            await self.engine.work_until_idle()
            if self.row(name).standing == "parked":
                return
            self.engine.advance_clock(seconds=1100)

    def heal(self, name: str) -> None:
        self.world.change(name, fault=None)


@asynccontextmanager
async def town_of(database_url: str, *, ai_url: str | None = None, **settings: Any) -> AsyncIterator[Town]:
    engines: list[Engine] = []

    def now_ms() -> int:
        return time.time_ns() // 1_000_000 + sum(engine.offset_ms for engine in engines)

    world = News(OUTLETS, now_ms=now_ms, hang_seconds=5)
    async with StandIn(world.app) as server:
        chosen = Settings.model_validate(world.settings(server.url) | settings)
        wiring: dict[str, Any] = {"limits": FetchLimits(first_byte_seconds=1, total_seconds=5)}
        if ai_url is not None:
            wiring["ai"] = AiSpec(base_url=ai_url, model="stand-in")
        engine = Engine(
            database_url,
            [build(chosen)],
            endpoints=endpoints(chosen),
            loopback=[("127.0.0.1", server.port)],
            **wiring,
        )
        async with engine:
            engines.append(engine)
            yield Town(world, engine, server.url)


@contextmanager
def broken_writes(engine: Engine, table: str, operation: str, condition: str) -> Iterator[None]:
    """Let the database refuse one row, as a full or failing disk would, in the middle of a batch."""
    database = engine.app.database
    row = "OLD" if operation == "DELETE" else "NEW"
    wanted = condition.replace("row.", f"{row}.")
    if database.dialect == "sqlite":
        broken = [
            f"CREATE TRIGGER broken BEFORE {operation} ON {table} WHEN {wanted} "
            "BEGIN SELECT RAISE(ABORT, 'the disk is in trouble'); END"
        ]
        mended = ["DROP TRIGGER broken"]
    else:
        broken = [
            f"CREATE FUNCTION broken() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF {wanted} THEN "
            f"RAISE EXCEPTION 'the disk is in trouble' USING ERRCODE = '53100'; END IF; RETURN {row}; END $$",
            f"CREATE TRIGGER broken BEFORE {operation} ON {table} FOR EACH ROW EXECUTE FUNCTION broken()",
        ]
        mended = [f"DROP TRIGGER broken ON {table}", "DROP FUNCTION broken"]
    try:
        for statement in broken:
            with database.transaction() as tx:
                own_sql(tx, statement)
        yield
    finally:
        for statement in mended:
            with database.transaction() as tx:
                own_sql(tx, statement)


def own_rows(town: Town, text: str) -> list[tuple[Any, ...]]:
    with town.engine.app.database.reading() as tx:
        return own_sql(tx, text)


def attempts_of(town: Town) -> int:
    ((attempts,),) = own_rows(town, "SELECT count(*) FROM journal WHERE kind = 'attempt'")
    return int(attempts)


def writes_of(town: Town) -> int:
    return town.engine.store.status_views.status().pipelines["bitcoin_news"].shelf_writes_today


def run_of(runs: list[Any], source: str) -> Any:
    (run,) = [run for run in runs if run.source == f"bitcoin_news.{source}"]
    return run


# 1. A backlog


@contextmanager
def unwritable(engine: Engine) -> Iterator[None]:
    """Let the database refuse what is written, for as long as this lasts: another process holds it, or it is full."""
    if engine.app.database.dialect == "postgres":
        with broken_writes(engine, "journal", "INSERT", "1 = 1"):
            yield
        return
    other = apsw.Connection(engine.wiring.database_url.removeprefix("sqlite:///"))
    other.execute("BEGIN IMMEDIATE")
    try:
        yield
    finally:
        other.execute("ROLLBACK")
        other.close()


# 1. A backlog


async def test_twenty_new_articles_overtake_a_backlog_of_480(database_url: str):
    async with town_of(database_url, feeds=[], apitube_key=None, newsdata_page_size=50) as town:
        town.world.newsdata.plan = "professional"
        old = {town.publish(f"old{n:03}", hours_ago=3 + n / 100) for n in range(480)}
        (first,) = await town.engine.discover()
        assert (first.new, first.pages, first.credits) == (480, 10, 10)
        await town.engine.app.executor.write(town.engine.store.intake.merge, "bitcoin_news")
        town.engine.advance_clock(seconds=3600)

        new = {town.publish(f"new{n:02}") for n in range(20)}
        (second,) = await town.engine.discover()
        assert (second.new, second.pages) == (20, 1)
        await town.engine.work_until_idle()

        assert town.engine.states("article") == {"published": 500}
        cards = {card["id"]: card for card in town.engine.cards("articles")}
        assert set(cards) == old | new
        finished = sorted(cards, key=lambda i: cards[i]["processed_at"])
        last_new = max(finished.index(i) for i in new)
        assert last_new < 100, f"{last_new - 19} of the backlog were published before the last new article"
        first_old = min(finished.index(i) for i in old)
        assert first_old < last_new, "the backlog had no share while there was something new"


# 3. One life


async def test_one_article_from_both_providers_to_one_published_card(database_url: str):
    async with town_of(database_url) as town:
        key = town.publish("life", author="Jo Doe", provider_sentiment="negative", tags=["fees"])
        runs = await town.engine.discover()
        assert [run.error for run in runs] == [None, None, None]
        assert run_of(runs, "newsdata").new == 1
        assert (run_of(runs, "apitube").changed, run_of(runs, "apitube").unchanged) == (0, 1)
        await town.engine.work_until_idle()

        story = town.world.stories["life"]
        card = town.card("life")
        assert card["providers"] == {
            "newsdata": newsdata_id(story),
            "apitube": str(apitube_id(story)),
            "rss": town.world.link(story, town.url),
        }
        assert (card["sentiment"], card["sentiment_by"]) == ("negative", "apitube")
        assert (card["needs_summary"], card["needs_sentiment"]) == (False, False)
        assert card["summary"]
        assert town.world.page_requests["life"] == 1
        assert len(town.engine.cards("articles")) == 1

        view = town.engine.item("article", key)
        steps = [step.transition for row in view.life for step in row.steps]
        assert steps[-4:] == ["fetch", "summarize", "judge", "publish"]
        assert view.life[0].kind == "born"
        assert [hit.key for hit in town.engine.search("harbour")] == [key]

        again = await town.engine.discover()
        assert sum(run.new + run.changed for run in again) == 0


async def test_a_provider_that_comes_after_the_publication_joins_for_readers_alone(database_url: str):
    async with town_of(database_url) as town:
        key = town.publish("join", providers=["newsdata"], provider_sentiment="positive")
        town.publish("other", providers=["newsdata"])
        await town.engine.discover()
        await town.engine.work_until_idle()
        client = Client(serving(backend_of(town.engine.app, Server().model_dump(), loopback=True)))
        address = "/api/v1/bitcoin_news/articles"
        assert set((await client.get(f"{address}/{key}")).json["providers"]) == {"newsdata"}
        before, attempts, writes = town.card("join"), attempts_of(town), writes_of(town)

        town.world.change("join", providers=["newsdata", "apitube", "rss"])
        await town.engine.discover()
        await town.engine.work_until_idle()

        story = town.world.stories["join"]
        providers = {
            "newsdata": newsdata_id(story),
            "apitube": str(apitube_id(story)),
            "rss": town.world.link(story, town.url),
        }
        client = Client(serving(backend_of(town.engine.app, Server().model_dump(), loopback=True)))
        read = (await client.get(f"{address}/{key}")).json
        assert {name: read[name] for name in before} == before | {"providers": providers}
        listed = {card["id"]: card for card in (await client.get(address)).json["articles"]}
        assert listed[key]["providers"] == providers
        assert {len(card["providers"]) for card in listed.values()} == {1, 3}
        found = (await client.get("/api/v1/search?q=story+join")).json["hits"]
        assert {len(hit["card"]["providers"]) for hit in found if hit["id"] == key} <= {3}
        assert (town.card("join"), before["sentiment_by"]) == (before, "local")
        assert town.world.page_requests["join"] == 1
        assert attempts_of(town) == attempts
        assert writes_of(town) - writes == 2, "one for each run that brought something"
        for _ in range(3):
            assert sum(run.changed for run in await town.engine.discover()) == 0
        assert writes_of(town) - writes == 2


async def test_many_late_providers_cost_one_write_a_run(database_url: str):
    async with town_of(database_url, newsdata_page_size=10) as town:
        for n in range(25):
            town.publish(f"m{n:02}", hours_ago=n / 10)
        await town.engine.discover("bitcoin_news.newsdata")
        await town.engine.work_until_idle()
        writes = writes_of(town)
        (run,) = await town.engine.discover("bitcoin_news.apitube")
        assert (run.pages, run.unchanged) == (3, 25)
        assert writes_of(town) - writes == 1
        client = Client(serving(backend_of(town.engine.app, Server().model_dump(), loopback=True)))
        cards = (await client.get("/api/v1/bitcoin_news/articles")).json["articles"]
        assert [set(card["providers"]) for card in cards] == [{"newsdata", "apitube"}] * 25


async def test_what_providers_added_goes_with_the_article(database_url: str):
    async with town_of(database_url, feeds=[], max_stored_articles=2) as town:
        for n in range(2):
            town.publish(f"g{n}", hours_ago=9 - n)
        await town.engine.discover("bitcoin_news.newsdata")
        await town.engine.work_until_idle()
        await town.engine.discover("bitcoin_news.apitube")
        for n in range(2):
            town.publish(f"h{n}", hours_ago=1 - n / 10)
        await town.engine.discover("bitcoin_news.newsdata")
        await town.engine.work_until_idle()
        await town.engine.discover("bitcoin_news.apitube")
        entry = town.engine.store.shelf.get("bitcoin_news", "gathered:articles")
        assert entry is not None
        assert set(msgspec.json.decode(entry.value)) == {town.id_of("h0"), town.id_of("h1")}


async def test_a_new_article_is_on_the_shelf_at_the_merge(database_url: str):
    async with town_of(database_url) as town:
        key = town.publish("fresh")
        await town.engine.discover()
        await town.engine.app.executor.write(town.engine.store.intake.merge, "bitcoin_news")
        card = town.card("fresh")
        assert (card["id"], card["needs_summary"], card["needs_sentiment"]) == (key, True, True)
        assert (card["summary"], card["processed_at"]) == (None, None)
        assert town.engine.search("harbour") == []


async def test_the_shelf_is_written_twice_an_article_and_counted(database_url: str):
    async with town_of(database_url, feeds=[], apitube_key=None) as town:
        for n in range(5):
            town.publish(f"w{n}")
        await town.engine.discover()
        await town.engine.work_until_idle()
        status = town.engine.store.status_views.status().pipelines["bitcoin_news"]
        assert status.shelf_writes_limit == 1000
        assert status.shelf_writes_today == 5 + 1 + 5  # first cards, the id index, full cards
        await town.engine.discover()
        await town.engine.work_until_idle()
        assert town.engine.store.status_views.status().pipelines["bitcoin_news"].shelf_writes_today == 11


async def test_articles_that_leave_the_index_are_trimmed_and_not_born_again(database_url: str):
    async with town_of(database_url, feeds=[], apitube_key=None, max_stored_articles=5) as town:
        for n in range(8):
            town.publish(f"t{n}", hours_ago=10 - n)
        await town.engine.discover()
        await town.engine.work_until_idle()
        assert len(town.engine.items("article")) == 5
        assert await town.engine.tidy() == {}
        assert {card["title"] for card in town.engine.cards("articles")} == {f"Bitcoin story t{n}" for n in range(3, 8)}
        assert town.engine.app.health.facts().gaps["bitcoin_news"] == frozenset()
        assert len(town.engine.cards("articles")) == 5
        (again,) = await town.engine.discover()
        assert (again.new, again.changed, again.unchanged) == (0, 0, 8)
        await town.engine.work_until_idle()
        assert len(town.engine.items("article")) == 5


async def test_status_and_run_show_the_log(database_url: str):
    async with town_of(database_url, feeds=[], apitube_key=None) as town:
        for n in range(12):
            town.publish(f"s{n}")
        (run,) = await town.engine.discover()
        assert (run.found, run.new, run.pages, run.credits, run.trimmed) == (12, 12, 2, 2, 0)
        before = town.engine.store.status_views.status().pipelines["bitcoin_news"].intake
        assert (before.unmerged, before.checkpoint, before.total) == (12, 0, 12)
        await town.engine.work_until_idle()
        after = town.engine.store.status_views.status().pipelines["bitcoin_news"].intake
        assert (after.unmerged, after.total) == (0, 12)
        assert after.checkpoint > 0
        town.engine.advance_clock(seconds=8 * 86_400)
        (later,) = await town.engine.discover()
        assert later.trimmed == 12


# 2. Failures: the store


async def test_a_write_that_fails_in_the_middle_of_a_run_loses_nothing(database_url: str):
    async with town_of(database_url, feeds=[], apitube_key=None) as town:
        ids = [town.publish(f"b{n:02}", hours_ago=n / 10) for n in range(25)]
        with broken_writes(town.engine, "intake", "INSERT", f"row.key = '{ids[14]}'"):
            (failed,) = await town.engine.discover()
            assert failed.error
            await town.engine.work_until_idle()
            assert town.engine.states("article") == {"published": 10}
        (healed,) = await town.engine.discover()
        assert (healed.error, healed.new, healed.unchanged) == (None, 15, 10)
        await town.engine.work_until_idle()
        assert town.engine.states("article") == {"published": 25}


async def test_a_merge_that_fails_moves_no_checkpoint(database_url: str):
    async with town_of(database_url, feeds=[], apitube_key=None) as town:
        ids = [town.publish(f"m{n}") for n in range(5)]
        await town.engine.discover()
        with (
            broken_writes(town.engine, "items", "INSERT", f"row.key = '{ids[2]}'"),
            pytest.raises(Exception, match=r"disk|room"),
        ):
            town.engine.store.intake.merge("bitcoin_news")
        assert town.engine.store.intake.unmerged("bitcoin_news") == 5
        assert town.engine.items("article") == []
        await town.engine.work_until_idle()
        assert town.engine.states("article") == {"published": 5}


async def test_a_failed_trim_of_the_log_is_made_up_for_later(database_url: str):
    async with town_of(database_url, feeds=[], apitube_key=None) as town:
        town.publish("early")
        await town.engine.discover()
        await town.engine.work_until_idle()
        town.engine.advance_clock(seconds=8 * 86_400)
        town.publish("late")
        with broken_writes(town.engine, "intake", "DELETE", "1 = 1"):
            (run,) = await town.engine.discover()
        (again,) = await town.engine.discover()
        assert run.new + again.new == 1
        assert run.trimmed + again.trimmed == 1
        await town.engine.work_until_idle()
        assert town.card("late")["needs_summary"] is False


async def test_a_failed_trim_of_the_table_is_made_up_for_later(database_url: str):
    async with town_of(database_url, feeds=[], apitube_key=None, max_stored_articles=3) as town:
        for n in range(5):
            town.publish(f"x{n}", hours_ago=10 - n)
        await town.engine.discover()
        with broken_writes(town.engine, "items", "DELETE", "1 = 1"):
            await town.engine.work_until_idle()
            with pytest.raises(Exception, match=r"disk|room"):
                await town.engine.tidy()
        assert len(town.engine.items("article")) == 5
        assert len(town.engine.app.health.facts().gaps["bitcoin_news"]) == 2
        watching = town.engine.app.alert_loop()
        await watching.check()
        town.engine.advance_clock(seconds=181)
        await watching.check()
        assert "index divergence" in {alert.name for alert in town.engine.store.status_views.status().alerts}
        assert await town.engine.tidy() == {"retired:bitcoin_news": 2}
        assert len(town.engine.items("article")) == 3


async def test_a_damaged_queue_is_rebuilt_from_the_log(database_url: str):
    async with town_of(database_url, feeds=[], apitube_key=None) as town:
        for n in range(6):
            town.publish(f"q{n}")
        await town.engine.discover()
        await town.engine.work_until_idle()
        with town.engine.app.database.transaction() as tx:
            for table in ("links", "journal", "bodies", "shelf", "items"):
                own_sql(tx, f"DELETE FROM {table}", {})
        assert town.engine.items("article") == []

        town.engine.store.intake.rewind("bitcoin_news")
        await town.engine.work_until_idle()
        assert town.engine.states("article") == {"published": 6}
        assert len(town.engine.cards("articles")) == 6


@pytest.mark.parametrize("checkpoint", [0, 10**12])
async def test_a_damaged_checkpoint_repeats_and_loses_nothing(database_url: str, checkpoint: int):
    async with town_of(database_url, feeds=[], apitube_key=None) as town:
        for n in range(6):
            town.publish(f"c{n}")
        await town.engine.discover()
        await town.engine.work_until_idle()
        with town.engine.app.database.transaction() as tx:
            tx.run("move_checkpoint", pipeline="bitcoin_news", checkpoint=checkpoint)
        town.publish("after")
        await town.engine.discover()
        await town.engine.work_until_idle()
        assert town.engine.states("article") == {"published": 7}
        assert set(town.world.page_requests.values()) == {1}


# 2. Failures: the AI


async def test_a_store_that_cannot_be_written_holds_work_back_and_loses_none(
    database_url: str, caplog: pytest.LogCaptureFixture
):
    async with town_of(database_url, feeds=[], apitube_key=None) as town:
        for n in range(6):
            town.publish(f"d{n}")
        await town.engine.discover()
        await town.engine.app.executor.write(town.engine.store.intake.merge, "bitcoin_news")
        with unwritable(town.engine):
            working = asyncio.create_task(town.engine.work_until_idle())
            await until(lambda: bool(TROUBLE & {record.getMessage() for record in caplog.records}))
            assert town.engine.states("article") == {"found": 6}
        async with asyncio.timeout(60):
            await working
        assert town.engine.states("article") == {"published": 6}
        assert set(town.world.page_requests.values()) == {1}


# 2. Failures: the AI


async def test_an_ai_that_is_down_costs_no_page_and_no_article(database_url: str):
    endpoint = AiEndpoint()
    async with (
        StandIn(ai_app(endpoint)) as ai,
        town_of(database_url, ai_url=f"{ai.url}/v1", feeds=[], apitube_key=None) as town,
    ):
        town.publish("patient")
        endpoint.script(*["server_error"] * 200)
        await town.engine.discover()
        await town.until_parked("patient")
        row = town.row("patient")
        assert (row.state, row.standing) == ("fetched", "parked")
        assert row.last_error.startswith("error: ")
        assert "(attempt 5/5)" in row.last_error
        assert town.card("patient")["needs_summary"] is True

        endpoint.faults.clear()
        town.engine.advance_clock(seconds=6 * 3600)
        await town.engine.work_until_idle()
        card = town.card("patient")
        assert (card["needs_summary"], card["summary_by"], card["summary_error"]) == (False, "stand-in", None)
        assert town.world.page_requests["patient"] == 1


# 2. Failures: pages


@pytest.mark.parametrize("fault", ["gone", "hangs", "huge", "empty"])
async def test_a_page_that_cannot_be_read_is_told_by_its_words_and_tried_again(database_url: str, fault: str):
    async with town_of(database_url, feeds=[], apitube_key=None) as town:
        town.publish("bad", fault=fault)
        town.publish("good")
        await town.engine.discover()
        for _ in range(12):
            await town.engine.work_until_idle()
            if town.row("bad").state == "published":
                break
            town.engine.advance_clock(seconds=1100)
        tries = 1 if fault in ("gone", "huge") else 5
        assert town.world.page_requests["bad"] == tries
        card = town.card("bad")
        assert (card["needs_summary"], card["needs_sentiment"], card["summary_from"]) == (False, False, "words")
        assert "What happened in bad" in card["summary"]
        assert card["sentiment"] is not None
        assert (card["content_attempts"], bool(card["content_error"])) == (tries, True)
        assert town.card("good")["summary_from"] == "page"
        assert town.card("good")["content_error"] is None

        town.heal("bad")
        town.engine.advance_clock(seconds=7 * 3600)
        await town.engine.work_until_idle()
        card = town.card("bad")
        assert (card["summary_from"], card["content_error"]) == ("page", None)
        assert card["content_attempts"] == tries + 1
        assert town.row("bad").state == "published"


async def test_a_page_that_stays_away_is_tried_daily_and_costs_no_answer(database_url: str):
    async with town_of(database_url, feeds=[], apitube_key=None) as town:
        town.publish("bad", fault="gone")
        await town.engine.discover()
        for hours in (0, 7, 25, 25):
            town.engine.advance_clock(seconds=hours * 3600)
            await town.engine.work_until_idle()
        assert town.world.page_requests["bad"] == 4
        assert town.card("bad")["content_attempts"] == 4
        assert town.row("bad").state == "published"


async def test_a_page_that_times_out_twice_is_published_with_its_attempts(database_url: str):
    async with town_of(database_url, feeds=[], apitube_key=None) as town:
        town.publish("slow", fault="times_out_twice")
        await town.engine.discover()
        await town.engine.work_through(rounds=10)
        assert town.card("slow")["content_attempts"] == 3


async def test_a_page_in_the_wrong_charset_is_read_right(database_url: str):
    async with town_of(database_url, feeds=[], apitube_key=None) as town:
        words = [
            f"Café owners in Zürich paid {n} suppliers in coins, the naïve survey says of the week." for n in range(9)
        ]
        key = town.publish("charset", fault="wrong_charset", paragraphs=words)
        await town.engine.discover()
        await town.engine.work_until_idle()
        assert "Café owners in Zürich" in town.engine.item("article", key).accepted["text"]


# One article, three providers


async def test_a_second_and_third_provider_cost_no_attempt_and_no_write_an_article(database_url: str):
    async with town_of(database_url) as town:
        for n in range(12):
            town.publish(f"p{n:02}")
        sources = sorted(town.engine.store.source_list.current(), reverse=True)
        for name in sources:  # the outlet's own feed first, then NewsData.io, then APITube
            await town.engine.discover(name)
            await town.engine.work_until_idle()
        assert attempts_of(town) == 12 * 4
        # First cards, the id index, full cards; and for each later run one record of who lists them too.
        assert writes_of(town) == 12 + 1 + 12 + 2
        assert max(town.world.page_requests.values()) == 1


async def test_a_provider_that_speaks_before_the_judgment_is_heard(database_url: str):
    async with town_of(database_url) as town:
        town.publish("heard", provider_sentiment="negative")
        for name in ("bitcoin_news.newsdata", "bitcoin_news.apitube"):
            await town.engine.discover(name)
        await town.engine.work_until_idle()
        card = town.card("heard")
        assert (card["sentiment"], card["sentiment_by"]) == ("negative", "apitube")
        assert set(card["providers"]) == {"newsdata", "apitube"}


async def test_three_cut_off_runs_in_a_row_are_an_alert(database_url: str):
    async with town_of(database_url, feeds=[], apitube_key=None, max_pages=1) as town:
        watching = town.engine.app.alert_loop()
        for look in range(3):
            for n in range(25):
                town.publish(f"l{look}-{n:02}", hours_ago=2 - look + n / 100)
            (run,) = await town.engine.discover()
            assert run.ended == "incomplete"
            assert "max_pages" in (run.note or "")
            await watching.check()
            fired = {alert.name for alert in town.engine.store.status_views.status().alerts}
            assert ("source incomplete" in fired) == (look == 2)
        (source,) = town.engine.store.status_views.status().pipelines["bitcoin_news"].sources
        assert (source.health, source.incomplete_runs) == ("incomplete", 3)


async def test_700_found_with_room_for_500_fetch_no_more_than_stay(database_url: str):
    async with town_of(database_url, feeds=[], apitube_key=None, max_stored_articles=20) as town:
        for n in range(28):
            town.publish(f"n{n:02}", hours_ago=n / 10)
        await town.engine.discover()
        await town.engine.work_until_idle()
        assert sum(town.world.page_requests.values()) == 20
        assert len(town.engine.items("article")) == 20


# 2. Failures: providers


async def test_a_provider_out_of_credits_stops_nobody_else(database_url: str):
    async with town_of(database_url) as town:
        town.publish("paid")
        town.world.newsdata.credits = town.world.apitube.credits = 0
        runs = await town.engine.discover()
        assert "exhausted" in run_of(runs, "newsdata").note
        assert "no points" in run_of(runs, "apitube").note
        assert sum(run.new for run in runs) == 1
        assert (run_of(runs, "newsdata").credits, run_of(runs, "apitube").credits) == (0, 0)
        await town.engine.work_until_idle()
        assert set(town.card("paid")["providers"]) == {"rss"}


async def test_credits_are_counted_by_run_and_by_day(database_url: str):
    async with town_of(database_url, feeds=[], apitube_key=None, newsdata_credits_per_day=3) as town:
        for n in range(12):
            town.publish(f"c{n:02}", hours_ago=n / 10)
        (first,) = await town.engine.discover()
        (second,) = await town.engine.discover()
        (third,) = await town.engine.discover()
        assert (first.credits, second.credits, third.credits) == (2, 1, 0)
        assert "budget of 3 credits" in (third.note or "")
        assert town.world.newsdata.requests == 3
        town.engine.advance_clock(seconds=86_400)
        (tomorrow,) = await town.engine.discover()
        assert tomorrow.credits == 1


@pytest.mark.parametrize(("source", "path"), [("newsdata", NEWSDATA), ("apitube", APITUBE)])
async def test_a_provider_answering_html_fails_alone_and_recovers(database_url: str, source: str, path: str):
    async with town_of(database_url, feeds=[]) as town:
        town.publish("blocked")
        town.world.faults.script(path, HTMLResponse("<html>Attention required</html>"))
        runs = await town.engine.discover()
        assert "HTML" in run_of(runs, source).error
        assert sum(1 for run in runs if run.error) == 1
        assert run_of(await town.engine.discover(), source).error is None
        await town.engine.work_until_idle()
        assert set(town.card("blocked")["providers"]) == {"newsdata", "apitube"}
