"""The delivery processor: one at a time, in order, waits that cost nothing, doubts that are not hidden."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import inspect
from typing import Any

import msgspec
import pytest

from tidings.model.contracts import Permit, Receipt
from tidings.model.errors import Ambiguous, Misconfigured, Permanent, SlowDown, StoreUnavailable, Transient
from tidings.model.outcome import Advance, Postpone
from tidings.model.pipeline import Pipeline
from tidings.model.publication import Notice
from tidings.model.workflow import Work
from tidings.publish.deliveries import RETRY, delivery_workflow, with_deliveries
from tidings.publish.delivery import Delivery
from tidings.publish.notifiers.apprise import Apprise
from tidings.publish.notifiers.discord.webhook import Discord
from tidings.publish.sending import PAUSED_WAIT_MS, TURN_MS, Channel, Sender

NOW = 1_800_000_000_000
BODY = Delivery(id="abc", channel="eu", parent="opportunity:1", notice=Notice(title="A call"), queued_at=NOW)


FREE = Permit(0, 7)
NO_KIT: Any = None


class Scripted:
    """A notifier that answers as told."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer
        self.sent: list[str] = []

    async def send(self, notice, delivery_id):
        self.sent.append(delivery_id)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    def render(self, notice, delivery_id):
        return {}


class Desk:
    """The limiter and the switch, as the engine offers them."""

    def __init__(self, permit: Permit = FREE, paused: bool = False, older: int = 0, closed: int = 0) -> None:
        self.permit = permit
        self.paused = paused
        self.waiting = older
        self.closed = closed
        self.calls: list[tuple] = []

    async def enter(self, name, *, limit, per_seconds, hold_seconds):
        self.calls.append(("enter", name, limit, per_seconds))
        return self.permit

    async def leave(self, name, token, *, not_before_ms=0):
        self.calls.append(("leave", name, token, not_before_ms))

    async def pause_channel(self, channel, reason):
        self.calls.append(("pause", channel, reason))

    async def is_paused(self, channel):
        return self.paused

    async def older(self, work):
        return self.waiting

    async def closed_for_ms(self, rate):
        return self.closed

    async def open_digest(self, pipeline, prefix):
        return None

    async def gathered(self, work):
        return []


def a_sender(notifier: Scripted, desk: Desk, **channel) -> Sender:
    channels = {"eu": Channel("eu", notifier, **channel)}
    return a_sender_to(channels, desk)


def a_sender_to(channels: dict[str, Channel], desk: Desk) -> Sender:
    return Sender(
        channels, desk.enter, desk.leave, desk.pause_channel, desk.is_paused, desk.older, desk.closed_for_ms,
        desk.open_digest, desk.gathered,
    )  # fmt: skip


def a_work(**changes) -> Work:
    told: dict[str, Any] = {"attempt": 1, "body": BODY, **changes}
    return Work("eu_funding", "delivery", "eu/opportunity/1/1", "queued", revision=1, now_ms=NOW, **told)


async def run(answer, desk=None, channel=None, **work):
    desk = desk or Desk()
    notifier = Scripted(answer)
    sender = a_sender(notifier, desk, **(channel or {}))
    return await sender(a_work(**work), NO_KIT), notifier, desk


async def test_a_sent_delivery_keeps_its_proof():
    outcome, notifier, desk = await run(Receipt("99", "200 OK", not_before_ms=400))

    assert isinstance(outcome, Advance)
    assert (outcome.body.message_id, outcome.body.sent_at, outcome.body.answer) == ("99", NOW, "200 OK")
    assert notifier.sent == ["abc"]
    assert desk.calls == [("enter", "channel:eu", 30, 62.0), ("leave", "channel:eu", 7, 400)]


@pytest.mark.parametrize("answer", [Receipt("99", "200 OK"), Ambiguous("reset")], ids=["sent", "in doubt"])
async def test_a_place_that_cannot_be_given_back_changes_no_outcome(answer):
    """What was sent would be sent again, and what is in doubt would no longer be counted as such."""

    class Away(Desk):
        async def leave(self, name, token, *, not_before_ms=0):
            raise StoreUnavailable("the connection was cut")

    if isinstance(answer, Receipt):
        outcome, _, _ = await run(answer, Away())
        assert isinstance(outcome, Advance)
        assert outcome.body.message_id == "99"
    else:
        with pytest.raises(Ambiguous):
            await run(answer, Away())


