"""The life of an opportunity: found, summarized, published, and closed once its last deadline is over."""

from __future__ import annotations

from functools import partial

import msgspec

from tidings.model.answers import Provenance
from tidings.model.backoff import RetryPolicy
from tidings.model.clock import DAY_MS
from tidings.model.contracts import Fetcher, Kit
from tidings.model.errors import Transient
from tidings.model.item import fingerprint
from tidings.model.outcome import Advance, No, Outcome, Reject, Verdict
from tidings.model.workflow import Transition, Work, Workflow
from tidings.net.client import raise_for_status
from tidings.pipelines.eu_funding.opportunity import (
    KIND,
    Opportunity,
    closes_at,
    deadlines_ahead,
    next_deadline,
    spoken_date,
)
from tidings.pipelines.eu_funding.portal import judged, plain_text
from tidings.pipelines.eu_funding.programmes import TYPE_NAMES

SUMMARIES = "eu_funding.summaries"
SUMMARY_DAYS = 90
WORDS_WORTH_SUMMARIZING = 25
LOOK_AGAIN_DAYS = 90
"""When to look again at what states no deadline."""


def opportunity_workflow(*, pages_url: str, summarize_attempts: int, queue_days: float) -> Workflow:
    """Declare the workflow.

    What waits longer than `queue_days` to be summarized becomes a dead letter whose cause says so: it is counted,
    alerted and can be revived, which starts its wait anew.
    """
    return Workflow(
        kind=KIND,
        # The seen records of the portal: a call that has closed and gone is not announced as new because a row changed.
        tombstones_are_final=True,
        start="found",
        states=("found", "summarized", "published", "closed"),
        terminal=frozenset({"closed"}),
        body=Opportunity,
        transitions=(
            Transition(
                "summarize",
                "found",
                "summarized",
                processor=partial(summarize, pages_url=pages_url),
                criterion=partial(is_fresh, queue_days=queue_days),
                lane="ai",
                retry=RetryPolicy(attempts=summarize_attempts, base_seconds=60, cap_seconds=3600),
            ),
            Transition("publish_closed", "summarized", "closed", close, is_over, publishes=True),
            Transition("publish", "summarized", "published", publish, publishes=True),
            Transition("pass_deadline", "published", "published", publish, is_running, "scheduled", publishes=True),
            Transition("close", "published", "closed", close, trigger="scheduled", publishes=True),
        ),
    )


async def summarize(work: Work, kit: Kit, *, pages_url: str) -> Outcome:
    """Summarize the call's description, once per address and content."""
    body: Opportunity = work.body
    if body.status == "closed" and work.accepted is None:
        return Reject("closed before it was first seen")
    text = body.description or await _described(body, kit.fetcher, pages_url)
    if len(text.split()) < WORDS_WORTH_SUMMARIZING:
        summary, provenance = " ".join(filter(None, (text, facts(body, work.now_ms)))), Provenance(model="facts")
    else:
        summary, provenance = await _summary(body, text, kit)
    done = msgspec.structs.replace(body, description=text, summary=summary, summarized_by=provenance.model)
    return Advance(body=done, provenance=provenance)


def publish(work: Work) -> Advance:
    """Show the call as it stands now, and wake it when its next deadline is over."""
    body = _as_of(work)
    ahead = deadlines_ahead(body, work.now_ms)
    return Advance(body=body, due_at=closes_at(ahead[0]) if ahead else work.now_ms + LOOK_AGAIN_DAYS * DAY_MS)


def close(work: Work) -> Advance:
    """Show the call as closed."""
    return Advance(body=msgspec.structs.replace(_as_of(work), status="closed"))


def is_fresh(work: Work, *, queue_days: float) -> Verdict:
    """Tell whether the call has not waited too long in its queue to be news."""
    waiting_since = work.state_since_ms or work.body.found_at
    return work.now_ms - waiting_since <= queue_days * DAY_MS or No(f"waited longer than {queue_days:g} days")


def is_over(work: Work) -> bool:
    """Tell whether the call is closed, by its status or by the clock."""
    return judged(work.body.status, work.body.deadlines, work.now_ms) == "closed"


def is_running(work: Work) -> bool:
    """Tell whether the call is still to be followed."""
    return not is_over(work)


def facts(body: Opportunity, now_ms: int) -> str:
    """Say what is known of a call that has no description worth summarizing."""
    of = f" of {body.programme_name or body.programme}" if body.programme else ""
    action = f" ({body.action_type})" if body.action_type else ""
    dates = [("Opens" if body.status == "forthcoming" else "Opened", body.opening)]
    dates += [("Deadline", next_deadline(body, now_ms))]
    said = [f"{name} {spoken_date(date)}." for name, date in dates if date]
    return " ".join([f"{TYPE_NAMES[body.type]}{of}{action}.", *said])


async def _summary(body: Opportunity, text: str, kit: Kit) -> tuple[str, Provenance]:
    """Ask the enricher, unless this text of this address was summarized before."""
    key = fingerprint(body.url, text)
    known = await kit.ledger.get(SUMMARIES, key)
    if known is not None:
        summary, model = msgspec.json.decode(known, type=tuple[str, str])
        return summary, Provenance(model=model, cached=True)
    answer, provenance = await kit.enricher.summarize(text, title=body.title, pipeline="eu_funding")
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
    return msgspec.structs.replace(body, first_found_at=first, as_of=work.now_ms)
