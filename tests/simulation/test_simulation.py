"""The simulation itself: seeds run clean on both databases, repeat to the letter, and see what is broken."""

from __future__ import annotations

import logging
import subprocess
import sys
from pathlib import Path

import pytest
from simulation.__main__ import KEPT, keep, kept_seeds
from simulation.databases import PostgresFactory, SqliteFactory
from simulation.oracle.knowledge import Violation
from simulation.run import Result, run
from tests.support.environment import ROOT, clean_environment
from tests.support.own_sql import own_sql
from tests.support.postgres import new_postgres_database

from simulation import __main__ as command
from tidings.model.settlement import Swept
from tidings.store.items.claims import ItemStore

DIGEST = """
import logging
from simulation.databases import SqliteFactory
from simulation.run import run
logging.disable(logging.CRITICAL)
factory = SqliteFactory()
for seed in (2, 9, 18):
    print(seed, run(seed, factory.connect).digest)
factory.close()
"""


@pytest.mark.parametrize("seed", [2, 9, 12, 18, 29, 101, 140, 1_001, 1_002, 1_003])
def test_a_seed_breaks_no_invariant(seed: int) -> None:
    factory = SqliteFactory()
    try:
        result = run(seed, factory.connect)
    finally:
        factory.close()
    assert result.violations == []
    assert result.acknowledged
    assert result.commits > 50


def test_the_same_plans_hold_on_postgres(postgres_server: str) -> None:
    factory = PostgresFactory(new_postgres_database(postgres_server))
    for seed in (5, 10, 13):
        result = run(seed, factory.connect)
        assert result.violations == [], f"seed {seed}"
        assert result.acknowledged


def test_a_seed_is_the_same_in_every_process() -> None:
    digests = {_digest(hash_seed) for hash_seed in ("1", "2")}

    assert len(digests) == 1
    assert len(digests.pop().split()) == 6


def _digest(hash_seed: str) -> str:
    environment = clean_environment(PYTHONHASHSEED=hash_seed)
    command = [sys.executable, "-c", DIGEST]
    ran = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=240, check=False)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def test_a_sweep_that_forgets_the_copy_held_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Put the fault back that lost 1,000 copies: the sweep begins the waiting copy in place of the leased one."""
    sweep = ItemStore.sweep

    def forgetful(self: ItemStore, limit: int = 500) -> Swept:
        with self._database.transaction() as tx:
            own_sql(
                tx,
                "UPDATE items SET revision = waiting_revision WHERE waiting_revision IS NOT NULL "
                "AND lease_until <= tidings_now()",
                {},
            )
            return sweep(self, limit)

    monkeypatch.setattr(ItemStore, "sweep", forgetful)
    factory = SqliteFactory()
    try:
        found = next(
            (s for s in range(1, 201) if any(v.rule == "B12" for v in run(s, factory.connect).violations)), None
        )
    finally:
        factory.close()
    assert found is not None


def test_a_failing_seed_is_kept_and_read_back(tmp_path: Path) -> None:
    path = tmp_path / "seeds.txt"
    path.write_text("# a comment\n7 A1 what it was\n")

    keep(path, Result(12, violations=[Violation("B3", "a stale settle")]))

    assert kept_seeds(path) == [7, 12]
    assert kept_seeds(KEPT)


def test_a_seed_without_end_is_cut_off_and_says_where_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    def circles(seed: int, _connect: object) -> Result:
        while True:
            seed += 1

    monkeypatch.setattr(command, "SEED_SECONDS", 1)
    monkeypatch.setattr(command, "run", circles)

    try:
        (violation,) = command._one(3).violations
    finally:
        logging.disable(logging.NOTSET)  # the command silences the engine's lines; tests after this one read them

    assert "in circles" in violation.what
