"""A process alone with a SQLite file knows that all who held anything are dead; beside others only time tells."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.contract.test_schedules import SOURCE
from tests.support.example import thing
from tests.support.postgres import new_postgres_database
from tests.support.store import Ground

from tidings.store.db.presence import TakenOver, present


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'tidings.db'}"


def hold_everything(ground: Ground) -> None:
    """Hold a lease, a turn, a reservation of the log and a place in a channel, as a process that is then killed."""
    ground.record(thing("a"))
    ground.claim_one(seconds=60)
    ground.store.schedules.declare(SOURCE, "example")
    assert ground.store.schedules.claim(SOURCE, "dead", 10) is not None
    ground.store.intake.append("example", [thing("b")])
    assert ground.store.intake.claim_findings("example")[1] is not None
    assert enters(ground)


def enters(ground: Ground) -> bool:
    permit = ground.store.limiters.enter("channel:news", limit=9, per_seconds=60, hold_seconds=120)
    return permit.wait_ms == 0


def test_a_process_that_is_alone_takes_everything_over_at_once(url: str) -> None:
    ground = Ground(url)
    hold_everything(ground)

    with present(ground.database) as taken:
        assert taken == TakenOver(items=1, sources=1, reservations=1, channels=1)
        assert ground.store.items.sweep().expired == 1
        assert ground.item("a").lost_leases == 1, "it may be what the process died of"
        assert ground.store.schedules.claim(SOURCE, "heir", 10) is not None
        merged, _ = ground.store.intake.claim_findings("example")
        assert merged.born == 1
        assert enters(ground)
    ground.close()


def test_beside_another_process_nothing_is_taken_over(url: str) -> None:
    ground, other = Ground(url), Ground(url)
    with present(other.database):
        hold_everything(ground)
        with present(ground.database) as taken:
            assert taken == TakenOver()
            assert ground.store.items.sweep().expired == 0
            assert ground.store.schedules.claim(SOURCE, "heir", 10) is None
        with present(ground.database) as taken:
            assert taken == TakenOver(), "the other one is still there"
    with present(ground.database) as taken:
        assert taken.items == 1
    for each in (ground, other):
        each.close()


def test_a_file_has_one_lock_by_whatever_name_it_is_opened(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "link").symlink_to("data")
    ground, other = Ground(f"sqlite:///{tmp_path}/data/a.db"), Ground(f"sqlite:///{tmp_path}/link/a.db")
    with present(other.database):
        hold_everything(ground)
        with present(ground.database) as taken:
            assert taken == TakenOver()
    for each in (ground, other):
        each.close()


def test_on_postgresql_nobody_is_ever_alone(postgres_server: str) -> None:
    ground = Ground(new_postgres_database(postgres_server))
    hold_everything(ground)
    with present(ground.database) as taken:
        assert taken == TakenOver()
        assert ground.store.items.sweep().expired == 0
    ground.close()


def test_an_item_that_kills_its_only_process_each_time_is_buried(url: str) -> None:
    ground = Ground(url)
    ground.record(thing("culprit"), thing("innocent"))
    for _ in range(3):
        with present(ground.database):
            ground.store.items.sweep()
            leases = [lease for lease in ground.claim(2) if lease.key != "culprit"]
            ground.settle(*leases)  # the culprit's lease is left behind
    with present(ground.database):
        ground.store.items.sweep()

    assert (ground.item("culprit").standing, ground.item("culprit").cause) == ("dead", "poison")
    ground.work()
    assert ground.item("innocent").state == "shown"
    ground.close()
