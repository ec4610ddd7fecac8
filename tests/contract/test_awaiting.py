"""Items that have to know another one begin again when it is accepted, however close the two come to each other."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor

import msgspec
import pytest
from tests.support.store import Ground

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


def is_alone(work: Work) -> bool:
    return not set(friend_of(work)) <= set(work.related)


def party(*, in_turn: bool = False, is_shy: bool = False) -> Pipeline:
    """Guests that look for a friend. The shy publish nothing before they see that friend; others do at once."""
    waiting = (Transition("wait", "seen", "waiting", greet, criterion=is_alone),) if is_shy else ()
    workflow = Workflow(
        "guest", "found", ("found", "seen", *(["waiting"] if is_shy else []), "greeted"),
        (
            Transition("look", "found", "seen", look, prefetch=friend_of),
            *waiting,
            Transition("greet", "seen", "greeted", greet, publishes=True),
        ),
        frozenset({"greeted", *(["waiting"] if is_shy else [])}), body=Guest, in_turn=in_turn,
    )  # fmt: skip
    return Pipeline("party", "Party", "", {"guest": workflow})


def guest(key: str, friend: str | None = None, text: str = "") -> Finding:
    return Finding("party", "guest", key, fingerprint(key, friend, text), msgspec.json.encode(Guest(friend, text)))


def how(ground: Ground, key: str) -> list[tuple[str, str | None]]:
    return [(row.kind, row.actor) for row in ground.life(key, "guest") if row.kind != "attempt"]


def run_ahead(ground: Ground, *findings: Finding) -> int:
    """Append, run before birth and settle as a worker does; return how many were woken by it."""
    ground.store.intake.append("party", findings)
    _, reservation = ground.store.intake.claim_findings("party")
    assert reservation is not None
    return ground.store.items.settle([ground.attempt(lease) for lease in reservation.leases()]).born


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


@pytest.mark.parametrize("first", ["early", "late"])
@pytest.mark.parametrize("is_shy", [False, True], ids=["published", "unpublished"])
def test_two_transactions_at_once_do_not_miss_each_other(open_ground: OpenGround, first: str, is_shy: bool) -> None:
    """One states that it awaits an item while the other accepts just that; neither sees the other's rows.

    Two that publish also wait for each other at the shelf's version. One that publishes nothing meets the other only at
    the lock for awaiting.
    """
    one, two, looking = (open_ground(party(is_shy=is_shy)) for _ in range(3))
    one.record(guest("early", "late"), guest("late"))
    attempts = {lease.key: one.attempt(lease) for lease in one.claim()}
    second = "late" if first == "early" else "early"

    with ThreadPoolExecutor(1) as pool:
        with one.database.transaction():
            one.store.items.settle([attempts[first]])
            settling = pool.submit(two.store.items.settle, [attempts[second]])
            looking.wait_until_blocked(settling)
        assert settling.result().done

    assert WOKEN in how(one, "early")
    one.work()
    assert one.item("early", "guest").state == "greeted"


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
