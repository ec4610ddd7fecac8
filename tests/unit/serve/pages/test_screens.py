"""What the screens say of things: in words people use, once, and the same everywhere."""

from __future__ import annotations

import re
from html import unescape

import msgspec
import pytest
from tests.unit.serve.asgi import Client
from tests.unit.serve.world import CHANNEL, HOUR_MS, NOW_MS, Article, Story, World, an_article, article_finding

from tidings.model.item_views import ItemRow
from tidings.model.publication import Collection
from tidings.model.views import IntakeView, PipelineView, RunView, SourceView, StatusView
from tidings.serve.api.readable_cards import ReadableCard
from tidings.serve.application import build
from tidings.serve.markup import clean_html, host_of
from tidings.serve.pages.charts import Bar, sparkline, stacked_bars
from tidings.serve.pages.collection import bars_over_time
from tidings.serve.pages.needs import needs_a_person
from tidings.serve.pages.now import health
from tidings.serve.pages.phrases import doing, paced, run_words, told, when

BROWSER = {"accept": "text/html", "sec-fetch-site": "same-origin"}


def said(page: str) -> str:
    """Return the words of a page."""
    return " ".join(unescape(re.sub("<[^>]*>", " ", page)).split())


async def words(client: Client, path: str) -> str:
    return said((await client.get(path, headers=BROWSER)).text.split("<main", 1)[1])


def break_stories(world: World, *numbers: int) -> None:
    """Let stories become dead letters."""
    world.add_stories([Story(id=number, type="story") for number in numbers], fate="it broke")


def a_row(**changes: object) -> ItemRow:
    row = ItemRow(
        id=1, pipeline="hacker_news", kind="item", key="1", title="One", state="found", standing="open", attempts=0
    )
    return msgspec.structs.replace(row, **changes)


def a_source(**changes: object) -> SourceView:
    view = SourceView(
        name="bitcoin_news.rss", pipeline="bitcoin_news", health="healthy", schedule="every 1 min",
        last_success_at=NOW_MS - 1000, next_check_at=NOW_MS + 59_000,
        last_run=RunView(source="bitcoin_news.rss", started_at=NOW_MS - 1000, found=5, new=5, pages=1),
    )  # fmt: skip
    return msgspec.structs.replace(view, **changes)


async def test_one_dead_letter_is_called_by_its_number_and_many_by_their_cause(world: World) -> None:
    client = Client(build(world.backend(is_demo=True)))
    assert "tidings dead revive 7" in await words(client, "/dead-letters")

    break_stories(world, 80, 81)

    page = await words(Client(build(world.backend(is_demo=True))), "/dead-letters")
    assert "Revive all 2 tidings dead revive --pipeline hacker_news --cause 'it broke'" in page
    assert "Purge all 2 for good tidings dead purge --pipeline hacker_news --cause 'it broke'" in page


async def test_every_page_asks_for_as_many_as_the_first_one_lists(world: World) -> None:
    break_stories(world, 80, 81)
    client = Client(build(world.backend(is_demo=True)))

    assert "2 need you." in await words(client, "/")
    for path in ("/", "/items", "/alerts"):
        assert "<title>2 need you · " in (await client.get(path, headers=BROWSER)).text
    assert re.search(r"Dead letters\s*<span class=\"asking num\">3<", (await client.get("/", headers=BROWSER)).text)


@pytest.mark.parametrize(
    ("view", "asks"),
    [
        (a_source(), False),
        (a_source(health="failing", failures=2), False),
        (a_source(health="failing", failures=3), True),
        (a_source(health="failing", failures=1, last_success_at=None), True),
        (a_source(health="silent"), True),
        (a_source(health="paused"), True),
        (a_source(health="waiting"), False),
    ],
)
def test_a_source_that_will_be_asked_again_needs_nobody(view: SourceView, asks: bool) -> None:
    assert needs_a_person(view) is asks


async def test_what_is_paused_is_asked_for_once_where_it_can_be_resumed(world: World) -> None:
    world.store.switches.pause("pipeline:bitcoin_news", reason="a holiday")
    world.store.switches.pause(f"channel:{CHANNEL}", reason="the webhook was refused")

    page = await words(Client(build(world.backend(is_demo=True))), "/")

    assert "paused pipeline Bitcoin news" in page
    assert "tidings resume --pipeline bitcoin_news" in page
    assert "paused source" not in page
    assert f"paused channel {CHANNEL} the webhook was refused" in page


