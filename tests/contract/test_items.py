"""Items and leases: one worker acts at a time, and nobody writes without the right to."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import msgspec
import pytest
from tests.support import example
from tests.support.example import thing
from tests.support.own_sql import own_sql
from tests.support.store import LEASE_SECONDS, Ground, altered

from tidings.model.errors import BadInput, StoreUnavailable
from tidings.model.item import HIGH, LOW, ByHand, Finding, Leased, Link, fingerprint
from tidings.model.item_views import Replayed
from tidings.model.outcome import Advance, Outcome
from tidings.model.pipeline import Pipeline
from tidings.model.settlement import Settlement
from tidings.model.workflow import Transition, Work, Workflow

OpenGround = Callable[..., Ground]


def keys(leases: list[Any]) -> list[str]:
    return sorted(lease.key for lease in leases)


# Claiming


def test_a_claim_takes_the_newest_first(ground: Ground) -> None:
    for number in range(5):
        ground.record(thing(str(number)))
        ground.advance(seconds=1)

    assert [ground.claim_one().key for _ in range(4)] == ["4", "3", "2", "1"]


def test_priority_goes_before_age(ground: Ground) -> None:
    ground.record(altered(thing("high"), priority=HIGH))
    ground.advance(seconds=1)
    ground.record(thing("normal"), altered(thing("low"), priority=LOW))

    assert [ground.claim_one().key for _ in range(3)] == ["high", "normal", "low"]


def test_a_share_of_each_claim_goes_to_the_oldest(ground: Ground) -> None:
    for number in range(30):
        ground.record(thing(f"{number:02}"))
        ground.advance(seconds=1)

    assert keys(ground.claim(10)) == ["00", "01", *(f"{n:02}" for n in range(22, 30))]


def test_the_oldest_get_their_share_of_small_claims_too(ground: Ground) -> None:
    """A lane with room for one must not starve what is old while new things keep coming."""
    ground.record(thing("old"))
    claimed = []
    for number in range(10):
        ground.advance(seconds=1)
        ground.record(thing(f"new {number}"))
        claimed.append(ground.claim_one().key)

    assert "old" in claimed[:6]
    assert claimed.count("old") == 1


def test_a_lane_in_order_is_claimed_by_age_alone(ground: Ground) -> None:
    for number, priority in enumerate([LOW, HIGH, LOW, HIGH]):
        ground.record(altered(thing(str(number)), priority=priority))
        ground.advance(seconds=1)

    assert [ground.claim_one(in_order=True).key for _ in range(4)] == ["0", "1", "2", "3"]


def test_a_claim_returns_at_most_n_distinct_items(ground: Ground) -> None:
    ground.record(*(thing(str(n)) for n in range(25)))

    first, second, third = ground.claim(10), ground.claim(10), ground.claim(10)

    assert [len(first), len(second), len(third)] == [10, 10, 5]
    assert len({lease.id for lease in [*first, *second, *third]}) == 25
    assert ground.claim(10) == []


def test_claims_of_many_threads_never_share_an_item(open_ground: OpenGround) -> None:
    processes = [open_ground(), open_ground()]
    processes[0].record(*(thing(str(n)) for n in range(200)))

    def claim(number: int) -> list[int]:
        return [lease.id for _ in range(4) for lease in processes[number % 2].claim(10, owner=f"worker {number}")]

    with ThreadPoolExecutor(6) as pool:
        claimed = [item for ids in pool.map(claim, range(6)) for item in ids]

    assert len(claimed) == len(set(claimed)) == 200


def test_a_claim_passes_over_what_another_is_claiming(open_ground: OpenGround) -> None:
    """Chosen without a lock, the same items would be leased again by whoever waited for the first COMMIT."""
    one, two, looking = open_ground(), open_ground(), open_ground()
    one.record(*(thing(str(n)) for n in range(5)))

    with ThreadPoolExecutor(1) as pool:
        with one.database.transaction():
            first = one.claim(3)
            claiming = pool.submit(two.claim, 5)
            looking.wait_until_blocked(claiming)
        second = claiming.result()

    assert (len(first), len(second)) == (3, 2)
    assert not {lease.id for lease in first} & {lease.id for lease in second}


def test_a_future_due_time_holds_no_lease_and_is_not_claimed(ground: Ground) -> None:
    ground.record(thing("a", fate="postpone"))
    ground.settle(ground.claim_one())

    item = ground.item("a")
    assert (item.lease_until, item.lease_owner, item.standing) == (None, None, "open")
    assert ground.claim() == []

    ground.advance(seconds=3601)
    assert ground.claim_one().key == "a"


def test_claims_stay_in_their_lane_and_pipeline(ground: Ground) -> None:
    ground.record(thing("a"))

    assert ground.claim(lane="fetch") == []
    assert ground.store.items.claim("another", "pure", 10, "worker", 60) == []


def test_a_lease_says_what_is_needed_to_act(ground: Ground) -> None:
    ground.record(thing("a", "text"))
    now = ground.now_ms()

    lease = ground.claim_one(seconds=60, owner="me")

    assert (lease.pipeline, lease.kind, lease.key, lease.state) == ("example", "thing", "a", "found")
    assert (lease.attempts, lease.revision, lease.lost_leases, lease.accepted) == (1, 1, 0, None)
    assert b'"text":"text"' in lease.body
    assert now <= lease.granted_at <= now + 5_000
    assert lease.lease_until - lease.granted_at == pytest.approx(60_000, abs=50)
    assert ground.item("a").lease_owner == "me"


def test_the_database_clock_decides_leases_not_the_workers(open_ground: OpenGround) -> None:
    """Two machines disagree by four days; only the database's clock counts (here: the connection's, moved)."""
    ground = open_ground()
    ground.record(thing("a"))
    lease = ground.claim_one(seconds=60)

    ground.advance(seconds=59)
    assert ground.store.items.renew([(lease.id, lease.token)], 60) == {lease.id}
    ground.advance(seconds=59)
    assert ground.settle(lease).done == {lease.id}


# Leases


def test_a_heartbeat_prolongs_only_a_lease_that_holds(ground: Ground) -> None:
    ground.record(thing("a"), thing("b"))
    held, expired = ground.claim_one(seconds=100), ground.claim_one(seconds=10)
    ground.advance(seconds=20)

    beaten = ground.store.items.renew(
        [(held.id, held.token), (expired.id, expired.token), (held.id + 99, 1), (held.id, held.token + 1)], 100
    )

    assert beaten == {held.id}
    assert (ground.item(held.key).lease_until or 0) - ground.now_ms() > 90_000


def test_release_gives_the_attempt_back(ground: Ground) -> None:
    ground.record(thing("a"))
    lease = ground.claim_one()

    assert ground.store.items.release([(lease.id, lease.token)]) == 1
    assert ground.store.items.release([(lease.id, lease.token)]) == 0

    item = ground.item("a")
    assert (item.attempts, item.lost_leases, item.lease_until, item.lease_owner) == (0, 0, None, None)
    again = ground.claim_one()
    assert (again.attempts, again.token) == (1, lease.token + 1)


def test_who_gave_a_lease_back_has_no_say_over_the_next_one(ground: Ground) -> None:
    ground.record(thing("a"))
    first = ground.claim_one()
    assert ground.store.items.release([(first.id, first.token)]) == 1
    heir = ground.claim_one()

    assert heir.token > first.token
    assert ground.store.items.renew([(first.id, first.token)], LEASE_SECONDS) == set()
    assert ground.store.items.release([(first.id, first.token)]) == 0
    assert ground.settle(first).done == set()
    assert ground.settle(heir).done == {heir.id}


def test_an_expired_lease_returns_to_the_queue(ground: Ground) -> None:
    ground.record(thing("a"))
    doomed = ground.claim_one(owner="doomed")
    assert ground.store.items.sweep().expired == 0

    ground.advance(seconds=LEASE_SECONDS + 1)
    assert ground.claim() == []
    assert ground.store.items.sweep().expired == 1

    heir = ground.claim_one(owner="heir")
    assert (heir.attempts, heir.lost_leases) == (2, 1)
    assert heir.token > doomed.token


def test_a_swept_item_keeps_its_place_in_the_queue(ground: Ground) -> None:
    ground.record(thing("a"))
    due_at = ground.item("a").due_at
    ground.claim_one()

    ground.advance(seconds=LEASE_SECONDS + 1)
    ground.store.items.sweep()

    assert ground.item("a").due_at == due_at


def test_many_sweepers_equal_one(open_ground: OpenGround) -> None:
    processes = [open_ground() for _ in range(3)]
    processes[0].record(*(thing(str(n)) for n in range(30)))
    processes[0].claim(30)
    for process in processes:
        process.advance(seconds=LEASE_SECONDS + 1)

    with ThreadPoolExecutor(3) as pool:
        swept = list(pool.map(lambda p: p.store.items.sweep(7).expired + p.store.items.sweep(30).expired, processes))

    assert sum(swept) == 30
    assert processes[0].sql("SELECT min(lost_leases), max(lost_leases) FROM items") == [(1, 1)]
    assert processes[0].sql("SELECT count(*) FROM journal WHERE kind = 'swept'") == [(30,)]


def test_the_third_lost_lease_makes_a_dead_letter(ground: Ground) -> None:
    ground.record(thing("a"), thing("healthy"))
    ground.settle(*[lease for lease in ground.claim() if lease.key == "healthy"])
    ground.advance(seconds=LEASE_SECONDS + 1)
    ground.store.items.sweep()
    for _ in range(2):
        ground.claim_one()
        ground.advance(seconds=LEASE_SECONDS + 1)
        last = ground.store.items.sweep()

    item = ground.item("a")
    assert last.poisoned == 1
    assert (item.standing, item.cause, item.due_at, item.state) == ("dead", "poison", None, "found")
    assert ground.claim() == []
    assert [row.ended for row in ground.life("a")] == ["born", "lost", "lost", "lost", "dead"]


def test_a_settled_attempt_forgives_lost_leases(open_ground: OpenGround) -> None:
    ground = open_ground(example.pipeline(fuse=False))
    ground.record(thing("a"))
    ground.claim_one()
    ground.advance(seconds=LEASE_SECONDS + 1)
    ground.store.items.sweep()

    ground.settle(ground.claim_one())

    assert ground.item("a").lost_leases == 0


def test_a_poisoned_item_with_a_newer_revision_waiting_begins_that(ground: Ground) -> None:
    """What killed three workers was the old text; the new one deserves its own tries."""
    ground.record(thing("a"))
    for _ in range(2):
        ground.claim_one()
        ground.advance(seconds=LEASE_SECONDS + 1)
        ground.store.items.sweep()
    ground.claim_one()
    ground.record(thing("a", "harmless"))
    ground.advance(seconds=LEASE_SECONDS + 1)
    ground.store.items.sweep()

    item = ground.item("a")
    assert (item.standing, item.revision, item.waiting_revision, item.lost_leases) == ("open", 2, None, 0)


# Settling


def test_a_settle_writes_state_journal_body_links_and_card_together(ground: Ground) -> None:
    ground.record(thing("p", "parent"), thing("c", "child", parent="p"))

    settled = ground.settle(*ground.claim())

    assert len(settled.done) == 2
    assert settled.stale == frozenset()
    item = ground.item("c")
    assert (item.state, item.standing, item.accepted_revision, item.attempts) == ("shown", "done", 1, 0)
    assert ground.card("c") == b'{"id":"c","text":"child"}'
    assert ground.store.links.children("example", "below", "thing:p") == ["thing:c"]
    assert len(ground.store.changes.changes("example", None, 10).changes) == 2
    row = ground.life("c")[-1]
    assert (row.kind, row.from_state, row.to_state, row.ended) == ("attempt", "found", "shown", "advanced")
    assert [step.transition for step in row.steps] == ["read", "check", "show"]


def effectful(lease: Any, **changes: Any) -> Settlement:
    """A settlement with every kind of effect, so that a leak of any of them shows."""
    body = example.Thing(lease.key, "forged")
    values: dict[str, Any] = {
        "body": b'{"id":"forged","text":"forged"}',
        "accepts": True,
        "presents": True,
        "shown": example.pipeline().show(example.present(lease.key, body)),
        "links": (Link(f"thing:{lease.key}", "thing:forged", "below"),),
        "children": (thing("forged child"),),
    } | changes
    state_before = values.pop("state_before", lease.state)
    right = values.pop("right", Leased(values.pop("token", lease.token)))
    return Settlement(
        lease.id, "example", "thing", lease.key, right, state_before, "shown", "done", 0, lease.revision,
        "advanced", **values,
    )  # fmt: skip


@pytest.mark.parametrize("staleness", ["token", "older token", "expired", "state", "swept", "released", "settled"])
def test_a_stale_settle_changes_no_row_of_any_table(ground: Ground, staleness: str) -> None:
    ground.record(thing("a"))
    lease = ground.claim_one()
    settlement = effectful(lease)
    if staleness == "token":
        settlement = effectful(lease, token=lease.token + 1)
    elif staleness == "older token":
        settlement = effectful(lease, token=lease.token - 1)
    elif staleness == "state":
        settlement = effectful(lease, state_before="read")
    elif staleness == "released":
        ground.store.items.release([(lease.id, lease.token)])
    elif staleness == "settled":
        ground.settle(lease)
    else:
        ground.advance(seconds=LEASE_SECONDS + 1)
        if staleness == "swept":
            ground.store.items.sweep()
    before = ground.dump()

    settled = ground.store.items.settle([settlement])

    assert (set(settled.done), set(settled.stale)) == (set(), {lease.id})
    assert ground.dump() == before


def test_a_late_finisher_does_not_disturb_the_heir(ground: Ground) -> None:
    ground.record(thing("a"))
    late = ground.claim_one(owner="late")
    ground.advance(seconds=LEASE_SECONDS + 1)
    ground.store.items.sweep()
    heir = ground.claim_one(owner="heir")

    assert ground.store.items.settle([effectful(late)]).stale == {late.id}
    assert ground.store.items.renew([(late.id, late.token)], 900) == set()
    assert ground.store.items.release([(late.id, late.token)]) == 0
    assert ground.settle(heir).done == {heir.id}
    assert ground.card("a") == b'{"id":"a","text":"thing a"}'
    assert not ground.has("forged child")


def test_a_stale_one_does_not_disturb_its_batch(ground: Ground) -> None:
    ground.record(thing("a"), thing("b"), thing("c"))
    leases = ground.claim()
    stale = next(lease for lease in leases if lease.key == "b")
    ground.store.items.release([(stale.id, stale.token)])

    settled = ground.settle(*leases)

    assert settled.stale == {stale.id}
    assert {key: ground.item(key).state for key in "abc"} == {"a": "shown", "b": "found", "c": "shown"}
    assert ground.card("b") is None
    assert [row.kind for row in ground.life("b")] == ["born", "released"]


def test_a_settle_that_the_database_refuses_leaves_nothing_of_the_batch(ground: Ground) -> None:
    ground.record(thing("a"), thing("b"))
    first, second = (ground.attempt(lease) for lease in ground.claim())
    before = ground.dump()
    first.links = (Link("thing:x", "thing:y", "below"),)

    with pytest.raises(BadInput):
        ground.store.items.settle([first, second])

    assert ground.dump() == before


@pytest.mark.parametrize("field", ["error", "cause"])
def test_what_a_database_cannot_hold_is_cleaned_from_errors(ground: Ground, field: str) -> None:
    ground.record(thing("a", fate="fail"))
    settlement = ground.attempt(ground.claim_one())
    setattr(settlement, field, "odd \0 and \udcff")

    assert ground.store.items.settle([settlement]).done

    item = ground.item("a")
    assert "odd" in str(item.last_error if field == "error" else item.cause)


def test_were_settled_tells_what_a_lost_reply_hid(ground: Ground) -> None:
    ground.record(thing("a"), thing("b"))
    done, not_done = ground.claim()
    ground.settle(done)

    assert ground.store.items.were_settled([(done.id, done.token), (not_done.id, not_done.token)]) == {done.id}


def test_an_earlier_attempt_is_not_taken_for_the_one_whose_reply_was_lost(ground: Ground) -> None:
    ground.record(thing("a", fate="fail"))
    first = ground.claim_one()
    ground.settle(first)
    ground.advance(seconds=3600)
    second = ground.claim_one()

    assert ground.store.items.were_settled([(second.id, second.token)]) == set()
    assert ground.store.items.were_settled([(first.id, first.token)]) == {first.id}


def test_at_most_one_journal_row_closes_a_token(ground: Ground) -> None:
    ground.record(thing("a", fate="fail"))
    for _ in range(3):
        lease = ground.claim_one()
        ground.settle(lease)
        ground.settle(lease)
        ground.advance(seconds=3600)

    closing = [row.token for row in ground.life("a") if row.kind in ("attempt", "swept", "released")]
    assert len(closing) == len(set(closing)) == 3


# Revisions


def test_a_changed_finding_begins_the_item_again(ground: Ground) -> None:
    ground.record(thing("a", fate="fail"))
    ground.settle(ground.claim_one())
    ground.record(thing("a", "better"))

    item = ground.item("a")
    assert (item.state, item.revision, item.attempts, item.last_error) == ("found", 2, 0, None)
    ground.work()
    assert ground.card("a") == b'{"id":"a","text":"better"}'


def test_a_finding_that_comes_while_the_item_is_leased_waits_for_the_settle(ground: Ground) -> None:
    ground.record(thing("a", "one"))
    lease = ground.claim_one()
    ground.record(thing("a", "two"))
    ground.record(thing("a", "three"))

    waiting = ground.item("a")
    assert (waiting.revision, waiting.lease_token, waiting.state) == (1, lease.token, "found")
    assert waiting.waiting_revision is not None

    assert ground.settle(lease).done == {lease.id}
    assert ground.card("a") == b'{"id":"a","text":"one"}'
    again = ground.item("a")
    assert (again.state, again.standing, again.waiting_revision) == ("found", "open", None)
    assert again.due_at is not None

    ground.work()
    assert ground.card("a") == b'{"id":"a","text":"three"}'


def test_a_waiting_revision_survives_a_lost_lease_and_a_release(ground: Ground) -> None:
    ground.record(thing("a", "one"))
    ground.claim_one()
    ground.record(thing("a", "two"))
    ground.advance(seconds=LEASE_SECONDS + 1)
    ground.store.items.sweep()
    lease = ground.claim_one()
    ground.record(thing("a", "three"))
    ground.store.items.release([(lease.id, lease.token)])

    ground.work()

    assert ground.card("a") == b'{"id":"a","text":"three"}'
    assert ground.item("a").waiting_revision is None


def test_readers_keep_the_accepted_body_while_a_revision_is_worked_on_or_refused(ground: Ground) -> None:
    ground.record(thing("a", "good"))
    ground.work()
    ground.record(thing("a", "bad", fate="refuse"))
    lease = ground.claim_one()

    assert lease.accepted is not None
    assert b'"good"' in lease.accepted
    assert ground.card("a") == b'{"id":"a","text":"good"}'

    ground.settle(lease)
    item = ground.item("a")
    assert (item.standing, item.revision, item.accepted_revision) == ("dead", 2, 1)
    assert ground.card("a") == b'{"id":"a","text":"good"}'
    assert b'"good"' in (ground.store.items.body(item.id, 1) or b"")
    assert ground.store.items.prefetch("example", ["thing:a"])["thing:a"] == ground.store.items.body(item.id, 1)


def test_only_bodies_that_are_read_worked_on_or_waiting_are_kept(ground: Ground) -> None:
    for number in range(4):
        ground.record(thing("a", f"text {number}"))
        ground.work()
    lease = None
    ground.record(thing("a", "worked on"))
    lease = ground.claim_one()
    ground.record(thing("a", "waits"))
    item = ground.item("a")

    kept = {row[0] for row in ground.sql("SELECT revision FROM bodies WHERE item = :id", id=item.id)}
    assert kept == {item.accepted_revision, item.revision, item.waiting_revision}

    ground.settle(lease)
    ground.work()
    assert len(ground.sql("SELECT 1 FROM bodies")) == 1


# Operators


def test_a_manual_transition_on_a_leased_item_bumps_its_token(ground: Ground) -> None:
    ground.record(thing("a"))
    lease = ground.claim_one()

    ground.store.operations.transition(lease.id, "fail", actor="ada", reason="not today")

    item = ground.item("a")
    assert (item.state, item.standing, item.lease_until) == ("failed", "dead", None)
    assert item.lease_token > lease.token
    before = ground.dump()
    assert ground.settle(lease).stale == {lease.id}
    assert ground.dump() == before
    row = ground.life("a")[-1]
    assert (row.kind, row.actor, row.error, row.to_state) == ("manual", "ada", "not today", "failed")


def test_a_move_by_hand_of_an_item_that_was_claimed_since_changes_no_row(ground: Ground) -> None:
    ground.record(thing("a"))
    seen = ground.item("a")
    lease = ground.claim_one()
    settlement = effectful(lease, right=ByHand(seen.lease_token, "ada", "it is idle"))
    before = ground.dump()

    settled = ground.store.items.settle([settlement])

    assert (set(settled.done), set(settled.stale)) == (set(), {lease.id})
    assert ground.dump() == before
    assert ground.settle(lease).done == {lease.id}, "its holder goes on"


def test_a_manual_transition_that_is_not_declared_here_is_refused(ground: Ground) -> None:
    ground.record(thing("a"))
    before = ground.dump()

    with pytest.raises(BadInput, match="retry"):
        ground.store.operations.transition(ground.item("a").id, "retry", actor="ada", reason="please")
    with pytest.raises(BadInput, match="no transition"):
        ground.store.operations.transition(ground.item("a").id, "fly", actor="ada", reason="please")
    with pytest.raises(BadInput, match="no item"):
        ground.store.operations.transition(12345, "fail", actor="ada", reason="please")

    assert ground.dump() == before


def test_a_manual_transition_leads_back_into_the_workflow(ground: Ground) -> None:
    ground.record(thing("a"))
    ground.work()
    ground.store.operations.transition(ground.item("a").id, "fail", actor="ada", reason="wrong")
    ground.store.operations.transition(ground.item("a").id, "retry", actor="ada", reason="again")

    assert ground.item("a").state == "found"
    ground.work()
    assert ground.item("a").state == "shown"


def test_revive_brings_dead_letters_back_where_they_stand(ground: Ground) -> None:
    ground.record(thing("a", fate="die"), thing("b", fate="die"), thing("c", fate="reject"))
    ground.work()
    token = ground.item("a").lease_token

    assert ground.store.operations.revive(pipeline="example", cause="no such cause", actor="ada") == 0
    assert ground.store.operations.revive(pipeline="example", actor="ada") == 2

    item = ground.item("a")
    assert (item.state, item.standing, item.attempts, item.last_error) == ("read", "open", 0, None)
    assert item.lease_token > token
    assert ground.item("c").standing == "rejected"
    assert ground.store.operations.revive(item=ground.item("c").id, actor="ada") == 1
    assert ground.life("a")[-1].actor == "ada"


def test_revive_begins_again_what_stands_at_a_dead_end(ground: Ground) -> None:
    ground.record(thing("a"))
    ground.store.operations.transition(ground.item("a").id, "fail", actor="ada", reason="wrong")
    assert ground.item("a").standing == "dead"

    assert ground.store.operations.revive(actor="ada") == 1

    assert (ground.item("a").state, ground.item("a").standing) == ("found", "open")
    ground.work()
    assert ground.item("a").state == "shown"


def replay(ground: Ground, **more: Any) -> int:
    values: dict[str, Any] = {"state": None, "keys": None, "actor": "ada", "dry_run": False} | more
    return ground.store.operations.replay("example", **values).items


def test_replay_processes_items_again_from_a_state(ground: Ground) -> None:
    ground.record(thing("a"), thing("b"))
    ground.work()
    tokens = {key: ground.item(key).lease_token for key in "ab"}

    assert replay(ground, dry_run=True) == 2
    assert replay(ground, state="checked", keys=[("thing", "a")]) == 1

    assert (ground.item("a").state, ground.item("b").state) == ("checked", "shown")
    assert ground.item("a").lease_token > tokens["a"]
    row = ground.life("a")[-1]
    assert (row.kind, row.actor, row.from_state, row.to_state) == ("replayed", "ada", "shown", "checked")
    ground.work()
    assert [step.transition for step in ground.life("a")[-1].steps] == ["show"]


def test_replay_with_a_newer_revision_waiting_begins_that_from_the_start(ground: Ground) -> None:
    ground.record(thing("a", "one"))
    ground.work()
    replay(ground, state="checked")
    ground.claim_one()
    ground.record(thing("a", "two"))

    replay(ground, state="checked")

    assert (ground.item("a").state, ground.item("a").revision) == ("found", 2)
    ground.work()
    assert ground.item("a").waiting_revision is None
    assert ground.card("a") == b'{"id":"a","text":"two"}'


def test_replay_takes_only_items_that_came_past_the_state(open_ground: OpenGround) -> None:
    ground = open_ground(example.pipeline(fuse=False))
    ground.record(thing("whole"), thing("failed"))
    ground.work()
    ground.store.operations.transition(ground.item("failed").id, "fail", actor="ada", reason="no good")
    ground.record(thing("half"))
    ground.settle(ground.claim_one())
    ground.record(thing("new"))
    states = {key: ground.item(key).state for key in ("new", "half", "whole", "failed")}
    assert states == {"new": "found", "half": "read", "whole": "shown", "failed": "failed"}

    asked: dict[str, Any] = {"state": "checked", "keys": None, "actor": "ada"}
    assert ground.store.operations.replay("example", **asked, dry_run=True) == Replayed(2, skipped=2)
    assert ground.store.operations.replay("example", **asked, dry_run=False) == Replayed(2, skipped=2)

    states = {key: ground.item(key).state for key in ("new", "half", "whole", "failed")}
    assert states == {"new": "found", "half": "read", "whole": "checked", "failed": "checked"}
    assert ground.card("new") is None


def test_what_an_older_revision_came_past_does_not_count(ground: Ground) -> None:
    ground.record(thing("a"))
    ground.work()
    ground.record(thing("a", "changed", fate="die"))
    ground.work()

    assert ground.item("a").state == "read"
    assert replay(ground, state="checked") == 0


def test_replay_refuses_what_does_not_exist(ground: Ground) -> None:
    with pytest.raises(BadInput, match="no state"):
        replay(ground, state="flying")
    with pytest.raises(BadInput, match="no pipeline"):
        ground.store.operations.replay("nothing", state=None, keys=None, actor="ada", dry_run=True)


def test_replay_from_where_items_end_is_refused_and_keeps_their_causes(ground: Ground) -> None:
    ground.record(thing("a", fate="die"), thing("b"))
    ground.work()
    cause = ground.item("a").last_error
    ground.store.operations.transition(ground.item("b").id, "fail", actor="ada", reason="no good")
    assert cause

    for end in ("failed", "shown"):
        with pytest.raises(BadInput, match=f"nothing begins from '{end}'; begin from found, "):
            replay(ground, state=end)

    assert ground.item("a").last_error == cause
    assert ground.item("b").state == "failed"


def persistently(call: Callable[..., Any], *args: Any) -> Any:
    """Call as the loops do: again, while the store asks for patience."""
    for _ in range(20):
        try:
            return call(*args)
        except StoreUnavailable:
            continue
    return call(*args)


def test_operators_and_workers_racing_leave_every_item_whole(open_ground: OpenGround) -> None:
    """Merges, settles and replays meet on the same rows; no body may be missing afterwards."""
    finder, worker, operator = open_ground(), open_ground(), open_ground()
    finder.record(*(thing(str(n)) for n in range(40)))
    stop = threading.Event()

    def find() -> None:
        try:
            for round_ in range(12):
                persistently(finder.record, *(thing(str(n), f"round {round_}") for n in range(40)))
        finally:
            stop.set()

    def work() -> None:
        while not stop.is_set():
            persistently(worker.settle, *worker.claim(7))

    def operate() -> None:
        while not stop.is_set():
            persistently(replay, operator)

    with ThreadPoolExecutor(3) as pool:
        for future in [pool.submit(each) for each in (find, work, operate)]:
            future.result()
    worker.merge()
    worker.work(rounds=200)

    assert finder.sql("SELECT DISTINCT state, standing FROM items") == [("shown", "done")]
    assert {finder.card(str(n)) for n in range(40)} == {f'{{"id":"{n}","text":"round 11"}}'.encode() for n in range(40)}


# Children


class Litter(msgspec.Struct, frozen=True):
    names: list[str]


def bear(work: Work) -> Outcome:
    return Advance(children=tuple(kitten(name) for name in work.body.names))


def kitten(name: str, mood: str = "") -> Finding:
    payload = msgspec.json.encode(example.Thing(name, mood))
    return Finding("cats", "thing", name, fingerprint(name, mood), payload)


def cat(key: str, *names: str) -> Finding:
    return Finding("cats", "cat", key, fingerprint(key, names), msgspec.json.encode(Litter(list(names))))


def cats() -> Pipeline:
    adult = Workflow(
        kind="cat",
        start="found",
        states=("found", "grown"),
        terminal=frozenset({"grown"}),
        body=Litter,
        transitions=(Transition("bear", "found", "grown", processor=bear),),
    )
    return Pipeline("cats", "Cats", "Cats and kittens.", {"cat": adult, "thing": example.workflow()})


def test_children_are_born_in_the_settle_of_their_parent(open_ground: OpenGround) -> None:
    ground = open_ground(cats())
    ground.record(cat("mia", "tom", "tim"))

    settled = ground.settle(ground.claim_one())

    assert settled.born == 2
    assert (ground.item("tom").state, ground.item("tom").standing) == ("found", "open")
    assert [row.kind for row in ground.life("tom")] == ["adopted"]


def test_children_follow_the_rules_of_new_changed_and_unchanged(open_ground: OpenGround) -> None:
    ground = open_ground(cats())
    ground.record(kitten("tom"), kitten("tim", "hungry"))

    settled = ground.settle(*[ground.claim_one() for _ in [ground.record(cat("mia", "tom", "tim", "kit"))]])

    assert settled.born == 1
    assert (ground.item("tom").revision, ground.item("tim").revision) == (1, 2)


def test_two_parents_bearing_the_same_child_at_once_make_one(open_ground: OpenGround) -> None:
    """On PostgreSQL both settles look, see nothing and insert: neither may fail for it."""
    processes = [open_ground(cats()) for _ in range(4)]
    names = [f"kitten {n}" for n in range(20)]
    processes[0].record(*(cat(f"cat {n}", *(names if n % 2 else reversed(names))) for n in range(4)))
    leases = [process.claim_one() for process in processes]
    ready = threading.Barrier(4)

    def settle(number: int) -> int:
        ready.wait()
        return processes[number].settle(leases[number]).born

    with ThreadPoolExecutor(4) as pool:
        born = list(pool.map(settle, range(4)))

    assert sum(born) == 20
    assert processes[0].sql("SELECT count(*) FROM items WHERE kind = 'thing'") == [(20,)]
    assert processes[0].sql("SELECT count(*) FROM items WHERE state = 'grown'") == [(4,)]


# Plans


@pytest.mark.parametrize(
    "way", [{}, {"in_order": True}, {"suspects_alone": True}], ids=["newest", "in order", "suspects alone"]
)
def test_a_claim_leases_only_what_was_asked_under_hostile_plans(open_ground: OpenGround, way: dict[str, Any]) -> None:
    """Where a planner runs the inner SELECT again for each row, `IN (SELECT ... LIMIT)` leases everything.

    It does so once neither joins, nor sorting, nor grouping, nor keeping what was read can save it.
    """
    ground = open_ground()
    ground.record(*(thing(str(n)) for n in range(300)))
    with ground.database.transaction() as tx:
        if ground.database.dialect == "postgres":
            for setting in ("hashjoin", "mergejoin", "hashagg", "sort", "material", "bitmapscan"):
                own_sql(tx, f"SET LOCAL enable_{setting} = off", {})
        claims = [ground.claim(limit, **way) for limit in (1, 10, 25)]

    assert [len({lease.id for lease in claim}) for claim in claims] == [1, 10, 25]
    assert ground.sql("SELECT count(*) FROM items WHERE lease_until IS NOT NULL") == [(36,)]


@pytest.mark.parametrize(
    "key", ['quotes " and \\ back', "{braces, commas}", "NULL", "  spaces  ", "é 漢 🚀", "'; DROP TABLE items"]
)
def test_any_text_travels_in_a_batch(ground: Ground, key: str) -> None:
    ground.record(thing(key, key), thing("other"))
    ground.work()

    assert ground.item(key).state == "shown"
    assert msgspec.json.decode(ground.card(key) or b"{}") == {"id": key, "text": key}


def test_what_a_worker_vanished_with_is_claimed_alone_where_items_run_together(ground: Ground) -> None:
    ground.record(*(thing(key) for key in "abc"))
    assert len(ground.claim(10, suspects_alone=True)) == 3
    ground.advance(seconds=LEASE_SECONDS + 1)
    ground.store.items.sweep()
    ground.record(thing("new"), thing("newer"))

    claims = [{lease.key for lease in ground.claim(10, suspects_alone=True)} for _ in range(6)]

    assert [len(keys) for keys in claims if keys] == [1, 2, 1, 1] or [len(keys) for keys in claims if keys] == [
        2,
        1,
        1,
        1,
    ]
    assert {"new", "newer"} in claims, "the others are not held up"
    assert set().union(*claims) == {"a", "b", "c", "new", "newer"}
