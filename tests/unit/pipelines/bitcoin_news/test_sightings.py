from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tidings.model.item import LOW, NORMAL
from tidings.pipelines.bitcoin_news import source_apitube as apitube
from tidings.pipelines.bitcoin_news import source_newsdata as newsdata
from tidings.pipelines.bitcoin_news.body import Article, Sighting
from tidings.pipelines.bitcoin_news.sightings import (
    article_id,
    author_of,
    combine,
    finding,
    findings_of,
    real_list,
    real_text,
    title_of,
)
from tidings.process.memory_ledger import MemoryLedger

NOW = 1_789_000_000_000
LINK = "https://post.example/a"


def seen(provider="newsdata", **fields) -> Sighting:
    given: dict[str, Any] = {"provider_id": f"{provider}-1", "link": LINK, "title": "A title", "seen_ms": NOW} | fields
    return Sighting(provider=provider, **given)


def body(finding_) -> Article:
    import msgspec

    return msgspec.json.decode(finding_.payload, type=Article)


@pytest.mark.parametrize(
    "link",
    [
        "https://post.example/a",
        "http://post.example/a",
        "https://www.post.example/a/",
        "HTTPS://WWW.POST.EXAMPLE:443/a?utm_source=rss&utm_campaign=x#top",
        "https://post.example/a?fbclid=1",
    ],
)
def test_one_article_has_one_id_however_it_is_spelled(link: str):
    assert article_id(link) == article_id(LINK)
    assert len(article_id(link)) == 16


@pytest.mark.parametrize("link", ["https://post.example/b", "https://post.example/a?p=1", "https://other.example/a"])
def test_different_articles_have_different_ids(link: str):
    assert article_id(link) != article_id(LINK)


def test_the_eight_shared_articles_of_the_samples_meet_under_one_id(samples: Path):
    def ids(prefix: str, read) -> set[str]:
        found = set()
        for page in sorted((samples / "news").glob(f"{prefix}_page*.json")):
            found |= {article_id(read(r, NOW).link) for r in json.loads(page.read_text())["results"]}
        return found

    first = ids("synthetic_newsdata_crypto", newsdata.sighting)
    second = ids("synthetic_apitube_everything", apitube.sighting)
    assert len(first) == 27
    assert len(second) == 24
    assert len(first & second) == 8


async def test_the_second_providers_copy_changes_an_article_once_and_never_again():
    ledger = MemoryLedger()
    ours = seen("newsdata", title="Bitcoin falls", description="Short.")
    theirs = seen("apitube", title="Bitcoin Falls!", description="Long.", sentiment="negative", sentiment_score=-0.5)

    prints = []
    for copy in (ours, theirs, ours, theirs, ours, theirs):
        (found,) = await findings_of([copy], ledger, NOW, 60)
        prints.append(found.fingerprint)

    assert prints[0] != prints[1]
    assert set(prints[1:]) == {prints[1]}


async def test_the_order_of_providers_does_not_matter():
    copies = [
        seen("newsdata", source="The Post", description="n"),
        seen("apitube", source="post.example", sentiment="positive"),
        seen("rss", source="Post RSS", title="The outlet's own title", author="Jo"),
    ]
    ends = []
    for order in (copies, copies[::-1], [copies[1], copies[2], copies[0]]):
        ledger = MemoryLedger()
        for copy in order:
            (last,) = await findings_of([copy], ledger, NOW, 60)
        ends.append((last.fingerprint, body(last)))
    assert ends[0] == ends[1] == ends[2]
    article = ends[0][1]
    assert article.title == "The outlet's own title"
    assert article.source == "The Post"
    assert article.author == "Jo"
    assert article.provider_sentiment == "positive"
    assert article.provider_sentiment_by == "apitube"
    assert article.providers == {"rss": "rss-1", "apitube": "apitube-1", "newsdata": "newsdata-1"}


