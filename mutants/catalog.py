"""The list of mutants: data, each a rule of the reliability page, a place in a file, and what stands there instead."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
LIST = Path(__file__).with_name("list.toml")


class Unfit(Exception):
    """A mutant that no longer fits the code it is meant for."""


class Mutant(NamedTuple):
    """One rule undone."""

    name: str
    rule: str
    file: str
    find: str
    replace: str
    undoes: str
    caught_by: str
    """The test that fails because of it, as pytest names it; without its parameters, all of them are run."""


def load() -> list[Mutant]:
    """Read the list."""
    return [Mutant(**entry) for entry in tomllib.loads(LIST.read_text())["mutant"]]


def mutate(mutant: Mutant, root: Path = ROOT) -> str:
    """Return the text of the mutant's file with the rule undone, or raise Unfit."""
    text = (root / mutant.file).read_text()
    count = text.count(mutant.find)
    if count != 1:
        raise Unfit(f"{mutant.name}: what to find occurs {count} times in {mutant.file}, not once: {mutant.find!r}")
    if mutant.find == mutant.replace:
        raise Unfit(f"{mutant.name}: changes nothing")
    mutated = text.replace(mutant.find, mutant.replace)
    if mutant.file.endswith(".py"):
        try:
            compile(mutated, mutant.file, "exec")
        except SyntaxError as error:
            raise Unfit(f"{mutant.name}: leaves no valid Python: {error}") from None
    return mutated
