"""What needs a person: dead letters by cause, sources that bring nothing, what is paused, budgets nearly spent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tidings.model.item_views import DeadGroup
from tidings.model.pipeline import Pipeline
from tidings.model.views import ChannelView, SourceView, StatusView
from tidings.serve.markup import tidy
from tidings.serve.pages.phrases import count, lasting, shell

FAILURES_MAX = 2
"""A source that worked before may fail so often in a row; it is asked again by itself."""
OFFLINE_MIN = 2
"""So many sources that no one could reach are one trouble of this machine."""
UNREACHED = ("the name does not resolve", "cannot be reached (", "did not answer in time")
"""What `net/failures.py` says where nothing came back."""
_SPENT = 0.9


@dataclass(frozen=True, slots=True)
class Need:
    """Something a person should look at: what, one action, and the action's command."""

    tone: str
    word: str
    text: str
    detail: str
    action: str | None
    button: str
    fields: dict[str, Any]
    command: str
    href: str


@dataclass(frozen=True, slots=True)
class Situation:
    """What every page knows of how things are."""

    status: StatusView
    dead: Sequence[DeadGroup]
    channels: Sequence[ChannelView]

    @property
    def dead_letters(self) -> int:
        """How many dead letters there are."""
        return sum(view.dead_letters for view in self.status.pipelines.values())

    def needs(self, pipelines: Mapping[str, Pipeline]) -> list[Need]:
        """Return everything that needs a person, the worst first."""
        views = self.status.pipelines
        sources = [source for view in views.values() if not view.paused for source in view.sources]
        return [
            *(_dead_need(group, pipelines) for group in self.dead),
            *(_pipeline_need(name, _title(name, pipelines)) for name, view in views.items() if view.paused),
            *_source_needs(sources, self.status.at),
            *(_channel_need(view) for view in self.channels if view.paused),
            *_budget_needs(self.status),
        ]

    def asks(self, pipelines: Mapping[str, Pipeline]) -> int:
        """Return how many things need a person; an alert that nothing else speaks of is one."""
        return len(self.needs(pipelines)) or len(self.status.alerts)


def needs_a_person(view: SourceView) -> bool:
    """Tell whether a source wants looking at: paused, silent, never once successful, or failing again and again."""
    if view.health == "failing":
        return view.last_success_at is None or view.failures > FAILURES_MAX
    return view.health in ("silent", "paused", "refused", "empty")


def dead_command(verb: str, group: DeadGroup) -> str:
    """Return the command for a group of dead letters; a single one is called by its number."""
    if group.count == 1:
        return f"tidings dead {verb} {group.sample_id}"
    return f"tidings dead {verb} --pipeline {shell(group.pipeline)} --cause {shell(group.cause)}"


def _title(name: str, pipelines: Mapping[str, Pipeline]) -> str:
    return pipelines[name].title if name in pipelines else name


def _pipeline_need(name: str, title: str) -> Need:
    return Need(
        "parked",
        "paused pipeline",
        title,
        "its sources are not asked and its items wait",
        "/actions/resume",
        "Resume",
        {"part": f"pipeline:{name}"},
        f"tidings resume --pipeline {shell(name)}",
        f"/workflows/{name}",
    )


def _dead_need(group: DeadGroup, pipelines: Mapping[str, Pipeline]) -> Need:
    return Need(
        "bad",
        count(group.count, "dead letter"),
        tidy(group.cause, 160) or "no cause given",
        f"{_title(group.pipeline, pipelines)} · {group.kind} in {group.state.replace('_', ' ')}",
        "/actions/revive",
        "Revive" if group.count == 1 else f"Revive all {group.count:,}",
        {"pipeline": group.pipeline, "cause": group.cause},
        dead_command("revive", group),
        f"/items/{group.sample_id}" if group.count == 1 else "/dead-letters",
    )


def _source_needs(sources: Sequence[SourceView], now_ms: int) -> list[Need]:
    """Return one need for all sources that never got through for want of a network, and one for each other."""
    offline = [view for view in sources if is_offline(view)]
    has_network = any(view.last_success_at is not None for view in sources)
    if has_network or len(offline) < OFFLINE_MIN:
        offline = []
    rest = [view for view in sources if needs_a_person(view) and view not in offline]
    return [*([_network_need(offline, now_ms)] if offline else []), *(_source_need(view) for view in rest)]


def is_offline(view: SourceView) -> bool:
    """Tell whether a source was never reached, for a reason that says nothing about the source itself."""
    return view.last_success_at is None and any(words in (view.error or "") for words in UNREACHED)


def _network_need(offline: Sequence[SourceView], now_ms: int) -> Need:
    nexts = [view.next_check_at for view in offline if view.next_check_at is not None]
    soonest = f"next try in {lasting(max(0, min(nexts) - now_ms) / 1000)}" if nexts else "no next try is planned"
    return Need(
        "wait",
        "no network yet",
        f"{soonest}; {count(len(offline), 'source')} not reached",
        tidy(offline[0].error, 160),
        None,
        "",
        {},
        "tidings doctor",
        "/sources",
    )


_QUIET = {"paused": "paused by hand", "empty": "it answers and lists nothing any more"}


def _source_need(view: SourceView) -> Need:
    is_paused = view.health == "paused"
    name = shell(view.name)
    return Need(
        {"failing": "bad", "refused": "bad", "silent": "wait", "empty": "wait"}.get(view.health, "parked"),
        f"{view.health} source",
        view.name,
        tidy(view.error, 200) if view.error else _QUIET.get(view.health, "silent for longer than usual"),
        f"/actions/{'resume' if is_paused else 'check'}",
        "Resume" if is_paused else "Check now",
        {"part": f"source:{view.name}", "source": view.name},
        f"tidings resume --source {name}" if is_paused else f"tidings discover {shell(view.pipeline)} --source {name}",
        "/sources",
    )


def _channel_need(view: ChannelView) -> Need:
    return Need(
        "parked",
        "paused channel",
        view.name,
        tidy(view.reason, 200) or f"{count(view.waiting, 'notice')} waiting",
        "/actions/resume",
        "Resume",
        {"part": f"channel:{view.name}"},
        f"tidings resume --channel {shell(view.name)}",
        "/deliveries",
    )


def _budget_needs(status: StatusView) -> list[Need]:
    budgets = {budget.name: budget for view in status.pipelines.values() for budget in view.budgets}
    return [
        Need(
            "wait",
            "budget nearly spent",
            tidy(budget.name, 80),
            f"{budget.spent + budget.reserved:,} of {budget.limit:,} today; the rest waits for tomorrow",
            None,
            "",
            {},
            "tidings status",
            "/alerts",
        )
        for budget in budgets.values()
        if budget.limit and budget.spent + budget.reserved >= _SPENT * budget.limit
    ]
