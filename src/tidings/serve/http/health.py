"""For machines that watch us: is the process alive, is it ready, and its metrics."""

from __future__ import annotations

import asyncio
from typing import Any

from tidings.model.errors import StoreUnavailable
from tidings.serve.backend import ReadBackend
from tidings.serve.http.operations import Call, Operation
from tidings.serve.http.problems import Problem
from tidings.serve.http.replies import Reply, answer

_READY: dict[str, Any] = {
    "type": "object",
    "properties": {
        "ready": {"type": "boolean"},
        "problems": {"type": "object", "additionalProperties": {"type": "string"}},
        "version": {"type": "string"},
        "standby": {"type": "object", "properties": {"lag_seconds": {"type": "number"}}, "required": ["lag_seconds"]},
    },
    "required": ["ready", "problems"],
}
_ALIVE: dict[str, Any] = {"type": "object", "properties": {"status": {"type": "string"}}, "required": ["status"]}


class Health:
    """Health, readiness, metrics."""

    def __init__(self, backend: ReadBackend) -> None:
        self._backend = backend

    def operations(self) -> list[Operation]:
        """Declare the routes."""
        return [
            Operation("GET", "/healthz", "public", self._alive, "Is the process alive?", answer=_ALIVE),
            Operation(
                "GET",
                "/readyz",
                "public",
                self._ready,
                "Is it ready: database, migrations, scheduler?",
                help="503 with the problems by part while it is not.",
                answer=_READY,
            ),
            Operation(
                "GET",
                "/metrics",
                "read",
                self._metrics,
                "Prometheus metrics",
                answer={"type": "string"},
                media_type="text/plain",
            ),
        ]

    async def _alive(self, _call: Call) -> Reply:
        return answer({"status": "alive"})

    async def _ready(self, _call: Call) -> Reply:
        try:
            # As every reader asks: a database that does not answer is told within a second, and then at once.
            problems = await self._backend.executor.read(self._backend.ready)
        except StoreUnavailable as error:
            problems = {"database": str(error)}
        if problems:
            document = {"ready": False, "problems": problems}
            raise Problem(503, "Not ready.", headers={"Retry-After": "5"}, extra=document)
        lag = await asyncio.to_thread(self._backend.standby_lag_seconds)
        standby = {} if lag is None else {"standby": {"lag_seconds": lag}}
        return answer({"ready": True, "problems": {}, "version": self._backend.version, **standby})

    async def _metrics(self, _call: Call) -> Reply:
        body, media_type = await asyncio.to_thread(self._backend.metrics)
        return Reply(body, media_type=media_type, tagged=False)
