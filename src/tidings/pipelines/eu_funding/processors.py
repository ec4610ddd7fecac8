"""The work of each transition of the opportunity workflow."""

from __future__ import annotations

import re

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
    next_deadline,
    spoken_amount,
    spoken_date,
)
from tidings.pipelines.eu_funding.programmes import TYPE_NAMES
from tidings.pipelines.eu_funding.results import plain_text

SUMMARIES = f"{PIPELINE}.summaries"
SUMMARY_DAYS = 90
WORDS_WORTH_SUMMARIZING = 25
WORDS_WORTH_SAYING = 4
POINTER = re.compile(
    r"^\W*(link to|see|click|refer to|please (see|refer|consult|visit|check|find)|(for )?(more|further) (info|details)|"
    r"details|visit|available (at|on|here)|https?:|www\.|n/?a\b|tbd\b|to be (announced|published|confirmed))",
    re.IGNORECASE,
)
"""How descriptions begin that hold no word of the call itself."""
LOOK_AGAIN_DAYS = 90
"""When to look again at what states no deadline."""


async def summarize(work: Work, kit: Kit, *, pages_url: str) -> Outcome:
    """Summarize the call's description, once per address and content."""
    body: Opportunity = work.body
    if body.status == "closed" and work.accepted is None:
        return Reject("closed before it was first seen")
    text = body.description or await _described(body, kit.fetcher, pages_url)
    if len(text.split()) < WORDS_WORTH_SUMMARIZING:
        words = "" if says_nothing(text) else text
        summary, provenance = " ".join(filter(None, (words, facts(body, work.now_ms)))), Provenance(model="facts")
    else:
        summary, provenance = await _summary(body, text, kit)
    done = replace(body, description=text, summary=summary, summarized_by=provenance.model)
    return Advance(body=done, provenance=provenance)


def publish(work: Work) -> Advance:
    """Show the call as it stands now, and wake it when its next deadline is over."""
    body = _as_of(work)
    ahead = deadlines_ahead(body, work.now_ms)
    return Advance(body=body, due_at=closes_at(ahead[0]) if ahead else work.now_ms + LOOK_AGAIN_DAYS * DAY_MS)


def close(work: Work) -> Advance:
    """Show the call as closed."""
    return Advance(body=replace(_as_of(work), status="closed"))


def facts(body: Opportunity, now_ms: int) -> str:
    """Say in sentences what is known of a call that has no description worth summarizing."""
    of = f" of {body.programme_name or body.programme}" if body.programme else ""
    action = f" ({body.action_type})" if body.action_type else ""
    dates = [("Opens" if body.status == "forthcoming" else "Opened", body.opening)]
    dates += [("Deadline", next_deadline(body, now_ms))]
    sentences = [f"{name} {spoken_date(date)}." for name, date in dates if date]
    if budget := spoken_amount(body.budget_eur):
        sentences.append(f"Budget {budget}.")
    if body.status == "open" and not body.deadlines:
        sentences.append("No deadline is stated.")
    return " ".join([f"{TYPE_NAMES[body.type]}{of}{action}.", *sentences])


def says_nothing(text: str) -> bool:
    """Tell whether a short description only points elsewhere, as `Link to the published call.` does."""
    return bool(POINTER.search(text)) or sum(word.isalpha() for word in text.split()) < WORDS_WORTH_SAYING


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
