"""Those who offer copies and those who operate: they try again until they are answered."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from simulation.clock import VirtualClock
from simulation.history import Trace
from simulation.oracle.oracle import Oracle
from simulation.pipelines import CHANNEL, COPIES, NOTE, PAGE, PAGES, Thing, finding
from simulation.process import Process
from simulation.world import ListSource
from tidings.model.errors import BadInput, StoreUnavailable
from tidings.model.item import LOW, NORMAL, Appended, Finding
from tidings.pipelines.hacker_news.upload import admit

TRIES_MAX = 6
FIRST_STORY = 1_000
KIDS = 1_000_000
"""Kids of the real pipeline's items are younger than any item, so that each copy may name one of its own."""


class People:
    """All of them, at one desk: a process that only carries calls to the store."""

    def __init__(
        self,
        desk: Process,
        oracle: Oracle,
        clock: VirtualClock,
        trace: Trace,
        sources: dict[str, ListSource],
        rng: random.Random,
        *,
        is_real: bool,
    ) -> None:
        self._desk = desk
        self._oracle = oracle
        self._clock = clock
        self._trace = trace
        self._sources = sources
        self._rng = rng
        self._is_real = is_real
        self._marks = 0
        self._offered: list[Finding] = []

    async def offer(self, what: str, copies: Sequence[tuple[str, int, str, int, int]], again: bool) -> None:
        """Upload copies, or let a list grow by them; sometimes the same as before."""
        findings = [self._copy(*copy) for copy in copies]
        if again and self._offered:
            findings.append(self._rng.choice(self._offered))
        self._offered += findings
        if what == "list":
            for each in findings:
                self._sources[each.pipeline].entries.append(each)
            return
        for pipeline in dict.fromkeys(each.pipeline for each in findings):
            await self._upload(pipeline, tuple(each for each in findings if each.pipeline == pipeline))

    def _copy(self, kind: str, number: int, fate: str, fails: int, above: int) -> Finding:
        self._marks += 1
        if kind == "note" and self._is_real:
            return self._real_copy(number)
        wait = 1_800_000 if fate == "postpone" else 0
        parent = f"n{number - above}" if kind == "note" and 0 < above <= number else None
        thing = Thing(f"{kind[0]}{number}", self._marks, fate, fails, parent, not_before=self._clock.now_ms() + wait)
        priority = LOW if self._marks % 4 == 0 else NORMAL
        return finding(COPIES, NOTE, thing, priority) if kind == "note" else finding(PAGES, PAGE, thing, priority)

    def _real_copy(self, number: int) -> Finding:
        """An item of Hacker News in which one more reply is known."""
        value = {"id": FIRST_STORY + number, "type": "story", "by": "someone", "time": 1_700_000_000}
        value |= {"title": f"title {self._marks}", "kids": [KIDS + self._marks]}
        if self._rng.random() < 0.5:
            value |= {"text": f"text {self._marks}"}
        return admit(value, way="BULK" if self._marks % 2 else "POST")

    async def _upload(self, pipeline: str, findings: tuple[Finding, ...]) -> None:
        async def call() -> None:
            append = self._desk.store.intake.append
            appended: Appended = await self._desk.executor.write(append, pipeline, findings)
            self._oracle.answered(findings, appended)

        await self._patiently("upload", call)

    async def operate(self, what: str, chosen: float) -> None:
        """Do what operators do."""
        await self._patiently(what, lambda: self._operate(what, chosen))

    async def _operate(self, what: str, chosen: float) -> None:
        store, write = self._desk.store, self._desk.executor.write
        items = sorted(self._oracle.now.items.values())
        item = items[int(chosen * len(items))] if items else None
        part = f"pipeline:{PAGES}" if chosen < 0.3 else f"channel:{CHANNEL}" if chosen < 0.7 else f"source:{PAGES}.list"
        if what in ("fail", "retry", "again") and item is not None:
            name = {"fail": "mark_failed", "retry": "retry_processing" if self._is_real else "retry"}.get(what, what)
            await write(store.operations.transition, item.id, name, actor="operator", reason="by hand")
        elif what == "replay" and item is not None:
            await write(
                store.operations.replay,
                item.pipeline,
                state=None,
                query=None,
                actor="operator",
                dry_run=False,
                item=item.id,
            )
        elif what == "revive":
            await write(store.operations.revive, actor="operator")
        elif what == "purge":
            await write(store.retention.purge)
        elif what in ("pause", "resume"):
            await (write(store.pauses.pause, part, "why not") if what == "pause" else write(store.pauses.resume, part))
        elif what == "check now":
            await write(store.schedules.check_now, f"{PAGES}.list")
        elif what == "tidy":
            await self.tidy()

    async def tidy(self) -> None:
        """Apply retention and trim the log."""
        write = self._desk.executor.write
        await write(self._desk.store.retention.tidy)
        for pipeline in self._desk.pipelines:
            await write(self._desk.store.intake.trim, pipeline)

    async def resume_all(self) -> None:
        """Start every part that is paused again."""
        for part in await self._desk.executor.read(self._desk.store.pauses.reasons):
            await self._desk.executor.write(self._desk.store.pauses.resume, part)
        for source in self._sources.values():
            await self._desk.executor.write(self._desk.store.schedules.check_now, source.name)

    async def revive_all(self) -> None:
        """Bring the dead letters back."""
        await self._desk.executor.write(self._desk.store.operations.revive, actor="operator")

    async def _patiently(self, what: str, call: Callable[[], Awaitable[Any]]) -> None:
        for number in range(TRIES_MAX):
            try:
                await call()
            except StoreUnavailable:
                self._trace.add("people", f"{what}: no answer, try {number + 1}")
                await asyncio.sleep(self._rng.uniform(0.2, 3.0))
            except BadInput as error:
                self._trace.add("people", f"{what}: refused, {error}")
                return
            else:
                self._trace.add("people", what)
                return
