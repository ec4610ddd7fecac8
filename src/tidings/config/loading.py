"""TOML, then the environment over it, then every check: what comes out are settings one can trust."""

from __future__ import annotations

import math
import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, get_args

from pydantic import BaseModel, SecretStr

from tidings.config.environment import PREFIX, overlay, variable
from tidings.config.mistakes import Origins, checked, nearest, refuse, tell
from tidings.config.plugins import notifier_modules, pipeline_modules
from tidings.config.tables import PipelineLanes, Settings
from tidings.model.errors import Misconfigured

DEFAULT_FILE = "tidings.toml"
_OF_EVERY_PIPELINE = ("enabled", "lanes")
_OFF = ("false", "0", "no")


def load(file: Path | None = None, environment: Mapping[str, str] | None = None) -> Settings:
    """Read and check the configuration; raise Misconfigured naming every mistake."""
    environment = os.environ if environment is None else environment
    if file is None and environment.get("TIDINGS_CONFIG"):
        file = Path(environment["TIDINGS_CONFIG"])
    raw = read_toml(file)
    _refuse_odd_numbers(raw)
    refuse_secrets(raw)
    tables = set(_table(raw, "pipelines"))
    origins = overlay(raw, environment)
    return check(raw, origins, _without_table(tables, origins))


def read_toml(file: Path | None) -> dict[str, Any]:
    """Read a TOML file; without a name, `tidings.toml` here, if there is one."""
    is_default = file is None
    file = file or Path(DEFAULT_FILE)
    try:
        return parse_toml(file.read_bytes().decode("utf-8"), str(file))
    except FileNotFoundError:
        if is_default:
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


def _without_table(tables: set[str], origins: Origins) -> dict[str, str]:
    """Return the pipelines that only the environment speaks of, each with its first variable.

    A secret that is set for every machine must not start a pipeline where nobody asked for it. A variable that holds
    a whole table as JSON does write the table.
    """
    if ("pipelines",) in origins:
        return {}
    found: dict[str, str] = {}
    for path, name in origins.items():
        if path[0] == "pipelines" and path[1] not in tables and path[:2] not in origins:
            found.setdefault(path[1], name)
    return found


def check(
    raw: dict[str, Any], origins: Origins | None = None, without_table: Mapping[str, str] | None = None
) -> Settings:
    """Check raw values, pipelines and channels by their own settings; raise Misconfigured naming every mistake."""
    origins, without_table = origins or {}, without_table or {}
    settings, mistakes = checked(Settings, {**raw, "pipelines": {}, "notifiers": {}}, (), origins)
    tables = raw.get("pipelines", {})
    pipelines = _check_pipelines(tables, origins, without_table, mistakes)
    lanes = _check_pipeline_lanes(tables, origins, mistakes)
    notifiers = _check_notifiers(raw.get("notifiers", {}), origins, mistakes)
    refuse(mistakes)
    complete: Settings = settings.completed(
        pipelines=pipelines,
        pipeline_lanes={name: lanes[name] for name in pipelines if name in lanes},
        notifiers=notifiers,
        disabled=frozenset(tables) - set(pipelines) - set(without_table),
        without_table=without_table,
    )
    return complete


def _check_pipelines(
    tables: Any, origins: Origins, without_table: Mapping[str, str], mistakes: list[str]
) -> dict[str, Any]:
    """Return the settings of the pipelines that are on; add what is wrong to `mistakes`."""
    if not isinstance(tables, dict):
        mistakes.append("pipelines: must hold one table per pipeline, such as [pipelines.hacker_news]")
        return {}
    modules = pipeline_modules()
    chosen: dict[str, Any] = {}
    for name, values in tables.items():
        place = ("pipelines", name)
        if name not in modules:
            mistakes.append(tell(place, f"there is no such pipeline{nearest(name, modules)}", origins))
        elif not isinstance(values, dict):
            mistakes.append(tell(place, "must be a table", origins))
        else:
            own = {key: value for key, value in values.items() if key not in _OF_EVERY_PIPELINE}
            settings, wrong = checked(modules[name].Settings, own, place, origins)
            if name in without_table:
                # It is off: what its table would need is not missing, only a wrong variable is a mistake.
                mistakes += [mistake for mistake in wrong if mistake.startswith(PREFIX)]
                continue
            mistakes += wrong
            if str(values.get("enabled", True)).lower() not in _OFF:
                chosen[name] = settings
    return chosen


