"""The sources over real HTTP, against the stand-ins."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest
from pydantic import SecretStr
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from tests.unit.pipelines.bitcoin_news.conftest import NOW_MS, Town

from tidings.discover.feed import NotAFeed
from tidings.model.errors import Misconfigured, Permanent, SlowDown, Transient
from tidings.model.pipeline import Page, Run, Source
from tidings.pipelines.bitcoin_news.body import Article
from tidings.pipelines.bitcoin_news.source_apitube import ApiTube
from tidings.pipelines.bitcoin_news.source_newsdata import NewsData
from tidings.pipelines.bitcoin_news.source_rss import OutletFeed
from tidings.sample.news import APITUBE, NEWSDATA
from tidings.sample.news_apis import newsdata_id


class Naps:
    """A sleep that takes no time and remembers itself."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.seconds.append(seconds)


def newsdata(town: Town, **options: Any) -> NewsData:
    given: dict[str, Any] = {
        "key": SecretStr(town.world.newsdata.key),
        "base_url": town.url + NEWSDATA,
        "every_seconds": 3600.0,
        "max_pages": 15,
        "page_size": 10,
        "credits_per_day": 200,
        "language": "en",
        "keep_days": 60.0,
        "sleep": Naps(),
    }
    return NewsData(**given | options)


def apitube(town: Town, **options: Any) -> ApiTube:
    given: dict[str, Any] = {
        "key": SecretStr(town.world.apitube.key),
        "base_url": town.url + APITUBE,
        "every_seconds": 3600.0,
        "max_pages": 15,
        "page_size": 10,
        "credits_per_day": 100,
        "language": "en",
        "keep_days": 60.0,
        "sleep": Naps(),
    }
    return ApiTube(**given | options)


def outlet(town: Town, url: str | None = None) -> OutletFeed:
    return OutletFeed("bitcoin_news.rss.post.example", url or f"{town.url}/post.example/rss", 3600.0, 60.0)


async def run(source: Source, town: Town, mark: Any = None, cursor: Any = None) -> list[Page]:
    told = Run(source=source.name, now_ms=town.clock.now_ms(), mark=mark, cursor=cursor, is_first=mark is None)
    return [page async for page in source.pages(told, town.kit)]


def fill(town: Town, count: int, start: int = 0, **fields: Any) -> None:
    for n in range(start, start + count):
        given: dict[str, Any] = {
            "outlet": "post",
            "path": f"/n/{n}",
            "title": f"Bitcoin headline {n}",
            "description": f"Words {n}.",
        }
        town.world.add(id=f"post-{n:03}", published_ms=NOW_MS - 1_000_000 + n * 1000, **given | fields)


def articles(pages: list[Page]) -> list[Article]:
    return [msgspec.json.decode(f.payload, type=Article) for page in pages for f in page.findings]


@pytest.mark.parametrize("make", [newsdata, apitube])
async def test_pages_are_read_newest_first_to_the_end(town: Town, make):
    fill(town, 25)
    pages = await run(make(town), town)
    assert [len(page.findings) for page in pages] == [10, 10, 5]
    assert [a.title for a in articles(pages)] == [f"Bitcoin headline {n}" for n in range(24, -1, -1)]
    assert sum(page.credits for page in pages) == 3
    assert town.ledger.sheet(f"credits:{make(town).name}").spent == 3


@pytest.mark.parametrize(("make", "pages_read"), [(newsdata, 3), (apitube, 3)])
async def test_no_more_pages_than_allowed(town: Town, make, pages_read: int):
    fill(town, 100)
    assert len(await run(make(town, max_pages=3), town)) == pages_read


@pytest.mark.parametrize("make", [newsdata, apitube])
async def test_the_second_run_stops_at_what_the_first_had_seen(town: Town, make):
    fill(town, 25)
    first = await run(make(town), town)
    fill(town, 3, start=25)
    second = await run(make(town), town, mark=first[-1].mark)
    assert len(second) == 1
    assert [a.title for a in articles(second)][:4] == [f"Bitcoin headline {n}" for n in (27, 26, 25, 24)]


