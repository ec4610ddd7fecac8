"""Commands that only look: status, items, explain, search, workflow."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import typer

from tidings.cli.help import Command, KeyArgument, KindArgument, PipelineArgument
from tidings.cli.output import console, fail, moment, say, show_json, show_table
from tidings.cli.shared import ConfigOption, JsonOption, found_item, opened_store, wiring_of, with_delivery_kinds
from tidings.model.errors import BadInput
from tidings.model.query import parse, point_at
from tidings.model.views import ItemRow, ItemView, StatusView
from tidings.model.workflow import Workflow

PANEL = "Look"
HITS_MAX = 500
WIDE = 140
"""From how many columns on a terminal shows items as a table."""
_EXACT = re.compile(r"(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d)(?:\.\d+)?Z")


def add_to(app: typer.Typer) -> None:
    """Add these commands."""
    for command in (status, items, explain, search, workflow):
        app.command(rich_help_panel=PANEL, cls=Command)(command)


def status(config: ConfigOption = None, as_json: JsonOption = False) -> None:
    """Show every pipeline at a glance. States, queues, dead letters, sources, budgets, alerts."""
    with opened_store(config) as (store, _):
        view = store.desk.status()
    if as_json:
        show_json(view)
        return
    _show_status(view)


def _show_status(view: StatusView) -> None:
    columns = (
        "pipeline",
        "items",
        "due",
        "leased",
        "parked",
        "rejected",
        "dead",
        "oldest",
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
                "-" if p.oldest_due_seconds is None else f"{p.oldest_due_seconds:.0f} s",
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
        if p.deliveries:
            say("  deliveries: " + "  ".join(f"{state} {count}" for state, count in p.deliveries.items()))
        if p.shelf_writes_limit:
            say(f"  shelf writes today: {p.shelf_writes_today:,} of {p.shelf_writes_limit:,}")
        for budget in p.budgets:
            if budget.limit:
                say(f"  budget {budget.name}: {budget.spent:,} spent, {budget.reserved:,} reserved of {budget.limit:,}")
        for source in p.sources:
            error = f": {source.error}" if source.error else ""
            say(f"  {source.name}: {source.health}, {source.schedule}, next {moment(source.next_check_at)}{error}")
    for part in view.paused:
        say(f"paused: {part}")
    for alert in view.alerts:
        say(f"\nALERT {alert.name} ({alert.subject}): {alert.message}\n  {alert.help}")


def items(
    config: ConfigOption = None,
    pipeline: Annotated[str | None, typer.Option(help="Only this pipeline.")] = None,
    kind: Annotated[str | None, typer.Option(help="Only this kind.")] = None,
    state: Annotated[str | None, typer.Option(help="Only this state.")] = None,
    standing: Annotated[str | None, typer.Option(help="Only open, done, waits, parked, dead or rejected ones.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="How many at most.")] = 50,
    as_json: JsonOption = False,
) -> None:
    """List items, newest first."""
    with opened_store(config) as (store, _):
        rows = store.desk.items(pipeline=pipeline, kind=kind, state=state, standing=standing, limit=limit)
    if as_json:
        show_json(rows)
        return
    if rows and console.width < WIDE:
        _show_narrow(rows)
        return
    chosen = any(value is not None for value in (pipeline, kind, state, standing))
    show_table(
        ("id", "pipeline", "kind", "key", "state", "standing", "title", "error"),
        [(r.id, r.pipeline, r.kind, r.key, r.state, r.standing, r.title[:60], (r.last_error or "")[:60]) for r in rows],
        empty="no item fits; leave an option out to see more"
        if chosen
        else "no items yet; `tidings discover PIPELINE` finds some, `tidings work --until-idle` processes them",
    )


def _show_narrow(rows: list[ItemRow]) -> None:
    """Give each item lines of its own where a table would be folded beyond recognition."""
    for row in rows:
        say(f"{row.id}  {row.title}\n    {row.state}, {row.standing}  [{row.pipeline} {row.kind} {row.key}]")
        if row.last_error:
            say(f"    {row.last_error}")


def explain(
    pipeline: Annotated[str, PipelineArgument],
    kind: Annotated[str, KindArgument],
    key: Annotated[str, KeyArgument],
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show an item's life line. Every step, attempt, error, cost and delivery, and what it waits for."""
    with opened_store(config) as (store, _):
        view = found_item(store, pipeline, kind, key)
    if as_json:
        show_json(view)
        return
    _show_life(view)


