from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, cast

import msgspec
import pytest
from tests.unit.pipelines.bitcoin_news.conftest import NOW_MS, Town

from tidings.model.answers import Provenance, Sentiment, Summary
from tidings.model.errors import Permanent, SlowDown, TidingsError, Transient
from tidings.model.outcome import Advance
from tidings.model.workflow import Work
from tidings.pipelines.bitcoin_news import Settings, build
from tidings.pipelines.bitcoin_news.body import Article
from tidings.pipelines.bitcoin_news.cards import present, search_attributes
from tidings.pipelines.bitcoin_news.criteria import has_no_sentiment, has_sentiment
from tidings.pipelines.bitcoin_news.processors import adopt_sentiment, fetch_content, judge, publish, summarize
from tidings.pipelines.bitcoin_news.workflow import article_workflow

PARAGRAPHS = [
    f"Paragraph {n} says at some length what the miners, the exchanges and the regulators did on that day, and why."
    for n in range(12)
]
FLOW = article_workflow(max_content_chars=10_240, max_content_fetch_attempts=5)


def article(**fields: Any) -> Article:
    given: dict[str, Any] = {
        "id": "x",
        "title": "Bitcoin rises",
        "link": "https://post.example/a",
        "source": "The Post",
        "published_ms": NOW_MS,
        "found_ms": NOW_MS,
        "providers": {"newsdata": "1"},
    }
    return Article(**given | fields)


def work(body: Article, *, state: str = "found", attempt: int = 1, accepted: Article | None = None) -> Work:
    return Work(
        pipeline="bitcoin_news",
        kind="article",
        key=body.id,
        state=state,
        attempt=attempt,
        revision=1,
        now_ms=NOW_MS + 5,
        body=body,
        accepted=accepted,
    )


@dataclass
class Oracle:
    """An enricher that answers the same thing, or fails the same way."""

    error: TidingsError | None = None
    asked: list[str] = field(default_factory=list)

    async def summarize(self, text: str, **_: Any) -> tuple[Summary, Provenance]:
        self.asked.append(text)
        if self.error:
            raise self.error
        return Summary("In short."), Provenance(model="oracle")

    async def judge_sentiment(self, text: str, **_: Any) -> tuple[Sentiment, Provenance]:
        self.asked.append(text)
        if self.error:
            raise self.error
        return Sentiment("positive", 0.5), Provenance(model="oracle")


def asking(town: Town, oracle: Oracle) -> Any:
    return replace(town.kit, enricher=cast(Any, oracle))


def body_of(outcome: Any) -> Article:
    assert isinstance(outcome, Advance)
    return cast(Article, outcome.body)


def listed(town: Town, **fields: Any) -> Article:
    given: dict[str, Any] = {
        "id": "s",
        "outlet": "post",
        "path": "/s",
        "title": "Bitcoin rises",
        "paragraphs": PARAGRAPHS,
    }
    story = town.world.add(**given | fields)
    return article(link=town.world.link(story, town.url))


def replace_article(body: Article, **fields: Any) -> Article:
    return msgspec.structs.replace(body, **fields)


async def fetched(town: Town, body: Article, max_chars: int = 10_240, **about: Any) -> Any:
    return await fetch_content(work(body, **about), town.kit, max_chars=max_chars, attempts=5)


def test_the_happy_path_is_as_declared():
    assert FLOW.states == ("found", "fetched", "summarized", "judged", "published")
    assert FLOW.lane_of("found") == "fetch"
    assert FLOW.lane_of("fetched") == FLOW.lane_of("summarized") == "ai"
    assert FLOW.named("publish").publishes
    assert FLOW.named("publish").is_pure


def test_failing_content_goes_on_without_the_page_after_the_configured_attempts():
    flow = build(Settings(max_content_fetch_attempts=7)).workflows["article"]
    policy = flow.named("fetch").retry
    assert (policy.attempts, flow.named(policy.exhausted).target) == (7, "fetched")
    assert flow.named("try_page_again").trigger == "scheduled"


