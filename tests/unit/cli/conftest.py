"""A home for the command line: an empty folder to start in, and an environment without settings."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, no_settings: None) -> Path:
    """The folder that commands are started in."""
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder
