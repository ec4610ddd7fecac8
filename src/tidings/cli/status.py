"""`tidings status`: every pipeline at a glance."""

from __future__ import annotations

from tidings.cli.options import ConfigOption, JsonOption, wiring_of
from tidings.cli.output import moment, say, show_json, show_table
from tidings.cli.store import opened_store
from tidings.follow.replica.litestream import NAME as REPLICA
from tidings.follow.replica.litestream import shown
from tidings.model.views import StatusView, how_far_behind
from tidings.serve.pages.phrases import lasting, paced, processor_words, updater_words
from tidings.wiring import why_resting

ABSENT_MS = 120_000
"""How long a process may say nothing before it counts as gone; it beats every ten seconds."""


def status(config: ConfigOption = None, as_json: JsonOption = False) -> None:
    """Show every pipeline at a glance. States, queues, dead letters, sources, budgets, alerts."""
    with opened_store(config, reads=True) as (store, _):
        view = store.status_views.status()
    if as_json:
        show_json(view)
        return
    _show_status(view)
    wiring = wiring_of(config)
    if wiring.replica is not None and not any(each.name == REPLICA for each in view.followers):
        say(f"{REPLICA}: nothing copies the database to {shown(wiring.replica)}; `tidings run` does")
    for route in wiring.resting_routes:
        say(f"route {why_resting(route)}")


def _show_status(view: StatusView) -> None:
    columns = (
        "pipeline",
        "items",
        "due",
        "leased",
        "parked",
        "rejected",
        "dead",
        "lag",
        "steps/h",
    )
    show_table(
        columns,
        [
            [
                name,
                sum(p.states.values()),
                p.due,
                p.leased,
                p.parked,
                p.rejected,
                p.dead_letters,
                lasting(p.lag_seconds) if p.lags else "-",
                p.settled_last_hour,
            ]
            for name, p in view.pipelines.items()
        ],
        empty="no pipeline is on; `tidings init` writes a configuration",
    )
    for name, p in view.pipelines.items():
        counted = "  ".join(f"{state} {count:,}" for state, count in p.states.items() if count) or "no items yet"
        say(f"\n{name}{' (paused)' if p.paused else ''}: {counted}")
        say(
            f"  log: {p.intake.total:,} findings, {p.intake.unmerged:,} unmerged, checkpoint {p.intake.checkpoint}; "
            f"last discovery {moment(p.last_discovery_at)}, last processed {moment(p.last_processed_at)}"
        )
        for source in p.sources:
            if source.last_run is not None:
                say(f"  updater {source.name}, {moment(source.last_run.started_at)}: {updater_words(source.last_run)}")
        if p.last_work is not None:
            say(f"  processor, {moment(p.last_work.started_at)}: {processor_words(p.last_work)}")
        if p.deliveries:
            say("  deliveries: " + "  ".join(f"{state} {count}" for state, count in p.deliveries.items()))
        if p.shelf_writes_limit:
            say(f"  shelf writes today: {p.shelf_writes_today:,} of {p.shelf_writes_limit:,}")
        for budget in p.budgets:
            if budget.limit:
                say(f"  budget {budget.name}: {budget.spent:,} spent, {budget.reserved:,} reserved of {budget.limit:,}")
        for source in p.sources:
            until = f" until {moment(source.until)}" if source.until else ""
            error = f": {source.error}" if source.error else ""
            note = f"; {source.last_run.note}" if source.last_run is not None and source.last_run.note else ""
            health = f"{source.health}{until}, {paced(source)}, next {moment(source.next_check_at)}"
            say(f"  {source.name}: {health}{error}{note}")
    for each in view.followers:
        behind = how_far_behind(each)
        how = f"failing, {behind}: {each.error}" if each.error else behind
        say(f"{each.name} (process {each.process}): {how}")
    for process in view.processes:
        say(f"process {process.process} ({process.role}): seen {lasting((view.at - process.seen_at) / 1000)} ago")
    for line in absent_parts(view):
        say(line)
    for part in view.paused:
        say(f"paused: {part}")
    for alert in view.alerts:
        say(f"\nALERT {alert.name} ({alert.subject}): {alert.message}\n  {alert.help}")


def absent_parts(view: StatusView) -> list[str]:
    """Say which part no process does: without it, sources are healthy only as of their last look."""
    parts = [("discover", "no poller: sources are not asked"), ("work", "no worker: items are not processed")]
    return [
        f"{what}; `tidings run` does both, `tidings run --role {role}` only this"
        for role, what in parts
        if not any(
            process.role in ("all", role) and view.at - process.seen_at <= ABSENT_MS for process in view.processes
        )
    ]
