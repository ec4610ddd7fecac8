"""The local default: answers the four questions with no key, no network and no model, the same bytes every time."""

from __future__ import annotations

from tidings.process.enrich.local.issue import analyze_issue, read_issue
from tidings.process.enrich.local.repo import summarize_repo
from tidings.process.enrich.local.sentiment import judge as judge_sentiment
from tidings.process.enrich.local.summary import summarize

MODEL = "local"
VERSION = "3"
"""Changes whenever the same text may be answered differently, so that stored answers are not mixed up."""

__all__ = ["MODEL", "VERSION", "analyze_issue", "judge_sentiment", "read_issue", "summarize", "summarize_repo"]
