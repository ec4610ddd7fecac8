"""What operators see of the whole: pipelines, sources, channels, processes, ready to be printed, drawn or encoded."""

from __future__ import annotations

from typing import Literal

import msgspec


class IntakeView(msgspec.Struct, frozen=True):
    """The intake log of one pipeline."""

    unmerged: int
    checkpoint: int
    total: int


RunEnd = Literal["complete", "incomplete", "slowed", "out of credits", "refused", "failed", "stopped", "lost"]
"""incomplete: there was more than was read. slowed: the source asked us to wait. refused: a person must mend it.
lost: its process was killed, or came too late."""
Health = Literal[
    "healthy",
    "slow",
    "incomplete",
    "out of credits",
    "refused",
    "silent",
    "failing",
    "empty",
    "paused",
    "waiting",
    "running",
]
"""slow: it asks us to wait, or takes longer than its interval. silent: nothing new for much longer than usual.
empty: it answers and lists nothing, although it always did. waiting: never asked yet."""


class RunView(msgspec.Struct, frozen=True):
    """One discovery run."""

    source: str
    started_at: int
    ended_at: int | None = None
    found: int = 0
    new: int = 0
    changed: int = 0
    unchanged: int = 0
    rejected: int = 0
    trimmed: int = 0
    pages: int = 0
    credits: int = 0
    error: str | None = None
    note: str | None = None
    ended: RunEnd | None = None
    in_log: int | None = None
    """How many findings the log held then, merged or not."""

    @property
    def added(self) -> int:
        """Return how many findings were appended to the log."""
        return self.new + self.changed


class WorkRunView(msgspec.Struct, frozen=True):
    """What one process did for one pipeline, from the first claim until nothing was left to do, a minute at most."""

    pipeline: str
    process: str
    started_at: int
    ended_at: int
    loaded: int
    """Items that were claimed."""
    processed: int
    """Attempts that were made."""
    removed: int
    """Items that then had no way to go: complete, rejected, dead or waiting for a person."""
    moved_to_end: int
    """Items that are tried again later."""
    queue_length: int
    """What was left: findings that are not merged, and items that have a way to go."""


class SourceView(msgspec.Struct, frozen=True, kw_only=True):
    """A source and its health."""

    name: str
    pipeline: str
    health: Health
    until: int | None = None
    """When it is asked again, where it is out of credits or was asked to slow down."""
    schedule: str
    origin: Literal["file", "store"] = "file"
    """Where it is named; a source of the configuration file is changed there."""
    address: str | None = None
    title: str | None = None
    last_success_at: int | None = None
    last_new_at: int | None = None
    next_check_at: int | None = None
    failures: int = 0
    error: str | None = None
    last_run: RunView | None = None
    credits_today: int = 0
    incomplete_runs: int = 0
    """How many runs in a row were cut off."""


class BudgetView(msgspec.Struct, frozen=True):
    """A daily budget; `limit` 0 means only counted."""

    name: str
    day: str
    spent: int
    reserved: int
    limit: int


class PipelineView(msgspec.Struct, frozen=True, kw_only=True):
    """One pipeline at a glance."""

    states: dict[str, int]
    """Items by state, over all kinds but deliveries."""
    kinds: dict[str, dict[str, int]] = {}
    standings: dict[str, int] = {}
    waiting: dict[str, int] = {}
    """Of those, what the engine will still move by itself, by state."""
    queues: dict[str, int] = {}
    """What waits for each lane, parked or not, over all kinds: `ai` for summaries, `notify` for channels."""
    phases: dict[str, int] = {}
    """How many items wait for each phase their workflows declare, such as `summarize`."""
    due: int = 0
    leased: int = 0
    parked: int = 0
    rejected: int = 0
    dead_letters: int = 0
    dead: dict[str, int] = {}
    """Dead letters by the transition that failed."""
    dead_growth: int = 0
    """How many more dead letters there are than an hour ago."""
    index_gap: int = 0
    """In how many keys the id index and the shelf have differed for minutes."""
    oldest_due_seconds: float | None = None
    lags: dict[str, float] = {}
    """Per phase (merge, process, fetch, summarize, announce): for how many seconds the oldest one has waited for it.
    Parked and leased items count, and findings that are not merged; not what has ended or waits for a person."""
    lag_seconds: float = 0.0
    """The longest of these."""
    intake: IntakeView
    settled_last_hour: int = 0
    published_last_hour: int = 0
    last_processed_at: int | None = None
    last_discovery_at: int | None = None
    last_work: WorkRunView | None = None
    """The last run of a worker that has ended."""
    deliveries: dict[str, int] = {}
    shelf_writes_today: int = 0
    shelf_writes_limit: int | None = None
    paused: bool = False
    sources: list[SourceView] = []
    budgets: list[BudgetView] = []


class AlertView(msgspec.Struct, frozen=True):
    """An alert: about our own health, never an item."""

    name: str
    subject: str
    """What it is about: a pipeline, source, channel, budget or `disk`."""
    message: str
    help: str
    """What to do, with the command."""
    value: float
    threshold: float
    fired_at: int
    cleared_at: int | None = None


class FollowerView(msgspec.Struct, frozen=True, kw_only=True):
    """What follows the stream of changes in one process: the search index, a mirror."""

    name: str
    process: str
    behind: int = 0
    """How many changes it has not followed yet."""
    behind_seconds: float = 0.0
    """How long ago the first of them was made."""
    error: str | None = None


def how_far_behind(view: FollowerView) -> str:
    """Say how far behind a follower is; a copy of the database knows no number of changes."""
    if not view.behind and view.behind_seconds < 1:
        return "up to date"
    changes = f"{view.behind:,} changes and " if view.behind else ""
    return f"{changes}{view.behind_seconds:.0f} s behind"


class ProcessView(msgspec.Struct, frozen=True):
    """A process that runs, or ran in the last day."""

    process: str
    role: str
    """all, discover, work or serve."""
    seen_at: int


class StatusView(msgspec.Struct, frozen=True):
    """Everything at a glance."""

    pipelines: dict[str, PipelineView]
    alerts: list[AlertView]
    at: int = 0
    paused: list[str] = []
    followers: list[FollowerView] = []
    processes: list[ProcessView] = []
    counts: dict[str, int] = {}
    """What is counted for good, such as `shelf_writes:PIPELINE` and `new:SOURCE`."""
    standby_lag_seconds: float | None = None
    """By how much the standby that was asked may be behind its primary; None where it is no standby."""


class ChannelView(msgspec.Struct, frozen=True, kw_only=True):
    """A channel and its limiter."""

    name: str
    kind: str
    paused: bool
    reason: str | None = None
    not_before_ms: int = 0
    sent_last_minute: int = 0
    waiting: int = 0


class Point(msgspec.Struct, frozen=True):
    """One low-resolution measurement."""

    at: int
    value: float


class TokenView(msgspec.Struct, frozen=True):
    """An access token, without the token."""

    name: str
    scope: Literal["read", "ingest", "operate"]
    created_at: int
    last_used_at: int | None = None
    revoked_at: int | None = None
