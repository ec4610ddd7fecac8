"""Services for a few tests, each installed in a folder of its own: their packages do not fit beside ours."""

from __future__ import annotations

import fcntl
import os
import subprocess
from collections.abc import Callable, Sequence
from hashlib import sha256
from pathlib import Path
from typing import NoReturn

import pytest

from tests.support.environment import ROOT

INSTALL_SECONDS = 300


def installed(name: str, pins: Path, commands: Callable[[Path], Sequence[Sequence[str]]]) -> Path:
    """Return the folder `build/NAME` with what `pins` lists in it, installed once for each state of that file."""
    folder = ROOT / "build" / name
    folder.mkdir(parents=True, exist_ok=True)
    done, state = folder / "installed", sha256(pins.read_bytes()).hexdigest()
    with (folder / "lock").open("ab") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # Two tests may want it at once.
        if not done.exists() or done.read_text() != state:
            for command in commands(folder):
                _run(name, command)
            done.write_text(state)
    return folder


def unavailable(reason: str) -> NoReturn:
    """Skip on a laptop; fail in CI, where everything must be there."""
    if os.environ.get("CI"):
        pytest.fail(f"{reason}; in CI it must be there")
    pytest.skip(reason)


def _run(name: str, command: Sequence[str]) -> None:
    try:
        subprocess.run(command, check=True, capture_output=True, text=True, timeout=INSTALL_SECONDS)
    except FileNotFoundError:
        unavailable(f"{command[0]} is not installed, which {name} needs")
    except subprocess.SubprocessError as error:
        unavailable(f"{name} could not be installed: {error}: {getattr(error, 'stderr', '')}")