async def test_a_page_that_is_no_article_leaves_the_providers_words_and_is_tried_again(town: Town):
    teaser = ["The door weighs eleven tonnes.", "Subscribe to continue reading. Already a subscriber? Sign in."]
    walled = replace_article(listed(town, paragraphs=teaser), description="A vault holds nine thousand coins.")
    outcome = await fetched(town, walled)
    read = body_of(outcome)
    oracle = Oracle()
    summed = body_of(await summarize(work(read, state="fetched"), asking(town, oracle)))
    done: Any = publish(work(summed, state="judged"))

    assert (read.text, read.content_attempts) == (None, 1)
    assert read.content_error == "the page shows the beginning of an article behind a paywall"
    assert oracle.asked == ["A vault holds nine thousand coins."]
    assert summed.summary_from == "words"
    assert done.due_at == NOW_MS + 5 + 6 * 3_600_000
    counted = await town.kit.ledger.reserve("pages.no_article: the beginning of an article behind a paywall", 1, 1)
    assert not counted  # One was counted already, so there is no room for another.


async def test_a_judgment_that_cannot_be_made_is_unknown_with_its_reason(town: Town):
    said = "Die Anleger sind nicht froh und der Kurs sinkt."
    body = article(title="Der Kurs von Bitcoin ist gefallen", description=said)
    judged = body_of(await judge(work(body, state="summarized"), town.kit))
    card: Any = present("x", judged).card

    assert (judged.sentiment, judged.sentiment_score, judged.sentiment_by) == (None, None, "local")
    assert (card.sentiment, card.needs_sentiment) == (None, False)
    assert card.sentiment_reason == "the text seems to be in another language than English (de)"
    assert search_attributes(judged)["sentiment"] == "unknown"


async def test_the_main_text_is_kept_without_the_furniture(town: Town):
    read = body_of(await fetched(town, listed(town)))
    assert read.text is not None
    assert "Paragraph 0" in read.text
    assert "Paragraph 11" in read.text
    assert "Accept all" not in read.text
    assert (read.content_attempts, read.fetched_ms) == (1, NOW_MS + 5)


async def test_the_text_is_bounded(town: Town):
    read = body_of(await fetched(town, listed(town), max_chars=600))
    assert 0 < len(read.text or "") <= 600


@pytest.mark.parametrize(
    ("fault", "error"), [("gone", Permanent), ("hangs", Transient), ("huge", Permanent), ("empty", Transient)]
)
async def test_a_bad_page_is_the_right_error(town: Town, fault: str, error: type[TidingsError]):
    town.world.hang_seconds = 3
    body = listed(town, fault=fault)
    with pytest.raises(error):
        await fetched(town, body)


async def test_a_failed_fetch_says_which_try_it_was(town: Town):
    with pytest.raises(Transient, match=r"^content: .* \(attempt 3/5\)$"):
        await fetched(town, listed(town, fault="empty"), attempt=3)


async def test_a_page_that_times_out_twice_is_read_at_the_third_try(town: Town):
    body = listed(town, fault="times_out_twice")
    for attempt in (1, 2):
        with pytest.raises(Transient):
            await fetched(town, body, attempt=attempt)
    assert body_of(await fetched(town, body, attempt=3)).content_attempts == 3


async def test_a_wrong_charset_is_read_right(town: Town):
    words = [f"Café owners in Zürich pay their suppliers in coins, the naïve survey number {n} says." for n in range(9)]
    read = body_of(await fetched(town, listed(town, fault="wrong_charset", paragraphs=words)))
    assert "Café owners in Zürich" in (read.text or "")


async def test_a_known_page_is_not_fetched_again_for_a_providers_remark(town: Town):
    body = listed(town)
    before = msgspec.structs.replace(body, text="The text.", content_attempts=2)
    joined = msgspec.structs.replace(body, providers={"newsdata": "1", "apitube": "2"})
    read = body_of(await fetched(town, joined, accepted=before))
    assert (read.text, read.content_attempts) == ("The text.", 2)
    assert town.world.page_requests["s"] == 0


