"""What readers see of an opportunity."""

from __future__ import annotations

import msgspec

from tidings.model.clock import rfc3339
from tidings.model.publication import Collection, Document, Filter, Presentation
from tidings.pipelines.eu_funding.body import (
    KIND,
    STATUSES,
    Opportunity,
    brussels_day,
    deadlines_ahead,
    instant,
    next_deadline,
)
from tidings.pipelines.eu_funding.programmes import TYPE_NAMES


class OpportunityCard(msgspec.Struct, frozen=True, kw_only=True):
    """One opportunity, as the read API gives it. `deadline` is the next one ahead, or the last once all are past."""

    id: str
    identifier: str
    title: str
    url: str
    status: str
    type: str
    programme: str | None
    programme_name: str | None
    action_type: str | None
    stage: str | None
    opening_date: str | None
    deadline: str | None
    deadlines: list[str]
    call: str | None
    project: str | None
    budget_eur: int | None
    summary: str | None
    summarized_by: str | None
    keywords: list[str]
    published_at: str | None
    updated_at: str | None


def present(key: str, body: Opportunity) -> Presentation:
    """Draw card and document from the published body alone."""
    since = published_ms(body)
    deadline = next_deadline(body, body.as_of)
    card = OpportunityCard(
        id=key,
        identifier=body.identifier,
        title=body.title,
        url=body.url,
        status=body.status,
        type=body.type,
        programme=body.programme,
        programme_name=body.programme_name,
        action_type=body.action_type,
        stage=body.stage,
        opening_date=body.opening,
        deadline=deadline,
        deadlines=list(body.deadlines),
        call=body.call_identifier,
        project=body.project,
        budget_eur=body.budget_eur,
        summary=body.summary,
        summarized_by=body.summarized_by,
        keywords=list(body.keywords),
        published_at=rfc3339(since),
        updated_at=rfc3339(body.as_of),
    )
    return Presentation("opportunities", key, card, sort=since, document=lambda: _document(body, since))


def published_ms(body: Opportunity) -> int:
    """Return when a call became news: the day it was first found; of the first run's, the day it opened."""
    found = body.first_found_at or body.found_at
    return min(found, instant(body.opening)) if body.is_baseline and body.opening else found


def search_attributes(body: Opportunity, now_ms: int) -> dict[str, str | int | list[str] | None]:
    """Return what searches and routes may ask of an opportunity (`programme:HORIZON status:open`)."""
    programme = (body.programme, body.programme_name, body.programme_code)
    ahead = deadlines_ahead(body, now_ms)
    deadline = next_deadline(body, now_ms)
    return {
        "programme": [name for name in programme if name],
        "status": body.status,
        "type": body.type,
        "identifier": body.identifier,
        "call": body.call_identifier,
        "action": body.action_type,
        "stage": body.stage,
        "opening": body.opening and brussels_day(body.opening),
        "deadline": deadline and brussels_day(deadline),
        "deadlines": len(ahead),
        "budget": body.budget_eur,
        "keyword": [word.lower() for word in body.keywords],
    }


def _document(body: Opportunity, since: int) -> Document:
    texts = (body.summary, body.description, body.identifier, body.call_title, body.project, *body.keywords)
    return Document(
        title=body.title,
        text="\n".join(part for part in texts if part),
        author=body.programme,
        type=body.type,
        time_ms=since,
        url=body.url,
        attributes=search_attributes(body, body.as_of),
        language=body.language,
    )


OPPORTUNITIES = Collection(
    name="opportunities",
    singular="opportunity",
    kind=KIND,
    stories="on request",
    card=OpportunityCard,
    title="EU funding opportunities",
    filters=(
        Filter("status", "status", values=STATUSES, help="Only calls with this status."),
        Filter("programme", "programme", help="Only this programme, by its abbreviation: HORIZON."),
        Filter("type", "type", values=tuple(TYPE_NAMES), help="Only this type of call."),
        Filter("identifier", "identifier", help="Only calls of this topic."),
        Filter("deadline_before", "deadline", "before", "date", help="Only calls whose next deadline is before a day."),
    ),
    facets=("status", "programme"),
    facet_values={"status": STATUSES},
    attributes={
        "type": tuple(TYPE_NAMES),
        "status": STATUSES,
        "event": (
            "new",
            "update",
            "opened",
            "status-changed",
            "deadline-moved",
            "budget-changed",
            "closing-soon",
        ),
        "closes": (),
        "programme": (),
        "identifier": (),
        "call": (),
        "action": (),
        "stage": (),
        "opening": (),
        "deadline": (),
        "deadlines": (),
        "budget": (),
        "keyword": (),
    },
    templates=__package__,
)
