"""Batches of any length are written whole, and cheaply: many rows a statement, many keys a look-up."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.example import thing
from tests.ground import LEASE_SECONDS, Ground, altered

from tidings.model.query import parse
from tidings.store.sqlite import SqliteTx


def bear(ground: Ground, first: int, count: int) -> None:
    """Append so many things, run them and write them as one batch."""
    intake = ground.store.intake
    findings = [thing(str(number), f"word{number} together") for number in range(first, first + count)]
    assert intake.append("example", findings).new == count
    _, ahead = intake.merge_ahead("example", limit=count)
    assert ahead is not None
    ran = [ground.runner.run_ahead(lease, LEASE_SECONDS) for lease in ahead.leases]
    merged, _ = intake.merge_ahead("example", ahead, intake.prepare(ahead, [s for s in ran if s is not None]), limit=0)
    assert (merged.born, merged.ran) == (count, count)


@pytest.mark.parametrize("count", [1, 9, 99, 111, 2_000, 2_345])
def test_every_row_of_a_batch_is_written(ground: Ground, count: int) -> None:
    bear(ground, 0, count)

    for number in {0, count // 2, count - 1}:
        assert ground.item(str(number)).state == "shown"
        assert f"word{number} " in (ground.card(str(number)) or b"").decode()
        hits, total = ground.store.index.search(parse(f"word{number}"))
        assert ([hit.key for hit in hits], total) == ([str(number)], 1)
        assert [row.kind for row in ground.life(str(number))] == ["born", "attempt"]
    assert ground.store.index.search(parse("together"))[1] == count
    for table in ("items", "bodies", "journal", "shelf", "documents"):
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
