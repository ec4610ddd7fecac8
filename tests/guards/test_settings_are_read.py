"""Whatever can be set or declared is read by something: a setting that changes nothing misleads whoever sets it."""

from __future__ import annotations

import ast
import dataclasses
import importlib
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import pytest
from pydantic import BaseModel
from tests.support.environment import ROOT

from tidings.config import notifier_modules, pipeline_modules, routes, tables
from tidings.model import backoff, pipeline, publication, workflow
from tidings.publish.notifiers import ChannelSettings

SOURCE = ROOT / "src" / "tidings"
# What variables that hold a declaration are called. A field counts as read if one of these is asked for it: the name
# alone proves nothing, since a worker, a workflow and a pipeline may each have their lease_seconds.
HOLDERS: dict[type, set[str]] = {
    workflow.Workflow: {"workflow", "w", "workflows"},
    workflow.Transition: {"transition", "t", "m", "first", "move", "ways"},
    pipeline.Pipeline: {"pipeline", "p", "declared", "pipelines"},
    pipeline.Schedule: {"schedule"},
    publication.Retention: {"rule"},
    publication.Collection: {"collection", "c", "collections"},
    backoff.RetryPolicy: {"retry"},
    tables.LaneSettings: {"lane"},
    tables.PipelineLane: {"lane"},
    tables.Ai: {"ai"},
    ChannelSettings: {"settings"},
    routes.RouteSettings: {"route", "r"},
    tables.Server: {"server", "parts"},
    tables.MirrorSettings: {"mirror"},
    tables.ReplicateSettings: {"replicate"},
    tables.Alerts: {"alerts"},
    tables.Stories: {"stories"},
    tables.Settings: {"settings"},
}
NOTIFIERS = SOURCE / "publish" / "notifiers"


@cache
def reads(folder: Path) -> set[tuple[str, str]]:
    """Return (who is asked, what for) of every attribute and key read there; `self` is its class, in small letters."""
    found: set[tuple[str, str]] = set()
    for file in folder.rglob("*.py"):
        if "config" not in file.relative_to(SOURCE).parts:
            found.update(_reads(ast.parse(file.read_text("utf-8")), "self"))
    return found


def _reads(node: ast.AST, me: str) -> Iterator[tuple[str, str]]:
    if isinstance(node, ast.ClassDef):
        me = node.name.lower()
    if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
        yield _name(node.value, me), node.attr
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
        yield _name(node.value, me), str(node.slice.value)
    for child in ast.iter_child_nodes(node):
        yield from _reads(child, me)


def _name(asked: ast.expr, me: str) -> str:
    while isinstance(asked, ast.Call | ast.Subscript):
        asked = asked.func if isinstance(asked, ast.Call) else asked.value
    name = asked.attr if isinstance(asked, ast.Attribute) else asked.id if isinstance(asked, ast.Name) else ""
    return me if name == "self" else name.lstrip("_")


def fields_of(kind: type) -> Iterable[str]:
    if issubclass(kind, BaseModel):
        return kind.model_fields
    return [field.name for field in dataclasses.fields(kind)]  # type: ignore[arg-type]


def unread(fields: Iterable[str], holders: set[str], folder: Path = SOURCE) -> list[str]:
    return [field for field in fields if not any((holder, field) in reads(folder) for holder in holders)]


@pytest.mark.parametrize("kind", HOLDERS, ids=lambda kind: kind.__name__)
def test_everything_that_can_be_declared_is_read(kind: type) -> None:
    assert unread(fields_of(kind), {*HOLDERS[kind], kind.__name__.lower()}) == []


@pytest.mark.parametrize("name", pipeline_modules())
def test_every_setting_of_a_pipeline_is_read_by_it(name: str) -> None:
    folder = SOURCE / "pipelines" / name
    modules = {pipeline_modules()[name], *(_module(name, file) for file in folder.glob("[a-z]*.py"))}
    kinds = {each for module in modules for each in vars(module).values() if _is_setting(each, name)}
    assert kinds
    for kind in kinds:
        holders = {"settings", "chosen", "each", "feed", kind.__name__.lower()}
        assert unread(fields_of(kind), holders, folder) == [], kind.__name__


@pytest.mark.parametrize("kind", notifier_modules())
def test_every_setting_of_a_notifier_is_read_by_it(kind: str) -> None:
    own = set(notifier_modules()[kind].Settings.model_fields) - set(ChannelSettings.model_fields)
    assert own
    assert unread(own, {"settings"}, NOTIFIERS) == []


def _module(name: str, file: Path) -> object:
    return importlib.import_module(f"tidings.pipelines.{name}.{file.stem}")


def _is_setting(value: object, name: str) -> bool:
    ours = isinstance(value, type) and issubclass(value, BaseModel)
    return ours and value.__module__.startswith(f"tidings.pipelines.{name}")


def test_the_tables_are_all_here() -> None:
    all_of_them = {each for each in vars(tables).values() if isinstance(each, type) and issubclass(each, BaseModel)}
    told = {kind for kind in HOLDERS if issubclass(kind, BaseModel)} - {ChannelSettings}
    kinds = (tables.LaneSettings, tables.PipelineLane)
    lanes = {tables.Lanes, tables.PipelineLanes, *(each for each in all_of_them if issubclass(each, kinds))}
    assert all_of_them - {BaseModel, tables.SettingsTable} - lanes == told - lanes


def test_a_field_that_only_others_have_counts_as_unread() -> None:
    assert unread(["lease_seconds"], {*HOLDERS[workflow.Workflow], "workflow"}) == ["lease_seconds"]
    assert unread(["lease_seconds"], HOLDERS[tables.Settings]) == []
