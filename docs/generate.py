"""Writes the pages that the code itself can write: run it after a change, and a test keeps them current.

One function per page; `PAGES` names where each goes.
"""

from __future__ import annotations

import asyncio
import re
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import typer
from prometheus_client import CollectorRegistry
from pydantic import BaseModel, SecretStr
from pydantic.fields import FieldInfo

from tidings.app import App
from tidings.backends import backend_of
from tidings.cli.commands import PANELS
from tidings.cli.help import shown_name
from tidings.cli.main import app
from tidings.config import Server, Settings, SettingsTable, check, notifier_modules, pipeline_modules
from tidings.config.tables import PipelineLane, WaitingPipelineLane
from tidings.model.durations import duration_seconds
from tidings.model.publication import DELIVERY
from tidings.model.workflow import Transition, Workflow
from tidings.publish.deliveries import delivery_workflow
from tidings.publish.sending import Sender
from tidings.serve.application import build
from tidings.serve.http.openapi import describe
from tidings.serve.http.server import Application
from tidings.watch.metrics import Metrics
from tidings.wiring import wiring_from

DOCS = Path(__file__).resolve().parent
NOTE = "<!-- Written by docs/generate.py (make docs); change the code, not this page. -->"


def cli_page() -> str:
    """Every command, grouped as `tidings --help` groups them."""
    root: Any = typer.main.get_command(app)
    lines = [NOTE, "# Commands", ""]
    lines += ["Exit code 0 is success, 1 a failed check, 2 bad input or configuration; the message goes to stderr.", ""]
    for panel, names in PANELS.items():
        lines += [f"## {panel}", ""]
        for name in names:
            lines += _command(f"tidings {name}", root.commands[name])
    return "\n".join(lines).rstrip() + "\n"


def _command(name: str, command: Any) -> Iterator[str]:
    inner = getattr(command, "commands", {})
    yield from (f"### {name}", "", _one_line(command.help), "")
    rows = [_parameter(each) for each in command.params if each.name != "help"]
    if rows and not inner:
        yield from ("| | |", "|---|---|", *rows, "")
    for word, below in inner.items():
        yield from _command(f"{name} {word}", below)


def _parameter(parameter: Any) -> str:
    is_argument = parameter.param_type_name == "argument"
    default = parameter.default
    shown = f" Default: `{default}`." if default not in (None, False, (), []) and not callable(default) else ""
    needed = " Required." if parameter.required and not is_argument else ""
    helped = getattr(parameter, "help", None) or ""
    return f"| `{_cell(shown_name(parameter))}` | {_cell(_one_line(helped))}{shown}{needed} |"


def settings_page() -> str:
    """Every setting with its default, the general ones first."""
    lines = [
        NOTE,
        "# Settings",
        "",
        "They stand in `tidings.toml`; the environment overrides them: `TIDINGS_SERVER__PORT` is `server.port`, and",
        "`TIDINGS_A__B_FILE` names a file that holds the value. Secrets come only from there. A length of time is a",
        "number of seconds or a text such as `30 s`, `15 min`, `12 h`, `7 days`. Unknown names are errors.",
        "",
    ]
    lines += _table("General", Settings, "")
    lines += ["## Notifiers", ""]
    for kind, module in sorted(notifier_modules().items()):
        lines += [f"### `[notifiers.{kind}.<name>]`", "", _one_line(module.Settings.__doc__), ""]
        lines += _rows(module.Settings, list(module.Settings.model_fields))
    lines += ["## Lanes of a pipeline", "", "### `[pipelines.<name>.lanes.<lane>]`", ""]
    lines += [_one_line(PipelineLane.__doc__), ""]
    lines += _rows(WaitingPipelineLane, list(WaitingPipelineLane.model_fields))
    for name, module in sorted(pipeline_modules().items()):
        lines += _table(f"Pipeline {name}", module.Settings, f"pipelines.{name}")
    return "\n".join(lines).rstrip() + "\n"


def _table(title: str, model: type[BaseModel], place: str) -> Iterator[str]:
    yield from (f"## {title}", "")
    if place:
        yield from (f"`[{place}]`; `enabled = false` switches the pipeline off.", "")
    parts = {name: _part(field) for name, field in model.model_fields.items()}
    plain = [name for name, part in parts.items() if part is None or not issubclass(part, SettingsTable)]
    yield from _rows(model, plain)
    for name, part in parts.items():
        if part is not None and issubclass(part, SettingsTable):
            yield from _section(part, name, model.model_fields[name])


def _section(part: type[BaseModel], place: str, field: FieldInfo) -> Iterator[str]:
    """Write one table of the file, and those inside it."""
    origin = get_origin(field.annotation)
    place = f"{place}.<name>" if origin is dict else place
    brackets = f"[[{place}]]" if origin is list else f"[{place}]"
    inner = {name: below for name, each in part.model_fields.items() if (below := _part(each)) is not None}
    if len(inner) < len(part.model_fields):
        yield from (f"### `{brackets}`", "", _one_line(part.__doc__), "")
        yield from _rows(part, [name for name in part.model_fields if name not in inner])
    for name, below in inner.items():
        yield from _section(below, f"{place}.{name}", part.model_fields[name])


def _rows(model: type[BaseModel], names: list[str]) -> Iterator[str]:
    yield from ("| setting | default | meaning |", "|---|---|---|")
    for name in names:
        field = model.model_fields[name]
        meaning = _one_line(field.description)
        yield f"| `{name}` | {_cell(_default(field))} | {_cell(meaning)}{_cell(_bounds(field))} |"
    yield ""


def _part(field: FieldInfo) -> type[BaseModel] | None:
    """Return the table a setting holds, if it holds one."""
    for candidate in (field.annotation, *get_args(field.annotation)):
        if isinstance(candidate, type) and issubclass(candidate, BaseModel):
            return candidate
    return None


def _default(field: FieldInfo) -> str:
    if SecretStr in (field.annotation, *get_args(field.annotation)):
        return "*secret*"
    if field.is_required():
        return "*required*"
    value: Any = list(field.default) if isinstance(field.default, tuple) else field.default
    if value in (None, "", [], {}):
        return "*none*"
    if isinstance(value, list) and len(value) > 3:
        return f"{len(value)} of them"
    if any(getattr(each, "func", None) is duration_seconds for each in field.metadata):
        return f"`{_duration(value)}`"
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


def _duration(seconds: float) -> str:
    """Write a length of time as people do."""
    for size, least, unit in ((86_400, 172_800, "days"), (3600, 3600, "h"), (60, 60, "min")):
        if seconds >= least and seconds % size == 0:
            return f"{seconds / size:g} {unit}"
    return f"{seconds:g} s"


def _bounds(field: FieldInfo) -> str:
    """Say which values are allowed, where not all are."""
    if get_origin(field.annotation) is Literal:
        return f" One of {', '.join(f'`{choice}`' for choice in get_args(field.annotation))}."
    words = {"gt": "above", "ge": "at least", "lt": "below", "le": "at most"}
    said = [
        f"{word} {getattr(limit, mark):g}"
        for limit in field.metadata
        for mark, word in words.items()
        if getattr(limit, mark, None) is not None
    ]
    return f" ({', '.join(said)})" if said else ""


def metrics_page() -> str:
    """Everything `/metrics` tells."""
    lines = [NOTE, "# Metrics", "", "What `/metrics` tells Prometheus. `deploy/` has alert rules and a dashboard.", ""]
    lines += ["| name | type | labels | meaning |", "|---|---|---|---|"]
    for collector in _collectors(Metrics("0").registry):
        (described,) = collector.describe()
        ending = "_total" if described.type == "counter" else ""
        labels = ", ".join(f"`{label}`" for label in collector._labelnames)
        lines.append(f"| `{described.name}{ending}` | {described.type} | {labels} | {described.documentation}. |")
    return "\n".join(lines) + "\n"


def _collectors(registry: CollectorRegistry) -> list[Any]:
    """Return the collectors; the registry shows their labels in no public way."""
    return sorted(registry._collector_to_names, key=lambda each: str(each.describe()[0].name))