@pytest.mark.parametrize("make", [newsdata, apitube])
async def test_a_withdrawn_newest_article_does_not_hide_the_mark(town: Town, make):
    fill(town, 25)
    first = await run(make(town), town)
    town.world.remove("post-024")
    assert len(await run(make(town), town, mark=first[-1].mark)) == 1


async def test_what_another_provider_has_seen_stops_nobody(town: Town):
    fill(town, 25)
    first = await run(newsdata(town), town)
    assert len(await run(apitube(town), town, mark=None)) == 3
    assert len(first) == 3


async def test_an_empty_answer_keeps_the_mark(town: Town):
    (page,) = await run(newsdata(town), town, mark=["known"])
    assert page.mark == ["known"]
    assert page.findings == ()
    (page,) = await run(apitube(town), town, mark=["known"])
    assert page.mark == ["known"]
    assert page.credits == 0


async def test_an_article_pushed_down_between_two_pages_comes_once(town: Town):
    fill(town, 15)
    source = newsdata(town)
    pages = []
    told = Run(source=source.name, now_ms=town.clock.now_ms())
    async for page in source.pages(told, town.kit):
        pages.append(page)
        if len(pages) == 1:
            fill(town, 2, start=15)
    keys = [finding.key for page in pages for finding in page.findings]
    assert len(keys) == len(set(keys)) == 15


async def test_newsdata_sends_its_key_in_a_header_and_waits_between_pages(town: Town):
    fill(town, 15)
    source = newsdata(town)
    await run(source, town)
    asked = [path for _, path in town.world.faults.requests]
    assert len(asked) == 2
    assert not any(town.world.newsdata.key in path for path in asked)
    assert source.sleep.seconds == [1.0]  # type: ignore[attr-defined]
    assert town.world.newsdata.key not in repr(source)


async def test_the_budget_of_the_day_ends_a_run_without_its_mark(town: Town):
    fill(town, 45)
    source = newsdata(town, credits_per_day=2)
    reading = source.pages(Run(source=source.name, now_ms=NOW_MS), town.kit)
    pages = [await anext(reading), await anext(reading)]
    with pytest.raises(SlowDown, match="budget of 2 credits"):
        await anext(reading)
    assert [len(page.findings) for page in pages] == [10, 10]
    assert town.world.newsdata.requests == 2
    town.clock.advance(seconds=86_400)
    assert len(await run(newsdata(town, credits_per_day=5), town)) == 5


async def test_a_provider_out_of_credits_asks_us_to_wait(town: Town):
    fill(town, 25)
    town.world.newsdata.credits = 1
    town.world.apitube.credits = 0
    with pytest.raises(SlowDown, match="exhausted"):
        await run(newsdata(town), town)
    with pytest.raises(SlowDown, match="no points"):
        await run(apitube(town), town)
    assert town.ledger.sheet("credits:bitcoin_news.newsdata").spent == 1
    assert town.ledger.sheet("credits:bitcoin_news.apitube").spent == 0
    assert town.ledger.sheet("credits:bitcoin_news.apitube").reserved == 0


@pytest.mark.parametrize(("make", "path"), [(newsdata, NEWSDATA), (apitube, APITUBE)])
async def test_a_wrong_key_needs_a_person(town: Town, make, path: str):
    with pytest.raises(Misconfigured) as raised:
        await run(make(town, key=SecretStr("canary")), town)
    assert "canary" not in str(raised.value)


@pytest.mark.parametrize(("make", "path"), [(newsdata, NEWSDATA), (apitube, APITUBE)])
@pytest.mark.parametrize(
    ("fault", "error"),
    [
        (HTMLResponse("<html>Attention required</html>"), Transient),
        (HTMLResponse("<html>Bad gateway</html>", 502), Transient),
        (Response(b"", 200), Transient),
        (JSONResponse({"status": "success", "results": None}), Transient),
        (JSONResponse({"status": "ok", "results": None}), Transient),
        (Response(b"{" * 10, 200), Transient),
        (HTMLResponse("slow down", 429), SlowDown),
    ],
)
async def test_misbehavior_of_a_provider_is_the_right_error(town: Town, make, path: str, fault, error):
    fill(town, 5)
    town.world.faults.script(path, fault)
    with pytest.raises(error):
        await run(make(town), town)
    assert len(await run(make(town), town)) == 1


