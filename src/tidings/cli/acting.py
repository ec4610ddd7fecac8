"""Commands that act on items and parts: transition, replay, dead, pause, resume, upload."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Annotated, BinaryIO

import msgspec
import typer

from tidings.cli import tombstones
from tidings.cli.help import Command, Group, KeyArgument, KindArgument, PipelineArgument
from tidings.cli.output import fail, moment, say, show_json, show_table, while_somebody_reads
from tidings.cli.progress import Meter
from tidings.cli.shared import ConfigOption, JsonOption, actor, found_item, opened_store
from tidings.discover.upload import admit_lines, read_lines
from tidings.model.item import Appended, Rejected
from tidings.model.views import DeadGroup

PANEL = "Act"
REJECTED_SHOWN = 20


def add_to(app: typer.Typer) -> None:
    """Add these commands."""
    for command in (transition, replay, pause, resume, upload):
        app.command(rich_help_panel=PANEL, cls=Command)(command)
    dead = typer.Typer(cls=Group, help="Dead letters: list them by cause, revive or purge them.", no_args_is_help=False)
    dead.callback(invoke_without_command=True)(dead_letters)
    dead.command("list", cls=Command)(list_dead)
    dead.command("revive", cls=Command)(revive)
    dead.command("purge", cls=Command)(purge)
    app.add_typer(dead, name="dead", rich_help_panel=PANEL)
    tombstones.add_to(app, PANEL)


def transition(
    pipeline: Annotated[str, PipelineArgument],
    kind: Annotated[str, KindArgument],
    key: Annotated[str, KeyArgument],
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="The transition, such as mark_failed or retry_processing.")
    ],
    config: ConfigOption = None,
    reason: Annotated[str, typer.Option(help="Why; kept in the journal.")] = "by hand",
    as_json: JsonOption = False,
) -> None:
    """Perform a manual transition on one item."""
    with opened_store(config) as (store, _):
        view = found_item(store, pipeline, kind, key)
        moved = store.desk.transition(view.item.id, name, actor=actor(), reason=reason)
    if as_json:
        show_json(moved)
        return
    say(f"{key}: {view.item.state} -> {moved.item.state}. {moved.waits_for}")


def replay(
    pipeline: Annotated[str, PipelineArgument],
    config: ConfigOption = None,
    from_state: Annotated[
        str | None, typer.Option("--from", metavar="STATE", help="Where to begin; default the start.")
    ] = None,
    where: Annotated[str | None, typer.Option(metavar="QUERY", help="Only what this query finds.")] = None,
    item: Annotated[int | None, typer.Option(metavar="ITEM", help="Only this item, by its number.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only count.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Process items again from a state. After a change of prompt, model or code."""
    with opened_store(config) as (store, _):
        done = store.desk.replay(pipeline, state=from_state, query=where, actor=actor(), dry_run=dry_run, item=item)
    if as_json:
        show_json({"items": done.items, "skipped": done.skipped, "dry_run": dry_run})
        return
    say(f"{done.items} items {'would be' if dry_run else 'will be'} processed again from {from_state or 'the start'}")
    if done.skipped:
        say(f"{done.skipped} never came past {from_state}, and {'would be' if dry_run else 'were'} left alone")


def dead_letters(context: typer.Context, config: ConfigOption = None, as_json: JsonOption = False) -> None:
    """List dead letters grouped by cause, unless told otherwise."""
    if context.invoked_subcommand is None:
        list_dead(config, as_json)


def list_dead(config: ConfigOption = None, as_json: JsonOption = False) -> None:
    """List dead letters grouped by cause."""
    with opened_store(config) as (store, _):
        groups = store.desk.dead_letters()
    if as_json:
        show_json(groups)
        return
    show_table(
        ("count", "pipeline", "kind", "state", "cause", "last", "sample"),
        [
            (g.count, g.pipeline, g.kind, g.state, g.cause, moment(g.last_at), f"{g.sample_id} {g.sample_key}")
            for g in groups
        ],
        empty="no dead letters",
    )


PipelineOption = Annotated[str | None, typer.Option(help="Only this pipeline.")]
CauseOption = Annotated[str | None, typer.Option(help="Only this cause, as `tidings dead list` shows it.")]
AllOption = Annotated[bool, typer.Option("--all", help="Every dead letter.")]
ItemArgument = Annotated[int | None, typer.Argument(metavar="ITEM", help="One item, by its number.")]


def revive(
    item: ItemArgument = None,
    config: ConfigOption = None,
    pipeline: PipelineOption = None,
    cause: CauseOption = None,
    everything: AllOption = False,
    as_json: JsonOption = False,
) -> None:
    """Bring dead letters back. One, those of a cause or pipeline, or all."""
    _refuse_nothing(item, pipeline, cause, everything, "revive")
    with opened_store(config) as (store, _):
        count = store.desk.revive(item=item, pipeline=pipeline, cause=cause, actor=actor())
    if item is not None and not count:
        fail(f"item {item} is no dead letter, nor parked or rejected; `tidings dead list` shows them", 1)
    if as_json:
        show_json({"revived": count})
    else:
        say(f"{count} revived")


def purge(
    item: ItemArgument = None,
    config: ConfigOption = None,
    pipeline: PipelineOption = None,
    cause: CauseOption = None,
    everything: AllOption = False,
    as_json: JsonOption = False,
) -> None:
    """Forget dead letters for good. Tombstones keep the same content from coming back; corrected items are let in."""
    _refuse_nothing(item, pipeline, cause, everything, "purge")
    with opened_store(config) as (store, _):
        count = store.desk.purge(item=item, pipeline=pipeline, cause=cause)
        left = sum(group.count for group in store.desk.dead_letters() if _is_meant(group, pipeline, cause))
    if item is not None and not count:
        fail(f"item {item} is no dead letter; `tidings dead list` shows them", 1)
    if as_json:
        show_json({"purged": count, "left": 0 if item is not None else left})
        return
    say(f"{count} purged")
    if item is None and left:
        say(f"{left} left: readers see an earlier copy of each; `tidings dead purge ITEM` takes one away with it")


