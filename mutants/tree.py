"""A copy of the checkout in which mutants live one after the other, and are put to the test."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Literal, NamedTuple

from tests.support.postgres import SERVER, running_postgres

from mutants.catalog import ROOT, Mutant, mutate
from mutants.witness import REPORT, SOURCE

TEST_SECONDS = 240.0
FALLBACK_SECONDS = 900.0
FALLBACK = ("tests/contract", "tests/property")
BROKEN = frozenset(
    {"collection", "SyntaxError", "IndentationError", "ImportError", "ModuleNotFoundError", "NameError", "SQLError"}
    | {"UndefinedColumn", "UndefinedTable", "UndefinedFunction", "UndefinedParameter", "AmbiguousColumn"}
)
"""What says that a mutant is no program that could be shipped: failing by these, a test proves nothing."""
Ending = Literal["caught", "survived", "broken", "hangs", "skipped"]


class Tested(NamedTuple):
    """What the tests said of the copy as it stands."""

    ending: Ending
    by: str
    seconds: float
    is_named: bool = True


class Note(NamedTuple):
    """What became of one test."""

    test: str
    phase: str
    outcome: str
    error: str


class Tree:
    """The copy. `live` puts a mutant in for a while."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "tree"
        self.environment: dict[str, str] = {}
        self._report = folder / "report.jsonl"
        self._version = int(time.time())
        _copy_checkout(self.root)
        # Beside a checkout lie the recorded samples.
        if (shared := ROOT.parent / "shared").is_dir():
            (folder / "shared").symlink_to(shared)

    @contextmanager
    def live(self, mutant: Mutant) -> Iterator[None]:
        """Undo the mutant's rule while the block runs."""
        file = self.root / mutant.file
        text = file.read_text()
        self._write(file, mutate(mutant, self.root))
        try:
            yield
        finally:
            self._write(file, text)

    def _write(self, file: Path, text: str) -> None:
        """Write a file that is newer than any before: Python knows compiled files by second and size alone."""
        file.write_text(text)
        self._version += 1
        os.utime(file, (self._version, self._version))

    def test(self, tests: Sequence[str], seconds: float) -> Tested:
        """Run tests until one fails."""
        started = time.monotonic()
        self._report.write_text("")
        command = [sys.executable, "-m", "pytest", "-x", "-p", "mutants.witness", "-p", "no:cacheprovider", *tests]
        try:
            done = subprocess.run(
                command, cwd=self.root, env=self._environment(), timeout=seconds, capture_output=True, text=True
            )
        except subprocess.TimeoutExpired:
            return Tested("hangs", f"no answer in {seconds:.0f} s", seconds)
        judged = judge(self._notes(), done.stdout + done.stderr)
        return Tested(judged.ending, judged.by, time.monotonic() - started)

    def _environment(self) -> dict[str, str]:
        # An installed tidings, or the line in .venv that names the checkout, comes behind this.
        source = str(self.root / "src")
        return os.environ | self.environment | {"PYTHONPATH": source, SOURCE: source, REPORT: str(self._report)}

    def _notes(self) -> list[Note]:
        return [Note(**json.loads(line)) for line in self._report.read_text().splitlines()]


class Judged(NamedTuple):
    """How it ended, and what says so."""

    ending: Ending
    by: str = ""


def judge(notes: Sequence[Note], output: str) -> Judged:
    """Say how it ended. A failing test counts, a failure to run any does not."""
    failed = [note for note in notes if note.outcome == "failed"]
    for note in failed:
        if note.phase == "call" and note.error not in BROKEN:
            return Judged("caught", note.test)
    if failed:
        return Judged("broken", f"{failed[0].error} in {failed[0].test}")
    if any(note.outcome == "passed" for note in notes):
        return Judged("survived")
    if any(note.outcome == "skipped" for note in notes):
        return Judged("skipped", notes[0].test)
    return Judged("broken", "no test ran: " + (output.strip().splitlines() or ["no output"])[-1])


def _copy_checkout(target: Path) -> None:
    """Copy what git knows or would take, as it stands now."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    for name in filter(None, listed.stdout.decode().split("\0")):
        if (source := ROOT / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target / name)


@contextmanager
def a_tree() -> Iterator[Tree]:
    """Make a copy that is gone afterwards, and start the server its tests share: starting one takes seconds."""
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder, ExitStack() as running:
        tree = Tree(Path(folder))
        with suppress(ImportError):
            tree.environment[SERVER] = running.enter_context(running_postgres())
        yield tree


def try_out(tree: Tree, mutant: Mutant) -> Tested:
    """Put one mutant to the named test, and if that passes to the whole contract."""
    with tree.live(mutant):
        tested = tree.test([mutant.caught_by], TEST_SECONDS)
        if tested.ending != "survived":
            return tested
        fallback = tree.test(FALLBACK, FALLBACK_SECONDS)
    return fallback._replace(seconds=tested.seconds + fallback.seconds, is_named=False)
