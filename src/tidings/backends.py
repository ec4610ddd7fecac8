"""What a server stands on: the parts of the process that it may use."""

from __future__ import annotations

from collections.abc import Iterator
from io import BytesIO
from typing import Any

from tidings import __version__
from tidings.app import App
from tidings.discover.upload import read_lines
from tidings.follow.search.index import SearchIndex
from tidings.serve.backend import Backend, ReadBackend
from tidings.serve.gathered_shelf import GatheredShelf
from tidings.serve.invitation import Invitation
from tidings.trials import RouteTrials


def backend_of(
    app: App,
    server: dict[str, Any],
    *,
    loopback: bool,
    is_demo: bool = False,
    invitation: Invitation | None = None,
) -> Backend:
    """Give the server what it stands on."""
    return Backend(
        pipelines=app.pipelines,
        executor=app.reader_circuit,
        shelf=GatheredShelf(app.store.shelf, app.pipelines),
        search=app.search,
        changes=app.store.changes,
        links=app.store.links,
        intake=app.store.intake,
        status_views=app.store.status_views,
        item_views=app.store.item_views,
        item_actions=app.store.operations,
        burials=app.store.retention,
        switches=app.store.switches,
        source_changes=app.store.source_edits,
        previews=app.previews,
        tokens=app.store.tokens,
        tracks=app.store.tracks,
        stories=app.store.stories if app.wiring.stories is not None else None,
        accepted=app.store.changes.accepted,
        marks=app.store.marks,
        wishes=app.store.wishes,
        parse_lines=_parse_lines,
        metrics=lambda: _metrics(app),
        ready=app.health.problems,
        standby_lag_seconds=app.health.standby_lag_seconds,
        wake=app.waker.wake_all,
        observe=app.metrics.observe_request,
        observe_answer=app.metrics.observe_answer,
        ledger=app.ledger,
        clock=app.clock,
        try_route=RouteTrials(app),
        is_demo=is_demo,
        loopback=loopback,
        invitation=invitation,
        hosts=frozenset(server["hosts"]),
        root_path=server["root_path"],
        cors_origins=frozenset(server["cors_origins"]),
        version=__version__,
    )


def health_backend_of(app: App, server: dict[str, Any], *, loopback: bool) -> ReadBackend:
    """Give a port for health and metrics what it stands on; it searches nothing, so no index is opened."""
    return ReadBackend(
        pipelines={},
        executor=app.executor,
        shelf=app.store.shelf,
        search=SearchIndex(None),
        links=app.store.links,
        tokens=app.store.tokens,
        metrics=lambda: _metrics(app),
        ready=app.health.problems,
        standby_lag_seconds=app.health.standby_lag_seconds,
        loopback=loopback,
        hosts=frozenset(server["hosts"]),
        version=__version__,
    )


def _parse_lines(body: bytes) -> Iterator[tuple[int, Any]]:
    return read_lines(BytesIO(body), gzip_allowed=False)


def _metrics(app: App) -> tuple[bytes, str]:
    """Tell what the store knows as of now; a process that only serves has no loop that would note it."""
    app.metrics.observe_status(app.store.status_views.status())
    return app.metrics.render()
