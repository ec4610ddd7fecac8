"""Tries routes for the dashboard: what would have been sent, drawn as Discord would."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from itertools import islice
from typing import Any

from tidings.app import App
from tidings.backtest import backtest
from tidings.model.errors import BadInput, Misconfigured
from tidings.model.publication import Notice, Route
from tidings.model.trials import DrawnField, DrawnMessage, RouteTrial
from tidings.model.vocabulary import vocabulary_of
from tidings.publish.notifiers import discord
from tidings.publish.texts import NO_TEXTS
from tidings.route_checks import parse_route

DAY_MS = 86_400_000
COPIES_MAX = 5_000
"""How many items a page looks at; the command line looks at all."""
SHOWN = 3
SENDER = "tidings"
_ESCAPED = re.compile(r"\\([\\*_~|>#`\[\]<+-])")
_MOMENT = re.compile(r"<t:(\d+):([A-Za-z])>")


class RouteTrials:
    """Looks at what is stored; sends nothing."""

    def __init__(self, app: App) -> None:
        self._app = app

    def __call__(self, pipeline: str, query: str, days: int) -> RouteTrial:
        """Return how a route with a query would have done."""
        wiring = self._app.wiring
        declared = next((each for each in wiring.pipelines if each.name == pipeline), None)
        if declared is None:
            raise BadInput(f"there is no pipeline {pipeline!r}")
        # A route that is there already has words of its own.
        texts = next((each.texts for each in wiring.routes if each.pipeline == pipeline), NO_TEXTS)
        route = Route(pipeline, "trial", query, texts=texts)
        try:
            parse_route(route, vocabulary_of(wiring.pipelines, within=pipeline))
        except Misconfigured as error:
            raise BadInput(str(error).removeprefix("routes: the query of trial ")) from None
        now = self._app.store.now_ms()
        since = now - days * DAY_MS
        copies = islice(self._app.store.item_views.stored_copies(pipeline, since_ms=since), COPIES_MAX)
        found = backtest(copies, declared, route, since_ms=since, now_ms=now)
        return RouteTrial(
            considered=found.considered,
            announced=found.announced,
            sent=len(found.sent),
            a_day=round(len(found.sent) / found.days, 2),
            per_day=found.per_day,
            first=tuple(drawn(each.notice) for each in found.sent[:SHOWN]),
        )


def drawn(notice: Notice) -> DrawnMessage:
    """Draw a notice as Discord shows it."""
    message = discord.preview(discord.Settings(), notice)
    (embed,) = message["embeds"]
    color: Any = embed.get("color")
    return DrawnMessage(
        sender=message.get("username") or SENDER,
        title=_shown(embed["title"]),
        text=_shown(embed.get("description", "")),
        url=embed.get("url"),
        color=f"#{color:06x}" if color is not None else "",
        fields=tuple(DrawnField(_shown(f["name"]), _shown(f["value"]), f["inline"]) for f in embed.get("fields", [])),
        footer=embed["footer"]["text"],
    )


def _shown(text: str) -> str:
    """Show text as a reader sees it: escapes are gone, moments are told."""
    return _MOMENT.sub(_told, _ESCAPED.sub(r"\1", text)).replace("\u200b", "")


def _told(match: re.Match[str]) -> str:
    moment = datetime.fromtimestamp(int(match[1]), UTC)
    if match[2] == "R":
        days = round((moment - datetime.now(UTC)).total_seconds() / 86_400)
        return f"in {days} days" if days >= 0 else f"{-days} days ago"
    return f"{moment.day} {moment:%B %Y, %H:%M} UTC"
