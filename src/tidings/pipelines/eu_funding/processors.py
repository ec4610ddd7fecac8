"""The work of each transition of the opportunity workflow."""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from tidings.model.answers import Provenance
from tidings.model.clock import DAY_MS
from tidings.model.contracts import Fetcher, Kit
from tidings.model.errors import Transient
from tidings.model.item import fingerprint
from tidings.model.outcome import Advance, Outcome, Reject
from tidings.model.workflow import Work
from tidings.net.client import raise_for_status
from tidings.pipelines.eu_funding.body import (
    PIPELINE,
    Opportunity,
    closes_at,
    deadlines_ahead,
)
from tidings.pipelines.eu_funding.countdown import counted, next_at
from tidings.pipelines.eu_funding.facts import MODEL, WORDS_WORTH_SUMMARIZING, told_by_facts, without_boilerplate
from tidings.pipelines.eu_funding.results import plain_text

SUMMARIES = f"{PIPELINE}.summaries"
SUMMARY_DAYS = 90
LOOK_AGAIN_DAYS = 90
"""When to look again at what states no deadline."""


async def summarize(work: Work, kit: Kit, *, pages_url: str) -> Outcome:
    """Summarize the call's description, once per address and content."""
    body: Opportunity = work.body
    if body.status == "closed" and work.accepted is None:
        return Reject("closed before it was first seen")
    text = body.description or await _described(body, kit.fetcher, pages_url)
    described, own_words = replace(body, description=text), without_boilerplate(text)
    if len(own_words.split()) < WORDS_WORTH_SUMMARIZING:
        summary, provenance = told_by_facts(described, work.now_ms), Provenance(model=MODEL)
    else:
        summary, provenance = await _summary(body, own_words, kit)
    return Advance(
        body=replace(described, summary=summary, summarized_by=provenance.model),
        provenance=provenance,
    )


def publish(work: Work) -> Advance:
    """Show the call as it stands now, and wake it when its next deadline comes near or is over."""
    earlier: Opportunity | None = work.accepted
    body = counted(_as_of(work), earlier.countdown if earlier else (), work.now_ms)
    ahead = deadlines_ahead(body, work.now_ms)
    due_at = closes_at(ahead[0]) if ahead else work.now_ms + LOOK_AGAIN_DAYS * DAY_MS
    return Advance(body=body, due_at=min(due_at, next_at(body, work.now_ms) or due_at))


def close(work: Work) -> Advance:
    """Show the call as closed."""
    return Advance(body=replace(_as_of(work), status="closed"))


async def _summary(body: Opportunity, text: str, kit: Kit) -> tuple[str, Provenance]:
    """Ask the enricher, unless this text of this address was summarized before."""
    key = fingerprint(body.url, text)
    stored = await kit.ledger.get(SUMMARIES, key)
    if stored is not None:
        summary, model = msgspec.json.decode(stored, type=tuple[str, str])
        return summary, Provenance(model=model, cached=True)
    answer, provenance = await kit.enricher.summarize(text, title=body.title, pipeline=PIPELINE)
    value = msgspec.json.encode((answer.summary, provenance.model))
    await kit.ledger.put(SUMMARIES, key, value, SUMMARY_DAYS * 86_400)
    return answer.summary, provenance


async def _described(body: Opportunity, fetcher: Fetcher, pages_url: str) -> str:
    """Fetch a grant topic's details where the search gave no description; what has none stays without."""
    if body.type != "grant":
        return ""
    # Upper case is 404 there.
    url = f"{pages_url.rstrip('/')}/data/topicDetails/{body.identifier.lower()}.json"
    response = await fetcher.call("GET", url, params={"lang": "en"})
    if response.status in (403, 404, 410):
        return ""
    raise_for_status(response, f"the portal's details of {body.identifier}")
    try:
        details = msgspec.json.decode(response.body)["TopicDetails"]
        return plain_text(details.get("description") or "")
    except (msgspec.DecodeError, UnicodeDecodeError, KeyError, TypeError, AttributeError, RecursionError):
        raise Transient(f"the portal's details of {body.identifier} cannot be read") from None


def _as_of(work: Work) -> Opportunity:
    body: Opportunity = work.body
    earlier: Opportunity | None = work.accepted
    first = (earlier.first_found_at if earlier else body.first_found_at) or body.found_at or work.now_ms
    return replace(body, first_found_at=first, as_of=work.now_ms)
