"""How many items wait for a summary or an announcement: by what each workflow declares, whatever it calls states."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import pytest
from tests.support import example
from tests.support.example import thing
from tests.support.store import Ground

from tidings.model.contracts import Kit
from tidings.model.errors import Misconfigured
from tidings.model.outcome import Advance, Outcome
from tidings.model.pipeline import Pipeline
from tidings.model.workflow import Transition, Work, Workflow
from tidings.publish.deliveries import with_deliveries
from tidings.store.operator.queues import Standing, phases, queues
from tidings.watch.rules import Facts, Thresholds, readings

OpenGround = Callable[..., Ground]

# Written by hand from the workflows' pictures (docs/states.md): the kinds and states that wait for the lane `ai`.
WAITING_FOR_AI = {
    "bitcoin_news": {("article", "fetched"), ("article", "summarized")},
    "eu_funding": {("opportunity", "found")},
    "feeds": {("entry", "fetched")},
    "first_issues": {("repo", "surveyed"), ("issue", "detailed")},
    "hacker_news": set(),
}
ANNOUNCING = {"bitcoin_news", "eu_funding", "feeds", "first_issues"}


async def waits(work: Work, kit: Kit) -> Outcome:
    return Advance()


def moves(work: Work) -> Outcome:
    return Advance()


def foreign(lane: str = "ai", **more: Any) -> Pipeline:
    """A pipeline of somebody else's, whose states have names that nobody here has heard of."""
    life = Workflow(
        kind="thing",
        start="jotted",
        states=("jotted", "mused", "told"),
        transitions=(
            Transition("muse", "jotted", "mused", processor=waits, lane=lane),
            Transition("tell", "mused", "told", processor=moves, publishes=True),
        ),
        terminal=frozenset({"told"}),
        **more,
    )
    return Pipeline("example", "Example", "Somebody else wrote it.", workflows={"thing": life})


def built(name: str) -> Pipeline:
    module = importlib.import_module(f"tidings.pipelines.{name}")
    chosen: dict[str, Any] = {"feeds": {"feeds": [{"url": "https://example.com/feed"}]}}.get(name, {})
    pipeline: Pipeline = module.build(module.Settings(**chosen))
    return with_deliveries(pipeline, waits) if pipeline.announce else pipeline


@pytest.mark.parametrize("name", WAITING_FOR_AI)
def test_each_pipelines_own_states_count(name: str) -> None:
    pipeline = built(name)
    every = [(kind, state) for kind, workflow in pipeline.workflows.items() for state in workflow.states]
    found = {
        place: queues(pipeline, [Standing(*place, "open", 1)])
        for place in every
        if queues(pipeline, [Standing(*place, "open", 1)])
    }
    assert {place for place, by_lane in found.items() if by_lane.get("ai")} == WAITING_FOR_AI[name]
    told = {place for place, by_lane in found.items() if by_lane.get("notify")}
    assert told == ({("delivery", "queued"), ("delivery", "sealed")} if name in ANNOUNCING else set())


def test_what_is_parked_waits_and_what_has_ended_does_not() -> None:
    pipeline = foreign()
    standings = ("open", "parked", "dead", "rejected", "done", "waits")
    counts = [Standing("thing", "jotted", standing, 10**n) for n, standing in enumerate(standings)]
    assert queues(pipeline, counts) == {"ai": 11}
    assert queues(None, counts) == {}
    assert queues(pipeline, [Standing("unheard", "jotted", "open", 1), Standing("thing", "unheard", "open", 1)]) == {}


@pytest.mark.parametrize("name", WAITING_FOR_AI)
def test_each_pipelines_phases_are_what_its_states_wait_for(name: str) -> None:
    pipeline = built(name)
    every = [Standing(kind, state, "open", 1) for kind, w in pipeline.workflows.items() for state in w.states]

    assert phases(pipeline, every).get("summarize", 0) == len(WAITING_FOR_AI[name])
    assert phases(pipeline, every).get("announce", 0) == 2 * (name in ANNOUNCING)


def test_a_workflow_may_say_which_states_are_which_phase() -> None:
    pipeline = foreign("fetch", phases={"jotted": "summarize"})
    counts = [Standing("thing", "jotted", "open", 3), Standing("thing", "mused", "open", 5)]

    assert phases(pipeline, counts) == {"summarize": 3}
    assert phases(foreign("fetch"), counts) == {}


def test_a_phase_of_a_state_that_is_not_declared_is_refused() -> None:
    with pytest.raises(Misconfigured, match="unheard"):
        foreign(phases={"unheard": "summarize"})


@pytest.mark.parametrize(("lane", "name"), [("ai", "summarize queue"), ("notify", "announce queue")])
def test_a_foreign_pipeline_is_alerted_too(open_ground: Any, lane: str, name: str) -> None:
    ground: Ground = open_ground(foreign(lane))
    ground.record(*(thing(f"{n}") for n in range(3)))
    status = ground.store.status_views.status()

    limits = Thresholds(waiting_to_summarize=2, waiting_to_announce=2)
    found = {r.name: r for r in readings(status, (), Facts(), limits, 0.0) if r.value > r.threshold}

    assert set(found) == {name}
    assert found[name].value == 3
    assert found[name].subject == "example"


def test_a_newer_copy_waits_for_the_one_under_way_and_only_the_newest_follows(open_ground: OpenGround) -> None:
    declared = example.pipeline(fuse=False)
    object.__setattr__(declared.workflows["thing"], "lets_finish", True)
    ground = open_ground(declared)
    ground.record(thing("a", "one"))
    ground.settle(ground.claim_one())
    assert ground.item("a").state == "read"

    ground.record(thing("a", "two"))
    ground.record(thing("a", "three"))

    item = ground.item("a")
    assert (item.state, item.revision, item.waiting_revision) == ("read", 1, 3)
    ground.work()
    assert (ground.item("a").state, ground.item("a").revision) == ("shown", 3)
    assert ground.card("a") == b'{"id":"a","text":"three"}'
    assert [row.to_state for row in ground.life("a")].count("shown") == 2
