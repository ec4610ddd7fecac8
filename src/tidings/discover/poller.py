"""The poller: asks each source when it is due, and appends what it finds page by page."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Callable, Coroutine, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Protocol

from cronsim import CronSim, CronSimError

from tidings.discover.live import Granting, Live
from tidings.model.contracts import Executor, Intake, Kit
from tidings.model.errors import BadInput, Misconfigured, SlowDown, StoreUnavailable, TidingsError, Transient
from tidings.model.item import Appended
from tidings.model.pipeline import Page, Pipeline, Run, Schedule, Source
from tidings.model.views import RunEnd, RunView
from tidings.model.wishes import Wishes
from tidings.watch.logs import Seldom, event

TURN_SECONDS = 10.0
"""What a killed poller costs its sources; renewed while a run goes on."""
BEAT_SHARE = 0.3
BEAT_AGAIN_SECONDS = 1.0
BACKOFF_BASE_SECONDS = 30.0
BACKOFF_CAP_SECONDS = 6 * 3600.0
PAGES_MAX = 10_000
"""One run reads no more; what is left waits for the next."""
POLL_SECONDS = 1.0
TURN_TRIES = 20
"""How often a signal waits for another's turn to end, half a poll each."""
SIGNAL_WAIT_SECONDS_MAX = 30.0
WISHES_AT_ONCE = 50
DAY_LIMIT_SECONDS = 1800.0
"""A source that asks us to wait for longer has given us what a day, or a window of hours, holds."""
STOPPED = "stopped"
HELD_UP = ("slowed", "out of credits")
TROUBLE_SECONDS = 600.0
"""How long the same trouble of a source is only counted."""

OnPage = Callable[[Page], None]
"""Told of every page once it is kept."""


def _unwatched(_page: Page) -> None:
    return None


class SourceTurn(Protocol):
    """The right to ask a source now."""

    @property
    def failures(self) -> int:
        """How often in a row the source has failed."""
        ...


class Schedules(Protocol):
    """Who asks which source when."""

    def declare(self, source: str, pipeline: str) -> None:
        """Make a source known."""
        ...

    def claim(self, source: str, owner: str, lease_seconds: float, *, force: bool = False) -> Any:
        """Take the turn, or return None."""
        ...

    def beat(self, turn: Any, lease_seconds: float) -> bool:
        """Prolong a turn."""
        ...

    def keeping(self, turn: Any, lease_seconds: float) -> AbstractContextManager[bool]:
        """Prolong a turn in the transaction of what is written by its right; False where it was lost."""
        ...

    def close(self, turn: Any, run: RunView, *, next_in_seconds: float) -> None:
        """End a turn."""
        ...

    def give_back(self, turn: Any, run: RunView) -> None:
        """End a turn that was stopped: neither success nor failure, due again at once."""
        ...

    def claim_between(self, source: str, owner: str, lease_seconds: float) -> Any:
        """Take the turn between two runs, or return None."""
        ...

    def close_between(self, turn: Any, run: RunView) -> None:
        """End a turn between two runs; the schedule stays as it is."""
        ...


class _TurnLost(Transient):
    """Another process asks this source now."""


@dataclass(slots=True)
class _Tally:
    """What a run has found so far."""

    found: int = 0
    appended: Appended = field(default_factory=Appended)
    rejected: int = 0
    trimmed: int = 0
    pages: int = 0
    credits: int = 0
    notes: list[str] = field(default_factory=list)
    next_check_seconds: float | None = None
    ended: RunEnd = "complete"


@dataclass(slots=True)
class _Asking:
    """One run under way."""

    pipeline: Pipeline
    source: Source
    turn: SourceTurn
    on_page: OnPage
    tally: _Tally = field(default_factory=_Tally)
    is_lost: bool = False
    """Another poller has the turn."""


