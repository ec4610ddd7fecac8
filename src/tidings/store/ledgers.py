"""Caches, daily budgets, limiters across machines, pause flags, tokens."""

from __future__ import annotations

import secrets
from hashlib import sha256

import msgspec

from tidings.model.clock import day_of
from tidings.model.contracts import Executor, Permit
from tidings.model.views import BudgetView, TokenView
from tidings.store.database import Database, Tx

SETTLED_LATE_MS = 3_600_000
USE_NOTED_EVERY_MS = 60_000


class Ledgers:
    """Small facts that must hold across processes and restarts."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def now_ms(self) -> int:
        """Return the database's clock."""
        with self._database.reading() as tx:
            return _now(tx)

    def get(self, name: str, key: str) -> bytes | None:
        """Return a cached value."""
        with self._database.reading() as tx:
            row = tx.one("cache_get", name=name, key=key)
        return bytes(row[0]) if row else None

    def put(self, name: str, key: str, value: bytes, ttl_seconds: float) -> None:
        """Remember a value for a while."""
        with self._database.transaction() as tx:
            tx.run("cache_put", name=name, key=key, value=value, ttl_ms=round(ttl_seconds * 1000))

    def reserve(self, name: str, amount: int, limit: int) -> bool:
        """Set aside part of today's budget; False where it would not suffice."""
        with self._database.transaction() as tx:
            self._database.lock(tx, f"budget:{name}")
            day = day_of(_now(tx))
            spent, reserved, _ = tx.one("read_budget", name=name, day=day) or (0, 0, 0)
            fits = spent + reserved + amount <= limit
            tx.run("write_budget", name=name, day=day, spent=spent, reserved=reserved + amount * fits, limited_to=limit)
        return bool(fits)

    def settle(self, name: str, reserved: int, actual: int) -> None:
        """Replace a reservation by what was really spent."""
        with self._database.transaction() as tx:
            self._database.lock(tx, f"budget:{name}")
            now = _now(tx)
            # What was set aside shortly before midnight belongs to the old day: booked on the new one it would free
            # a reservation that somebody else still holds.
            day = day_of(now - SETTLED_LATE_MS)
            spent, held, limit = tx.one("read_budget", name=name, day=day) or (0, 0, 0)
            if held < reserved:
                day = day_of(now)
                spent, held, limit = tx.one("read_budget", name=name, day=day) or (0, 0, 0)
            if held < reserved and (row := tx.one("reserved_budget", name=name, reserved=reserved)):
                # Set aside on another day yet: the clock has jumped, or the answer took that long.
                day, spent, held, limit = row
            left = max(0, held - reserved)
            tx.run("write_budget", name=name, day=day, spent=spent + actual, reserved=left, limited_to=limit)

    def count(self, name: str, amount: int) -> None:
        """Count without a limit."""
        with self._database.transaction() as tx:
            tx.run("count_budget", name=name, day=day_of(_now(tx)), amount=amount)

    def today(self) -> list[BudgetView]:
        """Return today's budgets and counts."""
        with self._database.reading() as tx:
            rows = tx.all("budgets_of_day", day=day_of(_now(tx)))
        return [BudgetView(*row) for row in rows]

    def enter(self, name: str, *, limit: int, per_seconds: float, hold_seconds: float) -> Permit:
        """Ask for the one place inside; at most `limit` entries in any `per_seconds`."""
        with self._database.transaction() as tx:
            self._database.lock(tx, f"limiter:{name}")
            now = _now(tx)
            row = tx.one("read_limiter", name=name)
            text, token, held_until, not_before = row or ("[]", 0, 0, 0)
            window = round(per_seconds * 1000)
            entries = [at for at in msgspec.json.decode(text, type=list[int]) if now - window < at <= now]
            opens = max(held_until, not_before, entries[-limit] + window if len(entries) >= limit else 0)
            if opens > now:
                return Permit(wait_ms=opens - now)
            held = now + round(hold_seconds * 1000)
            written = msgspec.json.encode([*entries, now]).decode()
            tx.run("write_limiter", name=name, entries=written, token=token + 1, held_until=held, not_before=not_before)
        return Permit(0, token + 1)

    def leave(self, name: str, token: int, *, not_before_ms: int = 0) -> None:
        """Give the place back; nobody enters for the next `not_before_ms` milliseconds."""
        with self._database.transaction() as tx:
            self._database.lock(tx, f"limiter:{name}")
            row = tx.one("read_limiter", name=name)
            if row is None:
                return
            text, current, held_until, not_before = row
            later = max(not_before, _now(tx) + not_before_ms if not_before_ms else 0)
            held = 0 if current == token else held_until
            tx.run("write_limiter", name=name, entries=text, token=current, held_until=held, not_before=later)

    def limiter(self, name: str) -> tuple[int, int]:
        """Return how many entered in the last minute and how long nobody may enter."""
        with self._database.reading() as tx:
            row = tx.one("read_limiter", name=name)
            now = _now(tx)
        if row is None:
            return 0, 0
        entries = msgspec.json.decode(row[0], type=list[int])
        return sum(1 for at in entries if at > now - 60_000), max(0, row[3] - now)

    def pause(self, part: str, reason: str) -> None:
        """Stop a part: `pipeline:P`, `source:S`, `channel:C`."""
        with self._database.transaction() as tx:
            tx.run("pause", part=part, reason=reason[:500])

    def resume(self, part: str) -> bool:
        """Start a part again; False where it was not paused."""
        sort, _, name = part.partition(":")
        with self._database.transaction() as tx:
            if sort == "channel":
                tx.run("wake_deliveries", prefix=f"{name}/", prefix_end=f"{name}0")
            return tx.run("resume", part=part) > 0

    def pauses(self) -> dict[str, str]:
        """Return what is paused, and why."""
        with self._database.reading() as tx:
            return {part: reason for part, reason, _ in tx.all("pauses")}

    def create_token(self, name: str, scope: str) -> str:
        """Make a token and return it, once; only its hash is kept."""
        token = f"tid_{secrets.token_urlsafe(32)}"
        with self._database.transaction() as tx:
            tx.run("insert_token", hash=_hash(token), name=name, scope=scope)
        return token

    def scope_of(self, token: str) -> str | None:
        """Return the scope of a live token, or None."""
        with self._database.reading() as tx:
            row = tx.one("token", hash=_hash(token))
        return str(row[0]) if row else None

    def use_token(self, token: str) -> None:
        """Note that a token was used just now, unless that was noted within the last minute, by whichever process."""
        with self._database.transaction() as tx:
            tx.run("use_token", hash=_hash(token), every_ms=USE_NOTED_EVERY_MS)

    def tokens(self) -> list[TokenView]:
        """List tokens, revoked ones too."""
        with self._database.reading() as tx:
            rows = tx.all("tokens")
        return [TokenView(name=n, scope=s, created_at=c, last_used_at=u, revoked_at=r) for n, s, c, u, r in rows]

    def revoke(self, name: str) -> int:
        """End every live token of a name."""
        with self._database.transaction() as tx:
            return len(tx.all("revoke_token", name=name))


