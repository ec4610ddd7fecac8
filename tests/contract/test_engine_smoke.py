"""A thing's whole way, on both databases."""

from __future__ import annotations

from tests.support.engine import Engine
from tests.support.example import ThingSource, pipeline, thing

from tidings.model.pipeline import Page


async def test_a_finding_travels_from_the_source_to_shelf_and_search(database_url: str) -> None:
    source = ThingSource(all_pages=[Page((thing("a", "apples"), thing("b", "pears", parent="a")), cursor=1, mark="m")])
    async with Engine(database_url, [pipeline(source)]) as engine:
        (run,) = await engine.discover()
        await engine.work_until_idle()

        assert (run.found, run.new, run.error) == (2, 2, None)
        assert engine.states("thing") == {"shown": 2}
        assert engine.card("things", "a") == {"id": "a", "text": "apples"}
        assert [hit.key for hit in engine.search("pear")] == ["b"]
        assert engine.store.links.children("example", "below", "thing:a") == ["thing:b"]

        (again,) = await engine.discover()
        assert (again.new, again.changed, again.unchanged) == (0, 0, 2)


async def test_every_start_has_a_name_of_its_own(database_url: str) -> None:
    """Nobody may take a lease for its own because it bears the name of its machine, or of the process before."""
    owners = set()
    async with Engine(database_url, [pipeline()]) as engine:
        for _ in range(3):
            owners.add(engine.app.owner)
            await engine.reopen()

    assert len(owners) == 3


async def test_fates_come_true(database_url: str) -> None:
    fates = ["fail", "die", "break", "reject", "postpone", "refuse", ""]
    source = ThingSource(all_pages=[Page(tuple(thing(f or "fine", fate=f) for f in fates))])
    async with Engine(database_url, [pipeline(source)]) as engine:
        await engine.discover()
        await engine.work_through(rounds=10)
        standing = {row.key: (row.state, row.standing) for row in engine.items("thing")}
        assert standing == {
            "fail": ("read", "dead"),
            "die": ("read", "dead"),
            "break": ("read", "dead"),
            "reject": ("read", "rejected"),
            "postpone": ("read", "open"),
            "refuse": ("read", "dead"),
            "fine": ("shown", "done"),
        }
        causes = {g.sample_key: g.cause for g in engine.store.item_views.dead_letters()}
        assert causes["refuse"] == "is_wanted: fate is '…'"
        assert causes["break"] == "ZeroDivisionError: a surprise"
        assert engine.store.operations.revive(actor="test") == 4