def _is_meant(group: DeadGroup, pipeline: str | None, cause: str | None) -> bool:
    return pipeline in (None, group.pipeline) and cause in (None, group.cause)


def _refuse_nothing(item: int | None, pipeline: str | None, cause: str | None, everything: bool, verb: str) -> None:
    if item is None and pipeline is None and cause is None and not everything:
        fail(f"say what to {verb}: an item's number, --cause, --pipeline, or --all")


SourceOption = Annotated[str | None, typer.Option(help="A source.")]
ChannelOption = Annotated[str | None, typer.Option(help="A channel.")]


def pause(
    config: ConfigOption = None,
    pipeline: Annotated[str | None, typer.Option(help="A pipeline.")] = None,
    source: SourceOption = None,
    channel: ChannelOption = None,
    reason: Annotated[str, typer.Option(help="Why; shown in status.")] = "paused by hand",
) -> None:
    """Stop a part without losing anything."""
    with opened_store(config) as (store, _):
        for part in _parts(pipeline, source, channel):
            store.desk.pause(part, reason=reason)
            say(f"paused {part}")


def resume(
    config: ConfigOption = None,
    pipeline: Annotated[str | None, typer.Option(help="A pipeline.")] = None,
    source: SourceOption = None,
    channel: ChannelOption = None,
) -> None:
    """Start a paused part again."""
    with opened_store(config) as (store, _):
        for part in _parts(pipeline, source, channel):
            store.desk.resume(part)
            say(f"resumed {part}")


def _parts(pipeline: str | None, source: str | None, channel: str | None) -> list[str]:
    named = (("pipeline", pipeline), ("source", source), ("channel", channel))
    parts = [f"{sort}:{name}" for sort, name in named if name is not None]
    if not parts:
        fail("name a part: --pipeline, --source or --channel")
    return parts


def upload(
    pipeline: Annotated[str, PipelineArgument],
    file: Annotated[
        str, typer.Argument(metavar="FILE|-", help="JSON array or JSON lines, gzip allowed; - reads standard input.")
    ],
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Upload items into the intake log. Bad lines are reported, the rest goes on."""
    appended = Appended()
    with opened_store(config) as (store, pipelines), Refused() as refused:
        declared = pipelines.get(pipeline)
        if declared is None or declared.admit is None:
            able = ", ".join(n for n, p in pipelines.items() if p.admit) or "none"
            fail(f"pipeline {pipeline!r} takes no uploads; these do: {able}")
        with _reading(file) as source, Meter(f"uploading to {pipeline}") as meter:
            size_bytes = 0 if file == "-" else Path(file).stat().st_size
            lines = 0
            for read in admit_lines(read_lines(source), declared.admit, way="BULK"):
                taken = store.intake.append(pipeline, read.findings)
                appended += taken
                refused.add(read.rejected + taken.refusals(read.findings, read.lines))
                lines += len(read.findings) + len(read.rejected)
                meter.show(f"{lines:,} lines", source.tell() if size_bytes else 0, size_bytes)
        if as_json:
            _show_upload(appended, refused)
            return
    say(
        f"{appended.accepted} accepted ({appended.new} new, {appended.changed} changed), "
        f"{appended.unchanged} duplicate, {refused.count} rejected"
    )
    for line in refused.first:
        say(f"  line {line.line}: {line.reason}")
    if refused.count > len(refused.first):
        say(f"  … and {refused.count - len(refused.first)} more; --json lists them all")


class Refused:
    """The lines of an upload that were refused. All are kept, but on disk: a bad file may have millions."""

    def __init__(self) -> None:
        self.count = 0
        self.first: list[Rejected] = []
        """As many as are shown to people."""
        self._file = tempfile.SpooledTemporaryFile(max_size=1 << 20)  # noqa: SIM115  # closed at our own exit

    def __enter__(self) -> Refused:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    def add(self, lines: list[Rejected]) -> None:
        """Keep some more."""
        self.count += len(lines)
        self.first += lines[: REJECTED_SHOWN - len(self.first)]
        self._file.writelines(msgspec.json.encode(line) + b"\n" for line in lines)

    def __iter__(self) -> Iterator[bytes]:
        """Return all of them, encoded."""
        self._file.seek(0)
        return (line.rstrip() for line in self._file)


def _show_upload(appended: Appended, refused: Refused) -> None:
    """Print the receipt for programs, line by line."""
    counts = {
        "accepted": appended.accepted,
        "new": appended.new,
        "changed": appended.changed,
        "duplicate": appended.unchanged,
    }
    with while_somebody_reads():
        sys.stdout.write("".join(["{\n", *(f'  "{name}": {count},\n' for name, count in counts.items())]))
        sys.stdout.write('  "rejected": [')
        for number, line in enumerate(refused):
            sys.stdout.write(f"{',' if number else ''}\n    {line.decode()}")
        sys.stdout.write("\n  ]\n}\n" if refused.count else "]\n}\n")


@contextmanager
def _reading(file: str) -> Iterator[BinaryIO]:
    if file == "-":
        yield sys.stdin.buffer
        return
    try:
        with Path(file).open("rb") as opened:
            yield opened
    except OSError as error:
        fail(f"{file} cannot be read: {error.strerror}")
