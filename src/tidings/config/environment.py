"""The environment over the file: TIDINGS_A__B sets a.b, and TIDINGS_A__B_FILE names a file that holds the value."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tidings.config.mistakes import Origins, nearest
from tidings.config.tables import Settings
from tidings.model.errors import Misconfigured

PREFIX = "TIDINGS_"
NOT_SETTINGS = {
    "TIDINGS_CONFIG",
    "TIDINGS_CLOCK_OFFSET_MS",
    "TIDINGS_STORM",
    "TIDINGS_LOG_FORMAT",
    "TIDINGS_DEBUG",
    "TIDINGS_READ_FROM",
    "TIDINGS_READ_TOKEN",
}


def overlay(raw: dict[str, Any], environment: Mapping[str, str]) -> Origins:
    """Let the environment override, and say what it set where.

    TIDINGS_A__B=value sets a.b; TIDINGS_A__B_FILE=path reads it from a file.
    """
    origins: dict[tuple[str, ...], str] = {}
    for name in sorted(environment):
        if not name.startswith(PREFIX) or name in NOT_SETTINGS:
            continue
        path = name.removeprefix(PREFIX).lower().split("__")
        value: Any = environment[name]
        if path[-1].endswith("_file") and not _is_field(path):
            path[-1] = path[-1].removesuffix("_file")
            value = _read_secret_file(name, value)
        if len(path) == 1 and path[0] not in Settings.model_fields:
            raise Misconfigured(f"{name}: there is no such setting{nearest(path[0], Settings.model_fields)}")
        origins[_put(raw, path, _from_text(value), name)] = name
    return origins


def _put(table: dict[str, Any], path: list[str], value: Any, name: str) -> tuple[str, ...]:
    """Set a value below tables that are made as needed; return the keys as they are written."""
    written: list[str] = []
    for part in path[:-1]:
        written.append(_as_written(table, part))
        table = table.setdefault(written[-1], {})
        if not isinstance(table, dict):
            raise Misconfigured(f"{name}: {part} is not a table")
    written.append(_as_written(table, path[-1]))
    table[written[-1]] = value
    return tuple(written)


def _as_written(table: dict[str, Any], name: str) -> str:
    """Environment names have no case and no dashes: find the key they mean."""
    for key in table:
        if key.lower().replace("-", "_") == name:
            return key
    return name


def _is_field(path: list[str]) -> bool:
    return len(path) == 1 and path[0] in Settings.model_fields


def _from_text(value: str) -> Any:
    text = value.strip()
    if text[:1] in "[{" and text:
        try:
            return json.loads(text)
        except ValueError:
            return value
    return value


def _read_secret_file(name: str, path: str) -> str:
    try:
        mode = os.stat(path).st_mode
        if mode & stat.S_IROTH:
            raise Misconfigured(f"{name}: every user of this machine may read that file; chmod 600 it")
        return Path(path).read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError):
        raise Misconfigured(f"{name}: the file it names cannot be read as text") from None


def variable(path: str) -> str:
    """Name the environment variable that sets what stands at a path, such as `server.port`."""
    return PREFIX + path.replace(".", "__").replace("-", "_").upper()
