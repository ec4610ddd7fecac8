"""Who asks which source when: one owner per source, across machines."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from tests.support.store import Ground

from tidings.model.views import RunView

OpenGround = Callable[..., Ground]
SOURCE = "example.things"


def run(**fields: object) -> RunView:
    return RunView(source=SOURCE, started_at=0, **fields)  # type: ignore[arg-type]  # a builder


def test_a_source_is_due_at_once_when_first_declared(ground: Ground) -> None:
    schedules = ground.store.schedules
    assert schedules.next_in_ms() is None
    schedules.declare(SOURCE, "example")
    assert schedules.next_in_ms() == 0

    turn = schedules.claim(SOURCE, "me", 60)
    assert turn is not None
    schedules.close(turn, run(found=3, new=2), next_in_seconds=600)
    schedules.declare(SOURCE, "example")

    assert schedules.claim(SOURCE, "me", 60) is None
    assert 590_000 < (schedules.next_in_ms() or 0) <= 600_000
    ground.advance(seconds=601)
    assert schedules.claim(SOURCE, "me", 60) is not None


def test_one_of_many_gets_the_turn(open_ground: OpenGround) -> None:
    processes = [open_ground() for _ in range(4)]
    processes[0].store.schedules.declare(SOURCE, "example")

    with ThreadPoolExecutor(4) as pool:
        turns = list(pool.map(lambda p: p.store.schedules.claim(SOURCE, "me", 60), processes))

    assert sum(turn is not None for turn in turns) == 1
    assert processes[0].store.schedules.claim(SOURCE, "me", 60, force=True) is None


def test_a_turn_lost_to_its_lease_writes_no_schedule(ground: Ground) -> None:
    schedules = ground.store.schedules
    schedules.declare(SOURCE, "example")
    late = schedules.claim(SOURCE, "late", 60)
    assert late is not None
    assert schedules.beat(late, 60)
    ground.advance(seconds=61)
    heir = schedules.claim(SOURCE, "heir", 60)
    assert heir is not None
    assert not schedules.beat(late, 60)

    schedules.close(late, run(error="slow"), next_in_seconds=9999)

    (row,) = schedules.all()
    assert (row.failures, row.last_error) == (0, None)
    assert row.lease_until is not None
    schedules.close(heir, run(new=1), next_in_seconds=60)
    (row,) = schedules.all()
    assert (row.lease_until, row.last_new_at is not None) == (None, True)


def test_a_turn_between_two_runs_leaves_the_schedule_and_counts_with_the_run_before(ground: Ground) -> None:
    schedules = ground.store.schedules
    schedules.declare(SOURCE, "example")
    turn = schedules.claim(SOURCE, "me", 60)
    assert turn is not None
    assert schedules.claim_between(SOURCE, "other", 60) is None
    schedules.close(turn, run(found=3, new=2, error="bad day"), next_in_seconds=600)
    ground.advance(seconds=300)

    between = schedules.claim_between(SOURCE, "me", 60)
    assert between is not None
    assert schedules.claim_between(SOURCE, "other", 60) is None
    schedules.close_between(between, run(found=5, new=1, changed=4, pages=2))

    (row,) = schedules.all()
    assert (row.failures, row.last_error, row.lease_until, row.last_new_at is not None) == (1, "bad day", None, True)
    assert 290_000 < (schedules.next_in_ms() or 0) <= 300_000
    (record,) = schedules.runs(SOURCE)
    assert (record.found, record.new, record.changed, record.pages) == (8, 3, 4, 2)
    ground.store.pauses.pause(f"source:{SOURCE}", reason="for the test")
    assert schedules.claim_between(SOURCE, "me", 60) is None


def test_a_turn_that_ran_out_and_nobody_took_is_still_its_holders(ground: Ground) -> None:
    schedules = ground.store.schedules
    schedules.declare(SOURCE, "example")
    turn = schedules.claim(SOURCE, "me", 10)
    assert turn is not None
    ground.advance(seconds=11)
    assert schedules.holding(SOURCE) is None

    assert schedules.beat(turn, 10)
    assert schedules.claim(SOURCE, "other", 10) is None
    schedules.close(turn, run(), next_in_seconds=60)
    assert not schedules.beat(turn, 10), "what was closed cannot be prolonged"


def test_what_is_written_by_the_right_of_a_turn_is_not_written_without_it(ground: Ground) -> None:
    schedules = ground.store.schedules
    schedules.declare(SOURCE, "example")
    turn = schedules.claim(SOURCE, "late", 10)
    assert turn is not None
    ground.advance(seconds=11)
    assert schedules.claim(SOURCE, "heir", 10) is not None

    with schedules.keeping(turn, 10) as is_ours:
        assert not is_ours


def test_it_is_known_since_when_a_source_is_asked(ground: Ground) -> None:
    schedules = ground.store.schedules
    schedules.declare(SOURCE, "example")
    assert schedules.holding(SOURCE) is None
    before = ground.now_ms()
    turn = schedules.claim(SOURCE, "me", 10)
    assert turn is not None
    ground.advance(seconds=8)
    assert schedules.beat(turn, 10)

    holding = schedules.holding(SOURCE)
    assert holding is not None
    assert before <= (holding.since or 0) <= holding.now - 8_000
    assert holding.now + 9_000 < holding.until <= holding.now + 10_000


def test_failures_are_counted_in_a_row(ground: Ground) -> None:
    schedules = ground.store.schedules
    schedules.declare(SOURCE, "example")
    seen = []
    for error in ("down", "down", None, "down"):
        turn = schedules.claim(SOURCE, "me", 60, force=True)
        assert turn is not None
        seen.append(turn.failures)
        schedules.close(turn, run(error=error), next_in_seconds=1)

    assert seen == [0, 1, 2, 0]
    (row,) = schedules.all()
    assert (row.failures, row.last_error, row.last_success_at is not None) == (1, "down", True)


def test_runs_are_recorded_newest_first(ground: Ground) -> None:
    schedules = ground.store.schedules
    schedules.declare(SOURCE, "example")
    for number in range(3):
        turn = schedules.claim(SOURCE, "me", 60, force=True)
        assert turn is not None
        record = run(found=9, new=number, changed=1, unchanged=2, rejected=3, trimmed=4, pages=5, credits=6, note="ok")
        schedules.close(turn, record, next_in_seconds=1)

    newest = schedules.runs(SOURCE, limit=2)
    assert [r.new for r in newest] == [2, 1]
    first = newest[0]
    assert (first.found, first.changed, first.unchanged, first.rejected) == (9, 1, 2, 3)
    assert (first.trimmed, first.pages, first.credits, first.note, first.error) == (4, 5, 6, "ok", None)
    assert (first.ended_at or 0) >= first.started_at > 0


def test_a_paused_source_or_pipeline_is_nobodys_turn(ground: Ground) -> None:
    schedules, pauses = ground.store.schedules, ground.store.pauses
    schedules.declare(SOURCE, "example")
    for part in (f"source:{SOURCE}", "pipeline:example"):
        pauses.pause(part, "rest")
        assert schedules.claim(SOURCE, "me", 60, force=True) is None
        pauses.resume(part)

    assert schedules.claim(SOURCE, "me", 60) is not None


def test_a_source_can_be_checked_now(ground: Ground) -> None:
    schedules = ground.store.schedules
    schedules.declare(SOURCE, "example")
    turn = schedules.claim(SOURCE, "me", 60)
    assert turn is not None
    schedules.close(turn, run(), next_in_seconds=3600)

    assert schedules.check_now(SOURCE)
    assert not schedules.check_now("example.nothing")
    assert schedules.claim(SOURCE, "me", 60) is not None


def test_the_run_of_a_killed_look_is_closed_as_lost(ground: Ground) -> None:
    schedules = ground.store.schedules
    schedules.declare(SOURCE, "example")
    assert schedules.claim(SOURCE, "killed", 60) is not None
    ground.advance(seconds=61)

    heir = schedules.claim(SOURCE, "heir", 60)
    assert heir is not None
    schedules.close(heir, run(found=1, ended="complete"), next_in_seconds=600)

    whole, killed = schedules.runs(SOURCE)
    assert (killed.ended, killed.note) == ("lost", "its process ended without closing it")
    assert killed.ended_at is not None
    assert (whole.ended, whole.found) == ("complete", 1)