@pytest.mark.parametrize(("policy", "error"), [("at-least-once", Ambiguous), ("at-most-once", Permanent)])
async def test_stopping_in_mid_send_leaves_a_doubt_that_is_counted(policy, error):
    begun = asyncio.Event()

    class Endless(Scripted):
        async def send(self, notice, delivery_id):
            begun.set()
            await asyncio.Event().wait()

    desk = Desk()
    sending = asyncio.create_task(a_sender(Endless(None), desk, policy=policy)(a_work(), NO_KIT))
    await begun.wait()
    sending.cancel()

    with pytest.raises(error):
        await sending
    assert desk.calls[-1][0] == "leave"


async def test_stopping_after_the_send_keeps_its_proof():
    leaving = asyncio.Event()

    class Slow(Desk):
        async def leave(self, name, token, *, not_before_ms=0):
            leaving.set()
            await asyncio.Event().wait()

    sending = asyncio.create_task(a_sender(Scripted(Receipt("99", "200 OK")), Slow())(a_work(), NO_KIT))
    await leaving.wait()
    sending.cancel()

    outcome = await sending
    assert isinstance(outcome, Advance)
    assert outcome.body.message_id == "99"


async def test_channels_on_one_webhook_share_a_rate():
    _, _, desk = await run(Receipt("1", ""), channel={"limiter": "discord:123"})

    assert {call[1] for call in desk.calls} == {"discord:123"}


async def test_a_full_channel_postpones_without_a_request():
    outcome, notifier, desk = await run(Receipt("1", ""), Desk(Permit(1500)))

    assert outcome == Postpone(NOW + 1500, "channel eu is busy or at its rate")
    assert notifier.sent == []
    assert [call[0] for call in desk.calls] == ["enter"]


async def test_a_paused_channel_postpones_without_a_request():
    outcome, notifier, desk = await run(Receipt("1", ""), Desk(paused=True))

    assert outcome == Postpone(NOW + PAUSED_WAIT_MS, "channel eu is paused")
    assert (notifier.sent, desk.calls) == ([], [])


@pytest.mark.parametrize(("waited_ms", "wait_ms"), [(0, 60_000), (7_200_000, 3_600_000), (5 * 10**8, 21_600_000)])
async def test_what_waits_long_for_a_paused_channel_looks_rarely(waited_ms, wait_ms):
    outcome, _, _ = await run(
        Receipt("1", ""), Desk(paused=True), body=msgspec.structs.replace(BODY, queued_at=NOW - waited_ms)
    )

    assert isinstance(outcome, Postpone)
    assert outcome.until == NOW + wait_ms


async def test_older_deliveries_go_first():
    outcome, notifier, desk = await run(Receipt("1", ""), Desk(older=3, closed=20_000))

    assert outcome == Postpone(NOW + 20_000 + 3 * TURN_MS, "3 older deliveries to eu go first")
    assert (notifier.sent, desk.calls) == ([], [])


async def test_a_rate_limit_holds_the_whole_channel_and_costs_no_attempt():
    outcome, _, desk = await run(SlowDown("wait", retry_after_seconds=64.57))

    assert outcome == Postpone(NOW + 64_570, "wait")
    assert desk.calls[-1] == ("leave", "channel:eu", 7, 64_570)


@pytest.mark.parametrize("stated", [None, 1e9])
async def test_a_wait_is_bounded(stated):
    outcome, _, _ = await run(SlowDown("wait", retry_after_seconds=stated))

    assert isinstance(outcome, Postpone)
    assert 60_000 <= outcome.until - NOW <= 3_600_000


async def test_a_dead_webhook_pauses_its_channel_and_loses_nothing():
    outcome, _, desk = await run(Misconfigured("discord:eu answered 404"))

    assert isinstance(outcome, Postpone)
    assert ("pause", "eu", "discord:eu answered 404") in desk.calls
    assert desk.calls[-1][0] == "leave"


@pytest.mark.parametrize(("attempt", "held_ms"), [(1, 24_000), (2, 48_000), (4, 192_000), (5, 0)])
async def test_a_failed_delivery_is_not_overtaken_before_its_next_try(attempt, held_ms):
    desk = Desk()
    with pytest.raises(Transient):
        await run(Transient("not reached"), desk, attempt=attempt)

    assert desk.calls[-1] == ("leave", "channel:eu", 7, held_ms)


