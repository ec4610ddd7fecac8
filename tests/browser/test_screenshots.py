"""The pictures of the documentation: taken in every run, kept where `make screenshots` asks for them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from playwright.sync_api import Browser, ViewportSize, expect
from tests.browser.conftest import Watched
from tests.browser.test_dashboard import longest_thread
from tests.support.sample_server import Served

pytestmark = pytest.mark.browser

SIZE = ViewportSize(width=1280, height=860)
BYTES_MIN, BYTES_MAX = 10_000, 400_000


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where the pictures go: away, unless they are wanted."""
    wanted = Path(os.environ.get("SCREENSHOTS") or tmp_path)
    wanted.mkdir(parents=True, exist_ok=True)
    return wanted


def test_pictures_can_be_taken(chromium: Browser, served: Served, folder: Path) -> None:
    context = chromium.new_context(viewport=SIZE, color_scheme="light", reduced_motion="reduce")
    watched = Watched(context.new_page(), served.url)
    thread = longest_thread(served)
    for name, path, landmark in (
        ("now", "/", "Pipelines"),
        ("thread", f"/pipelines/hacker_news/items/{thread['id']}", str(thread["title"])),
        ("workflow", "/workflows/hacker_news", "Hacker News"),
    ):
        page = watched.open(path)
        expect(page.get_by_text(landmark).first).to_be_visible()
        picture = folder / f"{name}.png"
        page.screenshot(path=picture)
        assert BYTES_MIN < picture.stat().st_size < BYTES_MAX
    context.close()
    assert watched.complaints == []
