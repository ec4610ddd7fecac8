"""Reads a source's pages by the right of a turn, which it keeps meanwhile, and appends them to the log."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping
from typing import Any

from tidings.discover.look import Look, Schedules, TurnLost
from tidings.model.contracts import Executor, Intake, Kit
from tidings.model.gathering import Gathered, gathered_of
from tidings.model.item import Appended
from tidings.model.pipeline import Page, Pipeline, Run
from tidings.model.wishes import Wishes
from tidings.watch.logs import Seldom, event

BEAT_SHARE = 0.3
BEAT_AGAIN_SECONDS = 1.0
REJECTED_MAX = 20
"""How many refused entries of a page are named."""
PAGES_MAX = 10_000
"""One run reads no more; what is left waits for the next."""


class PageReader:
    """Reads what a look is to find; the look ends with an error where its turn is lost."""

    def __init__(
        self,
        schedules: Schedules,
        intake: Intake,
        executor: Executor,
        kit: Kit,
        *,
        wishes: Wishes | None,
        turn_seconds: float,
    ) -> None:
        self._schedules = schedules
        self._intake = intake
        self._executor = executor
        self._kit = kit
        self._wishes = wishes
        self._turn_seconds = turn_seconds
        self._seldom = Seldom()
        self._rejected: dict[str, dict[str, None]] = {}
        """Per source, the reasons that were told, the oldest first."""

    async def read(self, look: Look, options: Mapping[str, Any]) -> None:
        """Trim the log, then read all that is new since the source's mark."""
        await self._beating(look, self._read_pages(look, options))

    async def read_signaled(self, look: Look, signal: Mapping[str, Any]) -> None:
        """Read only what a signal tells of."""
        await self._beating(look, self._read_signaled(look, signal))

    async def _read_pages(self, look: Look, options: Mapping[str, Any]) -> None:
        """Append page by page; the last one is held back a moment so that the mark commits with it."""
        source = look.source
        look.trimmed = await self._executor.write(self._intake.trim, look.pipeline.name)
        cursor, mark, completed = await self._executor.read(self._intake.cursor, source.name)
        run = Run(source.name, look.started_at, cursor, mark, not completed, options)
        held: Page | None = None
        new_mark: Any = None
        try:
            async for page in source.pages(run, self._kit):
                if held is not None:
                    await self._append(look, held)
                held = page
                look.gathered += gathered_of(look.pipeline, page.findings)
                new_mark = page.mark if page.mark is not None else new_mark
                look.next_check_seconds = page.next_check_seconds or look.next_check_seconds
                if look.pages >= PAGES_MAX:
                    break
        except TurnLost:
            raise
        except (Exception, asyncio.CancelledError):
            # The page that was held back is kept, since asking for it may have cost money. The mark does not move: the
            # next run looks for what lies between.
            if held is not None:
                await self._append(look, held, is_last=True)
            raise
        await self._append(look, held or Page(()), mark=new_mark, completes=not options, is_last=True)

    async def _append(
        self, look: Look, page: Page, mark: Any = None, completes: bool = False, is_last: bool = False
    ) -> None:
        gathered = tuple(look.gathered) if is_last else ()
        look.count(page, await self._executor.write(self._keep, look, page, mark, completes, gathered))
        self._tell_rejected(look, page)
        look.on_page(page)

    def _tell_rejected(self, look: Look, page: Page) -> None:
        """Name what was refused once: a list holds the same bad entries at every look, and each run counts them."""
        told = self._rejected.setdefault(look.source.name, {})
        for rejected in page.rejected[:REJECTED_MAX]:
            if rejected.reason not in told:
                event("entry rejected", source=look.source.name, line=rejected.line, reason=rejected.reason)
            told.pop(rejected.reason, None)
            told[rejected.reason] = None
        while len(told) > REJECTED_MAX * 10:
            told.pop(next(iter(told)))

    def _keep(self, look: Look, page: Page, mark: Any, completes: bool, gathered: tuple[Gathered, ...]) -> Appended:
        """Write a page by the right of the turn, in one transaction: two pollers must not move one cursor."""
        with self._schedules.keeping(look.turn, self._turn_seconds) as is_ours:
            if not is_ours:
                raise look.lost()
            if self._wishes is not None:
                self._keep_wishes(self._wishes, look.pipeline, page)
            return self._intake.append(
                look.pipeline.name,
                page.findings,
                source=look.source.name,
                cursor=page.cursor,
                mark=mark,
                completes=completes,
                rankings=page.rankings,
                gathered=gathered,
            )

    def _keep_wishes(self, wishes: Wishes, pipeline: Pipeline, page: Page) -> None:
        if page.granted is not None:
            wishes.answer(pipeline.name, page.granted)
        if page.outdated is not None:
            wishes.renew(pipeline.name, pipeline.collection(page.outdated.collection).singular, page.outdated)

    async def _read_signaled(self, look: Look, signal: Mapping[str, Any]) -> None:
        """Append each page at once: there is no mark to wait for."""
        cursor, mark, completed = await self._executor.read(self._intake.cursor, look.source.name)
        run = Run(look.source.name, look.started_at, cursor, mark, not completed, {"signal": signal})
        async for page in look.source.pages(run, self._kit):
            await self._append(look, page)

    async def _beating(self, look: Look, work: Coroutine[Any, Any, None]) -> None:
        """Keep the turn while the work goes on; the work ends where the turn is lost."""
        working = asyncio.create_task(work)
        beating = asyncio.create_task(self._beat(look, working))
        try:
            await working
        except asyncio.CancelledError:
            if look.is_lost:
                raise look.lost() from None
            raise
        finally:
            beating.cancel()

    async def _beat(self, look: Look, working: asyncio.Task[None]) -> None:
        pause = self._turn_seconds * BEAT_SHARE
        while True:
            await asyncio.sleep(pause)
            try:
                is_ours = await self._executor.write(self._schedules.beat, look.turn, self._turn_seconds)
            except Exception as error:  # noqa: BLE001  # until another process takes the turn it is ours
                self._seldom.event("turn not renewed", source=look.source.name, error=str(error))
                pause = min(BEAT_AGAIN_SECONDS, pause)
                continue
            if not is_ours:
                look.is_lost = True
                working.cancel()
                return
            pause = self._turn_seconds * BEAT_SHARE