def _show_life(view: ItemView) -> None:
    item = view.item
    say(f"{item.title}\n{item.pipeline} {item.kind} {item.key} (item {item.id}, revision {item.revision})")
    waits_for = _EXACT.sub(r"\1 \2", view.waits_for)
    say(f"{item.state}, {item.standing}. {waits_for}\n")
    for row in view.life:
        who = f" by {row.actor}" if row.actor else ""
        error = f"  {row.error}" if row.error else ""
        attempt = f" attempt {row.attempt}" if row.attempt else ""
        move = row.to_state if row.from_state in ("", row.to_state) else f"{row.from_state} -> {row.to_state}"
        say(f"{moment(row.at)}  {row.ended}{attempt}{who}: {move}{error}")
        for step in row.steps:
            parts = [f"    {step.transition}: {step.from_state} -> {step.to_state}, {step.ms} ms"]
            if step.criterion:
                parts.append(f"{step.criterion}: {step.verdict}")
            if step.model:
                cost = f", $ {step.cost_micros / 1e6:.4f}" if step.cost_micros else ""
                parts.append(f"by {step.model}" + (f", {step.tokens:,} tokens{cost}" if step.tokens else ""))
            if step.note:
                parts.append(step.note)
            say("; ".join(parts))
    for delivery in view.deliveries:
        sent = f"sent {moment(delivery.sent_at)}, message {delivery.message_id}" if delivery.sent_at else delivery.state
        say(f"delivery to {delivery.channel}: {sent}")
    for parent in view.parents:
        say(f"belongs to {parent}")
    if view.children:
        say(f"{len(view.children)} below it: {', '.join(view.children[:10])}{' …' if len(view.children) > 10 else ''}")
    if view.transitions:
        say(
            f"\nby hand: {', '.join(view.transitions)} (tidings transition {item.pipeline} {item.kind} {item.key} NAME)"
        )


def search(
    query: Annotated[
        str, typer.Argument(metavar="QUERY", help='Such as: type:story by:pg score:>100 -word "a phrase".')
    ],
    config: ConfigOption = None,
    pipeline: Annotated[str | None, typer.Option(help="Only this pipeline.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=HITS_MAX, help="How many at most.")] = 20,
    as_json: JsonOption = False,
) -> None:
    """Search everything published."""
    try:
        parsed = parse(query)
    except BadInput as error:
        fail(point_at(query, error))
    with opened_store(config) as (store, _):
        hits, total = store.index.search(parsed, pipeline=pipeline, limit=limit)
    if as_json:
        show_json({"hits": hits, "total": total})
        return
    for hit in hits:
        by = f" by {hit.author}" if hit.author else ""
        score = f", {hit.score} points" if hit.score is not None else ""
        say(f"{hit.title or hit.key}  [{hit.pipeline} {hit.kind} {hit.key}]\n  {moment(hit.time_ms)}{by}{score}")
        snippet = " ".join(hit.snippet.replace(chr(2), "").replace(chr(3), "").split())[:200]
        if snippet and snippet != hit.title:
            say(f"  {snippet}")
    more = f"; --limit {min(total, HITS_MAX)} shows more" if len(hits) < min(total, HITS_MAX) else ""
    say(
        f"{total:,} found{more}"
        if total
        else "nothing found; every word must be there, qualifiers look like type:story"
    )


def workflow(
    pipeline: Annotated[str, PipelineArgument],
    config: ConfigOption = None,
    form: Annotated[str, typer.Option("--format", metavar="text|mermaid", help="How to draw it.")] = "text",
    kind: Annotated[str | None, typer.Option(help="Only this kind.")] = None,
) -> None:
    """Draw the declared workflow of a pipeline. In brackets: processor + criterion."""
    if form not in ("text", "mermaid"):
        fail(f"--format {form!r}: use text or mermaid")
    declared = _declared(pipeline, config)
    drawn = [w for k, w in declared.items() if kind in (None, k) and (kind or k != "delivery")]
    if not drawn:
        fail(f"{pipeline} has no kind {kind!r}; it has {', '.join(declared)}")
    typer.echo("\n\n".join(w.draw_mermaid() if form == "mermaid" else w.draw_text() for w in drawn))


def _declared(pipeline: str, config: Path | None) -> dict[str, Workflow]:
    """Return a pipeline's workflows; one that is not on is drawn with its default settings."""
    from tidings.config import pipeline_modules

    on = with_delivery_kinds(wiring_of(config))
    if pipeline in on:
        return dict(on[pipeline].workflows)
    modules = pipeline_modules()
    if pipeline not in modules:
        fail(f"there is no pipeline {pipeline!r}; known: {', '.join(modules)}")
    return dict(modules[pipeline].build(modules[pipeline].Settings()).workflows)
