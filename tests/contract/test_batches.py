"""Batches of any length are written whole, and cheaply: many rows a statement, many keys a look-up."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.example import thing
from tests.support.store import Ground, altered

from tidings.store.db.sqlite_tx import SqliteTx


def bear(ground: Ground, first: int, count: int) -> None:
    """Append so many things, run them and write them as one batch."""
    intake = ground.store.intake
    findings = [thing(str(number), f"word{number} together") for number in range(first, first + count)]
    assert intake.append("example", findings).new == count
    _, reservation = intake.claim_findings("example", count)
    assert reservation is not None
    settled = ground.store.items.settle([ground.attempt(lease) for lease in reservation.leases()])
    assert (settled.merged.born, len(settled.done)) == (count, count)


@pytest.mark.parametrize("count", [1, 9, 99, 111, 2_000, 2_345])
def test_every_row_of_a_batch_is_written(ground: Ground, count: int) -> None:
    bear(ground, 0, count)

    for number in {0, count // 2, count - 1}:
        assert ground.item(str(number)).state == "shown"
        assert f"word{number} " in (ground.card(str(number)) or b"").decode()
        assert [row.kind for row in ground.life(str(number))] == ["born", "attempt"]
    for table in ("items", "bodies", "journal", "shelf"):
        assert ground.sql(f"SELECT count(*) FROM {table}") == [(count,)], table


def test_many_keys_are_looked_up_at_once_whatever_their_kinds(ground: Ground) -> None:
    known = [thing(str(number)) for number in range(30)]
    ground.record(*known, *[altered(finding, kind="other") for finding in known[:20]])

    again = [altered(finding, kind="other") for finding in known]
    appended = ground.store.intake.append("example", [*again, *known, thing("30")])

    assert (appended.new, appended.changed, appended.unchanged) == (11, 0, 50)


def test_sqlite_parses_nothing_again_from_batch_to_batch(tmp_path: Path) -> None:
    ground = Ground(f"sqlite:///{tmp_path / 'a.db'}")
    parsed = []
    for batch in range(4):
        bear(ground, batch * 2_000, 2_000)
        with ground.database.transaction() as tx:
            assert isinstance(tx, SqliteTx)
            parsed.append(tx.connection.cache_stats()["misses"])
    ground.close()

    assert parsed[1] == parsed[3]
