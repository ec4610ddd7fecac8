"""Installs the notifier of docs/your-own-notifier.md by following that page, and lets the real system use it."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from tests.support.environment import ROOT, clean_environment
from tests.support.packages import install_page

from tidings.model.clock import SystemClock
from tidings.sample.feeds import FeedSites
from tidings.sample.serving import StandIn

PAGE = ROOT / "docs" / "your-own-notifier.md"
TOKEN = "a-token-nobody-may-see"
TOKEN_VARIABLE = "TIDINGS_NOTIFIERS__BEEPER__OFFICE__TOKEN"


class BeeperStandIn:
    """The service: it takes messages from whoever has the token."""

    def __init__(self) -> None:
        self.messages: list[dict[str, Any]] = []
        self.app = Starlette(routes=[Route("/messages", self._answer, methods=["GET", "POST"])])

    async def _answer(self, request: Request) -> Response:
        if request.headers.get("authorization") != f"Bearer {TOKEN}":
            return JSONResponse({}, 401)
        if request.method == "POST":
            self.messages.append(await request.json())
        return JSONResponse({"count": len(self.messages)})


@dataclass(frozen=True, slots=True)
class Home:
    """A folder with a configuration, beside which the package of the page is installed."""

    folder: Path
    packages: Path
    environment: dict[str, str] = field(default_factory=dict)

    async def tidings(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        path = f"{ROOT / 'src'}:{self.packages}"
        given = clean_environment(self.folder / "tmp", **{"PYTHONPATH": path} | self.environment | environment)
        command = [sys.executable, "-m", "tidings", *arguments]
        return await asyncio.to_thread(
            subprocess.run, command, cwd=self.folder, env=given, capture_output=True, text=True, timeout=120
        )


@pytest.fixture
def home(tmp_path: Path) -> Home:
    packages, folder = tmp_path / "packages", tmp_path / "home"
    packages.mkdir()
    folder.mkdir()
    assert install_page(PAGE, packages) == {"beeper.py", "pyproject.toml", "tidings.toml"}
    return Home(folder, packages, {TOKEN_VARIABLE: TOKEN})


def configure(home: Home, sites: FeedSites, web: StandIn, beeper: StandIn) -> None:
    site = next(iter(sites.feeds.values()))
    text = (home.packages / "tidings.toml").read_text().replace("https://beeper.example", beeper.url)
    (home.folder / "tidings.toml").write_text(
        f'loopback_allowed = ["127.0.0.1:{web.port}"]\nobey_robots = false\n{text}\n'
        f'[pipelines.feeds]\nfeeds = [{{ url = "{web.url}/{site.host}{site.home_path}", full_text = false }}]\n'
    )


async def test_a_notifier_from_another_package_is_checked_drawn_and_used(home: Home) -> None:
    sites, service = FeedSites.from_package(SystemClock().now_ms), BeeperStandIn()
    async with StandIn(sites.app) as web, StandIn(service.app) as beeper:
        configure(home, sites, web, beeper)

        checked = json.loads((await home.tidings("doctor", "--json")).stdout)
        assert {"what": "beeper:office", "standing": "ok", "message": "it answers 200"} in checked["checks"]
        refused = await home.tidings("doctor", "--json", **{TOKEN_VARIABLE: "wrong"})
        assert ("beeper:office", "broken") in {(c["what"], c["standing"]) for c in json.loads(refused.stdout)["checks"]}

        drawn = json.loads((await home.tidings("notify", "preview", "--channel", "office")).stdout)
        assert (drawn["id"], set(drawn)) == ("preview", {"line", "text", "id"})
        assert service.messages == []

        found = await home.tidings("discover", "feeds")
        assert found.returncode == 0, found.stderr
        worked = await home.tidings("work", "--until-idle")
        assert worked.returncode == 0, worked.stderr
        titles = {entry.title for site in sites.feeds.values() for entry in site.entries}
        assert service.messages
        assert {message["line"] for message in service.messages} <= titles
        assert len({message["id"] for message in service.messages}) == len(service.messages)
        assert TOKEN not in found.stderr + worked.stderr


async def test_its_settings_are_checked_like_those_of_tidings_itself(home: Home) -> None:
    file = home.folder / "tidings.toml"
    file.write_text("[pipelines.feeds]\n[notifiers.beeper.office]\nurll = 'x'\n")
    assert (
        "notifiers.beeper.office.urll: there is no such setting; did you mean url?"
        in (await home.tidings("status")).stderr
    )
    file.write_text("[pipelines.feeds]\n[notifiers.beepr.office]\n")
    assert "notifiers.beepr: there is no such notifier; did you mean beeper?" in (await home.tidings("status")).stderr
    file.write_text(f"[pipelines.feeds]\n[notifiers.beeper.office]\ntoken = '{TOKEN}'\n")
    told = (await home.tidings("status")).stderr
    assert (TOKEN_VARIABLE in told, TOKEN in told) == (True, False)
    file.write_text("[pipelines.feeds]\n[notifiers.beeper.office]\n")
    missing = await Home(home.folder, home.packages).tidings("status")
    assert (missing.returncode, TOKEN_VARIABLE in missing.stderr) == (2, True)