def api_page() -> str:
    """Every operation of the document the server itself gives at `/openapi.json`."""
    with tempfile.TemporaryDirectory() as folder:
        document = asyncio.run(_document(f"sqlite:///{folder}/empty.db"))
    lines = [NOTE, "# API", "", document["info"]["description"], ""]
    lines += ["`/docs` on your server has the same with every field and examples, `/openapi.json` for programs.", ""]
    for tag in document["tags"]:
        rows = list(_operations(document["paths"], tag["name"]))
        lines += [f"## {tag['name']}", "", tag["description"], "", "| | scope | |", "|---|---|---|", *rows, ""]
    return "\n".join(lines).rstrip() + "\n"


async def _document(database_url: str) -> dict[str, Any]:
    settings = check({"database_url": database_url, "pipelines": {name: {} for name in sorted(pipeline_modules())}})
    async with App(wiring_from(settings)) as opened:
        backend = backend_of(opened, Server().model_dump(), loopback=True)
        application = build(backend)
        assert isinstance(application, Application)
        return describe(backend, application.operations)


def _operations(paths: dict[str, dict[str, Any]], tag: str) -> Iterator[str]:
    for path, methods in paths.items():
        for method, operation in methods.items():
            if tag not in operation["tags"]:
                continue
            asked = [f"`{each['name']}`" for each in operation.get("parameters", []) if each["in"] == "query"]
            takes = f" Takes {', '.join(asked)}." if asked else ""
            summary = re.sub(r"(?<=[\w)])$", ".", _cell(operation["summary"]))
            yield f"| `{method.upper()} {path}` | {operation['x-tidings-scope']} | {summary}{takes} |"


def states_page() -> str:
    """The workflows of all pipelines, drawn."""
    lines = [NOTE, "# States", ""]
    lines += [
        "The life of every kind of item, as declared; `tidings workflow PIPELINE` draws it by your configuration.",
        "Moves are made by tidings; those marked `[manual]` by a person, by a schedule, or when tries run out.",
        "In brackets stand the processor and, behind a plus, the criterion that must hold.",
        "",
    ]
    for name, module in sorted(pipeline_modules().items()):
        pipeline = module.build(module.Settings())
        lines += [f"## {name}", "", pipeline.about, ""]
        for kind, workflow in pipeline.workflows.items():
            lines += _workflow(f"{name}: {kind}", workflow)
    lines += [
        "## Deliveries",
        "",
        "Pipelines that announce something have a second kind of item: one notice to one channel.",
        "",
    ]
    lines += _workflow(DELIVERY, delivery_workflow(Sender.__call__))
    return "\n".join(lines).rstrip() + "\n"


def _workflow(title: str, workflow: Workflow) -> Iterator[str]:
    yield from (f"### {title}", "", "```mermaid", workflow.draw_mermaid(), "```", "")
    yield from ("| transition | from | to | tried | then |", "|---|---|---|---|---|")
    yield from (_transition(each) for each in workflow.transitions)
    yield ""


def _transition(move: Transition) -> str:
    source = ", ".join("any" if state == "*" else f"`{state}`" for state in move.sources)
    if move.trigger != "automatic":
        return f"| `{move.name}` | {source} | `{move.target}` | {move.trigger} | |"
    policy = move.retry
    window = f" within {policy.window_seconds / 3600:g} h" if policy.window_seconds else ""
    then = {"dead_letter": "dead letter", "park": "parked"}.get(policy.exhausted, f"`{policy.exhausted}`")
    return f"| `{move.name}` | {source} | `{move.target}` | {policy.attempts} ×{window} | {then} |"


def _one_line(text: str | None) -> str:
    return " ".join((text or "").split())


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


PAGES: dict[str, Callable[[], str]] = {
    "reference/cli.md": cli_page,
    "reference/settings.md": settings_page,
    "reference/metrics.md": metrics_page,
    "reference/api.md": api_page,
    "states.md": states_page,
}


def main() -> None:
    """Write every page."""
    for name, page in PAGES.items():
        file = DOCS / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(page(), encoding="utf-8")
        sys.stdout.write(f"wrote docs/{name}\n")


if __name__ == "__main__":
    main()
