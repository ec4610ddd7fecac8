"""Builds the pipeline of docs/your-own-pipeline.md by following that page, and runs it."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route as Path_
from tests.support.engine import Engine
from tests.support.environment import ROOT
from tests.support.packages import install_page

from tidings import config
from tidings.backends import backend_of
from tidings.model.errors import Misconfigured
from tidings.net.client import Web
from tidings.sample.serving import StandIn
from tidings.serve.application import build
from tidings.wiring import wiring_from

PAGE = ROOT / "docs" / "your-own-pipeline.md"
NAME = "harbor_notices"


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Write down every file of the page and install the package the way an installer would."""
    assert install_page(PAGE, tmp_path) == {
        *(f"{NAME}/{name}.py" for name in ("__init__", "body", "cards", "notices", "processors", "source", "workflow")),
        f"{NAME}/templates/notice_row.html",
        "pyproject.toml",
        "tidings.toml",
    }
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path
    for name in [name for name in sys.modules if name.partition(".")[0] == NAME]:
        del sys.modules[name]


class Office:
    """The harbor office's service."""

    def __init__(self) -> None:
        self.notices: list[Any] = [
            {
                "id": 1,
                "title": "North berth closed",
                "text": "Dredging until noon.",
                "berth": "north",
                "posted_ms": 1000,
            },
            {
                "id": 2,
                "title": "Fuel barge moved",
                "text": "It lies at pier 4 now.",
                "berth": "south",
                "posted_ms": 2000,
            },
            {"id": 3, "title": "Silence", "text": " ", "berth": "south", "posted_ms": 3000},
            {"id": 4, "title": "No text"},
        ]
        self.app = Starlette(routes=[Path_("/notices.json", self._serve)])

    async def _serve(self, request: Request) -> Response:
        return JSONResponse(self.notices)


async def test_the_page_builds_a_pipeline_that_works(installed: Path, database_url: str) -> None:
    office = Office()
    async with StandIn(office.app) as server:
        text = (installed / "tidings.toml").read_text()
        written = text.replace("https://harbor.example", server.url)
        (installed / "tidings.toml").write_text(f'database_url = "{database_url}"\n{written}')
        settings = config.load(installed / "tidings.toml", {})
        assert settings.pipelines[NAME].every == 600
        wiring = wiring_from(settings)
        engine = Engine(database_url, wiring.pipelines, endpoints=wiring.endpoints)
        async with engine:
            (run,) = await engine.discover()
            await engine.work_until_idle()
            assert (run.error, run.new, run.rejected) == (None, 3, 1)
            assert engine.states("notice") == {"published": 2, "found": 1}
            assert [row.key for row in engine.store.item_views.items(standing="rejected")] == ["3"]
            assert engine.card("notices", "1") == {
                "id": "1",
                "title": "North berth closed",
                "summary": "Dredging until noon.",
                "berth": "north",
                "is_urgent": True,
            }
            assert [hit.key for hit in engine.search("berth:north closed")] == ["1"]
            await engine.follow()
            served = {"hosts": [], "root_path": "", "cors_origins": []}
            application = build(backend_of(engine.app, served, loopback=True))
            async with StandIn(application) as reader, Web(user_agent="t/1", endpoints=[reader.url]) as web:
                listed = await web.call("GET", f"{reader.url}/api/v1/{NAME}/notices?berth=north&urgent=true")
                feed = await web.call("GET", f"{reader.url}/feeds/{NAME}.rss")
                described = await web.call("GET", f"{reader.url}/openapi.json")
                page = await web.call("GET", f"{reader.url}/pipelines/{NAME}/notices")
            assert [notice["id"] for notice in json.loads(listed.body)["notices"]] == ["1"]
            assert (feed.status, b"North berth closed" in feed.body) == (200, True)
            assert b'<span class="tag bad">closed</span> berth north' in page.body
            assert f"/api/v1/{NAME}/notices" in json.loads(described.body)["paths"]

            office.notices[0]["text"] = "Dredging until three."
            (run,) = await engine.discover()
            await engine.work_until_idle()
            assert (run.new, run.changed, run.unchanged) == (0, 1, 2)
            card = engine.card("notices", "1")
            assert card is not None
            assert card["summary"] == "Dredging until three."


def test_a_misspelled_setting_is_refused_with_the_nearest_name(installed: Path) -> None:
    file = installed / "tidings.toml"
    file.write_text(f'[pipelines.{NAME}]\nevrey = "10 min"\n')

    with pytest.raises(Misconfigured, match="every"):
        config.load(file, {})


def test_the_page_and_the_rooms_agree(installed: Path) -> None:
    allowed = (
        "tidings.model",
        "tidings.net",
        "tidings.watch",
        "tidings.discover",
        "tidings.process",
        "tidings.publish",
    )
    for file in (installed / NAME).glob("*.py"):
        for line in file.read_text().splitlines():
            if line.startswith(("from tidings", "import tidings")):
                assert line.split()[1].startswith(allowed), line
