"""A delivery carries one notice to one channel: an item like any other, with a workflow of two states.

It is born in the transaction that publishes its parent, so no notice is lost and none announces what was never
published. The committed claim is the record that a send may have begun.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Protocol, runtime_checkable

import msgspec

from tidings.model.backoff import RetryPolicy
from tidings.model.clock import read_time, rfc3339
from tidings.model.item import Finding, fingerprint, ref
from tidings.model.outcome import Advance
from tidings.model.pipeline import Deliver, Pipeline, Renew
from tidings.model.publication import (
    DELIVERY,
    Collection,
    Document,
    Filter,
    Notice,
    Presentation,
    Retention,
    Route,
)
from tidings.model.query import Query, parse
from tidings.model.query_match import matches
from tidings.model.vocabulary import PLAIN, Vocabulary, vocabulary_of
from tidings.model.workflow import NOTIFY, Processor, Transition, Work, Workflow
from tidings.publish.delivery import Delivery, short_id
from tidings.publish.digests import Accountant

DELIVERIES_DAYS = 90
STORY = "story"
"""The kind that a delivery's key names where it tells of a story."""
ASKS_FOR_EVENTS = "event:"
"""What a date brings, rather than a change, goes to routes that ask for events: the others would get a flood."""
SEALED = "sealed"
"""The state of a digest whose members are fixed."""
RETRY = RetryPolicy(attempts=5, base_seconds=20, cap_seconds=900)


class DeliveryCard(msgspec.Struct, frozen=True, kw_only=True):
    """What readers see of a delivery."""

    id: str
    channel: str
    title: str
    url: str | None
    parent: str
    state: str
    message_id: str | None
    sent_at: str | None
    answer: str | None


def delivery_workflow(
    send: Processor, retry: RetryPolicy = RETRY, account: Processor = lambda _: Advance()
) -> Workflow:
    """Declare the life of a delivery.

    A notice is sent at once, or rests until the quiet hours end, or is gathered into a digest: a delivery of its own,
    which is sealed, so that nobody joins it any more, and then sent.
    """
    return Workflow(
        kind=DELIVERY,
        start="queued",
        states=("queued", "resting", "gathered", "sealed", "sent"),
        terminal=frozenset({"sent"}),
        body=Delivery,
        # A notice that went out is never sent again, however its parent is processed later.
        tombstones_are_final=True,
        transitions=(
            Transition(
                "send",
                "queued",
                "sent",
                processor=send,
                lane=NOTIFY,
                retry=retry,
                publishes=True,
                prefetch=_told_of,
            ),
            Transition("rest", "queued", "resting", trigger="chosen"),
            Transition("wake", "resting", "queued", _wake, trigger="scheduled"),
            Transition("gather", "queued", "gathered", trigger="chosen"),
            Transition(
                "account", "gathered", "sent", account, trigger="scheduled", publishes=True, prefetch=_accounted_by
            ),
            Transition("join_next", "gathered", "queued", trigger="chosen"),
            Transition("seal", "queued", "sealed", trigger="chosen", publishes=True),
            Transition(
                "send_digest",
                "sealed",
                "sent",
                processor=send,
                lane=NOTIFY,
                retry=retry,
                publishes=True,
                prefetch=_told_of,
            ),
        ),
    )


def _told_of(work: Work) -> tuple[str, ...]:
    body: Delivery = work.body
    if body.digest is None:
        return (body.parent,)
    return tuple(dict.fromkeys(member.parent for member in body.digest.members))


def _accounted_by(work: Work) -> tuple[str, ...]:
    return (work.body.parent, ref(DELIVERY, work.body.digest_key))


def _wake(work: Work) -> Advance:
    return Advance(body=msgspec.structs.replace(work.body, waits_for=""))


def deliveries_for(
    pipeline: str, work: Work, notices: Sequence[Notice], routes: Sequence[Route], vocabulary: Vocabulary = PLAIN
) -> tuple[Finding, ...]:
    """Return the deliveries to be born with a publication: one per notice and channel whose route asks for it."""
    found: dict[str, Finding] = {}
    for number, notice in enumerate(notices):
        document = _document(notice)
        for route in routes:
            if (
                route.pipeline == pipeline
                and (route.stories > 0) == (work.kind == STORY)
                and (not notice.occasion or ASKS_FOR_EVENTS in route.query)
                and matches(_parsed(route, vocabulary, work.now_ms), document, pipeline)
            ):
                delivery = _delivery(pipeline, work, notice, number, route)
                # Two routes to one channel may both match: the notice goes there once.
                found.setdefault(delivery.key, delivery)
    return tuple(found.values())


