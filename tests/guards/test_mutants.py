"""The list of mutants cannot rot: each still finds its place, leaves a program, and names a test that exists."""

from __future__ import annotations

import ast
import re
from collections import Counter
from functools import cache
from pathlib import Path

import pytest
from mutants.__main__ import choose
from mutants.catalog import ROOT, Mutant, Unfit, load, mutate
from mutants.tree import Note, judge

MUTANTS = load()


@cache
def names_in(file: str) -> frozenset[str]:
    tree = ast.parse((ROOT / file).read_text())
    functions = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    return frozenset(function.name for function in functions if function.name.startswith("test_"))


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_mutant_still_fits_the_code(mutant: Mutant) -> None:
    assert mutate(mutant) != (ROOT / mutant.file).read_text()
    file, _, test = mutant.caught_by.partition("::")
    assert test.partition("[")[0] in names_in(file), f"{mutant.name}: there is no test {mutant.caught_by}"


def test_there_are_enough_mutants_and_every_family_of_rules_has_some() -> None:
    assert len(MUTANTS) >= 40
    assert max(Counter(mutant.name for mutant in MUTANTS).values()) == 1
    assert all(re.fullmatch(r"[A-H][1-9][0-9]?", mutant.rule) for mutant in MUTANTS)
    assert {mutant.rule[0] for mutant in MUTANTS} == set("ABCDEFGH")
    assert all(mutant.undoes.endswith(".") for mutant in MUTANTS)


@pytest.mark.parametrize(
    ("text", "find", "replace", "why"),
    [
        ("a = 1\n", "b", "c", "occurs 0 times"),
        ("a = 1\na = 1\n", "a = 1", "a = 2", "occurs 2 times"),
        ("a = 1\n", "a = 1", "a = 1", "changes nothing"),
        ("a = 1\n", "a = 1", "a = (", "no valid Python"),
    ],
)
def test_what_no_longer_fits_is_refused(tmp_path: Path, text: str, find: str, replace: str, why: str) -> None:
    (tmp_path / "code.py").write_text(text)

    with pytest.raises(Unfit, match=why):
        mutate(Mutant("m", "A1", "code.py", find, replace, "", ""), tmp_path)


@pytest.mark.parametrize(
    ("notes", "ending"),
    [
        ([Note("t", "call", "failed", "AssertionError")], "caught"),
        ([Note("t", "call", "passed", "")], "survived"),
        ([Note("t", "collect", "failed", "collection")], "broken"),
        ([Note("t", "setup", "failed", "AssertionError")], "broken"),
        ([Note("t", "call", "failed", "NameError")], "broken"),
        ([Note("t", "call", "skipped", "Skipped")], "skipped"),
        ([], "broken"),
    ],
)
def test_only_a_failing_test_catches_a_mutant(notes: list[Note], ending: str) -> None:
    assert judge(notes, "the end").ending == ending


def test_a_sample_is_drawn_by_its_seed() -> None:
    monday = choose(MUTANTS, None, 10, "monday")

    assert len(monday) == 10
    assert monday == choose(MUTANTS, None, 10, "monday")
    assert monday != choose(MUTANTS, None, 10, "tuesday")
    assert [mutant.rule for mutant in choose(MUTANTS, ["B5"], None, "")] == ["B5"] * 4
    with pytest.raises(Unfit, match="no mutant"):
        choose(MUTANTS, ["nothing"], None, "")
