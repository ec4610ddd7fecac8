"""The Hacker News pipeline against the stand-in that misbehaves."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

from tests.support.engine import Engine
from tests.support.firebase import FirebaseApi
from tests.unit.serve.asgi import Client
from tidings.backends import backend_of
from tidings.model.views import RunView
from tidings.net.client import FetchLimits
from tidings.pipelines import hacker_news
from tidings.pipelines.hacker_news import Settings
from tidings.sample.serving import StandIn
from tidings.serve.application import build

SERVER: dict[str, Any] = {"hosts": [], "root_path": "", "cors_origins": []}
QUICK = FetchLimits(backoff_base_seconds=0.001, backoff_cap_seconds=0.01)


@asynccontextmanager
async def engine_on(database_url: str, api: FirebaseApi, **settings: Any) -> AsyncIterator[Engine]:
    async with StandIn(api.app) as server:
        values = {"base_url": f"{server.url}/v0", "first_items": 1_000, **settings}
        declared = hacker_news.build(Settings.model_validate(values))
        source = replace(declared.sources[0], item_seconds=2.0, silence_seconds=1.0)  # type: ignore[type-var]
        declared = replace(declared, sources=(source,))
        async with Engine(database_url, [declared], endpoints=[server.url], limits=QUICK) as engine:
            yield engine


async def ask(engine: Engine, **options: Any) -> RunView:
    (run,) = await engine.discover(options={name.rstrip("_"): value for name, value in options.items()})
    return run


def client_of(engine: Engine) -> Client:
    """Return someone on this machine who asks a server over the engine."""
    return Client(build(backend_of(engine.app, SERVER, loopback=True)))