def delivering(routes: Sequence[Route], pipelines: Sequence[Pipeline] = ()) -> Deliver:
    """Return what makes deliveries by some routes, whose queries ask for what the pipelines declare."""
    vocabularies = {pipeline.name: vocabulary_of(pipelines, within=pipeline.name) for pipeline in pipelines}

    def deliver(work: Work, notices: tuple[Notice, ...]) -> tuple[Finding, ...]:
        return deliveries_for(work.pipeline, work, notices, routes, vocabularies.get(work.pipeline, PLAIN))

    return deliver


@runtime_checkable
class Sends(Protocol):
    """A processor of deliveries that wants to know whose notices it sends, and how often it is tried."""

    def sending_for(self, renew: Mapping[str, Renew], retry: RetryPolicy) -> Processor:
        """Return the same processor for one pipeline."""
        ...


def with_deliveries(pipeline: Pipeline, send: Processor) -> Pipeline:
    """Give a pipeline that announces something the kind, collection and retention of its deliveries."""
    retry = dataclasses.replace(RETRY, attempts=pipeline.announce_attempts)
    processor = send.sending_for(pipeline.renew, retry) if isinstance(send, Sends) else send
    accountant = Accountant(pipeline.renew)
    return dataclasses.replace(
        pipeline,
        workflows={**pipeline.workflows, DELIVERY: delivery_workflow(processor, retry, accountant)},
        collections=(*pipeline.collections, DELIVERIES),
        presenters={**pipeline.presenters, DELIVERY: present_delivery},
        retention=(*pipeline.retention, Retention(DELIVERY, days=DELIVERIES_DAYS, forget_days=DELIVERIES_DAYS)),
    )


def present_delivery(key: str, body: Delivery) -> Presentation | None:  # noqa: ARG001  # a presenter's form
    """Show a sent delivery; it is no document of its own, since its parent is."""
    if body.digest is not None and body.sent_at is None:
        return None
    card = DeliveryCard(
        id=body.id,
        channel=body.channel,
        title=body.notice.title,
        url=body.notice.url,
        parent=body.parent,
        state="sent" if body.sent_at is not None else "queued",
        message_id=body.message_id,
        sent_at=rfc3339(body.sent_at),
        answer=body.answer,
    )
    return Presentation("deliveries", body.id, card, sort=body.sent_at or body.queued_at)


DELIVERIES = Collection(
    name="deliveries",
    singular=DELIVERY,
    kind=DELIVERY,
    card=DeliveryCard,
    title="Deliveries",
    filters=(
        Filter("channel", "channel", help="Only what went to this channel."),
        Filter("parent", "parent", help="Only what told of this item, such as opportunity:50130830TOPICS."),
    ),
    facets=("channel", "state"),
    is_searched=False,
    summary_field="answer",
    time_field="sent_at",
)


def _delivery(pipeline: str, work: Work, notice: Notice, number: int, route: Route) -> Finding:
    # The revision is part of the key: a correction is announced, and the same publication made twice is not.
    occasion = notice.occasion or f"{work.revision}" + (f"/{number}" if number else "")
    key = f"{route.channel}/{work.kind}/{work.key}/{occasion}"
    body = Delivery(
        id=short_id(pipeline, key),
        channel=route.channel,
        parent=ref(work.kind, work.key),
        notice=notice,
        queued_at=work.now_ms,
        queue_days=route.queue_days,
        route=route.name,
        calm=route.calm,
    )
    return Finding(pipeline, DELIVERY, key, fingerprint(key), msgspec.json.encode(body))


def _document(notice: Notice) -> Document:
    """See a notice the way the search index sees an item, so that routes and searches mean the same."""
    attributes: dict[str, Any] = notice.attributes
    return Document(
        title=notice.title,
        text=notice.text,
        author=attributes.get("by"),
        type=attributes.get("type"),
        score=attributes.get("score"),
        time_ms=_milliseconds(notice.time),
        url=notice.url,
        attributes=attributes,
        language=notice.language,
    )


def _milliseconds(moment: str | None) -> int:
    return read_time(moment) or 0


def _parsed(route: Route, vocabulary: Vocabulary, now_ms: int) -> Query:
    """Parse a route's query, once a minute: `after:7d` moves on with the time."""
    return _parsed_at(route.query, vocabulary, now_ms - now_ms % 60_000)


@lru_cache(maxsize=256)
def _parsed_at(query: str, vocabulary: Vocabulary, now_ms: int) -> Query:
    return parse(query, vocabulary, now_ms=now_ms)
