"""The poller: asks each source when it is due, and appends what it finds page by page."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Callable, Coroutine, Mapping
from datetime import UTC, datetime
from typing import Any

from tidings.discover.live import Granting, Live
from tidings.discover.look import Look, OnPage, Schedules, Sources
from tidings.discover.page_reader import PageReader
from tidings.discover.schedule import check_schedule, seconds_until_next
from tidings.model.contracts import Executor, Intake, Kit
from tidings.model.errors import BadInput, Misconfigured, SlowDown, StoreUnavailable, TidingsError, Transient
from tidings.model.pipeline import Page, PlacedSource, Source
from tidings.model.views import RunView
from tidings.model.wishes import Wishes
from tidings.watch.logs import Seldom, event

TURN_SECONDS = 10.0
"""What a killed poller costs its sources; renewed while a run goes on."""
POLL_SECONDS = 1.0
TURN_TRIES = 20
"""How often a signal waits for another's turn to end, half a poll each."""
SIGNAL_WAIT_SECONDS_MAX = 30.0
WISHES_AT_ONCE = 50
ASKED_AT_ONCE_MAX = 500
"""How many sources one process asks at once; each host has its own, lower limit."""
DAY_LIMIT_SECONDS = 1800.0
"""A source that asks us to wait for longer has given us what a day, or a window of hours, holds."""
HELD_UP = ("slowed", "out of credits")
TROUBLE_SECONDS = 600.0
"""How long the same trouble of a source is only counted."""


Listening = dict[tuple[str, str], tuple[Source, asyncio.Task[None]]]
"""The tasks that listen to sources, by the source's name and what is listened for."""


def _unwatched(_page: Page) -> None:
    return None


