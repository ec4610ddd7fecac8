"""The life of an entry: read its page if wanted, summarize it, show it."""

from __future__ import annotations

from tidings.model.backoff import RetryPolicy
from tidings.model.workflow import Transition, Workflow
from tidings.pipelines.feeds.body import KIND, EntryBody
from tidings.pipelines.feeds.processors import fetch, publish, summarize, use_feed_text


def entry_workflow() -> Workflow:
    """Declare an entry's life."""
    reading = RetryPolicy(attempts=4, base_seconds=60, cap_seconds=3600, exhausted="use_feed_text")
    asking = RetryPolicy(attempts=5, base_seconds=30, cap_seconds=3600)
    return Workflow(
        kind=KIND,
        start="found",
        states=("found", "fetched", "summarized", "published"),
        transitions=(
            Transition("fetch", "found", "fetched", fetch, lane="fetch", retry=reading),
            Transition("use_feed_text", "found", "fetched", use_feed_text, trigger="manual"),
            Transition("summarize", "fetched", "summarized", summarize, lane="ai", retry=asking),
            Transition("publish", "summarized", "published", publish, publishes=True),
            Transition("try_page_again", "published", "found", trigger="scheduled", lane="fetch"),
        ),
        terminal=frozenset({"published"}),
        body=EntryBody,
    )
