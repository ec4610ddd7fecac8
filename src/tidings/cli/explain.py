"""`tidings explain`: the life line of one item."""

from __future__ import annotations

import re
from typing import Annotated

from tidings.cli.options import ConfigOption, JsonOption, KeyArgument, KindArgument, PipelineOrNumberArgument
from tidings.cli.output import moment, say, show_json
from tidings.cli.store import named_item, opened_store
from tidings.model.item_views import ItemView

_EXACT = re.compile(r"(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d)(?:\.\d+)?Z")


def explain(
    pipeline: Annotated[str, PipelineOrNumberArgument],
    kind: Annotated[str | None, KindArgument] = None,
    key: Annotated[str | None, KeyArgument] = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show an item's life line. Every step, attempt, error, cost and delivery, and what it waits for."""
    with opened_store(config, reads=True) as (store, _):
        view = named_item(store, [pipeline, kind, key])
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
        if delivery.waits_for and not delivery.sent_at:
            sent += f", waits for {delivery.waits_for}"
        say(f"delivery to {delivery.channel}: {sent}")
    for parent in view.parents:
        say(f"belongs to {parent}")
    if view.children:
        say(f"{len(view.children)} below it: {', '.join(view.children[:10])}{' …' if len(view.children) > 10 else ''}")
    if view.transitions:
        say(
            f"\nby hand: {', '.join(view.transitions)} (tidings transition {item.pipeline} {item.kind} {item.key} NAME)"
        )
