"""Finds the parts that packages bring: pipelines and notifiers, each declared once, as an entry point."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.metadata import EntryPoint, PackageNotFoundError, distribution, entry_points
from pathlib import Path
from types import ModuleType

PROJECT = Path(__file__).resolve().parents[3] / "pyproject.toml"
"""Where a source tree declares the entry points of tidings itself."""


def pipeline_modules() -> dict[str, ModuleType]:
    """Return every pipeline: a module with `Settings`, `build` and, if it calls addresses, `endpoints`."""
    return _modules("tidings.pipelines")


def notifier_modules() -> dict[str, ModuleType]:
    """Return every notifier: a module as `tidings.publish.notifiers` describes it."""
    return _modules("tidings.notifiers")


def _modules(group: str) -> dict[str, ModuleType]:
    """Load what is declared; where another package uses a name of ours, ours is meant."""
    points: dict[str, EntryPoint] = {}
    for point in (*_own(group), *entry_points(group=group)):
        points.setdefault(point.name, point)
    return {name: point.load() for name, point in points.items()}


@cache
def _own(group: str) -> tuple[EntryPoint, ...]:
    """Return what tidings itself declares.

    Installed, its metadata says so. A source tree on the path has no metadata: there the declaration is read where the
    metadata would be made from.
    """
    try:
        return tuple(distribution("tidings").entry_points.select(group=group))
    except PackageNotFoundError:
        declared = tomllib.loads(PROJECT.read_text("utf-8"))["project"]["entry-points"][group]
        return tuple(EntryPoint(name, module, group) for name, module in declared.items())
