"""A transition by hand has the effects of an automatic one: children are born, notices go out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import msgspec
import pytest
from tests.support import example
from tests.support.example import Thing, thing
from tests.support.store import Ground

from tidings.model.contracts import Kit
from tidings.model.item import Finding
from tidings.model.outcome import Advance, Outcome
from tidings.model.pipeline import Pipeline
from tidings.model.publication import Notice, Route
from tidings.model.workflow import Transition, Work, Workflow
from tidings.process.runner import Runner
from tidings.publish.deliveries import delivering, with_deliveries

OpenGround = Callable[..., Ground]


def bear(work: Work) -> Outcome:
    """Name one child."""
    return Advance(children=(thing(f"{work.key}-child", "small"),))


def announce(work: Work) -> tuple[Notice, ...]:
    """Tell of a thing."""
    return (Notice(title=work.body.text),)


async def send(work: Work, kit: Kit) -> Outcome:
    """A sender's form; nothing is sent here."""
    raise AssertionError


def releasing() -> Pipeline:
    """Things that a person releases."""
    workflow = Workflow(
        kind="thing",
        start="found",
        states=("found", "shown"),
        terminal=frozenset({"shown"}),
        body=Thing,
        transitions=(Transition("release", "found", "shown", bear, trigger="manual", publishes=True),),
    )
    declared = replace(example.pipeline(), workflows={"thing": workflow}, announce={"thing": announce})
    return with_deliveries(declared, send)


@pytest.fixture
def released(open_ground: OpenGround) -> Ground:
    """A store in which a person has released one thing."""
    ground = open_ground(releasing(), deliver=delivering([Route("example", "news")]))
    ground.record(thing("a", "large"))
    ground.store.operations.transition(ground.item("a").id, "release", actor="ada", reason="ready")
    return ground


def test_children_of_a_transition_by_hand_are_born(released: Ground) -> None:
    assert released.item("a-child").state == "found"


def test_what_is_published_by_hand_is_announced(released: Ground) -> None:
    (view,) = released.store.item_views.deliveries()
    assert (view.channel, view.title) == ("news", "large")
    parents = released.sql("SELECT parent FROM links WHERE relation = 'announces'")
    assert parents == [("thing:a",)]
    (lease,) = released.claim(lane="notify")
    assert b'"large"' in lease.body


def test_a_transition_by_hand_that_is_refused_bears_nothing(open_ground: OpenGround) -> None:
    ground = open_ground(releasing(), deliver=delivering([Route("example", "news", "nothing-has-this-word")]))
    ground.record(thing("a", "large"))
    ground.store.operations.transition(ground.item("a").id, "release", actor="ada", reason="ready")

    assert ground.store.item_views.deliveries() == []


def test_notices_of_one_batch_leave_in_the_order_of_their_items(open_ground: OpenGround) -> None:
    """Deliveries are sent by age; those of one settle were born in the order of their keys, which are hashes."""
    workflow = Workflow(
        kind="thing",
        start="found",
        states=("found", "shown"),
        terminal=frozenset({"shown"}),
        body=Thing,
        transitions=(Transition("show", "found", "shown", publishes=True),),
    )
    declared = replace(example.pipeline(), workflows={"thing": workflow}, announce={"thing": announce})
    deliver = delivering([Route("example", "news")])
    ground = open_ground(with_deliveries(declared, send), deliver=deliver)
    ground.runner = Runner(ground.pipelines, deliver=deliver)
    ground.record(*(thing(f"{number}", f"notice {number}") for number in range(20)))
    ground.settle(*ground.claim(20))

    titles = [
        msgspec.json.decode(ground.store.items.body(row.id, 1) or b"{}")["notice"]["title"]
        for row in reversed(ground.store.item_views.items(kind="delivery", limit=100))
    ]
    assert titles == [f"notice {number}" for number in range(20)]


class Note(msgspec.Struct, frozen=True):
    """A kind whose body has nothing in common with a thing's."""

    words: int


def test_a_transition_by_hand_sees_items_of_another_kind(open_ground: OpenGround) -> None:
    seen: list[object] = []

    def compare(work: Work) -> Outcome:
        seen.append(work.related)
        return Advance()

    note = Workflow(
        kind="note",
        start="found",
        states=("found", "kept"),
        terminal=frozenset({"kept"}),
        body=Note,
        transitions=(Transition("keep", "found", "kept", publishes=True),),
    )
    compares = Transition("compare", "found", "shown", compare, trigger="manual", prefetch=lambda work: ["note:n"])
    things = replace(releasing().workflows["thing"], transitions=(compares,))
    ground = open_ground(replace(example.pipeline(), workflows={"thing": things, "note": note}))
    ground.record(thing("a", "large"), Finding("example", "note", "n", "1", b'{"words": 7}'))
    ground.work()

    ground.store.operations.transition(ground.item("a").id, "compare", actor="ada", reason="look")

    assert seen == [{"note:n": Note(7)}]
