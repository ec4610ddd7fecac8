"""`tidings work`: processes what is due, once or for good."""

from __future__ import annotations

from typing import Annotated

import typer

from tidings.app import App
from tidings.cli.options import ConfigOption, LogOption, MetricsPortOption, set_up_logs, settings_from, wiring_of
from tidings.cli.output import fail
from tidings.cli.process import run_app, stop_on_signals
from tidings.cli.progress import Meter
from tidings.cli.server import metrics_loop
from tidings.process.loops import run_loops

ROLE = "work"
NOTICE_SECONDS = 60.0
"""Notices that are due so soon only keep to their channel's rate: a run that left them would leave them for good."""


def work(
    config: ConfigOption = None,
    until_idle: Annotated[
        bool, typer.Option("--until-idle", help="Drain what is due, and notices due within a minute, then exit.")
    ] = False,
    pipeline: Annotated[list[str] | None, typer.Option(help="Only this pipeline; may be repeated.")] = None,
    lane: Annotated[str | None, typer.Option(metavar="pure|fetch|ai|notify", help="Only this lane.")] = None,
    metrics_port: MetricsPortOption = None,
    log_format: LogOption = "human",
) -> None:
    """Process what is due. With --until-idle for cron, CI and one stage by hand."""
    wiring = wiring_of(config)
    if lane is not None and lane not in wiring.lanes:
        fail(f"--lane {lane!r}: use one of {', '.join(wiring.lanes)}")
    unknown = set(pipeline or []) - {p.name for p in wiring.pipelines}
    if unknown:
        fail(f"--pipeline {', '.join(sorted(unknown))}: not on")
    set_up_logs(log_format)
    server = settings_from(config).server.model_dump()

    async def use(app: App) -> None:
        stop = stop_on_signals()
        worker = app.worker(only_lane=lane, only_pipelines=tuple(pipeline or ()))
        if until_idle:
            await app.executor.write(app.store.process_notes.put, app.owner, ROLE)
            await app.sweeper.sweep()
            with Meter("notices") as meter:
                is_idle = await worker.until_idle(
                    stop=stop,
                    wait_for_notices_seconds=NOTICE_SECONDS,
                    on_wait=lambda seconds: meter.show(
                        f"keeping to the channel's rate, the next goes in {seconds:.0f} s"
                    ),
                )
            if is_idle:
                # Where only timers run, nobody else asks the rules; a process that goes on has the watch itself.
                await app.alert_loop(ROLE).once()
        else:
            loops = [] if metrics_port is None else [await metrics_loop(app, server, metrics_port)]
            await run_loops([*loops, worker.run, app.sweeper.run, app.hints.run, app.alert_loop(ROLE).run], stop)

    run_app(wiring, use, stays=True)
