"""`tidings discover`: asks a pipeline's sources once, now."""

from __future__ import annotations

import asyncio
import logging
import sys
from datetime import UTC, datetime
from typing import Annotated, Any

import msgspec
import typer

from tidings.app import App
from tidings.cli.options import ConfigOption, JsonOption, PipelineArgument, wiring_of
from tidings.cli.output import fail, moment, say, show_json, show_table
from tidings.cli.process import run_app
from tidings.cli.progress import Meter
from tidings.discover.page_reader import PAGES_MAX
from tidings.discover.ranged import Ranged, UnreadId
from tidings.model.pipeline import Page, Source
from tidings.model.views import RunView
from tidings.watch import logs

TURN_LOOK_SECONDS = 0.5


def discover(
    pipeline: Annotated[str, PipelineArgument],
    config: ConfigOption = None,
    source: Annotated[str | None, typer.Option(help="Only this source.")] = None,
    from_id: Annotated[
        int | None, typer.Option("--from", metavar="ID", help="First id of a range to read (Hacker News).")
    ] = None,
    to_id: Annotated[int | None, typer.Option("--to", metavar="ID", help="Last id of that range.")] = None,
    unread: Annotated[
        bool,
        typer.Option("--unread", help="List the ids that could not be read, and ask again (Hacker News)."),
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Ask a pipeline's sources once, now. Prints what was found."""
    wiring = wiring_of(config)
    declared = next((p for p in wiring.pipelines if p.name == pipeline), None)
    if declared is None:
        fail(f"pipeline {pipeline!r} is not on; on are {', '.join(p.name for p in wiring.pipelines) or 'none'}")
    options = _options(from_id, to_id, unread)
    logs.set_up("human", logging.WARNING)

    reasons: list[str] = []

    async def use(app: App) -> tuple[list[RunView], list[_Unread], bool]:
        await app.poller.declare()
        placed = app.store.source_list.current().values()
        sources = _sources(
            pipeline, [each.source for each in placed if each.pipeline.name == pipeline], source, options
        )
        before = await _unread(app, sources) if unread else []
        if unread and not before:
            return [], [], True
        runs: list[RunView] = []
        for each in sources:
            try:
                runs += await _ask(app, each, options)
            except _Busy as busy:
                # The others are asked all the same.
                reasons.append(str(busy))
        left = {each.id: each for each in await _unread(app, sources)} if unread else {}
        is_whole = not left and not (options and await _is_under_way(app, sources))
        return runs, [_Unread.of(each, left.get(each.id)) for each in before], is_whole

    try:
        runs, ids, is_whole = run_app(wiring, use)
    except KeyboardInterrupt:
        if options:
            sys.stderr.write("tidings: stopped; the same command goes on from there\n")
        raise
    if as_json:
        show_json({"runs": runs, "unread": ids} if unread else runs)
    else:
        _show(runs, ids, unread)
    for reason in reasons:
        sys.stderr.write(f"tidings: {reason}\n")
    if reasons or not is_whole or any(run.error for run in runs):
        raise SystemExit(1)


class _Busy(Exception):  # no error: another process does it
    """A source cannot be asked now; the message says why."""


class _Unread(msgspec.Struct):
    """An id that could not be read before this command, and what became of it."""

    id: int
    tries: int
    reason: str
    next_at: int | None
    is_given_up: bool
    is_read: bool

    @classmethod
    def of(cls, before: UnreadId, after: UnreadId | None) -> _Unread:
        """Tell the tries made before; the rest as it is now."""
        now = after or before
        return cls(before.id, before.tries, now.reason, now.next_at, before.next_at is None, after is None)

    def outcome(self) -> str:
        """Say what became of it."""
        return "read now" if self.is_read else f"asked again at {moment(self.next_at)}"


async def _unread(app: App, sources: list[Source]) -> list[UnreadId]:
    return [entry for each in sources if isinstance(each, Ranged) for entry in each.unread(await _cursor(app, each))]


async def _is_under_way(app: App, sources: list[Source]) -> bool:
    """Tell whether a range is not yet complete: broken off, or with ids that could not be read."""
    ranged = [each for each in sources if isinstance(each, Ranged)]
    return any([each.progress(await _cursor(app, each)) is not None for each in ranged])


async def _cursor(app: App, source: Any) -> Any:
    cursor, _, _ = await app.executor.read(app.store.intake.cursor, source.name)
    return cursor


def _options(first: int | None, last: int | None, unread: bool) -> dict[str, Any]:
    if unread:
        if first is not None or last is not None:
            fail("--unread goes without --from and --to: it asks for everything that could not be read")
        return {"unread": True}
    if first is None and last is None:
        return {}
    if first is None or last is None:
        fail("--from and --to go together")
    if not 1 <= first <= last:
        fail(f"--from {first} --to {last}: a range goes from an id of at least 1 up to one that is not lower")
    return {"from": first, "to": last}


def _sources(pipeline: str, known: list[Source], name: str | None, options: dict[str, Any]) -> list[Source]:
    """Return those to ask; a range, and what is unread, is asked only of sources that read by id."""
    named = [s for s in known if name in (None, s.name, s.name.removeprefix(f"{pipeline}."))]
    if not named:
        fail(f"there is no source {name!r}; known: {', '.join(s.name for s in known) or 'none'}")
    able = [s for s in named if not options or isinstance(s, Ranged)]
    if not able:
        names = ", ".join(s.name for s in named)
        if "unread" in options:
            fail(f"--unread: {names} keeps no list of unread ids")
        fail(f"--from and --to: {names} cannot read a range of ids")
    return able


async def _ask(app: App, source: Source, options: dict[str, Any]) -> list[RunView]:
    """Ask one source; a range longer than one run may be takes several."""
    runs: list[RunView] = []
    found, place = 0, (0, 0)
    with Meter(f"asking {source.name}") as meter:

        def show(page: Page) -> None:
            nonlocal found, place
            found += len(page.findings)
            if options and isinstance(source, Ranged):
                place = source.progress(page.cursor) or (place[1], place[1])
            meter.show(f"{found:,} found", *place)

        while not runs or (options and runs[-1].pages >= PAGES_MAX and runs[-1].error is None):
            held_until: int | None = None
            while (run := await app.poller.ask(source.name, force=True, options=options, on_page=show)) is None:
                # A turn that is renewed belongs to a process that lives; that of a killed one ends in seconds.
                holding = await app.executor.read(app.store.schedules.holding, source.name)
                is_renewed = holding is not None and held_until is not None and holding.until > held_until
                pause = await app.executor.read(_pause_of, app, source.name)
                if is_renewed or pause is not None:
                    raise _Busy(await app.executor.read(_why_not, app, source.name))
                held_until = holding.until if holding is not None else held_until
                meter.show("waiting for the turn of another process to end")
                await asyncio.sleep(TURN_LOOK_SECONDS)
            runs.append(run)
    return runs


def _pause_of(app: App, name: str) -> str | None:
    """Say what is paused, the source or its pipeline; None where neither is."""
    pipeline = app.store.source_list.current()[name].pipeline.name
    paused = app.store.pauses.reasons()
    for kind, part in (("source", name), ("pipeline", pipeline)):
        if (reason := paused.get(f"{kind}:{part}")) is not None:
            return f"the {kind} {part} is paused ({reason}); `tidings resume --{kind} {part}` lets it go on"
    return None


def _why_not(app: App, name: str) -> str:
    """Say why a source cannot be asked now: it is paused, or another process asks it."""
    if (pause := _pause_of(app, name)) is not None:
        return pause
    holding = app.store.schedules.holding(name)
    if holding is None:
        return f"{name} was being asked by another process until just now; try again"
    since = "" if holding.since is None else f" since {_clock(holding.since)}"
    return (
        f"{name} is being asked by another process{since}; its turn lasts until {_clock(holding.until)} "
        "and is renewed while that process lives"
    )


def _clock(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).strftime("%H:%M:%S UTC")


def _show(runs: list[RunView], ids: list[_Unread], unread: bool) -> None:
    if unread:
        rows = [(each.id, each.tries, each.reason, each.outcome()) for each in ids]
        show_table(("id", "tries", "reason", "now"), rows, empty="every id that was asked for has been read")
        if not ids:
            return
    columns = ("source", "found", "new", "changed", "unchanged", "rejected", "trimmed", "pages", "credits", "error")
    show_table(columns, [[getattr(run, name) for name in columns] for run in runs], empty="no source was asked")
    for run in runs:
        if run.note:
            say(f"{run.source}: {run.note}")