class Poller:
    """Asks the sources of all pipelines; one owner per source across machines."""

    def __init__(
        self,
        *,
        sources: Sources,
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
        self._schedules = schedules
        self._executor = executor
        self._kit = kit
        self._owner = owner
        self._now_ms = now_ms
        self._rng = rng or random.Random()
        self._wishes = wishes
        self._turn_seconds = turn_seconds
        self._intake = intake
        self._reader = PageReader(schedules, intake, executor, kit, wishes=wishes, turn_seconds=turn_seconds)
        self._poll_seconds = poll_seconds
        self._list = sources
        self._sources: Mapping[str, PlacedSource] = {}
        self._seldom = Seldom()
        self._troubles = Seldom(TROUBLE_SECONDS)

    async def run(self, stop: asyncio.Event) -> None:
        """Ask sources as they become due until `stop` is set."""
        await self._declare_patiently(stop)
        listening: Listening = {}
        asking: dict[str, asyncio.Task[RunView | None]] = {}
        while not stop.is_set():
            asking = {name: task for name, task in asking.items() if not task.done()}
            due = await self._due_quietly()
            self._listen_to(listening)
            for name in due:
                if name not in asking and len(asking) < ASKED_AT_ONCE_MAX:
                    asking[name] = asyncio.create_task(self._ask_quietly(name))
            try:
                async with asyncio.timeout(self._poll_seconds):
                    await stop.wait()
            except TimeoutError:
                pass
        tasks = (*asking.values(), *(task for _, task in listening.values()))
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _listen_to(self, listening: Listening) -> None:
        """Listen to the sources as they are now: new ones, changed ones once more, removed ones no longer."""
        wanted: dict[tuple[str, str], Coroutine[Any, Any, None]] = {}
        for place, (source, task) in list(listening.items()):
            placed = self._sources.get(place[0])
            if placed is None or placed.source != source:
                task.cancel()
                del listening[place]
        for name, placed in self._sources.items():
            if isinstance(placed.source, Live) and (name, "live") not in listening:
                wanted[name, "live"] = self._listen(placed.source)
            if isinstance(placed.source, Granting) and (name, "grants") not in listening:
                wanted[name, "grants"] = self._grant(placed.source)
        for place, loop in wanted.items():
            listening[place] = (self._sources[place[0]].source, asyncio.create_task(loop))

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
        placed = self._sources[name]
        for _ in range(TURN_TRIES):
            turn = await self._executor.write(self._schedules.claim_between, name, self._owner, self._turn_seconds)
            if turn is not None:
                return await self._follow(await self._look(placed, turn, _unwatched), signal)
            await asyncio.sleep(self._poll_seconds / 2)
        return None

    async def _look(self, placed: PlacedSource, turn: Any, on_page: OnPage) -> Look:
        return Look(placed.pipeline, placed.source, turn, await self._executor.read(self._now_ms), on_page)

    async def _follow(self, look: Look, signal: Mapping[str, Any]) -> RunView:
        name, error = look.source.name, None
        try:
            await self._reader.read_signaled(look, signal)
        except TidingsError as failure:
            error = str(failure)
        except Exception as failure:  # noqa: BLE001  # a source's surprise must not end the poller
            error = f"{type(failure).__name__}: {failure}"
        finally:
            view = look.view(error)
            await self._executor.write(self._schedules.close_between, look.turn, view)
        if error is not None:
            self._seldom.event("following failed", source=name, error=error)
        elif view.new or view.changed:
            event("followed", source=name, found=view.found, new=view.new, changed=view.changed)
        return view

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
        self._sources = await self._executor.write(self._list.declare)
        for placed in self._sources.values():
            check_schedule(placed.source)

    async def _due_quietly(self) -> list[str]:
        """Take over what changed in the list of sources; return what is due of them, in one read for all."""
        try:
            self._sources, due = await self._executor.read(self._look_around)
        except Exception as error:  # noqa: BLE001  # the loop outlives every surprise
            self._seldom.event("asking failed", error=f"{type(error).__name__}: {error}")
            return []
        return [name for name in due if name in self._sources]

    def _look_around(self) -> tuple[Mapping[str, PlacedSource], list[str]]:
        return self._list.current(), self._schedules.due()

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
        # Whatever becomes of the list meanwhile: this turn is for the source as it is now.
        placed = (await self._executor.read(self._list.current)).get(name)
        if placed is None:
            return None
        turn = await self._executor.write(self._schedules.claim, name, self._owner, self._turn_seconds, force=force)
        if turn is None:
            return None
        look = await self._look(placed, turn, on_page)
        error: str | None = None
        wait: float | None = None
        try:
            await self._reader.read(look, options or {})
        except asyncio.CancelledError:
            # Being stopped is no failure of the source: it is due again at once.
            look.ended = "stopped"
            await self._executor.write(self._schedules.give_back, turn, look.view("stopped"))
            raise
        except SlowDown as slow:
            look.notes.append(str(slow))
            wait = slow.retry_after_seconds
            look.ended = "out of credits" if (wait or 0) >= DAY_LIMIT_SECONDS else "slowed"
        except TidingsError as failure:
            error, wait = str(failure), _asked_wait(failure)
            look.ended = "refused" if isinstance(failure, Misconfigured) else "failed"
            if options and isinstance(failure, BadInput):
                # The options that a person gave are wrong; that says nothing about the source's health.
                await self._executor.write(self._schedules.give_back, turn, look.view(error))
                raise
        except Exception as failure:  # noqa: BLE001  # a source's surprise must not end the poller
            error, look.ended = f"{type(failure).__name__}: {failure}", "failed"
        look.in_log = await self._executor.read(self._intake.total, look.pipeline.name)
        view = look.view(error)
        await self._close(look, view, await self._next_in(look, error, wait))
        return view

    async def _next_in(self, look: Look, error: str | None, wait: float | None) -> float:
        now = datetime.fromtimestamp(await self._executor.read(self._now_ms) / 1000, UTC)
        wished = look.next_check_seconds if error is None and wait is None else wait
        schedule, failures = look.source.schedule, look.turn.failures
        return seconds_until_next(schedule, now, failures=failures, wished=wished, error=error, rng=self._rng)

    async def _close(self, look: Look, view: RunView, next_in_seconds: float) -> None:
        name = look.source.name
        await self._executor.write(self._schedules.close, look.turn, view, next_in_seconds=next_in_seconds)
        if (trouble := view.error or (view.note if view.ended in HELD_UP else None)) is not None:
            # One line tells of a trouble; the same one is counted for a while, not repeated at every look.
            self._troubles.event(
                f"looking at {name} failed: {trouble}",
                source=name,
                ended=view.ended,
                failures=look.turn.failures + 1 if view.error else None,
                found=view.found,
                new=view.new,
                credits=view.credits,
                next_in_seconds=round(next_in_seconds, 1),
            )
            return
        event(
            "discovered",
            source=name,
            found=view.found,
            new=view.new,
            changed=view.changed,
            unchanged=view.unchanged,
            rejected=view.rejected,
            trimmed=view.trimmed,
            added=view.added,
            in_log=view.in_log,
            pages=view.pages,
            credits=view.credits,
            ended=None if view.ended == "complete" else view.ended,
            next_in_seconds=round(next_in_seconds, 1),
        )


def _asked_wait(failure: TidingsError) -> float | None:
    return failure.retry_after_seconds if isinstance(failure, Transient) else None
