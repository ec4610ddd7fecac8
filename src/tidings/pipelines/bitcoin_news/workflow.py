"""The life of an article: found, fetched, summarized, judged, published. Each phase is saved before the next begins."""

from __future__ import annotations

from functools import partial

from tidings.model.backoff import RetryPolicy
from tidings.model.workflow import Transition, Workflow
from tidings.pipelines.bitcoin_news.body import KIND, Article
from tidings.pipelines.bitcoin_news.criteria import has_no_sentiment, has_sentiment
from tidings.pipelines.bitcoin_news.processors import (
    AI_ATTEMPTS,
    adopt_sentiment,
    fetch_content,
    judge,
    publish,
    summarize,
    use_words,
)


def article_workflow(
    *, max_content_chars: int, max_content_fetch_attempts: int, content_retry_seconds: float = 20
) -> Workflow:
    """Declare the workflow.

    A page that fails is retried soon at first; then the article goes on with the providers' words, and the page is
    tried again later. A newer copy waits until the one under way is published: it does not begin again for it.
    """
    fetching = RetryPolicy(
        attempts=max_content_fetch_attempts,
        base_seconds=content_retry_seconds,
        cap_seconds=600,
        exhausted="go_without_page",
    )
    asking = RetryPolicy(attempts=AI_ATTEMPTS, base_seconds=30, cap_seconds=900, exhausted="park", park_seconds=3600)
    fetch = partial(fetch_content, max_chars=max_content_chars, attempts=max_content_fetch_attempts)
    return Workflow(
        kind=KIND,
        start="found",
        states=("found", "fetched", "summarized", "judged", "published"),
        transitions=(
            Transition("fetch", "found", "fetched", fetch, lane="fetch", retry=fetching),
            Transition("summarize", "fetched", "summarized", summarize, lane="ai", retry=asking),
            Transition("judge", "summarized", "judged", judge, criterion=has_no_sentiment, lane="ai", retry=asking),
            Transition("skip_judging", "summarized", "judged", adopt_sentiment, criterion=has_sentiment, lane="ai"),
            Transition("publish", "judged", "published", publish, publishes=True),
            Transition("go_without_page", "found", "fetched", use_words, trigger="manual"),
            Transition("try_page_again", "published", "found", trigger="scheduled", lane="fetch"),
        ),
        terminal=frozenset({"published"}),
        body=Article,
        lets_finish=True,
    )
