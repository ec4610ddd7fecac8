"""Answers the four questions through any OpenAI-compatible endpoint; what it says is untrusted until checked."""

from __future__ import annotations

from tidings.process.enrich.endpoint.check import Unusable
from tidings.process.enrich.endpoint.completion import AnswerRefused, OutOfCredit, TooLong
from tidings.process.enrich.endpoint.endpoint import Endpoint, HttpCaller, Tab

__all__ = ["AnswerRefused", "Endpoint", "HttpCaller", "OutOfCredit", "Tab", "TooLong", "Unusable"]
