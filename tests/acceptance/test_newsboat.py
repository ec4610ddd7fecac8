"""Newsboat in a terminal, against a running server: it lists what there is, reads it, and its marks are kept here."""

from __future__ import annotations

import os
import pty
import select
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.sample_server import Served
from tests.support.waiting import wait_until

from tidings.model.marks import DEFAULT_READER

CONFIG = """urls-source "feedhq"
feedhq-url "{url}"
feedhq-login "reader"
feedhq-password "{token}"
feedhq-min-items 200
feedhq-flag-star "s"
feedhq-show-special-feeds no
auto-reload no
confirm-exit no
show-read-feeds yes
show-read-articles yes
"""


@pytest.fixture(scope="module")
def newsboat() -> str:
    path = shutil.which("newsboat")
    if path is None:
        if os.environ.get("CI"):
            pytest.fail("newsboat is missing; in CI it must be there")
        pytest.skip("newsboat is not installed: apt-get install newsboat")
    return path


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with Served(tmp_path_factory.mktemp("newsboat")) as served:
        yield served


def prepare(folder: Path, served: Served) -> list[str]:
    """Write newsboat's configuration; return its options."""
    token = served.app.store.tokens.create(f"newsboat-{folder.name}", "reader")
    (folder / "config").write_text(CONFIG.format(url=served.url, token=token))
    (folder / "urls").write_text("")
    return ["-C", str(folder / "config"), "-u", str(folder / "urls"), "-c", str(folder / "cache.db")]


class Terminal:
    """A program that believes a person sits in front of it."""

    def __init__(self, *command: str) -> None:
        self.screen = b""
        self._pid, self._end = pty.fork()
        if self._pid == 0:
            os.environ |= {"TERM": "xterm", "LINES": "40", "COLUMNS": "120", "LANG": "C.UTF-8"}
            os.execv(command[0], command)  # the program under test

    def press(self, keys: str) -> None:
        os.write(self._end, keys.encode())

    def shows(self, *words: str, seconds: float = 60) -> bool:
        """Wait until the words were written to the screen."""
        ends_at = time.monotonic() + seconds
        while time.monotonic() < ends_at:
            if all(each.encode() in self.screen for each in words):
                return True
            if select.select([self._end], [], [], 0.1)[0]:
                self.screen += os.read(self._end, 65_536)
        return False

    def close(self) -> None:
        os.close(self._end)
        os.kill(self._pid, 9)
        os.waitpid(self._pid, 0)


def test_newsboat_fetches_what_is_unread(newsboat: str, served: Served, tmp_path: Path) -> None:
    options = prepare(tmp_path, served)
    ended = subprocess.run(
        [newsboat, *options, "-x", "reload", "print-unread"], capture_output=True, text=True, timeout=120, check=False
    )
    unread = int(ended.stdout.split()[0])
    assert ended.returncode == 0, ended.stderr
    assert unread > 50, ended.stdout


def test_what_newsboat_reads_and_stars_is_marked_here(newsboat: str, served: Served, tmp_path: Path) -> None:
    options = prepare(tmp_path, served)
    marks = served.app.store.marks
    # Reloaded first, without a screen: what is pressed in a terminal while it reloads may get lost.
    subprocess.run([newsboat, *options, "-x", "reload"], capture_output=True, timeout=120, check=True)
    terminal = Terminal(newsboat, *options)
    try:
        assert terminal.shows("Bitcoin news"), terminal.screen[-2000:]
        terminal.press("\r")
        assert terminal.shows("Articles in feed"), terminal.screen[-2000:]
        before = read_items(served)
        terminal.press("\r")
        assert terminal.shows("Open in Browser"), terminal.screen[-2000:]
        # It tells that an article was read when the article is closed.
        terminal.press("q")
        wait_until(lambda: len(read_items(served)) == len(before) + 1)
        terminal.press("\x05s\r")
        wait_until(lambda: len(marks.starred(DEFAULT_READER, 10)) == 1)
        [starred] = marks.starred(DEFAULT_READER, 10)
        assert starred in read_items(served)
        terminal.press("A")
        wait_until(lambda: marks.lines(DEFAULT_READER).get("bitcoin_news"))
    finally:
        terminal.close()


def read_items(served: Served) -> list[int]:
    """Return what is marked as read."""
    shown = list(range(1, 2_000))
    found = served.app.store.marks.of(DEFAULT_READER, shown)
    return [item for item, mark in found.items() if mark.read_at]
