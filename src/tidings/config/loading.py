"""TOML, then the environment over it, then every check: what comes out are settings one can trust."""

from __future__ import annotations

import json
import math
import os
import re
import stat
import tomllib
from collections.abc import Iterator, Mapping
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType
from typing import Any, get_args

from pydantic import BaseModel, SecretStr

from tidings.config.mistakes import Origins, checked, nearest, refuse, tell
from tidings.config.tables import Settings
from tidings.model.errors import Misconfigured

PREFIX = "TIDINGS_"
NOT_SETTINGS = {"TIDINGS_CONFIG", "TIDINGS_CLOCK_OFFSET_MS", "TIDINGS_STORM", "TIDINGS_LOG_FORMAT", "TIDINGS_DEBUG"}
DEFAULT_FILE = "tidings.toml"
_OFF = ("false", "0", "no")


def load(file: Path | None = None, environment: Mapping[str, str] | None = None) -> Settings:
    """Read and check the configuration; raise Misconfigured naming every mistake."""
    environment = os.environ if environment is None else environment
    if file is None and environment.get("TIDINGS_CONFIG"):
        file = Path(environment["TIDINGS_CONFIG"])
    raw = read_toml(file)
    _refuse_odd_numbers(raw)
    refuse_secrets(raw)
    return check(raw, overlay(raw, environment))


def read_toml(file: Path | None) -> dict[str, Any]:
    """Read a TOML file; without a name, `tidings.toml` here, if there is one."""
    asked = file is not None
    file = file or Path(DEFAULT_FILE)
    try:
        return parse_toml(file.read_bytes().decode("utf-8"), str(file))
    except FileNotFoundError:
        if not asked:
            return {}
        raise Misconfigured(f"{file} does not exist; `tidings init` writes one") from None
    except OSError as error:
        raise Misconfigured(f"{file} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise Misconfigured(f"{file} is not UTF-8 text; save it as UTF-8") from None


def parse_toml(text: str, name: str) -> dict[str, Any]:
    """Parse TOML; a mistake is named with its line and the key there, never with a value: it may be a secret."""
    if text.startswith("\ufeff"):
        raise Misconfigured(f"{name} begins with a byte order mark; save it as UTF-8 without one")
    try:
        # The last line needs an end too, or a mistake in it is reported without its number.
        return tomllib.loads(f"{text}\n")
    except tomllib.TOMLDecodeError as error:
        line = re.search(r"at line (\d+)", str(error))
        key = text.split("\n")[int(line[1]) - 1].partition("=")[0].strip() if line else ""
        raise Misconfigured(f"{name} is not valid TOML: {error}{f', near {key[:60]}' if key else ''}") from None
    except RecursionError:
        raise Misconfigured(f"{name} is not valid TOML: it is nested too deeply") from None


def check(raw: dict[str, Any], origins: Origins | None = None) -> Settings:
    """Check raw values, pipelines by their own settings; raise Misconfigured naming every mistake."""
    origins = origins or {}
    settings, mistakes = checked(Settings, {**raw, "pipelines": {}}, (), origins)
    pipelines = raw.get("pipelines", {})
    if not isinstance(pipelines, dict):
        refuse([*mistakes, "pipelines: must hold one table per pipeline, such as [pipelines.hacker_news]"])
    known = pipeline_modules()
    chosen: dict[str, Any] = {}
    for name, values in pipelines.items():
        place = ("pipelines", name)
        if name not in known:
            mistakes.append(tell(place, f"there is no such pipeline{nearest(name, known)}", origins))
        elif not isinstance(values, dict):
            mistakes.append(tell(place, "must be a table", origins))
        else:
            own = {key: value for key, value in values.items() if key != "enabled"}
            chosen[name], wrong = checked(known[name].Settings, own, place, origins)
            mistakes += wrong
            if str(values.get("enabled", True)).lower() in _OFF:
                del chosen[name]
    refuse(mistakes)
    complete: Settings = settings.model_copy(update={"pipelines": chosen})
    return complete


def pipeline_modules() -> dict[str, ModuleType]:
    """Return every installed pipeline: our own and those other packages bring as entry points."""
    from tidings import pipelines

    found: dict[str, ModuleType] = {}
    for name in pipelines.BUILT_IN:
        found[name] = pipelines.load(name)
    for point in entry_points(group="tidings.pipelines"):
        if point.name not in found:
            found[point.name] = point.load()
    return found


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
            raise Misconfigured(f"{name}: everybody on this machine may read that file; chmod 600 it")
        return Path(path).read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError):
        raise Misconfigured(f"{name}: the file it names cannot be read as text") from None


def _refuse_odd_numbers(value: Any, place: str = "") -> None:
    if isinstance(value, float) and not math.isfinite(value):
        raise Misconfigured(f"{place}: {value} is no usable number")
    for name, inner in (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    ):
        _refuse_odd_numbers(inner, f"{place}.{name}" if place else str(name))


def refuse_secrets(raw: dict[str, Any]) -> None:
    """Refuse a secret in the file: it would be committed, copied and shown."""
    address = raw.get("database_url")
    if isinstance(address, str) and re.match(r"\w+://[^/@]*:[^/@]+@", address):
        raise Misconfigured(
            "database_url: a password does not belong in the file; set TIDINGS_DATABASE_URL or "
            "TIDINGS_DATABASE_URL_FILE instead"
        )
    models: dict[str, type[BaseModel]] = {"": Settings}
    models |= {f"pipelines.{name}": module.Settings for name, module in pipeline_modules().items()}
    for place, model in models.items():
        table: Any = raw
        for part in place.split(".") if place else []:
            table = table.get(part, {}) if isinstance(table, dict) else {}
        for path in _secret_paths(model, table, place):
            name = PREFIX + path.replace(".", "__").replace("-", "_").upper()
            raise Misconfigured(f"{path}: a secret does not belong in the file; set {name} or {name}_FILE instead")


def _secret_paths(model: type[BaseModel], table: Any, place: str) -> Iterator[str]:
    if not isinstance(table, dict):
        return
    for name, field in model.model_fields.items():
        if name not in table:
            continue
        here = f"{place}.{name}" if place else name
        types: list[Any] = [field.annotation, *get_args(field.annotation)]
        if SecretStr in types:
            yield here
        for inner in types:
            if not (isinstance(inner, type) and issubclass(inner, BaseModel)):
                continue
            values = table[name]
            if len(types) == 1:
                yield from _secret_paths(inner, values, here)
            elif isinstance(values, dict):
                for key, value in values.items():
                    yield from _secret_paths(inner, value, f"{here}.{key}")
