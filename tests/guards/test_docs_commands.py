"""What the documentation tells people to type works: blocks marked `sh` are run, those marked `sh live` are parsed."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import typer
from tests.support.environment import ROOT, clean_environment
from typer.core import TyperCommand, TyperGroup

from tidings.cli.main import app

PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")])
GENERATED = ROOT / "docs" / "reference"
FENCE = re.compile(r"^```(?P<info>[^\n`]*)\n(?P<text>.*?)^```\s*$", re.MULTILINE | re.DOTALL)
SECONDS_MAX = 180


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block of shell commands."""

    page: Path
    info: str
    text: str

    @property
    def commands(self) -> list[str]:
        """Its lines, without comments."""
        lines = [line.partition(" #")[0].strip() for line in self.text.replace("\\\n", " ").splitlines()]
        return [line for line in lines if line and not line.startswith("#")]


def blocks(page: Path) -> list[Block]:
    found = [Block(page, match["info"].strip(), match["text"]) for match in FENCE.finditer(page.read_text("utf-8"))]
    return [block for block in found if block.info.split(" ")[0] in ("sh", "bash", "shell", "console")]


def named(page: Path) -> str:
    return str(page.relative_to(ROOT))


RUN = [page for page in PAGES if any(block.info == "sh" for block in blocks(page))]
PARSED = [page for page in PAGES if any(block.info == "sh live" for block in blocks(page))]


def test_every_shell_block_says_whether_it_is_run() -> None:
    assert {block.info for page in PAGES for block in blocks(page)} <= {"sh", "sh live"}
    assert {named(page) for page in RUN} >= {"README.md", "docs/tutorial.md", "docs/operations.md"}


# Pages of dozens of commands are slow; the first page anybody reads is run each time.
@pytest.mark.parametrize(
    "page",
    [pytest.param(page, id=named(page), marks=() if page.name == "README.md" else pytest.mark.slow) for page in RUN],
)
def test_commands_of_a_page_run_in_an_empty_folder(page: Path, tmp_path: Path) -> None:
    programs, folder = tmp_path / "bin", tmp_path / "page"
    for made in (programs, folder):
        made.mkdir()
    (programs / "tidings").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m tidings "$@"\n')
    (programs / "tidings").chmod(0o755)
    environment = clean_environment(tmp_path / "temporary")
    environment["PATH"] = f"{programs}:{environment['PATH']}"
    commands = [line for block in blocks(page) if block.info == "sh" for line in block.commands]
    script = "set -e\n" + "\n".join(f"echo {shlex.quote('$ ' + line)}\n{line}" for line in commands)

    ended = subprocess.run(
        ["sh", "-c", script], cwd=folder, env=environment, capture_output=True, text=True, timeout=SECONDS_MAX
    )

    assert ended.returncode == 0, f"{ended.stdout[-3000:]}\n{ended.stderr[-2000:]}"
    assert "Traceback" not in ended.stdout + ended.stderr


@pytest.mark.parametrize("page", PARSED, ids=named)
def test_commands_that_need_the_world_are_understood(page: Path) -> None:
    for block in blocks(page):
        for line in block.commands if block.info == "sh live" else []:
            for part in re.split(r"&&|\||;", line):
                understand(shlex.split(part))


def understand(words: list[str]) -> None:
    """Parse one command without performing it; other programs than ours and make's are left alone."""
    while words and re.fullmatch(r"[A-Z_]+=.*", words[0]):
        words = words[1:]
    if words[:1] == ["make"]:
        targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
        assert {word for word in words[1:] if "=" not in word} <= targets, words
    elif words[:1] == ["tidings"]:
        parse(typer.main.get_command(app), words[1:])


def parse(command: Any, words: list[str]) -> None:
    while isinstance(command, TyperGroup):
        assert words, f"{command.name}: a command is missing"
        context = command.context_class(command, info_name=command.name)
        _, command, words = command.resolve_command(context, words)
    assert isinstance(command, TyperCommand)
    command.make_context(command.name, list(words))


def test_inline_commands_name_commands_that_exist() -> None:
    known = typer.main.get_command(app)
    assert isinstance(known, TyperGroup)
    for page in PAGES:
        if GENERATED in page.parents:
            continue
        for name in re.findall(r"`tidings ([a-z]+)[^`]*`", page.read_text("utf-8")):
            assert name in known.commands, f"{named(page)}: tidings {name}"


def test_links_between_pages_lead_somewhere() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\((?!https?:|#)([^)#\s]+)", page.read_text("utf-8")):
            assert (page.parent / target).exists(), f"{named(page)}: {target}"