async def test_the_strip_tells_dead_and_parked_items_from_those_on_their_way(world: World) -> None:
    for number, fate in ((30, "die"), (31, "die"), (32, "park"), (33, "hold")):
        world.find([article_finding(an_article(number), 1, fate)])
        if fate != "hold":
            world.ground.settle(world.ground.claim_one(lane="fetch"))

    page = (await Client(build(world.backend())).get("/", headers=BROWSER)).text

    strip = said(re.findall(r'<ul class="strip".*?</ul>', page, re.DOTALL)[0])
    assert strip == "3 found 2 found, dead 1 found, parked 1 fetched 8 published"
    assert "/items?pipeline=bitcoin_news&amp;state=found&amp;standing=dead" in page


async def test_the_workflow_marks_dead_letters_where_they_lie(world: World) -> None:
    page = (await Client(build(world.backend())).get("/workflows/hacker_news", headers=BROWSER)).text

    assert 'aria-label="failed: 1 items, 1 of them dead letters"' in page
    assert "◆ dead letters" in page


async def test_a_young_history_is_shown_by_the_hour_and_an_old_one_by_the_day(world: World) -> None:
    chosen = re.compile(r'<a href="\?span=(\w+)" aria-current="true">')
    for age_hours, span in ((1, "hour"), (12, "day")):
        world.measure(hacker_news={NOW_MS - age_hours * HOUR_MS: 5})
        page = (await Client(build(world.backend())).get("/workflows/hacker_news", headers=BROWSER)).text
        assert chosen.findall(page) == [span]


async def test_a_comment_is_listed_by_its_words_and_a_title_as_it_is_written(world: World) -> None:
    world.add_story(Story(id=80, type="story", title="She said <i>I know</i>.<p>And left"))
    world.add_article(Article(id="a9", title="What <b> means", link="https://news.example/9"))

    page = await words(Client(build(world.backend())), "/items")

    assert "She said I know. And left" in page
    assert "What <b> means" in page


@pytest.mark.parametrize(
    ("excerpt", "is_shown"),
    [
        ("Salt The salt on the glass is a letter from the weather, and nobody can read it again. A haze is…", False),
        ("The salt on the glass is a letter from the weather, and nobody can read it again.", False),
        ("Something that the summary does not begin with, whatever it says.", True),
        ("The salt on the glass is a letter from the weather, and nobody can read it again." + " More." * 60, True),
    ],
)
def test_an_excerpt_that_says_the_summary_again_is_left_out(excerpt: str, is_shown: bool) -> None:
    summary = "The salt on the glass is a letter from the weather, and nobody can read it again."
    card = {"title": "Salt", "summary": summary, "excerpt": excerpt}
    collection = Collection(name="entries", singular="entry", kind="entry", card=Article, title="Entries")

    assert (ReadableCard("feeds", collection, "1", card).more is not None) is is_shown


async def test_a_hit_that_only_shows_its_title_shows_it_once(world: World) -> None:
    world.add_story(Story(id=70, type="story", title="Lighthouse for sale", by="ada", url="https://light.example/"))

    page = await words(Client(build(world.backend())), "/search?q=lighthouse")

    assert page.count("Lighthouse for sale") == 1
    assert "light.example" in page


@pytest.mark.parametrize(
    ("row", "word"),
    [
        (a_row(), "waiting"),
        (a_row(lease_until=NOW_MS + 1000), "at work"),
        (a_row(state="published", due_at=NOW_MS + 1000), "scheduled"),
        (a_row(due_at=NOW_MS + 1000, last_error="it hung", attempts=1), "tries again"),
        (a_row(standing="dead"), "dead letter"),
        (a_row(standing="waits"), "waits for you"),
        (a_row(standing="done"), "done"),
    ],
)
def test_how_an_item_is_doing_is_told_in_a_word(row: ItemRow, word: str) -> None:
    assert doing(row, NOW_MS)[1] == word


def test_what_is_due_and_late_is_due_now() -> None:
    assert said(when(NOW_MS - 5000, NOW_MS)) == "5 s ago"
    assert said(when(NOW_MS - 5000, NOW_MS, due=True)) == "now"
    assert said(when(NOW_MS + 5000, NOW_MS, due=True)) == "in 5 s"


def test_exact_times_in_a_sentence_are_told_as_people_do() -> None:
    text = "Next: close or `pass`, due 2026-09-21T14:13:25.000Z."
    assert said(told(text, NOW_MS)) == "Next: close or pass , due in 5 s ."
    assert said(told("due 2027-06-24T17:00:00.000Z.", NOW_MS)) == "due on 24 Jun 2027."
    assert said(told("due 2027-99-24T17:00:00Z <b>", NOW_MS)) == "due 2027-99-24T17:00:00Z <b>"


