"""The plan a staying process follows: its configuration, and how another one is taken over while it runs."""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from tidings.app import App
from tidings.cli.output import end
from tidings.cli.process import begin_to_stop, run_fast
from tidings.config import Settings
from tidings.model.errors import TidingsError
from tidings.store.db.database import wait_for_server
from tidings.store.upkeep.preflight import marked, vet
from tidings.watch import logs
from tidings.wiring import Wiring


@dataclass(frozen=True)
class Plan:
    """A configuration that was read and checked as a whole."""

    settings: Settings
    wiring: Wiring


class Signals:
    """What a staying process was told: to stop, or to go on with another configuration."""

    def __init__(self, plan: Plan, read: Callable[[], Plan]) -> None:
        self.plan = plan
        self.before: Plan | None = None
        """What ran before, until the new plan has started."""
        self.following: Plan | None = None
        self.ending = asyncio.Event()
        self._read = read
        self._is_final = False
        self._reading: asyncio.Task[None] | None = None
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stop)
        # `nohup` ignores SIGHUP for us: the process is meant to outlive its terminal.
        if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:
            loop.add_signal_handler(signal.SIGHUP, self.reload)

    def reload(self) -> None:
        """Read the configuration; go on with it if it is right, and as before if not."""
        if not self._is_final and (self._reading is None or self._reading.done()):
            self._reading = asyncio.create_task(self._reload())

    async def _reload(self) -> None:
        try:
            following = await asyncio.to_thread(self._read)
        except TidingsError as error:
            refused(error)
            return
        if following.settings == self.plan.settings:
            logs.event("configuration is as it was")
        elif not self._is_final:
            self.following = following
            self.ending.set()

    def has_started(self) -> None:
        """Note that the parts of the plan are open: from here on there is no way back to the plan before."""
        if self.before is not None:
            logs.event("configuration taken over")
        self.before = None

    def next_plan(self) -> Plan | None:
        """Return the plan to go on with; None where the process is to end."""
        if self._is_final or self.following is None:
            return None
        self.before, self.plan, self.following = self.plan, self.following, None
        self.ending = asyncio.Event()
        return self.plan

    def go_back(self, error: TidingsError) -> Plan:
        """Return the plan before, where the new one could not start; without one, raise why."""
        if self.before is None:
            raise error
        refused(error)
        self.plan, self.before, self.following = self.before, None, None
        return self.plan

    def _stop(self) -> None:
        self._is_final = True
        self.following = None
        begin_to_stop(self.ending)


def refused(error: TidingsError) -> None:
    """Log that a configuration was refused."""
    helps = "the one before goes on; mend the file, then run `tidings reload`"
    logs.event("configuration refused", level=logging.ERROR, error=str(error), help=helps)


def run_reloading(
    first: Plan, read: Callable[[], Plan], use: Callable[[App, Plan, Signals], Coroutine[Any, Any, None]]
) -> None:
    """Run a staying process; where it is to go on with another plan, close all parts and open them again by that."""

    async def main() -> None:
        signals = Signals(first, read)
        plan: Plan | None = first
        while plan is not None:
            try:
                async with App(plan.wiring) as app:
                    with marked(app.database):
                        await use(app, plan, signals)
            except TidingsError as error:
                plan = signals.go_back(error)
            else:
                plan = signals.next_plan()

    try:
        wait_for_server(first.wiring.database_url)
        for note in vet(first.wiring.database_url):
            logs.event(note, level=logging.WARNING)
        run_fast(main())
    except TidingsError as error:
        end(error)
