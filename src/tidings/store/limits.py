"""Daily budgets, and limiters that hold across processes and machines."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import msgspec

from tidings.model.clock import day_of
from tidings.model.contracts import Permit, Starts
from tidings.model.views import BudgetView
from tidings.store.db.database import Database, Tx

SETTLED_LATE_MS = 3_600_000
MINUTE_MS = 60_000
ENTRIES_MAX = 200
EVER = "ever"
"""The day of what is counted for good, for counters that no restart resets. It sorts behind every date."""


class DayBudget(NamedTuple):
    """One day of a budget."""

    day: str
    spent: int
    reserved: int
    limited_to: int


class Limiter(NamedTuple):
    """When callers entered (a JSON list of times), until when one is inside, and before what time none may enter."""

    entries: str
    token: int
    held_until: int
    not_before: int


class Usage(NamedTuple):
    """How a limiter is used now."""

    entered_last_minute: int
    closed_for_ms: int


class BudgetStore:
    """What may be spent in a day, and what was; each change holds the budget's lock."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def ever(self) -> dict[str, int]:
        """Return what is counted for good, by name."""
        with self._database.reading() as tx:
            return {each.name: each.spent for each in tx.rows(BudgetView, "budgets_of_day", day=EVER)}

    def reserve(self, name: str, amount: int, limit: int) -> bool:
        """Set aside part of today's budget; False where it would not suffice."""
        with self._database.transaction() as tx:
            self._database.lock(tx, f"budget:{name}")
            today = _read_budget(tx, name, day_of(tx.value("now")))
            fits = today.spent + today.reserved + amount <= limit
            reserved = today.reserved + amount * fits
            _write_budget(tx, name, today._replace(reserved=reserved, limited_to=limit))
        return fits

    def settle(self, name: str, reserved: int, actual: int) -> None:
        """Replace a reservation by what was really spent."""
        with self._database.transaction() as tx:
            self._database.lock(tx, f"budget:{name}")
            budget = _reserving_day(tx, name, reserved)
            left = max(0, budget.reserved - reserved)
            _write_budget(tx, name, budget._replace(spent=budget.spent + actual, reserved=left))

    def count(self, name: str, amount: int) -> None:
        """Count without a limit."""
        with self._database.transaction() as tx:
            tx.run("count_budget", name=name, day=day_of(tx.value("now")), amount=amount)

    def today(self) -> list[BudgetView]:
        """Return today's budgets and counts."""
        with self._database.reading() as tx:
            return tx.rows(BudgetView, "budgets_of_day", day=day_of(tx.value("now")))


def _reserving_day(tx: Tx, name: str, reserved: int) -> DayBudget:
    """Return the day on which so much was set aside; today where none is found."""
    now = tx.value("now")
    # A reservation made shortly before midnight belongs to the old day. Settled on the new one, it would free a
    # reservation that another process still holds.
    late = _read_budget(tx, name, day_of(now - SETTLED_LATE_MS))
    if late.reserved >= reserved:
        return late
    today = _read_budget(tx, name, day_of(now))
    if today.reserved >= reserved:
        return today
    # Reserved on yet another day: the clock has jumped, or the answer took that long.
    return tx.row(DayBudget, "reserved_budget", name=name, reserved=reserved) or today


def _read_budget(tx: Tx, name: str, day: str) -> DayBudget:
    return tx.row(DayBudget, "read_budget", name=name, day=day) or DayBudget(day, 0, 0, 0)


def _write_budget(tx: Tx, name: str, budget: DayBudget) -> None:
    tx.run("write_budget", name=name, **budget._asdict())


class LimiterStore:
    """Rates that hold across machines: one caller inside at a time, so many entries in a window."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def enter(self, name: str, *, limit: int, per_seconds: float, hold_seconds: float) -> Permit:
        """Ask for the one place inside; at most `limit` entries in any `per_seconds`."""
        with self._database.transaction() as tx:
            self._database.lock(tx, f"limiter:{name}")
            now = tx.value("now")
            limiter = tx.row(Limiter, "read_limiter", name=name) or Limiter("[]", 0, 0, 0)
            window = round(per_seconds * 1000)
            entries = _recent(limiter, now, window)
            next_entry = entries[-limit] + window if len(entries) >= limit else 0
            opens = max(limiter.held_until, limiter.not_before, next_entry)
            if opens > now:
                return Permit(wait_ms=opens - now)
            token = limiter.token + 1
            written = msgspec.json.encode([*entries, now]).decode()
            held_until = now + round(hold_seconds * 1000)
            _write_limiter(tx, name, limiter._replace(entries=written, token=token, held_until=held_until))
        return Permit(0, token)

    @contextmanager
    def starting(self, name: str, per_minute: float) -> Iterator[Starts]:
        """Open a shared rate: what is started inside is counted in the same transaction, for all processes."""
        limit, window = _window(per_minute)
        with self._database.transaction() as tx:
            self._database.lock(tx, f"limiter:{name}")
            limiter = tx.row(Limiter, "read_limiter", name=name) or Limiter("[]", 0, 0, 0)
            now = tx.value("now")
            entries = _recent(limiter, now, window)
            free = max(0, limit - len(entries))
            starts = Starts(free, 0 if free else entries[-limit] + window - now)
            yield starts
            if starts.made:
                written = msgspec.json.encode([*entries, *[now] * starts.made]).decode()
                _write_limiter(tx, name, limiter._replace(entries=written))

    def leave(self, name: str, token: int, *, not_before_ms: int = 0) -> None:
        """Give the place back; no caller enters for the next `not_before_ms` milliseconds."""
        with self._database.transaction() as tx:
            self._database.lock(tx, f"limiter:{name}")
            limiter = tx.row(Limiter, "read_limiter", name=name)
            if limiter is None:
                return
            later = tx.value("now") + not_before_ms if not_before_ms else 0
            # The token tells whether the place is still ours: where we held it too long, another caller has it now.
            held_until = 0 if limiter.token == token else limiter.held_until
            not_before = max(limiter.not_before, later)
            _write_limiter(tx, name, limiter._replace(held_until=held_until, not_before=not_before))

    def usage(self, name: str) -> Usage:
        """Tell how many entered in the last minute, and for how long no caller may enter."""
        with self._database.reading() as tx:
            limiter = tx.row(Limiter, "read_limiter", name=name)
            now = tx.value("now")
        if limiter is None:
            return Usage(0, 0)
        recent = [at for at in _times(limiter) if at > now - MINUTE_MS]
        return Usage(len(recent), max(0, limiter.not_before - now))


def _window(per_minute: float) -> tuple[int, int]:
    """Turn a rate into so many starts in so many milliseconds. A rate below one a minute is one start in longer.

    A fast rate gets a shorter window: the times of all starts in it are kept.
    """
    limit = min(ENTRIES_MAX, max(1, int(per_minute)))
    return limit, round(limit * MINUTE_MS / per_minute)


def _recent(limiter: Limiter, now: int, window_ms: int) -> list[int]:
    """Return the entries that count. Times later than now were written before the clock was set back."""
    return [at for at in _times(limiter) if now - window_ms < at <= now]


def _times(limiter: Limiter) -> list[int]:
    return msgspec.json.decode(limiter.entries, type=list[int])


def _write_limiter(tx: Tx, name: str, limiter: Limiter) -> None:
    tx.run("write_limiter", name=name, **limiter._asdict())