class StoreClock:
    """The database's clock for waiting processors and sources; costs no query."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def now_ms(self) -> int:
        """Return the time."""
        return self._database.now_ms()


class AsyncLedger:
    """The ledgers as the enricher and waiting processors see them."""

    def __init__(self, ledgers: Ledgers, executor: Executor) -> None:
        self._ledgers = ledgers
        self._executor = executor

    async def get(self, name: str, key: str) -> bytes | None:
        """Return a cached value."""
        return await self._executor.read(self._ledgers.get, name, key)

    async def put(self, name: str, key: str, value: bytes, ttl_seconds: float) -> None:
        """Remember a value for a while."""
        await self._executor.write(self._ledgers.put, name, key, value, ttl_seconds)

    async def reserve(self, name: str, amount: int, limit: int) -> bool:
        """Set aside part of today's budget."""
        return await self._executor.write(self._ledgers.reserve, name, amount, limit)

    async def settle(self, name: str, reserved: int, actual: int) -> None:
        """Replace a reservation by what was really spent."""
        await self._executor.write(self._ledgers.settle, name, reserved, actual)

    async def count(self, name: str, amount: int) -> None:
        """Count without a limit."""
        await self._executor.write(self._ledgers.count, name, amount)

    async def enter(self, name: str, *, limit: int, per_seconds: float, hold_seconds: float) -> Permit:
        """Ask a limiter for the one place inside."""
        return await self._executor.write(
            self._ledgers.enter, name, limit=limit, per_seconds=per_seconds, hold_seconds=hold_seconds
        )

    async def leave(self, name: str, token: int, *, not_before_ms: int = 0) -> None:
        """Give a limiter's place back."""
        await self._executor.write(self._ledgers.leave, name, token, not_before_ms=not_before_ms)

    async def pause(self, part: str, reason: str) -> None:
        """Stop a part."""
        await self._executor.write(self._ledgers.pause, part, reason)

    async def pauses(self) -> dict[str, str]:
        """Return what is paused, and why."""
        return await self._executor.read(self._ledgers.pauses)


def _now(tx: Tx) -> int:
    row = tx.one("now")
    assert row is not None
    return int(row[0])


def _hash(token: str) -> str:
    return sha256(token.encode()).hexdigest()
