"""The yes-or-no questions of the article workflow."""

from __future__ import annotations

from tidings.model.outcome import No, Verdict
from tidings.model.workflow import Work


def has_sentiment(work: Work) -> Verdict:
    """Tell whether a provider has judged already."""
    return True if work.body.provider_sentiment is not None else No("no provider gave a sentiment")


def has_no_sentiment(work: Work) -> Verdict:
    """Tell whether the judging is ours."""
    by = work.body.provider_sentiment_by
    return No(f"{by} gave a sentiment") if work.body.provider_sentiment is not None else True
