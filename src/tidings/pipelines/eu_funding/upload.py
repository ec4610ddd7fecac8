"""Makes a finding of what is sent to us: one search result, as the portal gives it."""

from __future__ import annotations

from typing import Any

import msgspec

from tidings.model.errors import BadInput
from tidings.model.item import Finding
from tidings.pipelines.eu_funding.body import KIND, PIPELINE, fingerprint_of
from tidings.pipelines.eu_funding.results import key_of, parse_row


def admit(value: Any, *, way: str, pages_url: str) -> Finding:  # noqa: ARG001  # however it came
    """Take one search result, as the portal gives it, from an upload."""
    if not isinstance(value, dict):
        raise BadInput("an opportunity is a JSON object in the form of the portal's search results")
    found = parse_row(value, pages_url=pages_url, now_ms=0)
    return Finding(PIPELINE, KIND, key_of(found), fingerprint_of(found), msgspec.json.encode(found))
