"""Sends deliveries: one at a time per channel, in order, never faster than the channel allows.

A rate that is used up, a channel that asked for a pause and a paused channel all postpone, which spends no attempt.
What is sent is the notice as it is true now; one that waited too long, or is no longer true, is rejected as expired.
"""

from __future__ import annotations

import asyncio
import dataclasses
import logging
import math
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

import msgspec

from tidings.model.backoff import RETRY_AFTER_SECONDS_MAX, RetryPolicy
from tidings.model.contracts import Kit, Notifier, Permit, Receipt
from tidings.model.errors import Ambiguous, Misconfigured, Permanent, SlowDown, StoreUnavailable, Transient
from tidings.model.outcome import Advance, Outcome, Postpone, Reject
from tidings.model.pipeline import Renew
from tidings.model.publication import Texts
from tidings.model.texts import worded
from tidings.model.workflow import Work
from tidings.publish.deliveries import RETRY, SEALED
from tidings.publish.delivery import Delivery
from tidings.publish.digests import (
    GatheredDelivery,
    digest_now,
    digest_prefix,
    gathered,
    notice_now,
    quiet_until,
    resting,
    sealed,
    why_outdated,
)
from tidings.watch.logs import event

PAUSED_WAIT_MS = 60_000
PAUSED_WAIT_MS_MAX = 6 * 3_600_000
"""What waits for a paused channel looks ever more rarely; resuming the channel wakes it."""
TURN_MS = 500
"""How long each older delivery in the line is expected to take."""
WAIT_SECONDS_UNSTATED = 60.0

Policy = Literal["at-least-once", "at-most-once"]
"""What to do when nobody knows whether a message was posted: send it again, or leave it to a person."""


class Enter(Protocol):
    """Asks a limiter, shared by all workers, for its one place."""

    async def __call__(self, name: str, *, limit: int, per_seconds: float, hold_seconds: float) -> Permit: ...  # noqa: D102


class Leave(Protocol):
    """Gives the place back."""

    async def __call__(self, name: str, token: int, *, not_before_ms: int = 0) -> None: ...  # noqa: D102


@dataclass(frozen=True, slots=True)
class Channel:
    """Where notices go, and how carefully."""

    name: str
    notifier: Notifier
    policy: Policy = "at-least-once"
    limiter: str = ""
    """The shared rate's name; channels on one webhook share one. Empty: the channel has its own."""
    limit: int = 30
    per_seconds: float = 62.0
    """A little longer than the minute Discord counts by: of two requests the first may take longer to arrive."""
    texts: Texts = Texts()
    hold_seconds: float = 45.0
    """How long a worker that died inside keeps others out; longer than any send takes."""

    @property
    def rate(self) -> str:
        """The limiter's name."""
        return self.limiter or f"channel:{self.name}"


@dataclass(slots=True)
class _SendResult:
    """How one send ended, and how long the next must wait."""

    ended: str = "failed"
    not_before_ms: int = 0