async def test_a_provider_that_lists_one_address_under_two_ids_settles_on_the_first():
    ledger = MemoryLedger()
    prints = set()
    for name in ("one", "two", "one", "two"):
        (found,) = await findings_of([seen(provider_id=name)], ledger, NOW, 60)
        prints.add(found.fingerprint)
    assert len(prints) == 1
    assert body(found).providers == {"newsdata": "one"}


async def test_two_feeds_with_one_article_do_not_take_turns():
    ledger = MemoryLedger()
    prints = set()
    for feed, words in [("a", "Long text"), ("b", "Short"), ("a", "Long text"), ("b", "Short")]:
        (found,) = await findings_of([seen("rss", listing=feed, description=words)], ledger, NOW, 60)
        prints.add(found.fingerprint)
    assert len(prints) == 1
    assert body(found).description == "Long text"


async def test_a_changed_headline_counts_and_a_changed_date_does_not():
    ledger = MemoryLedger()
    (first,) = await findings_of([seen(published_ms=NOW - 5000)], ledger, NOW, 60)
    (dated,) = await findings_of([seen(published_ms=NOW - 1000)], ledger, NOW, 60)
    (retitled,) = await findings_of([seen(title="Another title")], ledger, NOW, 60)
    assert first.fingerprint == dated.fingerprint != retitled.fingerprint


async def test_a_missing_date_is_the_first_time_anybody_showed_it():
    ledger = MemoryLedger()
    await findings_of([seen("newsdata", seen_ms=NOW)], ledger, NOW, 60)
    (later,) = await findings_of([seen("newsdata", seen_ms=NOW + 9000)], ledger, NOW + 9000, 60)
    assert body(later).published_ms == NOW
    assert body(later).date_is_guess


def test_a_date_in_the_future_is_not_believed():
    article = combine("x", [seen(published_ms=NOW + 86_400_000)], NOW)
    assert article.published_ms == NOW
    assert article.date_is_guess
    assert not combine("x", [seen(published_ms=NOW + 60_000)], NOW).date_is_guess


def test_old_news_waits_behind_todays():
    assert finding(combine("x", [seen(published_ms=NOW - 2 * 86_400_000)], NOW), NOW).priority == LOW
    assert finding(combine("x", [seen(published_ms=NOW - 3_600_000)], NOW), NOW).priority == NORMAL


async def test_a_page_with_one_article_twice_gives_one_finding():
    found = await findings_of([seen(), seen(title="again", link=LINK + "/")], MemoryLedger(), NOW, 60)
    assert len(found) == 1


async def test_a_damaged_memory_of_a_sighting_is_forgotten():
    ledger = MemoryLedger()
    await ledger.put("bitcoin_news.sightings", f"{article_id(LINK)}/apitube", b'{"provider":"ftp"}', 100)
    (found,) = await findings_of([seen()], ledger, NOW, 60)
    assert body(found).providers == {"newsdata": "newsdata-1"}


@pytest.mark.parametrize(
    "value",
    [
        None,
        7,
        "",
        "  ",
        "ONLY AVAILABLE IN PAID PLANS",
        "ONLY AVAILABLE IN PROFESSIONAL AND CORPORATE PLANS",
        " only available in corporate plans",
        "[Upgrade subscription plan]",
    ],
)
def test_placeholders_are_no_text(value: object):
    assert real_text(value, 100) is None
    assert real_list(value) == ()


def test_an_advertisement_inside_a_text_is_cut_out():
    assert real_text("Half a sentence [Upgrade subscription plan]", 100) == "Half a sentence"
    assert real_text("Body [Test mode — use a live key for full content]", 100) == "Body"


def test_lists_are_read_in_every_form():
    assert real_list(["bitcoin, price analysis,markets"]) == ("bitcoin", "price analysis", "markets")
    assert real_list(["a", "a", None, 3]) == ("a",)
    assert real_list("a") == ("a",)


def test_titles_and_authors_lose_the_publisher():
    assert title_of("Coin up - The Post", "The Post") == "Coin up"
    assert title_of("Coin  up \u00a0", None) == "Coin up"
    assert author_of("Cointelegraph by Jo Doe") == "Jo Doe"
    assert author_of("Standby Person") == "Standby Person"
    assert author_of("") is None
