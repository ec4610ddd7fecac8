"""The work of each transition of the article workflow."""

from __future__ import annotations

from typing import Literal

from msgspec.structs import replace

from tidings.model.contracts import Kit
from tidings.model.errors import Permanent, SlowDown, Transient
from tidings.model.outcome import Advance, Outcome
from tidings.model.workflow import Work
from tidings.pipelines.bitcoin_news.body import PIPELINE, Article
from tidings.pipelines.bitcoin_news.sightings import article_id, seen_by_now
from tidings.process.extract.article_page import read_article

AI_ATTEMPTS = 5
ERROR_CHARS_MAX = 400
HOUR_MS = 3_600_000
PAGE_AGAIN_HOURS, PAGE_LATER_HOURS = 6, 24
"""When a page that could not be read is tried again: the first time, and then always."""


async def fetch_content(work: Work, kit: Kit, *, max_chars: int, attempts: int) -> Outcome:
    """Get the page and keep its main text, unless only the providers' remarks have changed since it was read."""
    article: Article = work.body
    before = _accepted(work)
    if before is not None and before.text and not _has_new_page(before, article):
        kept = replace(
            article,
            text=before.text,
            page_description=before.page_description,
            content_attempts=before.content_attempts,
            fetched_ms=before.fetched_ms,
        )
        return Advance(kept, note="the text is known: only what providers say has changed")
    try:
        extract, _ = await read_article(kit, article.link, article.title, max_chars=max_chars)
    except SlowDown:
        raise
    except Transient as error:
        raise _told("content", error, work, attempts) from error
    tries = article.content_attempts + work.attempt
    if extract.barrier is not None:
        return Advance(_without_page(article, f"the page shows {extract.barrier}", tries), note=extract.barrier)
    if not extract.text.strip():
        raise _told("content", Transient("the page holds no readable text"), work, attempts)
    read = replace(
        article,
        text=extract.text[:max_chars],
        page_description=extract.description,
        content_attempts=tries,
        content_error=None,
        fetched_ms=work.now_ms,
    )
    return Advance(read, note=f"{len(read.text or '')} characters")


def use_words(work: Work) -> Outcome:
    """Go on without the page: title, description and the providers' judgment are there."""
    article: Article = work.body
    reason = f"the page cannot be read: {work.error}"[:ERROR_CHARS_MAX]
    return Advance(_without_page(article, reason, article.content_attempts + max(1, work.attempt)), note=reason)


async def summarize(work: Work, kit: Kit) -> Outcome:
    """Ask for a summary. Where no answer is possible the article goes on without one and says why."""
    article: Article = work.body
    basis: Literal["page", "words"] = "page" if article.text else "words"
    before = _accepted(work)
    if before is not None and before.summary and _material(before) == _material(article):
        kept = replace(article, summary=before.summary, summary_by=before.summary_by, summary_from=before.summary_from)
        return Advance(kept, note="the summary is known: the text has not changed")
    if article.summary and article.summary_from == basis == "words":
        return Advance(article, note="the summary of the words is known")
    try:
        answer, provenance = await kit.enricher.summarize(
            _material(article), title=article.title, description=_described(article), pipeline=PIPELINE
        )
    except SlowDown:
        raise
    except Transient as error:
        raise _told("error", error, work, AI_ATTEMPTS) from error
    except Permanent as error:
        failed = replace(article, summary_error=_message("error", error, work, AI_ATTEMPTS))
        return Advance(failed, note=failed.summary_error)
    done = replace(article, summary=answer.summary, summary_by=provenance.model, summary_from=basis, summary_error=None)
    return Advance(done, provenance=provenance)


def adopt_sentiment(work: Work) -> Outcome:
    """Take the provider's judgment for ours."""
    return Advance(_adopted(work.body))


