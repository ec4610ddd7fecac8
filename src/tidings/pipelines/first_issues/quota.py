"""Keeps within GitHub's limits and our own: which call may go out now, and how long the others wait."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import msgspec

from tidings.model.clock import seconds_left_in_day
from tidings.model.contracts import Kit
from tidings.model.errors import SlowDown
from tidings.model.web import Response
from tidings.net.client import retry_after_seconds

HOUR_MS = 3_600_000
SECONDARY_SECONDS = 60.0
WAIT_SECONDS_MAX = 3_600.0
BUDGET = "first_issues.calls"
SETTLED_AT_ONCE = 10
"""Calls stand as reserved in the ledger until so many are settled together."""
PAUSES = "first_issues.pauses"
PAUSE_READ_MS = 1000
DISCOVERY_CALLS = 300
"""What one pass over the lists may need; kept back for it from the rest of the work."""
DISCOVERY_SHARE_MAX = 0.5

Purpose = Literal["discovery", "work"]


@dataclass(frozen=True, slots=True)
class Quota:
    """What GitHub last said of the hour's calls."""

    limit: int
    remaining: int
    reset_ms: int


class Pause(msgspec.Struct, frozen=True):
    """When calls may go on, shared between processes; `strikes` counts secondary limits in a row."""

    until_ms: int
    reason: str
    strikes: int = 0


class CallGate:
    """Admits calls one by one. Every wait is a SlowDown: it costs no attempt."""

    def __init__(self, *, daily_calls: int, rng: random.Random | None = None) -> None:
        self._daily_calls = daily_calls
        self._rng = rng or random.Random()
        self._quota: Quota | None = None
        self._under_way = 0
        self._unsettled = 0
        self._strikes = 0
        self._pause: Pause | None = None
        self._pause_read_ms = 0

    async def admit(self, kit: Kit, purpose: Purpose) -> int:
        """Let a call through and return the time, or raise SlowDown; every admitted call must end with `done`."""
        now_ms = kit.clock.now_ms()
        pause = await self._current_pause(kit, now_ms)
        if pause is not None and pause.until_ms > now_ms:
            raise SlowDown(pause.reason, retry_after_seconds=(pause.until_ms - now_ms) / 1000)
        wait_ms = self.wait_ms(now_ms, purpose)
        if wait_ms > 0:
            raise SlowDown(
                f"GitHub allows {self._quota.limit if self._quota else '?'} calls an hour; the rest of this hour's "
                f"are kept for discovery or used up",
                retry_after_seconds=self._spread(wait_ms, now_ms, purpose) / 1000,
            )
        self._under_way += 1
        if not await kit.ledger.reserve(BUDGET, 1, self._daily_calls):
            self._under_way -= 1
            raise SlowDown(
                f"today's budget of {self._daily_calls} GitHub calls is spent",
                retry_after_seconds=min(seconds_left_in_day(now_ms) + 1, WAIT_SECONDS_MAX),
            )
        return now_ms

    async def done(self, kit: Kit, response: Response | None, now_ms: int) -> None:
        """Count a call and remember what its answer says of the quota; None: there was no answer."""
        self._under_way -= 1
        self._unsettled += 1
        if response is not None:
            self._quota = read_quota(response.headers, now_ms) or self._quota
        if self._unsettled >= SETTLED_AT_ONCE:
            settled, self._unsettled = self._unsettled, 0
            await kit.ledger.settle(BUDGET, settled, settled)

    async def obey(self, kit: Kit, response: Response) -> None:
        """Pause everyone and raise SlowDown if an answer is a rate limit; else do nothing."""
        if response.status not in (403, 429):
            self._strikes = 0
            return
        now_ms = kit.clock.now_ms()
        pause = limit_pause(response, now_ms, self._strikes)
        if pause is None:
            return
        self._strikes, self._pause, self._pause_read_ms = pause.strikes, pause, now_ms
        wait_seconds = max(1.0, (pause.until_ms - now_ms) / 1000)
        await kit.ledger.put(PAUSES, "github", msgspec.json.encode(pause), round(wait_seconds) + 60)
        raise SlowDown(pause.reason, retry_after_seconds=wait_seconds)

    def _spread(self, wait_ms: int, now_ms: int, purpose: Purpose) -> float:
        """Spread the waiting items over the rest of the hour: only a few calls are free at any moment."""
        if purpose == "discovery" or self._quota is None:
            return wait_ms
        return self._rng.uniform(wait_ms, max(wait_ms, self._quota.reset_ms - now_ms))

    def wait_ms(self, now_ms: int, purpose: Purpose) -> int:
        """Return how long this hour's quota makes a call wait.

        Discovery may use it all. Other work leaves a part for discovery, less and less towards the hour's end, so
        that the lists are always read to their end and no call is wasted.
        """
        quota = self._quota
        if quota is None or now_ms >= quota.reset_ms:
            return 0
        left_ms = quota.reset_ms - now_ms
        remaining = quota.remaining - self._under_way
        if remaining <= 0:
            return left_ms
        if purpose == "discovery":
            return 0
        kept = min(DISCOVERY_SHARE_MAX * quota.limit, DISCOVERY_CALLS)
        free_from_ms = remaining / kept * HOUR_MS
        return max(0, round(left_ms - free_from_ms))

    async def _current_pause(self, kit: Kit, now_ms: int) -> Pause | None:
        """Return the pause all processes share; read again once a second."""
        if abs(now_ms - self._pause_read_ms) >= PAUSE_READ_MS:
            self._pause_read_ms = now_ms
            stored = await kit.ledger.get(PAUSES, "github")
            try:
                self._pause = None if stored is None else msgspec.json.decode(stored, type=Pause)
            except msgspec.MsgspecError:
                self._pause = None
        return self._pause


def read_quota(headers: Mapping[str, str], now_ms: int) -> Quota | None:
    """Read the rate-limit headers, if they are there and make sense."""
    try:
        limit = int(headers["x-ratelimit-limit"])
        remaining = int(headers["x-ratelimit-remaining"])
        reset_ms = int(headers["x-ratelimit-reset"]) * 1000
    except (KeyError, ValueError):
        return None
    if limit <= 0 or remaining < 0:
        return None
    # The window is an hour; a clock that differs from GitHub's must not make it longer.
    return Quota(limit, remaining, min(reset_ms, now_ms + HOUR_MS))


def limit_pause(response: Response, now_ms: int, strikes: int) -> Pause | None:
    """Tell a rate limit from any other answer, and how long it asks us to wait."""
    if response.status not in (403, 429):
        return None
    wish_seconds = retry_after_seconds(response.headers, now_ms / 1000)
    quota = read_quota(response.headers, now_ms)
    if quota is not None and quota.remaining == 0:
        until_ms = max(quota.reset_ms, now_ms + 1000)
        return Pause(until_ms, f"GitHub's limit of {quota.limit} calls an hour is used up", strikes)
    is_secondary = b"secondary rate limit" in response.body or b"abuse detection" in response.body
    if not is_secondary and wish_seconds is None and response.status != 429:
        return None
    wait_seconds = wish_seconds if wish_seconds is not None else min(SECONDARY_SECONDS * 2.0**strikes, WAIT_SECONDS_MAX)
    until_ms = now_ms + round(max(1.0, wait_seconds) * 1000)
    return Pause(until_ms, f"GitHub's secondary limit asks us to wait {wait_seconds:.0f} s", strikes + 1)