async def test_a_doubt_is_raised_for_the_engine_to_count():
    desk = Desk()
    with pytest.raises(Ambiguous):
        await run(Ambiguous("no answer"), desk)

    assert desk.calls[-1][0] == "leave"


async def test_at_most_once_leaves_a_doubt_to_a_person():
    with pytest.raises(Permanent) as raised:
        await run(Ambiguous("no answer"), channel={"policy": "at-most-once"})

    assert raised.value.cause == "ambiguous"


async def test_at_most_once_does_not_resend_after_a_lost_lease():
    desk = Desk()
    with pytest.raises(Permanent) as raised:
        await run(Receipt("1", ""), desk, channel={"policy": "at-most-once"}, attempt=2, lost_leases=1)

    assert raised.value.cause == "ambiguous"
    assert desk.calls == []


async def test_at_least_once_resends_after_a_lost_lease():
    outcome, notifier, _ = await run(Receipt("1", ""), attempt=2, lost_leases=1)

    assert isinstance(outcome, Advance)
    assert notifier.sent == ["abc"]


async def test_at_most_once_tries_again_what_was_certainly_not_sent():
    outcome, _, _ = await run(Receipt("1", ""), channel={"policy": "at-most-once"}, attempt=3)

    assert isinstance(outcome, Advance)


async def test_nothing_is_sent_once_the_lease_is_nearly_over():
    outcome, notifier, desk = await run(Receipt("1", ""), deadline=0.0)

    assert isinstance(outcome, Postpone)
    assert notifier.sent == []
    assert desk.calls[-1] == ("leave", "channel:eu", 7, 0)


@pytest.mark.parametrize(
    ("answer", "ended"),
    [
        (Receipt("1", ""), "sent"),
        (SlowDown("wait", retry_after_seconds=1), "slowed"),
        (Misconfigured("gone"), "refused"),
        (Ambiguous("no answer"), "ambiguous"),
        (Transient("not reached"), "failed"),
        (Permanent("bad form"), "failed"),
    ],
)
async def test_every_turn_is_counted_by_how_it_ended(answer, ended):
    counted: list[tuple[str, str]] = []
    desk = Desk()
    sender = dataclasses.replace(a_sender(Scripted(answer), desk), count=lambda *told: counted.append(told))

    with contextlib.suppress(Transient, Permanent):
        await sender(a_work(), NO_KIT)

    assert counted == [("eu", ended)]


async def test_the_place_is_given_back_whatever_happens():
    desk = Desk()
    with pytest.raises(ZeroDivisionError):
        await run(ZeroDivisionError(), desk)

    assert desk.calls[-1][0] == "leave"


async def test_a_channel_that_is_no_longer_configured_needs_a_person():
    with pytest.raises(Misconfigured, match="'eu' is not configured"):
        await a_sender_to({}, Desk())(a_work(), NO_KIT)


def test_a_pipeline_says_how_often_its_notices_are_tried():
    pipeline = with_deliveries(
        Pipeline(name="x", title="X", about="", workflows={}, announce_attempts=9), a_sender(Scripted(None), Desk())
    )

    for name in ("send", "send_digest"):
        send = pipeline.workflows["delivery"].named(name)
        assert isinstance(send.processor, Sender)
        assert send.retry.attempts == send.processor.retry.attempts == 9
    assert [rule.kind for rule in pipeline.retention] == ["delivery"]


def test_what_sends_waits_in_the_notify_lane_and_what_rests_is_no_lag():
    workflow = delivery_workflow(a_sender(Scripted(None), Desk()))

    assert (workflow.start, workflow.terminal) == ("queued", frozenset({"sent"}))
    for state in ("queued", "sealed"):
        (send,) = workflow.automatic_from(state)
        assert (send.lane, send.publishes, send.is_pure) == ("notify", True, False)
        assert send.retry is RETRY
    assert [workflow.phase_of(state) for state in ("queued", "resting", "gathered", "sealed")] == [
        "announce", None, None, "announce",
    ]  # fmt: skip
    assert RETRY.attempts == 5


@pytest.mark.parametrize("notifier", [Discord, Apprise])
def test_a_dead_sender_keeps_others_out_longer_than_a_send_takes_but_less_than_a_minute(notifier: type) -> None:
    send_seconds = inspect.signature(notifier).parameters["timeout_seconds"].default
    hold_seconds = Channel("eu", Scripted(None)).hold_seconds

    assert send_seconds < hold_seconds < 60
