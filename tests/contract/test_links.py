"""Links and threads: what items state of each other, whichever arrives first."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from tests.support.statements import plan_of
from tests.support.store import Ground

from tidings.model.contracts import ThreadNode
from tidings.model.errors import BadInput
from tidings.model.item import TOP, Finding, Link, fingerprint, ref
from tidings.model.outcome import Advance, Outcome
from tidings.model.pipeline import Pipeline
from tidings.model.publication import Retention
from tidings.model.workflow import Transition, Work, Workflow
from tidings.store.db.postgres_tx import compiled

OpenGround = Callable[..., Ground]


class Post(msgspec.Struct, frozen=True):
    parent: str | None = None
    kids: list[str] = []


def relate(work: Work) -> Outcome:
    me = ref("post", work.key)
    links = [Link(ref("post", kid), me, "below", position) for position, kid in enumerate(work.body.kids)]
    if work.body.parent is not None:
        above = ref("post", work.body.parent) if work.body.parent != TOP else TOP
        links.append(Link(me, above, "below"))
    return Advance(links=tuple(links))


def forum() -> Pipeline:
    workflow = Workflow(
        "post", "found", ("found", "placed"), (Transition("relate", "found", "placed", relate),),
        frozenset({"placed"}), body=Post,
    )  # fmt: skip
    return Pipeline("forum", "Forum", "", {"post": workflow}, retention=(Retention("post", newest=1),))


def post(key: str, parent: str | None = None, kids: list[str] | None = None) -> Finding:
    body = Post(parent, kids or [])
    return Finding("forum", "post", key, fingerprint(key, parent, kids), msgspec.json.encode(body))


@pytest.fixture
def ground(open_ground: OpenGround) -> Ground:
    return open_ground(forum())


def thread(ground: Ground, root: str) -> list[tuple[str, str | None, int]]:
    nodes: list[ThreadNode] = ground.store.links.thread("forum", "below", ref("post", root))
    return [(n.ref.removeprefix("post:"), n.parent and n.parent.removeprefix("post:"), n.depth) for n in nodes]


def tell(ground: Ground, *findings: Finding) -> None:
    ground.record(*findings)
    ground.work()


STORY = [post("1", kids=["2", "3"]), post("2", "1", ["4"]), post("3", "1"), post("4", "2")]


@pytest.mark.parametrize("order", [[0, 1, 2, 3], [3, 2, 1, 0], [2, 0, 3, 1], [1, 3, 0, 2]])
def test_a_thread_is_the_same_whoever_arrives_first(ground: Ground, order: list[int]) -> None:
    for number in order:
        tell(ground, STORY[number])

    assert thread(ground, "1") == [("1", None, 0), ("2", "1", 1), ("3", "1", 1), ("4", "2", 2)]
    assert ground.store.links.parents("forum", "below", "post:4") == ["post:2"]
    assert ground.store.links.children("forum", "below", "post:1") == ["post:2", "post:3"]


def test_a_child_whose_parent_is_unknown_hangs_below_it_already(ground: Ground) -> None:
    tell(ground, post("2", "1"), post("3", "2"))

    assert thread(ground, "1") == [("1", None, 0), ("2", "1", 1), ("3", "2", 2)]


def test_siblings_stand_in_the_parents_order_then_by_key(ground: Ground) -> None:
    tell(ground, post("1", kids=["9", "5", "7"]), post("10", "1"), post("8", "1"))

    assert ground.store.links.children("forum", "below", "post:1") == [f"post:{n}" for n in (9, 5, 7, 8, 10)]


def test_a_parents_statement_beats_the_childs(ground: Ground) -> None:
    tell(ground, post("child", "claimed"), post("real", kids=["child"]))

    assert ground.store.links.parents("forum", "below", "post:child") == ["post:real", "post:claimed"]
    assert ground.store.links.children("forum", "below", "post:claimed") == []
    assert ground.store.links.children("forum", "below", "post:real") == ["post:child"]


def test_a_new_revision_replaces_what_the_item_stated(ground: Ground) -> None:
    tell(ground, post("1", kids=["2", "3"]), post("5", "4"))
    tell(ground, post("1", kids=["3"]), post("5", "6"))

    assert ground.store.links.children("forum", "below", "post:1") == ["post:3"]
    assert ground.store.links.parents("forum", "below", "post:5") == ["post:6"]
    assert ground.store.links.children("forum", "below", "post:4") == []


def test_statements_of_others_survive_a_replacement(ground: Ground) -> None:
    tell(ground, post("1", kids=["2"]), post("2", "1"))
    tell(ground, post("2", "1", ["3"]))

    assert thread(ground, "1") == [("1", None, 0), ("2", "1", 1), ("3", "2", 2)]


def test_a_replay_in_the_same_revision_replaces_too(open_ground: OpenGround) -> None:
    """A newer version of the code states something else of the same body."""
    parents = iter(["old", "new"])

    def restate(work: Work) -> Outcome:
        return Advance(links=(Link(ref("post", work.key), ref("post", next(parents)), "below"),))

    workflow = Workflow(
        "post", "found", ("found", "placed"), (Transition("relate", "found", "placed", restate),), frozenset({"placed"})
    )
    ground = open_ground(Pipeline("forum", "Forum", "", {"post": workflow}))
    tell(ground, post("1"))
    ground.store.operations.replay("forum", state=None, keys=None, actor="ada", dry_run=False)
    ground.work()

    assert ground.store.links.parents("forum", "below", "post:1") == ["post:new"]


def test_a_circle_of_statements_ends(ground: Ground) -> None:
    tell(ground, post("1", "3"), post("2", "1"), post("3", "2"))

    assert {name for name, _, _ in thread(ground, "1")} == {"1", "2", "3"}


def test_what_says_it_stands_at_the_top_stands_below_nothing(ground: Ground) -> None:
    tell(ground, post("1", TOP, ["2"]), post("2", "1", ["1"]), post("3", kids=["1"]))

    assert thread(ground, "1") == [("1", None, 0), ("2", "1", 1)]
    assert [name for name, _, _ in thread(ground, "2")] == ["2"]
    assert ground.store.links.children("forum", "below", "post:3") == []
    assert ground.store.links.parents("forum", "below", "post:1") == []
    assert ("below", "post:1", TOP) not in ground.store.links.relatives("forum", "post:1")

    tell(ground, post("1", kids=["2"]))
    assert ground.store.links.parents("forum", "below", "post:1") == ["post:2", "post:3"], "it no longer says so"


def test_a_deep_thread_is_whole(ground: Ground) -> None:
    depth = 1_500
    tell(ground, *(post(str(n), str(n - 1)) for n in range(1, depth)))

    assert [depth for _, _, depth in thread(ground, "0")] == list(range(depth))


def test_a_wide_thread_is_bounded(ground: Ground) -> None:
    tell(ground, *(post(str(n), "0") for n in range(1, 60)))

    assert len(ground.store.links.thread("forum", "below", "post:0", limit=20)) == 21


@pytest.mark.parametrize(
    "link", [Link("post:1", "post:1", "below"), Link("post:8", "post:9", "below")], ids=["own parent", "others"]
)
def test_an_item_states_only_links_of_its_own(ground: Ground, link: Link) -> None:
    ground.record(post("1"))
    settlement: Any = ground.attempt(ground.claim_one())
    settlement.links = (link,)

    with pytest.raises(BadInput):
        ground.store.items.settle([settlement])


def test_relations_and_pipelines_do_not_mix(ground: Ground) -> None:
    tell(ground, post("2", "1"))

    assert ground.store.links.children("forum", "answers", "post:1") == []
    assert ground.store.links.children("another", "below", "post:1") == []
    assert ground.store.links.relatives("forum", "post:2") == [("below", "post:2", "post:1")]


def test_a_buried_item_takes_its_statements_with_it(ground: Ground) -> None:
    tell(ground, post("1", "0", ["2"]), post("2", "1"), post("3"))

    ground.store.retention.tidy()

    assert not ground.has("1", "post")
    assert ground.sql("SELECT count(*) FROM links") == [(0,)]


def test_what_is_stated_twice_counts_once_where_it_was_stated_last(ground: Ground) -> None:
    tell(ground, post("a", kids=["b", "c", "b"]))

    assert ground.sql("SELECT child, position FROM links ORDER BY position") == [("post:c", 1), ("post:b", 2)]


def test_a_thread_costs_what_it_holds_and_not_what_all_threads_hold(ground: Ground) -> None:
    """Before the first ANALYZE PostgreSQL would join every reply with every link there is."""
    if ground.database.dialect != "postgres":
        return
    tell(ground, post("a", kids=[f"k{n}" for n in range(300)]), *(post(f"k{n}", kids=[f"l{n}"]) for n in range(300)))
    tell(ground, *(post(f"z{n}", parent="y") for n in range(3_000)))

    asked = {"pipeline": "forum", "relation": "below", "root": "post:a", "parent": "post:a", "limit": 10_000}
    for name in ("thread", "children"):
        explain = f"EXPLAIN ANALYZE {compiled(name)}"
        with ground.database.reading() as tx:
            rows = tx.connection.execute(explain, asked)  # type: ignore[attr-defined]  # the driver's own
            plan = "\n".join(row[0] for row in rows)
        assert "links_by_parent" in plan
        assert "Rows Removed by Join Filter" not in plan


@pytest.mark.parametrize("name", ["doubtful_places", "standpoints", "drop_links_of_child"])
def test_before_any_statistics_children_are_looked_up_by_key(ground: Ground, name: str) -> None:
    with ground.database.transaction() as tx:
        plan = plan_of(tx, name)

    assert "links_by_parent" not in plan, plan
    for condition in re.findall(r"Index Cond: .*", plan):
        assert "child" in condition, plan
