"""Items that have to know another one begin again when it is born, however close the two come to each other."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import msgspec
import pytest
from tests.ground import Ground
from tests.shell import until

from tidings.model.item import AWAITS, Finding, Link, fingerprint, ref
from tidings.model.outcome import Advance, Outcome
from tidings.model.pipeline import Pipeline
from tidings.model.workflow import Transition, Work, Workflow
from tidings.store.adopting import Arrival, adopt

OpenGround = Callable[..., Ground]


class Guest(msgspec.Struct, frozen=True):
    friend: str | None = None


def look(work: Work) -> Outcome:
    return Advance()


def greet(work: Work) -> Outcome:
    """Await the friend always, as one would whose friend cannot be read."""
    friend = work.body.friend
    links = () if friend is None else (Link(ref("guest", work.key), ref("guest", friend), AWAITS),)
    return Advance(links=links)


def party() -> Pipeline:
    workflow = Workflow(
        "guest", "found", ("found", "seen", "greeted"),
        (Transition("look", "found", "seen", look), Transition("greet", "seen", "greeted", greet)),
        frozenset({"greeted"}), body=Guest,
    )  # fmt: skip
    return Pipeline("party", "Party", "", {"guest": workflow})


def guest(key: str, friend: str | None = None) -> Finding:
    return Finding("party", "guest", key, fingerprint(key, friend), msgspec.json.encode(Guest(friend)))


def how(ground: Ground, key: str) -> list[tuple[str, str | None]]:
    return [(row.kind, row.actor) for row in ground.life(key, "guest") if row.kind != "attempt"]


BORN, WOKEN = ("born", None), ("woken", "guest:late")


@pytest.fixture
def ground(open_ground: OpenGround) -> Ground:
    return open_ground(party())


def test_who_awaits_a_newborn_begins_again(ground: Ground) -> None:
    ground.record(guest("early", "late"), guest("other", "nobody"))
    ground.work()
    assert ground.item("early", "guest").state == "greeted"

    ground.record(guest("late"))

    assert ground.item("early", "guest").state == "found"
    assert how(ground, "early") == [BORN, WOKEN]
    assert how(ground, "other") == [BORN]


def test_who_awaits_one_that_was_run_before_its_birth_begins_again(ground: Ground) -> None:
    ground.record(guest("early", "late"))
    ground.work()
    intake = ground.store.intake
    intake.append("party", [guest("late")])
    _, ahead = intake.merge_ahead("party")
    assert ahead is not None
    ran = [ground.attempt(lease) for lease in ahead.leases]

    merged, _ = intake.merge_ahead("party", ahead, intake.prepare(ahead, ran), limit=0)

    assert (merged.born, merged.woken) == (1, 1)
    assert how(ground, "early") == [BORN, WOKEN]


def test_who_was_worked_on_while_the_other_was_born_begins_again(ground: Ground) -> None:
    ground.record(guest("early", "late"))
    lease = ground.claim_one()
    ground.record(guest("late"))

    assert ground.settle(lease).born == 1

    assert ground.item("early", "guest").state == "found"
    assert how(ground, "early") == [BORN, WOKEN]


def test_who_was_run_before_birth_while_the_other_is_here_begins_again(ground: Ground) -> None:
    ground.record(guest("late"))
    intake = ground.store.intake
    intake.append("party", [guest("early", "late")])
    _, ahead = intake.merge_ahead("party")
    assert ahead is not None

    intake.merge_ahead("party", ahead, intake.prepare(ahead, [ground.attempt(x) for x in ahead.leases]), limit=0)

    assert how(ground, "early") == [BORN, WOKEN]


def test_a_birth_that_is_not_committed_yet_is_waited_for(ground: Ground, open_ground: OpenGround) -> None:
    ground.record(guest("early", "late"))
    settlement = ground.attempt(ground.claim_one())
    other = open_ground(party())
    with ThreadPoolExecutor(1) as threads:
        with other.database.transaction() as tx:
            other.database.lock(tx, "merge:party")
            adopt(tx, other.pipelines, [Arrival(guest("late"), 1)])
            settling = threads.submit(ground.store.items.settle, [settlement])
            if ground.database.dialect == "postgres":
                waits = "SELECT 1 FROM pg_locks WHERE NOT granted AND locktype = 'advisory'"
                until(lambda: other.sql(waits) or None, lambda: "the settle does not wait")
        settling.result()

    assert how(ground, "early") == [BORN, WOKEN]


def test_awaiting_somebody_who_has_long_been_here_ends(ground: Ground) -> None:
    ground.record(guest("late"))
    ground.advance(seconds=11)
    ground.record(guest("early", "late"))

    ground.work()

    assert ground.item("early", "guest").state == "greeted"
    assert how(ground, "early") == [BORN]


def test_an_attempt_that_did_not_begin_at_the_start_is_made_again_from_there(ground: Ground) -> None:
    ground.record(guest("late"))
    ground.advance(seconds=11)
    ground.record(guest("early", "late"))
    ground.work()
    ground.store.operations.replay("party", state="seen", keys=[("guest", "early")], actor="ada", dry_run=False)

    ground.work()

    assert ground.item("early", "guest").state == "greeted"
    assert how(ground, "early") == [BORN, ("replayed", "ada"), WOKEN]
