"""Budgets, limiters, caches, pauses and tokens hold across processes."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.support.store import Ground

from tidings.model.clock import DAY_MS, day_of

OpenGround = Callable[..., Ground]


def to_midnight(ground: Ground, *, before_seconds: float) -> None:
    """Move the clock to so many seconds before the next midnight, UTC."""
    ground.advance(seconds=(DAY_MS - ground.now_ms() % DAY_MS) / 1000 - before_seconds)


def spent_and_reserved(ground: Ground, name: str = "tokens") -> dict[str, tuple[int, int]]:
    rows = ground.sql("SELECT day, spent, reserved FROM budgets WHERE name = :name ORDER BY day", name=name)
    return {day: (spent, reserved) for day, spent, reserved in rows}


# Budgets


def test_a_budget_is_never_exceeded(ground: Ground) -> None:
    budgets = ground.store.budgets

    assert budgets.reserve("tokens", 60, 100)
    assert not budgets.reserve("tokens", 41, 100)
    assert budgets.reserve("tokens", 40, 100)
    budgets.settle("tokens", 60, 10)
    assert budgets.reserve("tokens", 50, 100)
    assert not budgets.reserve("tokens", 1, 100)

    (view,) = [b for b in budgets.today() if b.name == "tokens"]
    assert (view.spent, view.reserved, view.limit) == (10, 90, 100)


def test_a_budget_holds_across_threads_and_processes(open_ground: OpenGround) -> None:
    processes = [open_ground(), open_ground()]

    def spend(number: int) -> int:
        budgets, got = processes[number % 2].store.budgets, 0
        for _ in range(10):
            if budgets.reserve("tokens", 7, 100):
                budgets.settle("tokens", 7, 7)
                got += 7
        return got

    with ThreadPoolExecutor(4) as pool:
        total = sum(pool.map(spend, range(4)))

    assert total == 98
    assert list(spent_and_reserved(processes[0]).values()) == [(98, 0)]


def test_a_new_day_brings_a_new_budget(ground: Ground) -> None:
    to_midnight(ground, before_seconds=60)
    assert ground.store.budgets.reserve("tokens", 100, 100)
    ground.store.budgets.settle("tokens", 100, 100)
    assert not ground.store.budgets.reserve("tokens", 1, 100)

    ground.advance(seconds=120)
    assert ground.store.budgets.reserve("tokens", 1, 100)


def test_a_clock_that_jumps_back_over_midnight_finds_the_old_day_as_it_was(ground: Ground) -> None:
    to_midnight(ground, before_seconds=60)
    ground.store.budgets.reserve("tokens", 100, 100)
    ground.store.budgets.settle("tokens", 100, 100)
    ground.advance(seconds=120)
    ground.store.budgets.reserve("tokens", 30, 100)

    ground.advance(seconds=-120)
    assert not ground.store.budgets.reserve("tokens", 1, 100)
    ground.advance(seconds=120)
    assert not ground.store.budgets.reserve("tokens", 71, 100)


def test_what_was_reserved_days_ago_spends_nothing_of_today(ground: Ground) -> None:
    """The clock jumped while a question was being answered: today's budget is not exceeded by it."""
    budgets = ground.store.budgets
    assert budgets.reserve("tokens", 60, 100)
    ground.advance(seconds=11 * DAY_MS / 1000)
    assert budgets.reserve("tokens", 50, 100)
    budgets.settle("tokens", 50, 50)

    budgets.settle("tokens", 60, 60)

    assert list(spent_and_reserved(ground).values()) == [(60, 0), (50, 0)]


def test_what_was_reserved_before_midnight_is_settled_there(ground: Ground) -> None:
    """Else the new day would lose a reservation that another caller still holds."""
    to_midnight(ground, before_seconds=60)
    yesterday = day_of(ground.now_ms())
    ground.store.budgets.reserve("tokens", 50, 100)
    ground.advance(seconds=120)
    today = day_of(ground.now_ms())
    ground.store.budgets.reserve("tokens", 50, 100)

    ground.store.budgets.settle("tokens", 50, 45)

    assert spent_and_reserved(ground) == {yesterday: (45, 0), today: (0, 50)}
    assert not ground.store.budgets.reserve("tokens", 51, 100)


def test_counting_needs_no_limit(ground: Ground) -> None:
    ground.store.budgets.count("calls", 2)
    ground.store.budgets.count("calls", 3)

    assert [(b.name, b.spent, b.limit) for b in ground.store.budgets.today()] == [("calls", 5, 0)]


# Limiters


def enter(ground: Ground, name: str = "channel:news") -> tuple[int, int]:
    permit = ground.store.limiters.enter(name, limit=30, per_seconds=60, hold_seconds=30)
    return permit.wait_ms, permit.token


def test_one_at_a_time_is_inside(ground: Ground) -> None:
    wait, token = enter(ground)
    assert (wait, token > 0) == (0, True)

    assert 0 < enter(ground)[0] <= 30_000
    ground.store.limiters.leave("channel:news", token)
    assert enter(ground)[0] == 0


