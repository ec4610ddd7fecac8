from __future__ import annotations

import msgspec
import pytest
from pydantic import ValidationError
from tests.unit.pipelines.bitcoin_news.test_workflow import article, work

from tidings.pipelines.bitcoin_news import DEFAULT_FEEDS, Settings, build, endpoints
from tidings.pipelines.bitcoin_news.body import SENTIMENTS
from tidings.pipelines.bitcoin_news.cards import ArticleCard, articles, first_card, present
from tidings.pipelines.bitcoin_news.notices import announce
from tidings.serve.api.filters import parameter_of

INTERFACE = {
    "id",
    "title",
    "link",
    "source",
    "published_at",
    "sentiment",
    "summary",
    "needs_sentiment",
    "needs_summary",
    "summary_error",
    "content_attempts",
    "processed_at",
}


def test_a_card_has_every_field_that_was_promised():
    assert set(ArticleCard.__struct_fields__) >= INTERFACE


def test_the_first_card_says_what_is_still_to_come():
    card = first_card("x", article()).card
    assert (card.needs_summary, card.needs_sentiment, card.processed_at) == (True, True, None)
    judged = first_card("x", article(provider_sentiment="negative")).card
    assert (judged.needs_summary, judged.needs_sentiment, judged.sentiment) == (True, False, "negative")


def test_the_first_card_is_the_same_at_every_stage_of_processing():
    late = article(text="T", summary="S", content_attempts=3, sentiment="positive", summary_error="error: x")
    assert first_card("x", late) == first_card("x", article())


def test_the_first_card_is_not_searched():
    assert first_card("x", article()).document is None


def test_the_full_card_has_no_flags_left():
    body = article(text="Long text", summary="S", sentiment="positive", content_attempts=2, processed_ms=1_000)
    shown = present("x", body)
    assert (shown.card.needs_summary, shown.card.needs_sentiment) == (False, False)
    assert (shown.card.summary, shown.card.content_attempts) == ("S", 2)
    assert shown.card.processed_at == "1970-01-01T00:00:01.000Z"
    assert shown.sort == body.published_ms
    assert shown.document is not None
    assert "Long text" in shown.document().text
    assert shown.document().attributes["sentiment"] == "positive"


def test_a_summary_error_is_shown():
    assert (
        present("x", article(summary_error="error: no (attempt 5/5)")).card.summary_error == "error: no (attempt 5/5)"
    )


def test_cards_and_bodies_survive_encoding():
    body = article(categories=("a",), text="T")
    assert msgspec.json.decode(msgspec.json.encode(body), type=type(body)) == body
    card = present("x", body).card
    assert msgspec.json.decode(msgspec.json.encode(card), type=ArticleCard) == card


def test_an_article_is_announced_once():
    (notice,) = announce(work(article(sentiment="positive", summary="S")))
    assert (notice.title, notice.text, notice.attributes["sentiment"]) == ("Bitcoin rises", "S", "positive")
    assert announce(work(article(), accepted=article())) == ()


def test_the_collection_counts_sentiments():
    collection = articles()
    assert collection.id_index
    assert collection.facets == ("sentiment",)
    assert collection.link_field in ArticleCard.__struct_fields__
    assert {f.field for f in collection.filters} <= set(ArticleCard.__struct_fields__)


def test_defaults_need_no_key():
    pipeline = build(Settings())
    assert len(pipeline.sources) == len(DEFAULT_FEEDS)
    assert endpoints(Settings()) == ()
    assert pipeline.id_index is not None
    assert (pipeline.id_index.newest, pipeline.id_index.days) == (500, 30)
    assert pipeline.shelf_writes_per_day == 1000
    assert pipeline.retention[0].by_id_index


def test_a_key_brings_its_provider():
    settings = Settings.model_validate({"newsdata_key": "canary-1", "apitube_key": "canary-2", "feeds": []})
    assert [s.name for s in build(settings).sources] == ["bitcoin_news.newsdata", "bitcoin_news.apitube"]
    assert endpoints(settings) == ("https://newsdata.io/api/1", "https://api.apitube.io/v1")
    assert "canary" not in repr(settings)
    assert "canary" not in repr(build(settings))


@pytest.mark.parametrize(
    "wrong",
    [{"feeds": ["ftp://x/"]}, {"feeds": ["nonsense"]}, {"max_pages": 0}, {"evry": 1}, {"every": "soon"}, {"every": 1}],
)
def test_wrong_settings_are_refused(wrong: dict):
    with pytest.raises(ValidationError):
        Settings.model_validate(wrong)


def test_lengths_of_time_are_read_as_people_write_them():
    assert Settings.model_validate({"every": "2h"}).every == 7200


def test_articles_without_a_sentiment_can_be_asked_for() -> None:
    (wanted,) = (each for each in articles().filters if each.name == "sentiment")
    assert parameter_of(wanted).read("unknown") == "unknown"
    assert articles().facet_values["sentiment"] == SENTIMENTS