@dataclass(frozen=True, slots=True)
class Sender:
    """The processor of deliveries."""

    channels: Mapping[str, Channel]
    enter: Enter
    leave: Leave
    pause_channel: Callable[[str, str], Awaitable[None]]
    is_paused: Callable[[str], Awaitable[bool]]
    older: Callable[[Work], Awaitable[int]]
    """Counts the older deliveries to the same channel that are still to be sent; they go first."""
    closed_for_ms: Callable[[str], Awaitable[int]]
    """Tells how long a rate lets nobody enter, without entering."""
    open_digest: Callable[[str, str], Awaitable[str | None]]
    """Finds the key of the digest, by a pipeline and what its key begins with, that is not sealed yet."""
    gathered: Callable[[Work], Awaitable[Sequence[GatheredDelivery]]]
    """Reads the deliveries that wait for a digest."""
    count: Callable[[str, str], None] = lambda _channel, _outcome: None
    """Told how each send ended: sent, slowed, refused, ambiguous, failed, late, held or expired."""
    renew: Mapping[str, Renew] = field(default_factory=dict)
    """Writes the notice of an item of a kind as it is true now."""
    retry: RetryPolicy = RETRY
    texts: Mapping[str, Texts] = field(default_factory=dict)
    """The words of each route's notices, by its name; one that is gone leaves those of the channel."""
    monotonic: Callable[[], float] = time.monotonic

    async def __call__(self, work: Work, kit: Kit) -> Outcome:  # noqa: ARG002  # a processor's form
        """Send one notice, or say how long the channel must wait."""
        body: Delivery = work.body
        channel = self._channel(body)
        _refuse_unknown_outcome(work, channel)
        if work.state == SEALED:
            if (ends := quiet_until(body, work.now_ms)) is not None:
                return Postpone(ends, "waits for the end of the quiet hours")
        elif early := await self._too_early(work, channel):
            return early
        if await self.is_paused(channel.name):
            return Postpone(_paused_until(work), f"channel {channel.name} is paused")
        # The lane claims by age, but a retry comes back later than what was queued behind it. Asking the store keeps
        # the order.
        older = await self.older(work)
        if older:
            wait_ms = await self.closed_for_ms(channel.rate) + older * TURN_MS
            return Postpone(work.now_ms + wait_ms, f"{older} older deliveries to {channel.name} go first")
        if body.digest is not None and work.state != SEALED:
            if over := await self._within_the_hour(work, channel):
                return over
            return sealed(work, await self.gathered(work))
        permit = await self.enter(
            channel.rate, limit=channel.limit, per_seconds=channel.per_seconds, hold_seconds=channel.hold_seconds
        )
        if permit.wait_ms > 0:
            return Postpone(work.now_ms + permit.wait_ms, f"channel {channel.name} is busy or at its rate")
        return await self._send(work, channel, permit)

    def sending_for(self, renew: Mapping[str, Renew], retry: RetryPolicy) -> Sender:
        """Return the same sender for one pipeline."""
        return dataclasses.replace(self, renew=renew, retry=retry)

    async def _too_early(self, work: Work, channel: Channel) -> Outcome | None:
        """End what is no news any more; let a notice rest, or wait for its digest, where its route wants that."""
        body: Delivery = work.body
        outdated = why_outdated(body, body.parent, body.notice, self.renew, work) if body.digest is None else None
        if outdated:
            self.count(channel.name, "expired")
            return Reject(f"expired: {outdated}")
        if body.calm.digest and body.digest is None:
            return await self._gather(work)
        return resting(work)

    async def _gather(self, work: Work, why: str = "") -> Outcome:
        return gathered(work, await self.open_digest(work.pipeline, digest_prefix(work.body)), why=why)

    async def _within_the_hour(self, work: Work, channel: Channel) -> Outcome | None:
        """Count the message against its route's limit; None where it may go out. A retry was counted before."""
        body: Delivery = work.body
        limit = body.calm.max_per_hour
        # A digest is counted before it is sealed: once it is, nothing but the channel keeps it.
        if not limit or work.attempt > 1 or work.state == SEALED:
            return None
        rate = f"route:{body.route}"
        permit = await self.enter(rate, limit=limit, per_seconds=3600.0, hold_seconds=channel.hold_seconds)
        if permit.wait_ms <= 0:
            await self.leave(rate, permit.token)
            return None
        words = f"{limit} messages an hour are the most (max_per_hour)"
        if body.digest is not None:
            # Resting, it keeps no later delivery from going first: they would ask again and again, all the hour.
            waiting = msgspec.structs.replace(body, waits_for=f"its turn: {words}")
            return Advance(way="rest", body=waiting, due_at=work.now_ms + permit.wait_ms, note=words)
        if permit.wait_ms > channel.hold_seconds * 1000:
            return await self._gather(work, f": {words}")
        return Postpone(work.now_ms + permit.wait_ms, words)

    def _channel(self, body: Delivery) -> Channel:
        try:
            return self.channels[body.channel]
        except KeyError:
            raise Misconfigured(
                f"channel {body.channel!r} is not configured; add it, or purge its deliveries"
            ) from None

    async def _send(self, work: Work, channel: Channel, permit: Permit) -> Outcome:
        """Send while the channel's one place is held. On leaving, say when the next may enter: that keeps the order."""
        result = _SendResult(ended="held")
        try:
            if (over := await self._within_the_hour(work, channel)) is not None:
                return over
            result.ended = "failed"
            return await self._take(result, work, channel)
        finally:
            self.count(channel.name, result.ended)
            await self._leave(channel, permit, result)

    async def _leave(self, channel: Channel, permit: Permit, result: _SendResult) -> None:
        """Give the place back. Where the store is away, or the worker stops, it runs out by itself.

        Neither may undo what was sent: it would be sent again, and nobody would have counted a doubt.
        """
        try:
            await self.leave(channel.rate, permit.token, not_before_ms=result.not_before_ms)
        except (StoreUnavailable, asyncio.CancelledError) as error:
            event("place not given back", level=logging.WARNING, channel=channel.name, error=str(error) or "stopped")

    async def _take(self, result: _SendResult, work: Work, channel: Channel) -> Outcome:
        """Make the request and note in `result` how it ended."""
        # Waiting for the place took time. A request that outlives its lease may be made a second time by another
        # worker.
        if self.monotonic() >= work.deadline:
            result.ended = "late"
            return Postpone(work.now_ms, "the lease was nearly over; nothing was sent")
        body, words = self._body_now(work), self.texts.get(work.body.route, channel.texts)
        if body is None:
            result.ended = "expired"
            return Reject("expired: none of its notices is true any more")
        try:
            receipt = await channel.notifier.send(worded(body.notice, words), body.id)
        except SlowDown as request:
            result.ended, result.not_before_ms = "slowed", _wait_ms(request)
            return Postpone(work.now_ms + result.not_before_ms, str(request))
        except Misconfigured as problem:
            result.ended = "refused"
            # Every later notice would fail the same way, and Discord bans senders of many invalid requests.
            await self.pause_channel(channel.name, str(problem))
            return Postpone(_paused_until(work), f"channel {channel.name} was paused: {problem}")
        except (Transient, asyncio.CancelledError) as failure:
            # A worker that is stopped while a request is on its way will never know whether it arrived.
            error = failure if isinstance(failure, Transient) else Ambiguous("the worker stopped while it was sending")
            result.ended = "ambiguous" if isinstance(error, Ambiguous) else "failed"
            result.not_before_ms = self._backoff_ms(work.attempt)
            if result.ended == "ambiguous" and channel.policy == "at-most-once":
                # A dead letter waits for a person, who can look into the channel.
                raise Permanent(f"ambiguous: {error}", cause="ambiguous") from None
            raise error from None
        result.ended, result.not_before_ms = "sent", receipt.not_before_ms
        return _sent(work, body, receipt)

    def _body_now(self, work: Work) -> Delivery | None:
        """Return what is sent as it is true now."""
        if work.state == SEALED:
            return digest_now(work, self.renew)
        body: Delivery = work.body
        notice = notice_now(body.parent, body.notice, self.renew, work) or body.notice
        return msgspec.structs.replace(body, notice=notice)

    def _backoff_ms(self, attempt: int) -> int:
        """Return the longest wait before the next try: until then no later delivery may overtake this one."""
        return 0 if self.retry.is_used_up(attempt, 0) else self.retry.delay_ms_max(attempt)


