"""Do exactly what a newcomer does: clone, `make run`, look, Ctrl-C, `make test`.

`.ci/run` runs it with any python3: `python3 -m tests.fresh_clone`. The clone lies in an empty folder and `make` gets an
environment with nothing in it but a path, a home, and how this machine reaches the package registry. Of the tests only
a few are run: the whole suite has run in the checkout already.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path

from tests.support.environment import ROOT, clean_environment, package_registry
from tests.support.processes import free_port
from tests.support.waiting import wait_until

SET_UP_SECONDS, FILLED_SECONDS, STOP_SECONDS = 420, 15, 40
A_FEW_TESTS = "tests/unit/model tests/contract/test_engine_smoke.py"


def main() -> None:
    """Follow the README; end with an error where it does not hold."""
    with tempfile.TemporaryDirectory(prefix="newcomer-") as folder:
        clone, temporary = Path(folder, "tidings"), Path(folder, "tmp")
        subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True)
        environment = clean_environment(temporary, HOME=folder, **package_registry())
        del environment["PYTHONPATH"]
        run(clone, temporary, environment)
        started = time.monotonic()
        few = {**environment, "PYTEST_ADDOPTS": A_FEW_TESTS}
        subprocess.run(["make", "--silent", "test"], cwd=clone, env=few, check=True, timeout=SET_UP_SECONDS)
        say(f"make test, set-up included and a few tests only: {time.monotonic() - started:.0f} s")


def run(clone: Path, temporary: Path, environment: dict[str, str]) -> None:
    """`make run` until the dashboard is filled, then Ctrl-C."""
    port, began = free_port(), time.monotonic()
    log = clone.parent / "make-run.log"
    with log.open("w") as out:
        command = ["make", "--silent", "run", f"PORT={port}"]
        making = subprocess.Popen(command, cwd=clone, env=environment, stdout=out, stderr=out, start_new_session=True)
    try:
        wait(lambda: (clone / ".venv" / ".runtime").exists(), making, log, SET_UP_SECONDS)
        set_up = time.monotonic()
        wait(lambda: is_filled(port), making, log, FILLED_SECONDS)
        say(f"make run: {set_up - began:.0f} s set-up, filled {time.monotonic() - set_up:.1f} s after it")
        os.killpg(making.pid, signal.SIGINT)
        making.wait(STOP_SECONDS)
        wait(lambda: not list(temporary.glob("tidings-demo-*")), None, log, STOP_SECONDS)
    finally:
        if making.poll() is None:
            os.killpg(making.pid, signal.SIGKILL)


def is_filled(port: int) -> bool:
    """Tell whether the dashboard answers and every pipeline has published something."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/api/v1/status", timeout=5) as answer:
            pipelines = json.load(answer)["pipelines"].values()
    except (urllib.error.URLError, OSError):
        return False
    return all(part["states"].get("published", 0) + part["states"].get("completed", 0) >= 20 for part in pipelines)


def wait(holds: Callable[[], bool], making: subprocess.Popen[bytes] | None, log: Path, seconds: float) -> None:
    """Wait for a condition; say what the newcomer saw if it does not come, or as soon as `make` has ended."""

    def holds_or_ended() -> bool:
        return holds() or (making is not None and making.poll() is not None)

    wait_until(holds_or_ended, seconds=seconds, missing=lambda: f"what the README promises:\n{log.read_text()}")
    if not holds():
        sys.exit(f"the README does not hold. What was printed:\n{log.read_text()}")


def say(text: str) -> None:
    print(f"newcomer: {text}", flush=True)


if __name__ == "__main__":
    main()
