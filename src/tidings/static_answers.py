"""The API's own answers as files: what a server over the mirror would say, asked of that server and kept."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from tidings.follow.mirrors.catalog import Catalog
from tidings.follow.mirrors.shelf import FixedCatalog
from tidings.follow.mirrors.target import Target
from tidings.mirror_reader import ThreadExecutor, read_backend
from tidings.model.errors import Misconfigured, Transient
from tidings.model.pipeline import Pipeline
from tidings.serve.http.operations import LIMIT_MAX
from tidings.serve.http.server import Application
from tidings.serve.read_only import build_reader

FEEDS = ("rss", "atom", "json")


@dataclass(frozen=True, slots=True)
class PublicPlace:
    """Where a static copy is read: feeds name themselves by it."""

    scheme: str = "http"
    host: str = "localhost"
    root: str = ""


class StaticAnswers:
    """Renders the lists and feeds of pipelines, as the API gives them."""

    def __init__(self, pipelines: Mapping[str, Pipeline], public_url: str = "") -> None:
        self._pipelines = pipelines
        self._place = _place(public_url) if public_url else PublicPlace()

    async def render(self, catalog: Catalog, target: Target) -> dict[str, bytes]:
        """Return the answers by path, of what a catalog that is about to be written lists."""
        pipeline = self._pipelines[catalog.pipeline]
        executor = ThreadExecutor()
        try:
            backend = read_backend(
                target,
                {pipeline.name: pipeline},
                executor,
                catalogs=FixedCatalog(catalog),
                hosts=frozenset({urlsplit(f"//{self._place.host}").hostname or ""}),
                root_path=self._place.root,
            )
            application = build_reader(backend, is_public=True)
            paths = _paths(pipeline)
            bodies = await asyncio.gather(*(self._ask(application, *address) for address in paths.values()))
            return dict(zip(paths, bodies, strict=True))
        finally:
            executor.close()

    async def _ask(self, application: Application, path: str, query: str) -> bytes:
        """Ask as a client would, without a connection between us."""
        messages: list[Any] = []

        async def receive() -> Any:
            return {"type": "http.request", "body": b"", "more_body": False}

        async def send(message: Any) -> None:
            messages.append(message)

        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": "GET",
            "scheme": self._place.scheme,
            "path": path,
            "raw_path": path.encode(),
            "query_string": query.encode(),
            "root_path": "",
            "headers": [(b"host", self._place.host.encode())],
            "client": ("127.0.0.1", 0),
            "server": ("127.0.0.1", 0),
        }
        await application(scope, receive, send)
        if messages[0]["status"] != 200:
            raise Transient(f"the answer for {path} could not be made ({messages[0]['status']})")
        return b"".join(message.get("body", b"") for message in messages[1:])


def _paths(pipeline: Pipeline) -> dict[str, tuple[str, str]]:
    """Return each file with the path and query it answers; a list holds as many cards as one answer may."""
    found: dict[str, tuple[str, str]] = {}
    for collection in pipeline.collections:
        path = f"/api/v1/{pipeline.name}/{collection.name}"
        found[f"{path.removeprefix('/')}.json"] = path, f"limit={LIMIT_MAX}"
    for form in FEEDS:
        found[f"feeds/{pipeline.name}.{form}"] = f"/feeds/{pipeline.name}.{form}", ""
    return found


def _place(public_url: str) -> PublicPlace:
    parts = urlsplit(public_url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise Misconfigured("public_url is where the copy is read, such as https://news.example")
    return PublicPlace(parts.scheme, parts.netloc, parts.path.rstrip("/"))
