"""Answers the four questions through any OpenAI-compatible endpoint; what it says is untrusted until checked."""

from __future__ import annotations

from tidings.process.enrich_endpoint.check import Unusable
from tidings.process.enrich_endpoint.completion import OutOfCredit, Refused, TooLong
from tidings.process.enrich_endpoint.endpoint import Caller, Endpoint, Tab, seconds_to_next_day

__all__ = ["Caller", "Endpoint", "OutOfCredit", "Refused", "Tab", "TooLong", "Unusable", "seconds_to_next_day"]