class Poller:
    """Asks the sources of all pipelines; one owner per source across machines."""

    def __init__(
        self,
        *,
        pipelines: Mapping[str, Pipeline],
        schedules: Schedules,
        intake: Intake,
        executor: Executor,
        kit: Kit,
        owner: str,
        now_ms: Callable[[], int],
        rng: random.Random | None = None,
        wishes: Wishes | None = None,
        turn_seconds: float = TURN_SECONDS,
        poll_seconds: float = POLL_SECONDS,
    ) -> None:
        self._pipelines = pipelines
        self._schedules = schedules
        self._intake = intake
        self._executor = executor
        self._kit = kit
        self._owner = owner
        self._now_ms = now_ms
        self._rng = rng or random.Random()
        self._wishes = wishes
        self._turn_seconds = turn_seconds
        self._poll_seconds = poll_seconds
        self._sources = {s.name: (p, s) for p in pipelines.values() for s in p.sources}
        self._seldom = Seldom()
        self._troubles = Seldom(TROUBLE_SECONDS)

    async def run(self, stop: asyncio.Event) -> None:
        """Ask sources as they become due until `stop` is set."""
        await self._declare_patiently(stop)
        listening = [asyncio.create_task(self._listen(s)) for _, s in self._sources.values() if isinstance(s, Live)]
        listening += [asyncio.create_task(self._grant(s)) for _, s in self._sources.values() if isinstance(s, Granting)]
        asking: dict[str, asyncio.Task[RunView | None]] = {}
        while not stop.is_set():
            for name in self._sources:
                if name not in asking or asking[name].done():
                    asking[name] = asyncio.create_task(self._ask_quietly(name))
            await asyncio.gather(*[t for t in asking.values() if t.done()], return_exceptions=True)
            try:
                async with asyncio.timeout(self._poll_seconds):
                    await stop.wait()
            except TimeoutError:
                pass
        for task in (*asking.values(), *listening):
            task.cancel()
        await asyncio.gather(*asking.values(), *listening, return_exceptions=True)

    async def _listen(self, source: Live) -> None:
        """Ask a live source whenever it has heard of something; its schedule goes on beside that."""
        failures = 0
        while True:
            try:
                async for signal in source.signals(self._kit):
                    view = await self._ask_between(source.name, signal)
                    failures = failures + 1 if view is not None and view.error else 0
                    if failures:
                        await asyncio.sleep(min(SIGNAL_WAIT_SECONDS_MAX, 2.0**failures))
            except Exception as error:  # noqa: BLE001  # the loop outlives every surprise
                self._seldom.event("listening failed", source=source.name, error=f"{type(error).__name__}: {error}")
            await asyncio.sleep(SIGNAL_WAIT_SECONDS_MAX)

    async def _grant(self, source: Granting) -> None:
        """Let a source fetch what is wished for, within seconds; after a failure it is left alone for a while."""
        failures = 0
        while True:
            await asyncio.sleep(min(SIGNAL_WAIT_SECONDS_MAX, self._poll_seconds * 2.0**failures))
            try:
                view = await self.grant(source)
                failures = min(failures + 1, 10) if view is not None and view.error else 0
            except Exception as error:  # noqa: BLE001  # the loop outlives every surprise
                self._seldom.event("granting failed", source=source.name, error=f"{type(error).__name__}: {error}")

    async def grant(self, source: Granting) -> RunView | None:
        """Let a source fetch what is wished for now; None where that is nothing."""
        if self._wishes is None:
            return None
        pipeline = self._sources[source.name][0].name
        ids = await self._executor.read(self._wishes.waiting, pipeline, source.grants, WISHES_AT_ONCE)
        return await self._ask_between(source.name, {"wishes": ids}) if ids else None

    async def _ask_between(self, name: str, signal: Mapping[str, Any]) -> RunView | None:
        """Ask for what a signal tells, as soon as nobody else asks this source; given up after some seconds.

        Whatever is not asked for here is found by the next run.
        """
        for _ in range(TURN_TRIES):
            turn = await self._executor.write(self._schedules.claim_between, name, self._owner, self._turn_seconds)
            if turn is not None:
                return await self._follow(_Asking(*self._sources[name], turn, _unwatched), signal)
            await asyncio.sleep(self._poll_seconds / 2)
        return None

    async def _follow(self, asking: _Asking, signal: Mapping[str, Any]) -> RunView:
        name, error = asking.source.name, None
        started_at = await self._executor.read(self._now_ms)
        try:
            await self._beating(asking, self._read_signaled(asking, started_at, signal))
        except TidingsError as failure:
            error = str(failure)
        except Exception as failure:  # noqa: BLE001  # a source's surprise must not end the poller
            error = f"{type(failure).__name__}: {failure}"
        finally:
            view = self._view(name, started_at, asking.tally, error)
            await self._executor.write(self._schedules.close_between, asking.turn, view)
        if error is not None:
            self._seldom.event("following failed", source=name, error=error)
        elif view.new or view.changed:
            event("followed", source=name, found=view.found, new=view.new, changed=view.changed)
        return view

    async def _read_signaled(self, asking: _Asking, now_ms: int, signal: Mapping[str, Any]) -> None:
        """Append each page at once: there is no mark to wait for."""
        cursor, mark, completed = await self._executor.read(self._intake.cursor, asking.source.name)
        run = Run(asking.source.name, now_ms, cursor, mark, not completed, {"signal": signal})
        async for page in asking.source.pages(run, self._kit):
            await self._append(asking, page)

    async def _declare_patiently(self, stop: asyncio.Event) -> None:
        while not stop.is_set():
            try:
                await self.declare()
                return
            except StoreUnavailable as error:
                self._seldom.event("declaring sources failed", error=str(error))
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(POLL_SECONDS):
                    await stop.wait()

    async def declare(self) -> None:
        """Make every source known to the store."""
        for name, (pipeline, source) in self._sources.items():
            check_schedule(source)
            await self._executor.write(self._schedules.declare, name, pipeline.name)

    async def _ask_quietly(self, name: str) -> RunView | None:
        try:
            return await self.ask(name)
        except Exception as error:  # noqa: BLE001  # the loop outlives every surprise
            self._seldom.event("asking failed", source=name, error=f"{type(error).__name__}: {error}")
            return None

    async def ask(
        self,
        name: str,
        *,
        force: bool = False,
        options: Mapping[str, Any] | None = None,
        on_page: OnPage = _unwatched,
    ) -> RunView | None:
        """Ask one source now if it is due (or forced) and no other process does; return the run's record."""
        pipeline, source = self._sources[name]
        turn = await self._executor.write(self._schedules.claim, name, self._owner, self._turn_seconds, force=force)
        if turn is None:
            return None
        started_at = await self._executor.read(self._now_ms)
        asking = _Asking(pipeline, source, turn, on_page)
        tally = asking.tally
        error: str | None = None
        wait: float | None = None
        try:
            await self._beating(asking, self._look(asking, started_at, options or {}))
        except asyncio.CancelledError:
            # Being stopped is no failure of the source: it is due again at once.
            await self._executor.write(self._schedules.give_back, turn, self._view(name, started_at, tally, STOPPED))
            raise
        except SlowDown as slow:
            tally.notes.append(str(slow))
            wait = slow.retry_after_seconds
            tally.ended = "out of credits" if (wait or 0) >= DAY_LIMIT_SECONDS else "slowed"
        except TidingsError as failure:
            error, wait = str(failure), _asked_wait(failure)
            tally.ended = "refused" if isinstance(failure, Misconfigured) else "failed"
            if options and isinstance(failure, BadInput):
                # The options that a person gave are wrong; that says nothing about the source's health.
                await self._executor.write(self._schedules.give_back, turn, self._view(name, started_at, tally, error))
                raise
        except Exception as failure:  # noqa: BLE001  # a source's surprise must not end the poller
            error, tally.ended = f"{type(failure).__name__}: {failure}", "failed"
        view = self._view(name, started_at, tally, error)
        now = datetime.fromtimestamp(await self._executor.read(self._now_ms) / 1000, UTC)
        next_in = self._next_in(source.schedule, now, turn.failures, tally, error, wait)
        await self._close(source, turn, view, next_in)
        return view

    async def _beating(self, asking: _Asking, work: Coroutine[Any, Any, None]) -> None:
        """Keep the turn while the work goes on; the work ends where the turn is lost."""
        working = asyncio.create_task(work)
        beating = asyncio.create_task(self._beat(asking, working))
        try:
            await working
        except asyncio.CancelledError:
            if asking.is_lost:
                raise _lost(asking) from None
            raise
        finally:
            beating.cancel()

    async def _beat(self, asking: _Asking, working: asyncio.Task[None]) -> None:
        pause = self._turn_seconds * BEAT_SHARE
        while True:
            await asyncio.sleep(pause)
            try:
                is_ours = await self._executor.write(self._schedules.beat, asking.turn, self._turn_seconds)
            except Exception as error:  # noqa: BLE001  # until another process takes the turn it is ours
                self._seldom.event("turn not renewed", source=asking.source.name, error=str(error))
                pause = min(BEAT_AGAIN_SECONDS, pause)
                continue
            if not is_ours:
                asking.is_lost = True
                working.cancel()
                return
            pause = self._turn_seconds * BEAT_SHARE

    async def _look(self, asking: _Asking, now_ms: int, options: Mapping[str, Any]) -> None:
        asking.tally.trimmed = await self._executor.write(self._intake.trim, asking.pipeline.name)
        await self._read_pages(asking, now_ms, options)

    async def _read_pages(self, asking: _Asking, now_ms: int, options: Mapping[str, Any]) -> None:
        """Append page by page; the last one is held back a moment so that the mark commits with it."""
        source, tally = asking.source, asking.tally
        cursor, mark, completed = await self._executor.read(self._intake.cursor, source.name)
        run = Run(source.name, now_ms, cursor, mark, not completed, options)
        held: Page | None = None
        new_mark: Any = None
        try:
            async for page in source.pages(run, self._kit):
                if held is not None:
                    await self._append(asking, held)
                held = page
                new_mark = page.mark if page.mark is not None else new_mark
                tally.next_check_seconds = page.next_check_seconds or tally.next_check_seconds
                if tally.pages >= PAGES_MAX:
                    break
        except _TurnLost:
            raise
        except (Exception, asyncio.CancelledError):
            # The page that was held back is kept, since asking for it may have cost money. The mark does not move: the
            # next run looks for what lies between.
            if held is not None:
                await self._append(asking, held)
            raise
        await self._append(asking, held or Page(()), mark=new_mark, completes=not options)

    async def _append(self, asking: _Asking, page: Page, mark: Any = None, completes: bool = False) -> None:
        source, tally = asking.source.name, asking.tally
        appended = await self._executor.write(self._keep, asking, page, mark, completes)
        tally.pages += 1
        tally.found += len(page.findings)
        tally.appended += appended
        tally.rejected += len(page.rejected)
        tally.credits += page.credits
        if page.incomplete:
            tally.ended = "incomplete"
        tally.notes += [told for told in (page.note, page.incomplete) if told]
        for rejected in page.rejected[:20]:
            event("entry rejected", source=source, line=rejected.line, reason=rejected.reason)
        asking.on_page(page)

    def _keep(self, asking: _Asking, page: Page, mark: Any, completes: bool) -> Appended:
        """Write a page by the right of the turn, in one transaction: two pollers must not move one cursor."""
        with self._schedules.keeping(asking.turn, self._turn_seconds) as is_ours:
            if not is_ours:
                raise _lost(asking)
            if self._wishes is not None:
                self._keep_wishes(self._wishes, asking.pipeline, page)
            return self._intake.append(
                asking.pipeline.name,
                page.findings,
                source=asking.source.name,
                cursor=page.cursor,
                mark=mark,
                completes=completes,
                rankings=page.rankings,
            )

    def _keep_wishes(self, wishes: Wishes, pipeline: Pipeline, page: Page) -> None:
        if page.granted is not None:
            wishes.answer(pipeline.name, page.granted)
        if page.outdated is not None:
            wishes.renew(pipeline.name, pipeline.collection(page.outdated.collection).singular, page.outdated)

    def _view(self, name: str, started_at: int, tally: _Tally, error: str | None) -> RunView:
        return RunView(
            source=name,
            started_at=started_at,
            found=tally.found,
            new=tally.appended.new,
            changed=tally.appended.changed,
            unchanged=tally.appended.unchanged,
            rejected=tally.rejected,
            trimmed=tally.trimmed,
            pages=tally.pages,
            credits=tally.credits,
            error=error,
            note="; ".join(dict.fromkeys(tally.notes))[:500] or None,
            ended="stopped" if error == STOPPED else tally.ended,
        )

    async def _close(self, source: Source, turn: SourceTurn, view: RunView, next_in_seconds: float) -> None:
        await self._executor.write(self._schedules.close, turn, view, next_in_seconds=next_in_seconds)
        if (trouble := view.error or (view.note if view.ended in HELD_UP else None)) is not None:
            # One line tells of a trouble; the same one is counted for a while, not repeated at every look.
            self._troubles.event(
                f"looking at {source.name} failed: {trouble}",
                source=source.name,
                ended=view.ended,
                failures=turn.failures + 1 if view.error else None,
                found=view.found,
                new=view.new,
                credits=view.credits,
                next_in_seconds=round(next_in_seconds, 1),
            )
            return
        event(
            "discovered",
            source=source.name,
            found=view.found,
            new=view.new,
            changed=view.changed,
            unchanged=view.unchanged,
            rejected=view.rejected,
            trimmed=view.trimmed,
            pages=view.pages,
            credits=view.credits,
            ended=None if view.ended == "complete" else view.ended,
            next_in_seconds=round(next_in_seconds, 1),
        )

    def _next_in(
        self, schedule: Schedule, now: datetime, failures: int, tally: _Tally, error: str | None, wait: float | None
    ) -> float:
        """Return how long until the next run: the schedule's time, a source's wish, or backoff after a failure."""
        if error is None:
            planned = seconds_until_due(schedule, now)
            wished = tally.next_check_seconds if wait is None else wait
            return planned if wished is None else max(1.0, wished)
        backoff = min(BACKOFF_CAP_SECONDS, BACKOFF_BASE_SECONDS * 2.0 ** min(failures, 20))
        backoff *= 1 + 0.2 * self._rng.uniform(-1, 1)
        return max(backoff, wait or 0.0)


def _lost(asking: _Asking) -> _TurnLost:
    return _TurnLost(f"{asking.source.name} took so long that another poller has its turn now")


def _asked_wait(failure: TidingsError) -> float | None:
    return failure.retry_after_seconds if isinstance(failure, Transient) else None


def check_schedule(source: Source) -> None:
    """Refuse a schedule that never comes."""
    schedule = source.schedule
    if schedule.cron is not None:
        try:
            next(CronSim(schedule.cron, datetime.now(UTC)))
        except (CronSimError, StopIteration) as error:
            raise Misconfigured(f"{source.name}: {schedule.cron!r} is no cron expression: {error}") from error
    elif schedule.every_seconds is None or schedule.every_seconds <= 0:
        raise Misconfigured(f"{source.name}: a schedule needs every_seconds above 0, or a cron expression")


def seconds_until_due(schedule: Schedule, now: datetime) -> float:
    """Return how long until the schedule's next time."""
    if schedule.cron is not None:
        return float((next(CronSim(schedule.cron, now)) - now).total_seconds())
    assert schedule.every_seconds is not None
    return schedule.every_seconds
