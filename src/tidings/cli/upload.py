"""`tidings upload`: findings from a file or a pipe into the intake log."""

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

from tidings.cli.options import ConfigOption, JsonOption, PipelineArgument
from tidings.cli.output import fail, say, while_read
from tidings.cli.progress import Meter
from tidings.cli.store import opened_store
from tidings.discover.upload import admit_lines, read_lines
from tidings.model.item import Appended, Rejected

REJECTED_SHOWN = 20


def upload(
    pipeline: Annotated[str, PipelineArgument],
    file: Annotated[
        str, typer.Argument(metavar="FILE|-", help="JSON array or JSON lines, gzip allowed; - reads standard input.")
    ],
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Upload items into the intake log. Bad lines are reported, the rest goes on; exit code 1 if all are bad."""
    appended = Appended()
    with opened_store(config) as (store, pipelines), RefusedLines() as refused:
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
        else:
            _say_upload(appended, refused)
    if refused.count and not appended.accepted + appended.unchanged:
        raise SystemExit(1)


def _say_upload(appended: Appended, refused: RefusedLines) -> None:
    """Print the receipt for people."""
    say(
        f"{appended.accepted} accepted ({appended.new} new, {appended.changed} changed), "
        f"{appended.unchanged} duplicate, {refused.count} rejected"
    )
    for line in refused.first:
        say(f"  line {line.line}: {line.reason}")
    if refused.count > len(refused.first):
        say(f"  … and {refused.count - len(refused.first)} more; --json lists them all")


class RefusedLines:
    """The lines of an upload that were refused. All are kept, but on disk: a bad file may have millions."""

    def __init__(self) -> None:
        self.count = 0
        self.first: list[Rejected] = []
        """As many as are shown to people."""
        self._file = tempfile.SpooledTemporaryFile(max_size=1 << 20)  # noqa: SIM115  # closed at our own exit

    def __enter__(self) -> RefusedLines:
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


def _show_upload(appended: Appended, refused: RefusedLines) -> None:
    """Print the receipt for programs, line by line."""
    counts = {
        "accepted": appended.accepted,
        "new": appended.new,
        "changed": appended.changed,
        "duplicate": appended.unchanged,
    }
    with while_read():
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