async def test_apitubes_free_plan_ends_after_five_pages_in_peace(town: Town):
    fill(town, 80)
    pages = await run(apitube(town), town)
    assert [page.incomplete for page in pages] == [None] * 5 + ["the plan gives 5 pages, and there are more"]
    pages.pop()
    assert pages[-1].mark


@pytest.mark.parametrize("make", [newsdata, apitube])
async def test_a_run_that_max_pages_cuts_off_says_so(town: Town, make):
    fill(town, 35)
    pages = await run(make(town, max_pages=2), town)
    assert [page.incomplete for page in pages] == [None, "max_pages = 2 were read, and there are more"]
    pages = await run(make(town, max_pages=4), town)
    assert [page.incomplete for page in pages] == [None] * 4


async def test_a_token_that_comes_again_ends_the_run(town: Town):
    fill(town, 200)
    town.world.newsdata.repeats_its_token = True
    pages = await run(newsdata(town, max_pages=15), town)
    assert sum(page.credits for page in pages) == 2
    assert "repeats" in (pages[-1].incomplete or "")


@pytest.mark.parametrize(("make", "setting"), [(newsdata, "newsdata_page_size"), (apitube, "apitube_page_size")])
async def test_a_page_size_beyond_the_plan_names_the_setting(town: Town, make, setting: str):
    fill(town, 5)
    with pytest.raises(Misconfigured, match=setting):
        await run(make(town, page_size=50), town)


async def test_apitubes_rate_window_is_waited_for_when_short_and_left_when_long(town: Town):
    fill(town, 25)
    town.world.apitube.requests_left = 1
    source = apitube(town)
    with pytest.raises(SlowDown, match="Rate limit"):
        await run(source, town)
    assert source.sleep.seconds == [37]  # type: ignore[attr-defined]
    town.world.apitube.requests_left, town.world.apitube.reset_seconds = 1, 1800
    with pytest.raises(SlowDown) as raised:
        await run(apitube(town), town)
    assert raised.value.retry_after_seconds == 1800


async def test_a_paid_plan_brings_sentiment(town: Town):
    town.world.newsdata.plan = "professional"
    fill(town, 1, provider_sentiment="negative")
    (article,) = articles(await run(newsdata(town, page_size=50), town))
    assert (article.provider_sentiment, article.provider_sentiment_by) == ("negative", "newsdata")


@pytest.mark.parametrize(
    ("prefix", "make", "path", "count"),
    [
        ("synthetic_newsdata_crypto", newsdata, NEWSDATA, 27),
        ("synthetic_apitube_everything", apitube, APITUBE, 24),
    ],
)
async def test_recorded_pages_are_read_through(town: Town, samples: Path, prefix: str, make, path: str, count: int):
    files = sorted((samples / "news").glob(f"{prefix}_page*.json"))
    town.world.faults.script(path, *(JSONResponse(json.loads(file.read_text())) for file in files))
    pages = await run(make(town), town)
    assert len(pages) == 3
    assert len({finding.key for page in pages for finding in page.findings}) == count
    assert all(page.rejected == () for page in pages)


async def test_both_providers_and_the_feed_meet_in_one_article(town: Town):
    fill(town, 1, provider_sentiment="positive", author="Jo Doe", tags=["fees"])
    story = town.world.stories["post-000"]
    (first,) = (await run(newsdata(town), town))[0].findings
    (second,) = (await run(apitube(town), town))[0].findings
    (third,) = (await run(outlet(town), town))[0].findings
    assert first.key == second.key == third.key
    (again,) = (await run(newsdata(town), town))[0].findings
    assert again.fingerprint == third.fingerprint
    article = msgspec.json.decode(again.payload, type=Article)
    assert set(article.providers) == {"newsdata", "apitube", "rss"}
    assert article.providers["newsdata"] == newsdata_id(story)
    assert article.provider_sentiment == "positive"
    assert article.source == "The Post"
    assert article.link == town.world.link(story, town.url)


