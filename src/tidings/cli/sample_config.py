"""Writes a configuration beside a sample world's kept database, so that every other command can look at it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

HEAD = """\
# The sample world, kept by `tidings demo --keep`. Here `tidings status`, `items`, `search`, `explain`, `dead` and the
# other commands look at it. Its services lived on this machine while the demo ran; the addresses are theirs, so that
# nothing here ever asks the real ones. For the real thing: `tidings init` in a folder of its own.
"""


def write_config(file: Path, settings: Mapping[str, Any]) -> None:
    """Write what is needed to read the database. Keys, channels and the AI endpoint ended with the demo."""
    lines = [HEAD, f"database_url = {_toml(settings['database_url'])}"]
    for name, table in settings["pipelines"].items():
        lines.append(f"\n[pipelines.{name}]")
        lines += [f"{key} = {_toml(value)}" for key, value in table.items() if not key.endswith("_key")]
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _toml(value: Any) -> str:
    """Write a value; JSON's strings, numbers and booleans are TOML's."""
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{key} = {_toml(each)}" for key, each in value.items()) + " }"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_toml(each) for each in value) + "]"
    return json.dumps(value)
