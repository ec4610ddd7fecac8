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
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol

import msgspec

from tidings.model.backoff import RETRY_AFTER_SECONDS_MAX, RetryPolicy
from tidings.model.contracts import Kit, Notifier, Permit, Receipt
from tidings.model.errors import Ambiguous, Misconfigured, Permanent, SlowDown, StoreUnavailable, Transient
from tidings.model.item import split_ref
from tidings.model.outcome import Advance, Outcome, Postpone, Reject
from tidings.model.pipeline import Renew
from tidings.model.publication import Notice
from tidings.model.workflow import Work
from tidings.publish.deliveries import RETRY, Delivery, has_waited_too_long
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
    count: Callable[[str, str], None] = lambda _channel, _outcome: None
    """Told how each send ended: sent, slowed, refused, ambiguous, failed, late or expired."""
    renew: Mapping[str, Renew] = field(default_factory=dict)
    """Writes the notice of an item of a kind as it is true now."""
    retry: RetryPolicy = RETRY
    monotonic: Callable[[], float] = time.monotonic

    async def __call__(self, work: Work, kit: Kit) -> Outcome:  # noqa: ARG002  # a processor's form
        """Send one notice, or say how long the channel must wait."""
        channel = self._channel(work.body)
        _refuse_unknown_outcome(work, channel)
        if outdated := self._outdated(work):
            self.count(channel.name, "expired")
            return Reject(f"expired: {outdated}")
        if await self.is_paused(channel.name):
            return Postpone(_paused_until(work), f"channel {channel.name} is paused")
        # The lane claims by age, but a retry comes back later than what was queued behind it. Asking the store keeps
        # the order.
        older = await self.older(work)
        if older:
            wait_ms = await self.closed_for_ms(channel.rate) + older * TURN_MS
            return Postpone(work.now_ms + wait_ms, f"{older} older deliveries to {channel.name} go first")
        permit = await self.enter(
            channel.rate, limit=channel.limit, per_seconds=channel.per_seconds, hold_seconds=channel.hold_seconds
        )
        if permit.wait_ms > 0:
            return Postpone(work.now_ms + permit.wait_ms, f"channel {channel.name} is busy or at its rate")
        return await self._send(work, channel, permit)

    def sending_for(self, renew: Mapping[str, Renew], retry: RetryPolicy) -> Sender:
        """Return the same sender for one pipeline."""
        return dataclasses.replace(self, renew=renew, retry=retry)

    def _outdated(self, work: Work) -> str | None:
        """Say why a notice is no news any more."""
        body: Delivery = work.body
        if has_waited_too_long(body, work.now_ms):
            return f"it waited longer than {body.queue_days:g} days (queue_days of its route)"
        return None if self._notice_now(work) else "what it says is no longer true"

    def _notice_now(self, work: Work) -> Notice | None:
        """Return the notice as it is true now. An item that cannot be read any more leaves it as it was queued."""
        queued: Notice = work.body.notice
        kind, _ = split_ref(work.body.parent)
        about, renew = work.related.get(work.body.parent), self.renew.get(kind)
        return renew(about, queued, work.now_ms) if renew is not None and about is not None else queued

    def _channel(self, body: Delivery) -> Channel:
        try:
            return self.channels[body.channel]
        except KeyError:
            raise Misconfigured(
                f"channel {body.channel!r} is not configured; add it, or purge its deliveries"
            ) from None

    async def _send(self, work: Work, channel: Channel, permit: Permit) -> Outcome:
        """Send while the channel's one place is held. On leaving, say when the next may enter: that keeps the order."""
        result = _SendResult()
        try:
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
        try:
            receipt = await channel.notifier.send(self._notice_now(work) or work.body.notice, work.body.id)
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
        return _sent(work, receipt)

    def _backoff_ms(self, attempt: int) -> int:
        """Return the longest wait before the next try: until then no later delivery may overtake this one."""
        return 0 if self.retry.is_used_up(attempt, 0) else self.retry.delay_ms_max(attempt)


def _sent(work: Work, receipt: Receipt) -> Advance:
    proof = {"message_id": receipt.message_id, "sent_at": work.now_ms, "answer": receipt.answer}
    return Advance(body=msgspec.structs.replace(work.body, **proof), note=receipt.answer)


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
