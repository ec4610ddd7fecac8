"""The work of each transition of the article workflow."""

from __future__ import annotations

import re

from msgspec.structs import replace

from tidings.model.contracts import Kit
from tidings.model.errors import Permanent, SlowDown, Transient
from tidings.model.outcome import Advance, Outcome
from tidings.model.workflow import Work
from tidings.pipelines.bitcoin_news.body import PIPELINE, Article

AI_ATTEMPTS = 5
_CHARSET = re.compile(r"""charset\s*=\s*["']?([\w.:-]{1,40})""", re.IGNORECASE)


async def fetch_content(work: Work, kit: Kit, *, max_chars: int, attempts: int) -> Outcome:
    """Get the page and keep its main text, unless only the providers' remarks have changed since it was read."""
    article: Article = work.body
    before = _accepted(work)
    if before is not None and before.text and _words(before) == _words(article):
        kept = replace(
            article, text=before.text, content_attempts=before.content_attempts, fetched_ms=before.fetched_ms
        )
        return Advance(kept, note="the text is known: only what providers say has changed")
    try:
        page = await kit.fetcher.page(article.link)
        charset = _CHARSET.search(page.headers.get("content-type", ""))
        extract = await kit.extractor.extract(
            page.body, page.url, max_chars=max_chars, charset=charset[1] if charset else None
        )
    except SlowDown:
        raise
    except Transient as error:
        raise _told("content", error, work, attempts) from error
    if not extract.text.strip():
        raise _told("content", Transient("the page holds no readable text"), work, attempts)
    read = replace(article, text=extract.text[:max_chars], content_attempts=work.attempt, fetched_ms=work.now_ms)
    return Advance(read, note=f"{len(read.text or '')} characters")


async def summarize(work: Work, kit: Kit) -> Outcome:
    """Ask for a summary. Where no answer is possible the article goes on without one and says why."""
    article: Article = work.body
    before = _accepted(work)
    if before is not None and before.summary and before.text == article.text:
        kept = replace(article, summary=before.summary, summary_by=before.summary_by)
        return Advance(kept, note="the summary is known: the text has not changed")
    try:
        answer, provenance = await kit.enricher.summarize(article.text or "", title=article.title, pipeline=PIPELINE)
    except SlowDown:
        raise
    except Transient as error:
        raise _told("error", error, work, AI_ATTEMPTS) from error
    except Permanent as error:
        failed = replace(article, summary_error=_message("error", error, work, AI_ATTEMPTS))
        return Advance(failed, note=failed.summary_error)
    done = replace(article, summary=answer.summary, summary_by=provenance.model, summary_error=None)
    return Advance(done, provenance=provenance)


def adopt_sentiment(work: Work) -> Outcome:
    """Take the provider's judgment for ours."""
    article: Article = work.body
    judged = replace(
        article,
        sentiment=article.provider_sentiment,
        sentiment_score=article.provider_sentiment_score,
        sentiment_by=article.provider_sentiment_by,
    )
    return Advance(judged)


async def judge(work: Work, kit: Kit) -> Outcome:
    """Ask whether the text is good or bad news for Bitcoin. Where no answer is possible it stays unknown."""
    article: Article = work.body
    try:
        answer, provenance = await kit.enricher.judge_sentiment(
            article.text or "", title=article.title, pipeline=PIPELINE
        )
    except SlowDown:
        raise
    except Transient as error:
        raise _told("error", error, work, AI_ATTEMPTS) from error
    except Permanent as error:
        return Advance(article, note=_message("error", error, work, AI_ATTEMPTS))
    judged = replace(article, sentiment=answer.label, sentiment_score=answer.score, sentiment_by=provenance.model)
    return Advance(judged, provenance=provenance)


def publish(work: Work) -> Outcome:
    """Close the article. Providers that listed an earlier revision are kept, and the first time we saw it."""
    article: Article = work.body
    before = _accepted(work)
    done = replace(article, processed_ms=work.now_ms)
    if before is not None:
        done = replace(done, providers=before.providers | done.providers, found_ms=min(before.found_ms, done.found_ms))
    return Advance(done)


def _words(article: Article) -> tuple[str, str, str | None]:
    """Return what an outlet changes when it changes the page: a daily roundup keeps even its address."""
    return article.link, article.title, article.description


def _accepted(work: Work) -> Article | None:
    return work.accepted if isinstance(work.accepted, Article) else None


def _told(prefix: str, error: Transient, work: Work, attempts: int) -> Transient:
    return Transient(_message(prefix, error, work, attempts), retry_after_seconds=error.retry_after_seconds)


def _message(prefix: str, error: Exception, work: Work, attempts: int) -> str:
    """Spell a failure the way operators know it: what, and which try this was."""
    return f"{prefix}: {str(error)[:300]} (attempt {work.attempt}/{attempts})"