async def judge(work: Work, kit: Kit) -> Outcome:
    """Ask whether the text is good or bad news for Bitcoin. Where no answer is possible it stays unknown.

    By now more providers may list the article, and one may have judged it: that is looked up first.
    """
    article = _with_news(work.body, await seen_by_now(work.key, kit.ledger, work.now_ms))
    if article.provider_sentiment is not None:
        return Advance(_adopted(article), note=f"{article.provider_sentiment_by} has judged meanwhile")
    before = _accepted(work)
    if before is not None and before.sentiment and _material(before) == _material(article):
        return Advance(_judged_as(article, before), note="the judgment is known: the text has not changed")
    try:
        answer, provenance = await kit.enricher.judge_sentiment(
            _material(article), title=article.title, pipeline=PIPELINE
        )
    except SlowDown:
        raise
    except Transient as error:
        raise _told("error", error, work, AI_ATTEMPTS) from error
    except Permanent as error:
        return Advance(article, note=_message("error", error, work, AI_ATTEMPTS))
    if answer.label == "unknown":
        reason = answer.reason or "it cannot be told"
        judged = replace(article, sentiment=None, sentiment_score=None, sentiment_reason=reason)
        return Advance(replace(judged, sentiment_by=provenance.model), note=reason, provenance=provenance)
    judged = replace(article, sentiment=answer.label, sentiment_score=answer.score, sentiment_by=provenance.model)
    return Advance(replace(judged, sentiment_reason=None), provenance=provenance)


def publish(work: Work) -> Outcome:
    """Close the article. Providers that listed an earlier revision are kept, and the first time we saw it.

    Without its page it asks to be woken, to try the page again: after some hours, then once a day.
    """
    article: Article = work.body
    before = _accepted(work)
    is_told = article.processed_ms is not None
    done = replace(article, processed_ms=work.now_ms, is_told=is_told)
    if before is not None:
        done = replace(done, providers=before.providers | done.providers, found_ms=min(before.found_ms, done.found_ms))
    if article.content_error is None:
        return Advance(done)
    hours = PAGE_LATER_HOURS if is_told else PAGE_AGAIN_HOURS
    return Advance(done, due_at=work.now_ms + hours * HOUR_MS)


def _without_page(article: Article, reason: str, tries: int) -> Article:
    """Leave the article with what providers say of it; it says why, and its page is tried again later."""
    return replace(article, text=None, content_error=reason, content_attempts=tries)


def _described(article: Article) -> str | None:
    return article.description or article.page_description


def _material(article: Article) -> str:
    """Return what answers are made of: the page's text, or the best words there are."""
    return article.text or article.description or article.title


def _adopted(article: Article) -> Article:
    return replace(
        article,
        sentiment=article.provider_sentiment,
        sentiment_score=article.provider_sentiment_score,
        sentiment_by=article.provider_sentiment_by,
    )


def _judged_as(article: Article, before: Article) -> Article:
    return replace(
        article,
        sentiment=before.sentiment,
        sentiment_score=before.sentiment_score,
        sentiment_by=before.sentiment_by,
    )


def _with_news(article: Article, now: Article | None) -> Article:
    """Add what other providers said while the article was worked on; its words stay those it is made of."""
    if now is None:
        return article
    return replace(
        article,
        providers=article.providers | now.providers,
        provider_sentiment=now.provider_sentiment,
        provider_sentiment_score=now.provider_sentiment_score,
        provider_sentiment_by=now.provider_sentiment_by,
    )


def _has_new_page(before: Article, article: Article) -> bool:
    """Tell whether an outlet has changed the page: a daily roundup keeps even its address.

    Other words of another provider are no sign of that, nor is another spelling of the same address.
    """
    if article_id(before.link) != article_id(article.link):
        return True
    is_reworded = (before.title, before.description) != (article.title, article.description)
    return is_reworded and before.words_by in (None, article.words_by)


def _accepted(work: Work) -> Article | None:
    return work.accepted if isinstance(work.accepted, Article) else None


def _told(prefix: str, error: Transient, work: Work, attempts: int) -> Transient:
    return Transient(_message(prefix, error, work, attempts), retry_after_seconds=error.retry_after_seconds)


def _message(prefix: str, error: Exception, work: Work, attempts: int) -> str:
    """Spell a failure the way operators know it: what, and which try this was."""
    which = f"{work.attempt}/{attempts}" if work.attempt <= attempts else f"{work.attempt}, parked since {attempts}"
    return f"{prefix}: {str(error)[:300]} (attempt {which})"
