"""The body of a delivery: one notice on its way to one channel, or a digest of many."""

from __future__ import annotations

from hashlib import blake2b

import msgspec

from tidings.model.clock import DAY_MS
from tidings.model.publication import QUEUE_DAYS, Calm, Notice


class DigestMember(msgspec.Struct, frozen=True):
    """A notice that a digest carries: the key of its own delivery, what it tells of, and how it was queued."""

    key: str
    parent: str
    notice: Notice
    queued_at: int
    queue_days: float


class DigestContent(msgspec.Struct, frozen=True, kw_only=True):
    """What a digest holds. Its members are fixed before it is sent, and told of exactly once."""

    at: int
    """When it goes out."""
    members: tuple[DigestMember, ...] = ()
    told: tuple[str, ...] = ()
    """The members that the sent message stands for."""
    expired: tuple[str, ...] = ()
    """The members that were no news any more when it was sent."""


class Delivery(msgspec.Struct, frozen=True, kw_only=True):
    """The body: what is to be sent where, and the proof once it was."""

    id: str
    """Short; stands in the message's footer, so that a repeat can be recognized."""
    channel: str
    parent: str
    notice: Notice
    queued_at: int = 0
    queue_days: float = QUEUE_DAYS
    """How long it may wait."""
    route: str = ""
    calm: Calm = Calm()
    digest: DigestContent | None = None
    """Of a delivery that carries many notices in one message."""
    digest_key: str = ""
    """The delivery that this notice goes out in, where it is gathered."""
    waits_for: str = ""
    """What it rests for, in words."""
    message_id: str | None = None
    sent_at: int | None = None
    answer: str | None = None


def has_waited_too_long(body: Delivery | DigestMember, now_ms: int) -> bool:
    """Tell whether a notice waited longer than its route lets it."""
    return body.queued_at > 0 and now_ms - body.queued_at > body.queue_days * DAY_MS


def short_id(pipeline: str, key: str) -> str:
    """Return a name for a delivery short enough to stand in a footer."""
    return blake2b(f"{pipeline}/{key}".encode(), digest_size=6).hexdigest()
