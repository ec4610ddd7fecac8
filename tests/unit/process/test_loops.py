"""Stopping: what is still waited for is told."""

from __future__ import annotations

import asyncio
import logging

import pytest
from tests.support.waiting import until

from tidings.process.loops import run_loops


class Poller:
    """Named as the real one, whose words are told."""

    def __init__(self) -> None:
        self.may_end = asyncio.Event()

    async def run(self, _stop: asyncio.Event) -> None:
        await self.may_end.wait()


async def test_a_stop_says_what_it_waits_for(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("tidings.process.loops.TOLD_SECONDS", 0.01)
    logging.getLogger("tidings").propagate = True
    caplog.set_level(logging.INFO, "tidings")
    poller, stop = Poller(), asyncio.Event()
    stop.set()
    running = asyncio.create_task(run_loops([poller.run], stop))
    await until(lambda: any(record.getMessage() == "stopping" for record in caplog.records))
    poller.may_end.set()
    await running

    told = [vars(record)["fields"]["waiting_for"] for record in caplog.records if record.getMessage() == "stopping"]
    assert told == ["looks at sources under way"]