@pytest.mark.parametrize("change", [{"title": "Bitcoin falls"}, {"description": "Today's roundup"}])
async def test_changed_words_mean_a_changed_page(town: Town, change: dict[str, str]):
    body = listed(town)
    before = msgspec.structs.replace(body, text="The old text.")
    read = body_of(await fetched(town, msgspec.structs.replace(body, **change), accepted=before))
    assert "Paragraph 0" in (read.text or "")
    assert town.world.page_requests["s"] == 1


async def test_a_summary_is_kept_with_its_author(town: Town):
    done = body_of(await summarize(work(article(text="Text.")), asking(town, Oracle())))
    assert (done.summary, done.summary_by, done.summary_error) == ("In short.", "oracle", None)


async def test_a_known_summary_is_not_asked_for_again(town: Town):
    oracle = Oracle()
    before = article(text="Text.", summary="Known.", summary_by="oracle")
    done = body_of(await summarize(work(article(text="Text."), accepted=before), asking(town, oracle)))
    assert done.summary == "Known."
    assert oracle.asked == []


@pytest.mark.parametrize("processor", [summarize, judge])
async def test_an_ai_that_is_down_is_asked_again_and_says_which_try_it_was(town: Town, processor):
    kit = asking(town, Oracle(Transient("the endpoint is down", retry_after_seconds=9)))
    with pytest.raises(Transient, match=r"^error: the endpoint is down \(attempt 2/5\)$") as raised:
        await processor(work(article(text="Text."), attempt=2), kit)
    assert raised.value.retry_after_seconds == 9


@pytest.mark.parametrize("processor", [summarize, judge])
async def test_waiting_for_the_ai_costs_no_attempt(town: Town, processor):
    with pytest.raises(SlowDown):
        await processor(work(article(text="Text.")), asking(town, Oracle(SlowDown("over budget"))))


async def test_a_summary_that_cannot_be_is_published_as_an_error(town: Town):
    kit = asking(town, Oracle(Permanent("the model refuses")))
    done = body_of(await summarize(work(article(text="Text."), attempt=4), kit))
    assert done.summary is None
    assert done.summary_error == "error: the model refuses (attempt 4/5)"


async def test_a_sentiment_that_cannot_be_stays_unknown(town: Town):
    done = body_of(await judge(work(article(text="Text.")), asking(town, Oracle(Permanent("refused")))))
    assert done.sentiment is None


def test_exactly_one_way_leads_out_of_summarized():
    for given in (None, "positive", "neutral"):
        about = work(article(provider_sentiment=given, provider_sentiment_by="apitube" if given else None))
        assert bool(has_sentiment(about)) is (given is not None)
        assert bool(has_no_sentiment(about)) is (given is None)


def test_a_providers_sentiment_is_adopted():
    given = article(provider_sentiment="negative", provider_sentiment_score=-0.4, provider_sentiment_by="apitube")
    done = body_of(adopt_sentiment(work(given)))
    assert (done.sentiment, done.sentiment_score, done.sentiment_by) == ("negative", -0.4, "apitube")


async def test_ours_is_asked_for_otherwise(town: Town):
    done = body_of(await judge(work(article(text="Text.")), asking(town, Oracle())))
    assert (done.sentiment, done.sentiment_score, done.sentiment_by) == ("positive", 0.5, "oracle")


def test_publishing_keeps_earlier_providers_and_the_first_sight():
    before = article(providers={"rss": "r"}, found_ms=NOW_MS - 100)
    done = body_of(publish(work(article(), accepted=before)))
    assert done.providers == {"rss": "r", "newsdata": "1"}
    assert (done.found_ms, done.processed_ms) == (NOW_MS - 100, NOW_MS + 5)
