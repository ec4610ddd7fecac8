"""Run the tests as `.ci/run` does: try what failed once more, alone, and name every test that failed only once.

Each argument is the options of one run of pytest. A test that fails beside others and passes alone depends on the speed
of the machine or on its neighbors: it is shown, and more than a few of them fail the whole.
"""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

ONCE_MAX = 3
"""How many tests may fail once. More is no accident."""
RETRIED_MAX = 30
"""How many failed tests are tried again; where more failed, something is broken and nothing is learned by waiting."""
REPORT = Path("build", "failed-once.txt")
TESTS_FAILED = 1
"""What pytest exits with when all went its way and tests failed; with anything else it has not run them all."""


class Failed(NamedTuple):
    """The tests of one run that failed: only beside others, or alone too."""

    once: list[str]
    twice: list[str]


def main(runs: list[str]) -> None:
    """Do every run; end with an error where a test failed twice, or too many failed once."""
    found = [run(shlex.split(options)) for options in runs]
    once, twice = [name for each in found for name in each.once], [name for each in found for name in each.twice]
    lines = [*section("failed once, passed alone", once), *section("failed twice", twice)]
    if len(once) > ONCE_MAX:
        lines.append(f"more than {ONCE_MAX} tests failed once: mend those that depend on speed")
    report = "\n".join(lines)
    REPORT.parent.mkdir(exist_ok=True)
    REPORT.write_text(report + "\n")
    print(f"\n{report}", flush=True)
    sys.exit(bool(twice) or len(once) > ONCE_MAX)


def run(options: list[str]) -> Failed:
    """Run pytest, then alone what failed."""
    with tempfile.TemporaryDirectory(prefix="pytest-cache-") as cache:
        code = pytest(options, cache)
        failed = last_failed(cache)
        if code == 0:
            return Failed([], [])
        if code != TESTS_FAILED or not failed or len(failed) > RETRIED_MAX:
            return Failed([], failed or [f"pytest {shlex.join(options)} ended with code {code}"])
        code = pytest(["--last-failed", "--last-failed-no-failures", "none"], cache)
        again = failed if code not in (0, TESTS_FAILED) else last_failed(cache)
        return Failed([name for name in failed if name not in again], again)


def pytest(options: list[str], cache: str) -> int:
    """Run it with a memory of its own."""
    command = [sys.executable, "-m", "pytest", "-o", f"cache_dir={cache}", *options]
    return subprocess.run(command, check=False).returncode


def last_failed(cache: str) -> list[str]:
    """Return what failed when it was last tried."""
    file = Path(cache, "v", "cache", "lastfailed")
    return sorted(json.loads(file.read_text())) if file.exists() else []


def section(title: str, names: list[str]) -> list[str]:
    """Return a heading with its count, and one line a test."""
    return [f"{title}: {len(names)}", *(f"  {name}" for name in names)]


if __name__ == "__main__":
    main(sys.argv[1:])
