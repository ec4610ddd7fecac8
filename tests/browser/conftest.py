"""A real Chromium in front of the whole sample world; anything its console complains of fails the test."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, sync_playwright
from tests.support.sample_server import Served

ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
NAMES = ("chromium", "chromium-browser", "google-chrome")


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with Served(tmp_path_factory.mktemp("browser"), works=True) as served:
        yield served


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    # While it is open an event loop runs in this thread, and no asynchronous test could start one: not for the session.
    path = next((found for name in NAMES if (found := shutil.which(name))), None)
    if path is None:
        if os.environ.get("CI"):
            pytest.fail("Chromium is missing; in CI it must be there")
        pytest.skip("no Chromium is installed")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=list(ARGUMENTS))
        yield browser
        browser.close()


class Watched:
    """A page whose complaints are kept: console errors, policy violations, uncaught exceptions."""

    def __init__(self, page: Page, base: str) -> None:
        self.page = page
        self._base = base
        self.complaints: list[str] = []
        page.on("console", self._hear)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))

    def _hear(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.complaints.append(f"{message.type}: {message.text}")

    def open(self, path: str) -> Page:
        """Go to a page of ours."""
        answer = self.page.goto(self._base + path, wait_until="domcontentloaded")
        assert answer is not None
        assert answer.status == 200, f"{path}: {answer.status}"
        return self.page


@pytest.fixture
def context(chromium: Browser) -> Iterator[BrowserContext]:
    context = chromium.new_context(viewport={"width": 1280, "height": 860})
    yield context
    context.close()


@pytest.fixture
def browser(context: BrowserContext, served: Served) -> Iterator[Watched]:
    watched = Watched(context.new_page(), served.url)
    yield watched
    assert watched.complaints == []
