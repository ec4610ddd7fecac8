"""Items that have to know another one begin again when it is accepted, however close the two come to each other."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec
import pytest
from tests.ground import Ground

from tidings.model.item import AWAITS, Finding, Lease, Link, fingerprint, ref
from tidings.model.outcome import Advance, Outcome
from tidings.model.pipeline import Pipeline
from tidings.model.workflow import Transition, Work, Workflow

OpenGround = Callable[..., Ground]


class Guest(msgspec.Struct, frozen=True):
    friend: str | None = None
    text: str = ""


def friend_of(work: Work) -> Iterable[str]:
    return () if work.body.friend is None else (ref("guest", work.body.friend),)


def look(work: Work) -> Outcome:
    return Advance()


def greet(work: Work) -> Outcome:
    """Await the friend always, as one would whose friend cannot be read."""
    return Advance(links=tuple(Link(ref("guest", work.key), friend, AWAITS) for friend in friend_of(work)))


def party(*, in_turn: bool = False) -> Pipeline:
    workflow = Workflow(
        "guest", "found", ("found", "seen", "greeted"),
        (
            Transition("look", "found", "seen", look, prefetch=friend_of),
            Transition("greet", "seen", "greeted", greet, publishes=True),
        ),
        frozenset({"greeted"}), body=Guest, in_turn=in_turn,
    )  # fmt: skip
    return Pipeline("party", "Party", "", {"guest": workflow})


def guest(key: str, friend: str | None = None, text: str = "") -> Finding:
    return Finding("party", "guest", key, fingerprint(key, friend, text), msgspec.json.encode(Guest(friend, text)))


def how(ground: Ground, key: str) -> list[tuple[str, str | None]]:
    return [(row.kind, row.actor) for row in ground.life(key, "guest") if row.kind != "attempt"]


def run_ahead(ground: Ground, *findings: Finding) -> int:
    """Append, run and write as a worker does; return how many were woken by it."""
    intake = ground.store.intake
    intake.append("party", findings)
    _, ahead = intake.merge_ahead("party")
    assert ahead is not None
    ran = [ground.attempt(lease) for lease in ahead.leases]
    return intake.merge_ahead("party", ahead, intake.prepare(ahead, ran), limit=0)[0].woken


BORN, WOKEN = ("born", None), ("woken", "guest:late")


@pytest.fixture
def ground(open_ground: OpenGround) -> Ground:
    return open_ground(party())


def test_who_awaits_somebody_begins_again_when_that_is_accepted(ground: Ground) -> None:
    ground.record(guest("early", "late"), guest("other", "nobody"))
    ground.work()
    ground.record(guest("late"))
    assert how(ground, "early") == [BORN], "what is only born may still fail"

    assert ground.settle(ground.claim_one()).born == 1

    assert ground.item("early", "guest").state == "found"
    assert how(ground, "early") == [BORN, WOKEN]
    ground.work()
    assert ground.item("early", "guest").state == "greeted"
    assert how(ground, "early") == [BORN, WOKEN], "it awaits in vain, but not again and again"
    assert how(ground, "other") == [BORN]


def test_who_awaits_one_that_was_run_before_its_birth_begins_again(ground: Ground) -> None:
    ground.record(guest("early", "late"))
    ground.work()

    assert run_ahead(ground, guest("late")) == 1

    assert how(ground, "early") == [BORN, WOKEN]


def test_who_was_worked_on_while_the_other_was_accepted_begins_again(ground: Ground) -> None:
    ground.record(guest("early", "late"))
    lease: Lease = ground.claim_one()
    ground.record(guest("late"))
    ground.settle(ground.claim_one())

    assert ground.settle(lease).born == 1

    assert how(ground, "early") == [BORN, WOKEN]


def test_who_was_run_before_birth_and_could_not_see_the_other_begins_again_once(ground: Ground) -> None:
    ground.record(guest("late"))
    ground.work()

    assert run_ahead(ground, guest("early", "late")) == 1
    ground.work()

    assert how(ground, "early") == [BORN, WOKEN]


def test_an_attempt_that_did_not_begin_at_the_start_is_made_again_from_there(ground: Ground) -> None:
    ground.record(guest("early", "late"), guest("late"))
    ground.work()
    before = how(ground, "early")
    ground.store.operations.replay("party", state="seen", keys=[("guest", "early")], actor="ada", dry_run=False)

    ground.work()

    assert ground.item("early", "guest").state == "greeted"
    assert how(ground, "early") == [*before, ("replayed", "ada"), WOKEN]


def test_what_two_transactions_at_once_have_missed_is_found_later(ground: Ground) -> None:
    ground.record(guest("early"), guest("late"))
    ground.work()
    ground.write("INSERT INTO links VALUES ('party', 'awaits', 'guest:early', 1, 'guest:late', NULL)")
    ground.write("INSERT INTO links VALUES ('party', 'awaits', 'guest:early', 1, 'guest:nobody', NULL)")

    assert ground.store.items.wake_missed() == 1
    assert how(ground, "early") == [BORN, WOKEN]
    assert ground.store.items.wake_missed() == 0


def test_revisions_that_wait_their_turn_are_not_lost(open_ground: OpenGround) -> None:
    ground = open_ground(party(in_turn=True))
    ground.record(guest("early", "late"))
    ground.work()
    ground.record(guest("early", "late", "second"))
    lease: Lease = ground.claim_one()
    ground.record(guest("early", "late", "third"))
    ground.record(guest("early", "late", "fourth"))

    run_ahead(ground, guest("late"))

    assert not ground.settle(lease).done, "it has to look again"
    seen = []
    while leases := ground.claim():
        seen += [msgspec.json.decode(lease.body, type=Guest).text for lease in leases]
        ground.settle(*leases)
    assert list(dict.fromkeys(seen)) == ["second", "third", "fourth"]
