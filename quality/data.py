"""Finds and reads the scoring data, which is not part of the repository."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parents[2] / "shared" / "data"
OWN = Path(__file__).resolve().parents[1] / "tests" / "guards" / "data"


class Missing(Exception):
    """A data set is not on this machine."""


def rows(name: str) -> list[dict[str, Any]]:
    """Read one set of JSON lines from the scoring data."""
    return read_lines(FOLDER / "quality" / name)


def own_rows(name: str) -> list[dict[str, Any]]:
    """Read one set of JSON lines that ships with the tests."""
    return read_lines(OWN / name)


def pages() -> list[tuple[str, bytes, str]]:
    """Return (address, HTML, main text as people see it) of the sample pages."""
    folder = FOLDER / "pages"
    try:
        truth = json.loads((folder / "ground-truth.json").read_text("utf-8"))
        return [
            (
                entry["url"],
                gzip.decompress((folder / "html" / f"{key}.html.gz").read_bytes()),
                entry["articleBody"] or "",
            )
            for key, entry in sorted(truth.items())
        ]
    except FileNotFoundError as error:
        raise missing(folder) from error


def read_lines(path: Path) -> list[dict[str, Any]]:
    try:
        return [json.loads(line) for line in path.read_text("utf-8").splitlines() if line.strip()]
    except FileNotFoundError as error:
        raise missing(path) from error


def missing(path: Path) -> Missing:
    return Missing(f"{path.name} is missing: put the scoring data into {FOLDER}, beside this checkout")
