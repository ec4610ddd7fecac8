"""The rules about our own health: what each one reads, and above which value it fires."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from tidings.model.views import ChannelView, FollowerView, PipelineView, SourceView, StatusView, how_far_behind

HOUR_SECONDS = 3600.0
REQUESTS_MIN = 20
TROUBLES = {
    "refused": ("refuses us", "mend the key or the settings, then: tidings discover {pipeline} --source {source}"),
    "out of credits": ("has given us all that today holds", "wait, raise the budget, or ask less often"),
    "empty": ("answers and lists nothing any more", "tidings doctor; tidings discover {pipeline} --source {source}"),
}
"""Why a source's health fires at once, and what helps."""


@dataclass(frozen=True, slots=True)
class Thresholds:
    """When each alert fires: above these values."""

    waiting_to_summarize: float = 100
    waiting_to_announce: float = 50
    dead_letters: float = 20
    dead_growth: float = 10
    leases: float = 10
    lag_seconds: float = 2 * HOUR_SECONDS
    api_error_share: float = 0.01
    budget_share: float = 0.9
    index_divergence: float = 0
    disk_used_share: float = 0.95
    follower_seconds: float = 300
    absent_seconds: float = 120


@dataclass(frozen=True, slots=True)
class Facts:
    """What the rules ask beyond the status."""

    gaps: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """Per pipeline: the keys in which its id index and its shelf differ."""
    young_gaps: frozenset[str] = frozenset()
    """The pipelines in which some differ, and this process has not watched for long enough to judge."""
    disk_free_share: float | None = None
    requests: int = 0
    """Requests to all servers in the last minutes, and how many of them failed."""
    failed: int = 0
    watched_seconds: float = 0.0
    """For how long this process has watched: one that was not seen yet may only just be starting."""

    @property
    def error_share(self) -> float:
        """The share of requests that failed; of a handful it says nothing."""
        return self.failed / self.requests if self.requests >= REQUESTS_MIN else 0.0


@dataclass(frozen=True, slots=True)
class Reading:
    """One rule's value for one subject; it fires above its threshold and clears at 80 % of it."""

    name: str
    subject: str
    value: float
    threshold: float
    message: str
    help: str
    is_sure: bool = True
    """False: a process that has only begun to watch cannot know yet. What fires already then goes on firing."""


def readings(
    status: StatusView, channels: Iterable[ChannelView], facts: Facts, limits: Thresholds, error_share: float
) -> list[Reading]:
    """Ask every rule."""
    found: list[Reading] = []
    for name, view in status.pipelines.items():
        found += _of_pipeline(name, view, limits)
    for channel in channels:
        reason = channel.reason or "paused by hand"
        found.append(
            Reading(
                "channel paused",
                channel.name,
                float(channel.paused),
                0.5,
                f"channel {channel.name} is paused: {reason}; {channel.waiting} notices wait",
                f"mend its address, then: tidings resume --channel {channel.name}",
            )
        )
    for name, keys in facts.gaps.items():
        found.append(
            Reading(
                "index divergence",
                name,
                len(keys),
                limits.index_divergence,
                f"{name}: the id index and the shelf differ for minutes in {len(keys)}: {', '.join(sorted(keys)[:5])}",
                "is a worker running, which tidies? else: tidings db rebuild shelf",
                is_sure=name not in facts.young_gaps,
            )
        )
    found += _absences(status, facts, limits)
    found += [_of_follower(each, limits) for each in status.followers]
    if facts.disk_free_share is not None:
        used = 1 - facts.disk_free_share
        found.append(
            Reading(
                "disk nearly full",
                "disk",
                used,
                limits.disk_used_share,
                f"the disk that holds the database is {used:.0%} full",
                "free some space; nothing accepted is lost",
            )
        )
    found.append(
        Reading(
            "api errors",
            "api",
            error_share,
            limits.api_error_share,
            f"{error_share:.1%} of API requests failed in the last minutes",
            "look at the log for the failing route",
        )
    )
    return found


def _absences(status: StatusView, facts: Facts, limits: Thresholds) -> list[Reading]:
    """Ask when a worker and a poller were last seen."""
    has_sources = any(view.sources for view in status.pipelines.values())
    waiting = sum(view.intake.unmerged + view.due for view in status.pipelines.values())
    found: list[Reading] = []
    for what, role, is_needed, told in (
        ("worker", "work", bool(status.pipelines), f"; {waiting:,} findings and items wait"),
        ("poller", "discover", has_sources, "; no source is asked"),
    ):
        absent = _absent_seconds(status, role) if is_needed else 0.0
        found.append(
            Reading(
                f"no {what}",
                what,
                min(absent, facts.watched_seconds),
                limits.absent_seconds,
                f"no {what} has been seen for more than {limits.absent_seconds:g} s{told}",
                f"tidings run --role {role}",
                is_sure=absent <= max(facts.watched_seconds, limits.absent_seconds / 2),
            )
        )
    return found


def _absent_seconds(status: StatusView, role: str) -> float:
    seen = [each.seen_at for each in status.processes if each.role in ("all", role)]
    return (status.at - max(seen)) / 1000 if seen else float("inf")


def _of_follower(view: FollowerView, limits: Thresholds) -> Reading:
    why = f": {view.error}" if view.error else ""
    return Reading(
        "follower behind",
        f"{view.name}@{view.process}",
        view.behind_seconds,
        limits.follower_seconds,
        f"{view.name} is {how_far_behind(view)}{why}",
        "look at the log of that process; it catches up by itself once the cause is gone",
    )


def _of_pipeline(name: str, view: PipelineView, limits: Thresholds) -> list[Reading]:
    waiting, queued = view.phases.get("summarize", 0), view.phases.get("announce", 0)
    summarize, announce, dead = limits.waiting_to_summarize, limits.waiting_to_announce, limits.dead_letters
    found = [
        Reading("summarize queue", name, waiting, summarize, f"{waiting} items of {name} wait for a summary",
                f"tidings work --until-idle --pipeline {name}"),
        Reading("announce queue", name, queued, announce, f"{queued} notices of {name} wait to be sent",
                "tidings status; is the channel answering?"),
        Reading("dead letters", name, view.dead_letters, dead, f"{view.dead_letters} dead letters in {name}",
                "tidings dead list"),
        Reading("dead letters growing", name, view.dead_growth, limits.dead_growth,
                f"{view.dead_growth} more dead letters in {name} than an hour ago", "tidings dead list"),
        Reading("leases", name, view.leased, limits.leases, f"{view.leased} leases of {name} are held at once",
                "tidings status; are workers stuck?"),
        _lag(name, view, limits),
    ]  # fmt: skip
    if view.shelf_writes_limit:
        allowed = view.shelf_writes_limit * limits.budget_share
        found.append(
            Reading(
                "shelf writes",
                name,
                view.shelf_writes_today,
                allowed,
                f"{view.shelf_writes_today} of {view.shelf_writes_limit} shelf writes of {name} are used today",
                "raise shelf_writes_per_day, or poll less often",
            )
        )
    for budget in view.budgets:
        if budget.limit and not budget.name.startswith("shelf_writes:"):
            used = budget.spent + budget.reserved
            found.append(
                Reading(
                    "budget nearly spent",
                    budget.name,
                    used,
                    budget.limit * limits.budget_share,
                    f"{used} of today's {budget.limit} are used: {budget.name}",
                    "raise the budget, or wait for the next day (UTC)",
                )
            )
    for source in view.sources:
        found += _of_source(name, source)
    return found


def _of_source(pipeline: str, source: SourceView) -> list[Reading]:
    note = source.last_run.note if source.last_run is not None else None
    look = f"tidings discover {pipeline} --source {source.name}"
    failing = source.failures if source.health == "failing" else 0
    found = [
        Reading("source silent", source.name, float(source.health == "silent"), 0.5,
                f"{source.name} has brought nothing new for much longer than usual", look),
        Reading("source incomplete", source.name, source.incomplete_runs, 2.5,
                f"{source.name} was cut off {source.incomplete_runs} times in a row: {note}",
                "ask it more often (every), raise max_pages, or take a larger plan"),
        Reading("source failing", source.name, failing, 2.5,
                f"{source.name} failed {failing} times: {source.error}", look),
    ]  # fmt: skip
    if source.health in TROUBLES:
        why, help_text = TROUBLES[source.health]
        told = source.error or note
        message = f"{source.name} {why}" + (f": {told}" if told else "")
        help_text = help_text.format(pipeline=pipeline, source=source.name)
        found.append(Reading(f"source {source.health}", source.name, 1.0, 0.5, message, help_text))
    return found


def _lag(name: str, view: PipelineView, limits: Thresholds) -> Reading:
    """Ask how long the oldest finding or item has waited; what is parked or tried again and again counts."""
    slow = {phase: seconds for phase, seconds in view.lags.items() if seconds > limits.lag_seconds} or view.lags
    longest = sorted(slow.items(), key=lambda pair: -pair[1])
    phases = ", ".join(f"{phase} {seconds / HOUR_SECONDS:.1f} h" for phase, seconds in longest)
    paused = "; the pipeline is paused" if view.paused else ""
    return Reading(
        "processing lag",
        name,
        view.lag_seconds,
        limits.lag_seconds,
        f"{name} is not getting on; the oldest have waited: {phases}{paused}",
        f"tidings resume --pipeline {name}" if view.paused else f"tidings status; tidings items --pipeline {name}",
    )
