"""`tidings workflow`: draws what a pipeline declares."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tidings.cli.options import ConfigOption, PipelineArgument, wiring_of
from tidings.cli.output import fail
from tidings.config import pipeline_modules
from tidings.model.publication import DELIVERY
from tidings.model.workflow import Workflow
from tidings.parts import pipelines_of, send_nothing


def workflow(
    pipeline: Annotated[str, PipelineArgument],
    config: ConfigOption = None,
    form: Annotated[str, typer.Option("--format", metavar="text|mermaid", help="How to draw it.")] = "text",
    kind: Annotated[str | None, typer.Option(help="Only this kind.")] = None,
) -> None:
    """Draw the declared workflow of a pipeline. In brackets: processor + criterion."""
    if form not in ("text", "mermaid"):
        fail(f"--format {form!r}: use text or mermaid")
    declared = _declared(pipeline, config)
    drawn = [w for k, w in declared.items() if kind in (None, k) and (kind or k != DELIVERY)]
    if not drawn:
        fail(f"{pipeline} has no kind {kind!r}; it has {', '.join(declared)}")
    typer.echo("\n\n".join(w.draw_mermaid() if form == "mermaid" else w.draw_text() for w in drawn))


def _declared(pipeline: str, config: Path | None) -> dict[str, Workflow]:
    """Return a pipeline's workflows; one that is not on is drawn with its default settings."""
    on = pipelines_of(wiring_of(config), send_nothing)
    if pipeline in on:
        return dict(on[pipeline].workflows)
    modules = pipeline_modules()
    if pipeline not in modules:
        fail(f"there is no pipeline {pipeline!r}; known: {', '.join(modules)}")
    return dict(modules[pipeline].build(modules[pipeline].Settings()).workflows)