def test_a_run_is_told_without_what_it_did_not_bring() -> None:
    run = RunView(source="s", started_at=0, found=25, new=6, changed=15, unchanged=4, pages=3)
    assert run_words(run) == "25 found (6 new, 15 changed, 4 unchanged), 3 pages"
    assert run_words(RunView(source="s", started_at=0, pages=1)) == "found nothing, 1 page"


def test_a_source_that_wishes_to_be_asked_less_often_is_said_to() -> None:
    assert paced(a_source()) == "every 1 min"
    assert (
        paced(a_source(next_check_at=NOW_MS + HOUR_MS)) == "every 1 min; the next look waits 1 h, as the source wishes"
    )
    assert paced(a_source(schedule="cron 5 4 * * *", next_check_at=NOW_MS + HOUR_MS)) == "cron 5 4 * * *"


async def test_the_sample_world_asks_nobody_to_sign_in() -> None:
    with World(tokens={}) as world:
        demo, real = Client(build(world.backend(is_demo=True))), Client(build(world.backend()))

        assert "every button works without signing in" in await words(demo, "/login")
        assert "There is no token yet" in await words(real, "/login")
        assert "/login?next" not in (await demo.get("/nowhere", headers=BROWSER)).text
        assert "/login?next" in (await real.get("/nowhere", headers=BROWSER)).text


def test_a_chart_of_days_has_hardly_more_days_than_there_is_news() -> None:
    day = 24 * HOUR_MS

    assert len(bars_over_time([(NOW_MS - 3 * day, "positive")] * 9, ("positive",), NOW_MS)) == 14
    assert len(bars_over_time([(NOW_MS - 20 * day, "positive")] * 9, ("positive",), NOW_MS)) == 21
    assert len(bars_over_time([(NOW_MS - 90 * day, "positive")] * 9, ("positive",), NOW_MS)) == 30
    assert len(bars_over_time([(NOW_MS - HOUR_MS, "positive")] * 9, ("positive",), NOW_MS)) == 24


def test_the_ends_of_a_chart_are_named_at_its_ends() -> None:
    bars = [Bar(str(number), {"neutral": number}) for number in range(1, 31)]

    ticks = re.findall(r"<span>(\d+)</span>", stacked_bars(bars, ("neutral",), "x"))

    assert ticks[0] == "1"
    assert ticks[-1] == "30"
    assert len(ticks) == 5


def test_a_small_chart_has_a_bar_for_every_value_that_is_one() -> None:
    assert sparkline([0, 3, 0, 1], "x").count("<rect") == 2
    assert "nothing yet" in sparkline([0, 0], "x")


def test_a_loopback_address_is_not_shown_as_a_place() -> None:
    assert host_of("https://www.news.example/a") == "news.example"
    assert host_of("http://127.0.0.1:8001/news.example/a") is None


@pytest.mark.parametrize(
    ("html", "shown"),
    [
        ("One<p>Two", "<p>One</p><p>Two</p>"),
        ("<p>One</p>", "<p>One</p>"),
        ("One <i>word</i>", "<p>One <i>word</i></p>"),
        ("One<pre>x</pre>", "<p>One</p><pre>x</pre>"),
        ("", ""),
    ],
)
def test_the_first_paragraph_of_a_comment_is_one_too(html: str, shown: str) -> None:
    assert clean_html(html) == shown


@pytest.mark.parametrize(
    ("settled", "last_processed_at", "sentence"),
    [
        (0, None, "Healthy. 0 steps in the last hour, nothing waits, nothing needs you."),
        (0, NOW_MS - 1000, "Healthy. The first steps are being made, nothing waits, nothing needs you."),
        (0, NOW_MS - 5 * HOUR_MS, "Healthy. 0 steps in the last hour, nothing waits, nothing needs you."),
        (7, NOW_MS - 1000, "Healthy. 7 steps in the last hour, nothing waits, nothing needs you."),
    ],
)
def test_what_is_not_counted_yet_is_not_told_as_nothing(
    settled: int, last_processed_at: int | None, sentence: str
) -> None:
    intake = IntakeView(0, 0, 0)
    view = PipelineView(states={}, intake=intake, settled_last_hour=settled, last_processed_at=last_processed_at)

    assert health(StatusView({"feeds": view}, [], NOW_MS), 0)[1] == sentence