def _check_pipeline_lanes(tables: Any, origins: Origins, mistakes: list[str]) -> dict[str, PipelineLanes]:
    """Return what pipelines may have of each lane; add what is wrong to `mistakes`."""
    found: dict[str, PipelineLanes] = {}
    for name, values in tables.items() if isinstance(tables, dict) else ():
        if isinstance(values, dict) and "lanes" in values:
            found[name], wrong = checked(PipelineLanes, values["lanes"], ("pipelines", name, "lanes"), origins)
            mistakes += wrong
    return found


def _check_notifiers(tables: Any, origins: Origins, mistakes: list[str]) -> dict[str, dict[str, Any]]:
    """Return the settings of the channels by notifier and name; add what is wrong to `mistakes`."""
    modules = notifier_modules()
    chosen: dict[str, dict[str, Any]] = {}
    for kind, channels in _inner(tables, ("notifiers",), origins, mistakes):
        if kind not in modules:
            mistakes.append(tell(("notifiers", kind), f"there is no such notifier{nearest(kind, modules)}", origins))
            continue
        for name, values in _inner(channels, ("notifiers", kind), origins, mistakes):
            place = ("notifiers", kind, name)
            chosen.setdefault(kind, {})[name], wrong = checked(modules[kind].Settings, values, place, origins)
            mistakes += wrong
    return chosen


def _inner(table: Any, place: tuple[str, ...], origins: Origins, mistakes: list[str]) -> list[tuple[str, Any]]:
    """Return what stands in a table; what is none is a mistake."""
    if isinstance(table, dict):
        return list(table.items())
    mistakes.append(tell(place, "write a table", origins))
    return []


def _refuse_odd_numbers(value: Any, place: str = "") -> None:
    if isinstance(value, float) and not math.isfinite(value):
        raise Misconfigured(f"{place}: {value} is no usable number")
    for name, inner in (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    ):
        _refuse_odd_numbers(inner, f"{place}.{name}" if place else str(name))


def refuse_secrets(raw: dict[str, Any]) -> None:
    """Refuse a secret in the file: it would be committed, copied and shown."""
    addresses = {"database_url": raw.get("database_url")}
    addresses |= {
        f"mirrors.{name}.url": _table(_table(raw, "mirrors"), name).get("url") for name in _table(raw, "mirrors")
    }
    for place, address in addresses.items():
        if isinstance(address, str) and re.match(r"[\w-]+://[^/@]*:[^/@]+@", address):
            name = variable(place)
            raise Misconfigured(f"{place}: a password does not belong in the file; set {name} or {name}_FILE instead")
    for place, model, table in _secret_tables(raw):
        for path in _secret_paths(model, table, place):
            name = variable(path)
            raise Misconfigured(f"{path}: a secret does not belong in the file; set {name} or {name}_FILE instead")


def _secret_tables(raw: dict[str, Any]) -> Iterator[tuple[str, type[BaseModel], Any]]:
    """Return the place, the model and the raw values of everything that may hold a secret."""
    yield "", Settings, raw
    for name, module in pipeline_modules().items():
        yield f"pipelines.{name}", module.Settings, _table(_table(raw, "pipelines"), name)
    for kind, module in notifier_modules().items():
        for name, values in _table(_table(raw, "notifiers"), kind).items():
            yield f"notifiers.{kind}.{name}", module.Settings, values


def _table(table: dict[str, Any], name: str) -> dict[str, Any]:
    inner = table.get(name)
    return inner if isinstance(inner, dict) else {}


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