# Feeds


async def test_a_feed_is_one_page(town: Town):
    fill(town, 12)
    (page,) = await run(outlet(town), town)
    assert len(page.findings) == 12
    assert page.credits == 0


async def test_an_unchanged_feed_is_read_once(town: Town):
    fill(town, 3)
    (first,) = await run(outlet(town), town)
    (second,) = await run(outlet(town), town, mark=first.mark)
    assert (second.findings, second.note, second.mark) == ((), "not changed", first.mark)
    fill(town, 1, start=3)
    (third,) = await run(outlet(town), town, mark=second.mark)
    assert len(third.findings) == 4


async def test_a_stored_copy_that_was_never_committed_is_read_again(town: Town):
    fill(town, 3)
    await run(outlet(town), town)
    (again,) = await run(outlet(town), town, mark=None)
    assert len(again.findings) == 3


async def test_a_moved_feed_is_followed_and_remembered(town: Town):
    fill(town, 2)
    old = f"{town.url}/old/feed"
    town.world.faults.script("/old", RedirectResponse(f"{town.url}/post.example/rss", 301))
    (first,) = await run(outlet(town, old), town)
    assert first.cursor == {"configured": old, "url": f"{town.url}/post.example/rss"}
    (second,) = await run(outlet(town, old), town, cursor=first.cursor)
    assert len(second.findings) == 2
    (other,) = await run(outlet(town), town, cursor=first.cursor)
    assert len(other.findings) == 2


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        (HTMLResponse("<!doctype html><html>Checking your browser</html>"), NotAFeed),
        (HTMLResponse("nope", 404), Permanent),
        (HTMLResponse("busy", 503), Transient),
        (HTMLResponse("slow down", 429, {"retry-after": "60"}), SlowDown),
        (Response(b"", 200, media_type="application/rss+xml"), NotAFeed),
    ],
)
async def test_misbehavior_of_a_feed_is_the_right_error(town: Town, fault, error):
    town.world.faults.script("/post.example/rss", fault)
    with pytest.raises(error):
        await run(outlet(town), town)


class Refusing:
    """A fetcher whose every page is refused with a status."""

    def __init__(self, status: int) -> None:
        self.status = status
        self.requests = 0

    async def page(self, url: str, **_: Any) -> Any:
        self.requests += 1
        raise Permanent(f"{url} answered {self.status}", status=self.status)


@pytest.mark.parametrize(("status", "error"), [(410, Misconfigured), (404, Permanent)])
async def test_a_feed_that_is_gone_for_good_needs_a_person(town: Town, status: int, error: type[Exception]):
    town.kit = replace(town.kit, fetcher=cast(Any, Refusing(status)))
    with pytest.raises(error):
        await run(outlet(town), town)


async def test_a_feed_that_is_gone_is_not_asked_again(town: Town):
    refusing = Refusing(410)
    town.kit = replace(town.kit, fetcher=cast(Any, refusing))
    source = outlet(town)
    first = source.pages(Run(source.name, town.clock.now_ms()), town.kit)
    page = await anext(aiter(first))
    with pytest.raises(Misconfigured, match="gone for good"):
        await anext(aiter(first))
    with pytest.raises(Misconfigured, match="gone for good"):
        await run(source, town, cursor=page.cursor)

    assert refusing.requests == 1


async def test_the_feeds_wish_for_a_later_look_is_bounded(town: Town):
    feed = b"<rss><channel><title>T</title><ttl>%d</ttl></channel></rss>"
    waits = []
    for minutes in (5, 120, 10_000):
        town.world.faults.script("/post.example/rss", Response(feed % minutes, media_type="application/rss+xml"))
        (page,) = await run(outlet(town), town)
        waits.append(page.next_check_seconds)
    assert waits == [None, 7200, 14_400]