def _sent(work: Work, body: Delivery, receipt: Receipt) -> Advance:
    proof: dict[str, Any] = {"message_id": receipt.message_id, "sent_at": work.now_ms, "answer": receipt.answer}
    # A notice is kept as it was queued; a digest as it was told, for its members to see.
    kept = body if body.digest is not None else work.body
    return Advance(body=msgspec.structs.replace(kept, **proof), note=receipt.answer)


def _refuse_unknown_outcome(work: Work, channel: Channel) -> None:
    """A lost lease may have been a send; where repeats are worse than gaps, a person decides."""
    if channel.policy == "at-most-once" and work.lost_leases > 0:
        raise Permanent(
            f"a worker was lost while it may have been sending to {channel.name}; look there, then revive to resend",
            cause="ambiguous",
        )


def _paused_until(work: Work) -> int:
    body: Delivery = work.body
    waited_ms = work.now_ms - body.queued_at
    return work.now_ms + min(max(PAUSED_WAIT_MS, waited_ms // 2), PAUSED_WAIT_MS_MAX)


def _wait_ms(request: SlowDown) -> int:
    seconds = WAIT_SECONDS_UNSTATED if request.retry_after_seconds is None else request.retry_after_seconds
    return math.ceil(min(seconds, RETRY_AFTER_SECONDS_MAX) * 1000)
