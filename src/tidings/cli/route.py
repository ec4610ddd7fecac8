"""`tidings route test`: what a route would have sent, before it is written down."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from tidings.backtest import Backtest, backtest
from tidings.cli.drawing import draw
from tidings.cli.help import Command, Group
from tidings.cli.options import ConfigOption, JsonOption, wiring_of
from tidings.cli.output import end, fail, say, show_json
from tidings.cli.store import opened_store
from tidings.model.durations import duration_seconds
from tidings.model.errors import Misconfigured
from tidings.model.publication import Route
from tidings.model.vocabulary import vocabulary_of
from tidings.publish.texts import NO_TEXTS
from tidings.route_checks import parse_route

SHOWN_WHOLE = 3
DAYS_LISTED = 31
BAR_MAX = 40

route = typer.Typer(name="route", cls=Group, help="Try a route before it is on.", no_args_is_help=True)


@route.command("test", cls=Command)
def try_route(
    query: Annotated[str, typer.Argument(metavar="QUERY", help="What the route would ask for; '' means all.")],
    pipeline: Annotated[str, typer.Option(metavar="PIPELINE", help="Whose items.")],
    since: Annotated[str, typer.Option(metavar="TIME", help="How far back, such as 30d or 12h.")] = "30d",
    channel: Annotated[str | None, typer.Option(help="In the words of this channel's route.")] = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show what a route would have sent. How many a day and the first three as they would look; nothing is sent."""
    try:
        seconds = duration_seconds(since)
    except ValueError as error:
        fail(f"--since {since!r}: {error}")
    wiring = wiring_of(config)
    declared = next((each for each in wiring.pipelines if each.name == pipeline), None)
    if declared is None:
        fail(f"there is no pipeline {pipeline!r}; on are {', '.join(p.name for p in wiring.pipelines) or 'none'}")
    routed = [each for each in wiring.routes if each.pipeline == pipeline and each.channel == channel]
    if channel is not None and not routed:
        fail(f"no route leads from {pipeline} to {channel!r}")
    tried = Route(pipeline, channel or "test", query, texts=routed[0].texts if routed else NO_TEXTS)
    try:
        parse_route(tried, vocabulary_of(wiring.pipelines, within=pipeline))
    except Misconfigured as error:
        end(error)
    with opened_store(config, reads=True) as (store, _):
        now = store.now_ms()
        since_ms = now - round(seconds * 1000)
        copies = store.item_views.stored_copies(pipeline, since_ms=since_ms)
        found = backtest(copies, declared, tried, since_ms=since_ms, now_ms=now)
    if as_json:
        show_json(_facts(found, tried, since))
        return
    _show(found, tried, since)


def _facts(found: Backtest, tried: Route, since: str) -> dict[str, Any]:
    return {
        "pipeline": tried.pipeline,
        "query": tried.query,
        "since": since,
        "considered": found.considered,
        "announced": found.announced,
        "sent": len(found.sent),
        "a_day": round(len(found.sent) / found.days, 2),
        "days": found.per_day,
        "items": [{"at": each.at, "item": each.item, "title": each.notice.title} for each in found.sent],
        "first": [each.notice for each in found.sent[:SHOWN_WHOLE]],
    }


def _show(found: Backtest, tried: Route, since: str) -> None:
    per_day = found.per_day
    say(f"{tried.query or 'everything'} on {tried.pipeline}, found in the last {since}:")
    say(
        f"{len(found.sent)} notices of {found.considered} stored items, {len(found.sent) / found.days:.1f} a day"
        + (f", at most {max(per_day.values())} on one day" if per_day else "")
    )
    if found.announced < found.considered:
        silent = found.considered - found.announced
        say(f"{silent} items are worth no notice to any channel, such as what a first run found, or what is over")
    most = max(per_day.values(), default=1)
    for day, count in list(per_day.items())[-DAYS_LISTED:]:
        say(f"  {day}  {count:4}  {'#' * max(1, round(count / most * min(BAR_MAX, most)))}")
    for each in found.sent[:SHOWN_WHOLE]:
        say("")
        say(draw(each.notice))
