"""The tally: what a worker did, for the log, the metrics and the history on the dashboard."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Callable

from tidings.model.contracts import Executor
from tidings.model.endings import describe
from tidings.model.settlement import Merged, Settlement
from tidings.model.work_run import STALE, WorkRun
from tidings.watch.logs import Seldom, event
from tidings.watch.metrics import Metrics

RECORD_SECONDS = 3.0
MINUTE_MS = 60_000
Record = Callable[[list[tuple[str, int, float]]], None]
RecordRun = Callable[[str, WorkRun, int], int]
"""Keeps a run of this process that took so many milliseconds; returns how long the queue is then."""


def tell_merged(pipeline: str, merged: Merged) -> None:
    """Log what a stretch of the log became."""
    if merged.read:
        event(
            "merged",
            pipeline=pipeline,
            merged=merged.read,
            born=merged.born,
            changed=merged.changed,
            unchanged=merged.unchanged,
            retired=merged.retired,
            checkpoint=merged.checkpoint,
        )


class Tally:
    """Counts per minute and per run, under its process's own name: no two workers ever write the same row."""

    def __init__(
        self,
        *,
        owner: str,
        executor: Executor,
        metrics: Metrics | None,
        record: Record | None,
        record_run: RecordRun | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.clock_ms = 0
        """The database's clock, as last seen in a lease."""
        self._owner = owner
        self._executor = executor
        self._metrics = metrics
        self._record = record
        self._record_run = record_run
        self._monotonic = monotonic
        self._rates: dict[tuple[str, int], float] = {}
        self._runs: dict[str, WorkRun] = {}
        self._seldom = Seldom()

    def load(self, pipeline: str, items: int, clock_ms: int) -> None:
        """Count what was claimed, and note the database's clock that came with it."""
        self.clock_ms = clock_ms
        self._run_of(pipeline).load(items, self._monotonic())

    def report(self, batch: list[Settlement], stale: frozenset[int] = frozenset()) -> None:
        """Tell what became of a batch of attempts."""
        kinds = Counter([(s.pipeline, s.ended, s.standing, s.presents) for s in batch if s.id not in stale])
        kinds.update((s.pipeline, STALE, s.standing, False) for s in batch if stale and s.id in stale)
        for pipeline in dict.fromkeys(kind[0] for kind in kinds):
            of: Counter[str] = Counter()
            shown = 0
            run = self._run_of(pipeline)
            for (name, ended, standing, presents), count in kinds.items():
                if name == pipeline:
                    of[ended] += count
                    shown += count * presents
                    run.settle(ended, standing, count, self._monotonic())
            event("settled", level=logging.DEBUG, pipeline=pipeline, processed=of.total(), **of)
            self._count(f"settled:{pipeline}", of.total())
            self._count(f"published:{pipeline}", shown)
            if self._metrics is not None:
                for ended, count in of.items():
                    self._metrics.items.labels(pipeline, ended).inc(count)

    def _run_of(self, pipeline: str) -> WorkRun:
        return self._runs.setdefault(pipeline, WorkRun(pipeline, self._monotonic()))

    def observe(self, settlement: Settlement, seconds: float) -> None:
        """Note how long an attempt that could wait took."""
        if self._metrics is not None:
            name = settlement.steps[-1].transition if settlement.steps else settlement.state_before
            self._metrics.attempts.labels(settlement.pipeline, name, settlement.ended).observe(seconds)

    async def run(self) -> None:
        """Write what was counted every few seconds, until cancelled."""
        while True:
            await asyncio.sleep(RECORD_SECONDS)
            await self._end_runs([run for run in self._runs.values() if run.is_over(self._monotonic())])
            await self._write_rates()

    async def finish(self) -> None:
        """Write all that was counted: the worker stops."""
        await self._end_runs(list(self._runs.values()))
        await self._write_rates()

    async def _end_runs(self, runs: list[WorkRun]) -> None:
        """Tell of runs that are over: a record and one line for each."""
        for run in runs:
            # Taken out first: whatever ends while this one is written counts for the next.
            self._runs.pop(run.pipeline)
            if run.under_way > 0:
                self._run_of(run.pipeline).under_way = run.under_way
            if self._record_run is None or not (run.loaded or run.processed):
                continue
            seconds = self._monotonic() - run.started
            try:
                queue_length = await self._executor.write(self._record_run, self._owner, run, round(seconds * 1000))
            except Exception as error:  # noqa: BLE001  # a loop outlives every surprise
                self._seldom.event("run not kept", pipeline=run.pipeline, error=describe(error))
                queue_length = None
            event(
                "worked",
                pipeline=run.pipeline,
                loaded=run.loaded,
                processed=run.processed,
                removed=run.removed,
                moved_to_end=run.moved_to_end,
                queue_length=queue_length,
                seconds=round(seconds, 1),
            )

    async def _write_rates(self) -> None:
        """Write what was counted; a minute that is over is forgotten here."""
        if self._record is None or not self._rates:
            return
        points = [(series, at, value) for (series, at), value in self._rates.items()]
        try:
            await self._executor.write(self._record, points)
        except Exception as error:  # noqa: BLE001  # a loop outlives every surprise
            self._seldom.event("rates not kept", error=describe(error))
            return
        newest = max(at for _, at, _ in points)
        # The newest minute is still being counted: its whole sum is written again next time, over the old one.
        self._rates = {name: value for name, value in self._rates.items() if name[1] >= newest}

    def _count(self, series: str, count: int) -> None:
        # By the database's clock, as leases show it: the minutes of several machines then are the same.
        name = (f"{series}:{self._owner}", self.clock_ms - self.clock_ms % MINUTE_MS)
        self._rates[name] = self._rates.get(name, 0) + count