def test_a_place_held_by_a_dead_process_is_free_after_its_time(ground: Ground) -> None:
    _, dead = enter(ground)
    ground.advance(seconds=31)
    wait, heir = enter(ground)
    assert wait == 0

    # The late one comes back: it must not open the door the heir is behind.
    ground.store.limiters.leave("channel:news", dead)
    assert enter(ground)[0] > 0
    ground.store.limiters.leave("channel:news", heir)
    assert enter(ground)[0] == 0


def test_thirty_enter_in_any_minute(ground: Ground) -> None:
    times: list[int] = []
    for _ in range(200):
        wait, token = enter(ground)
        if wait:
            ground.advance(seconds=wait / 1000)
            continue
        times.append(ground.now_ms())
        ground.store.limiters.leave("channel:news", token)
        ground.advance(seconds=0.7)

    assert len(times) > 90
    # The clock moves by itself too: allow for the milliseconds between entering and reading it.
    assert all(later - earlier >= 59_900 for earlier, later in zip(times, times[30:], strict=False))


def test_nobody_enters_before_the_time_that_was_asked_for(ground: Ground) -> None:
    _, token = enter(ground)
    ground.store.limiters.leave("channel:news", token, not_before_ms=5_000)

    assert 0 < enter(ground)[0] <= 5_000
    assert 0 < ground.store.limiters.usage("channel:news").closed_for_ms <= 5_000
    ground.advance(seconds=5.1)
    assert enter(ground)[0] == 0
    assert ground.store.limiters.usage("channel:news").entered_last_minute == 2


def test_limiters_hold_across_threads_and_processes(open_ground: OpenGround) -> None:
    processes = [open_ground(), open_ground()]
    inside: list[int] = []
    most: list[int] = []

    def ask(number: int) -> int:
        limiters, entered = processes[number % 2].store.limiters, 0
        for _ in range(40):
            permit = limiters.enter("door", limit=30, per_seconds=3600, hold_seconds=600)
            if permit.wait_ms == 0:
                inside.append(number)
                most.append(len(inside))
                inside.remove(number)
                limiters.leave("door", permit.token)
                entered += 1
        return entered

    with ThreadPoolExecutor(4) as pool:
        entered = sum(pool.map(ask, range(4)))

    assert entered == 30
    assert max(most) == 1


def test_limiters_are_apart_by_name(ground: Ground) -> None:
    assert enter(ground, "one")[0] == 0
    assert enter(ground, "two")[0] == 0


# Caches


def test_a_cache_remembers_for_its_time(ground: Ground) -> None:
    caches = ground.store.caches
    assert caches.get("answers", "k") is None
    caches.put("answers", "k", b"one", 60)
    caches.put("answers", "k", b"two \x00\xff", 60)
    caches.put("others", "k", b"three", 600)

    assert caches.get("answers", "k") == b"two \x00\xff"
    ground.advance(seconds=61)
    assert caches.get("answers", "k") is None
    assert caches.get("others", "k") == b"three"
    assert ground.store.retention.tidy()["caches"] == 1


# Pauses and tokens


def test_a_pause_is_seen_by_other_processes_and_survives(open_ground: OpenGround) -> None:
    one, two = open_ground(), open_ground()
    one.store.pauses.pause("channel:news", "the webhook is gone")
    one.store.pauses.pause("channel:news", "still gone")

    assert two.store.pauses.reasons() == {"channel:news": "still gone"}
    assert two.store.pauses.resume("channel:news")
    assert not two.store.pauses.resume("channel:news")
    assert one.store.pauses.reasons() == {}


def test_a_token_is_known_by_its_hash_alone_and_can_be_revoked(ground: Ground) -> None:
    token = ground.store.tokens.create("laptop", "operate")

    assert ground.store.tokens.scope_of(token) == "operate"
    assert ground.store.tokens.scope_of(token + "x") is None
    assert token not in repr(ground.dump())
    assert ground.store.tokens.revoke("laptop") == 1
    assert ground.store.tokens.scope_of(token) is None
    (view,) = ground.store.tokens.list()
    assert (view.name, view.scope, view.revoked_at is not None) == ("laptop", "operate", True)


def test_the_last_use_of_a_token_is_noted_at_most_once_a_minute(open_ground: OpenGround) -> None:
    one, two = open_ground(), open_ground()
    token = one.store.tokens.create("laptop", "read")
    one.store.tokens.create("unused", "read")

    def noted() -> dict[str, int | None]:
        return {view.name: view.last_used_at for view in two.store.tokens.list()}

    assert noted() == {"laptop": None, "unused": None}
    one.store.tokens.note_use(token)
    first = noted()["laptop"]
    assert first is not None
    assert abs(first - one.store.now_ms()) < 60_000
    two.advance(seconds=30)
    two.store.tokens.note_use(token)
    assert noted() == {"laptop": first, "unused": None}
    two.advance(seconds=60)
    two.store.tokens.note_use(token)
    assert (noted()["laptop"] or 0) >= first + 60_000


@pytest.mark.parametrize("nothing", ["", "tid_", "tid_" + "A" * 43])
def test_nobody_has_a_scope_without_a_token(ground: Ground, nothing: str) -> None:
    ground.store.tokens.create("laptop", "read")
    assert ground.store.tokens.scope_of(nothing) is None
