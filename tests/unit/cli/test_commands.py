"""Commands are imported late: a look at the help, or a key pressed in the shell, costs no second."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.environment import clean_environment

from tidings.cli.commands import PANELS, LateCommands

LISTED = """
import sys
from tidings.cli.main import main
try:
    main({})
finally:
    print(*sys.modules)
"""


def imported_by(*arguments: str, **environment: str) -> set[str]:
    """Return the modules that a command leaves imported, in a process of its own."""
    ran = subprocess.run(
        [sys.executable, "-c", LISTED.format(list(arguments))],
        env=clean_environment(**environment),
        capture_output=True,
        text=True,
        check=True,
    )
    return set(ran.stdout.splitlines()[-1].split())


def test_help_imports_no_part_of_the_engine() -> None:
    modules = imported_by("--help")

    ours = {name for name in modules if name.startswith("tidings.")}
    assert {name.split(".")[1] for name in ours} == {"cli", "model", "watch"}
    assert len(ours) < 20
    assert len(modules) < 600
    assert not modules & {"aiohttp", "apsw", "psycopg", "pydantic", "starlette", "tantivy", "lxml", "numpy"}


def test_lines_of_the_help_are_those_of_the_commands() -> None:
    commands = LateCommands()

    for panel in PANELS.values():
        for name, line in panel.items():
            assert commands[name].get_short_help_str(80) == line, name


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_gets_its_script(shell: str) -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "tidings", "completion", shell],
        env=clean_environment(),
        capture_output=True,
        text=True,
        check=True,
    )

    assert "_TIDINGS_COMPLETE" in ran.stdout


def test_bash_completes_commands_and_their_options(tmp_path: Path) -> None:
    program = tmp_path / "tidings"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m tidings "$@"\n')
    program.chmod(0o755)
    environment = clean_environment(PATH=f"{tmp_path}:{os.environ['PATH']}")

    def completed(words: str, place: int) -> list[str]:
        script = (
            f'eval "$(tidings completion bash)"; COMP_WORDS=({words}); COMP_CWORD={place}; '
            '_tidings_completion tidings; printf "%s\\n" "${COMPREPLY[@]}"'
        )
        ran = subprocess.run(["bash", "-c", script], env=environment, capture_output=True, text=True, check=True)
        return ran.stdout.split()

    assert completed("tidings st", 1) == ["status", "story"]
    assert "--json" in completed("tidings status --", 2)


def test_an_unknown_shell_is_told_which_ones_there_are() -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "tidings", "completion", "cmd"], env=clean_environment(), capture_output=True, text=True
    )

    assert ran.returncode == 2
    assert "bash, zsh, fish" in ran.stderr
