"""Lanes and what pipelines may have of them, as configured."""

from __future__ import annotations

import dataclasses

from tidings.config import Settings
from tidings.model.errors import Misconfigured
from tidings.model.pipeline import Pipeline
from tidings.model.workflow import NOTIFY
from tidings.process.lanes import LANES, Lane
from tidings.process.shares import Share


def lanes_of(settings: Settings) -> dict[str, Lane]:
    """Return the lanes as configured."""
    return {name: dataclasses.replace(LANES[name], **getattr(settings.lanes, name).model_dump()) for name in LANES}


def shares_of(settings: Settings, pipelines: list[Pipeline]) -> dict[str, dict[str, Share]]:
    """Return what each pipeline may have of the lanes; refuse what its lanes cannot give."""
    lanes = lanes_of(settings)
    shares: dict[str, dict[str, Share]] = {}
    for pipeline in pipelines:
        table = settings.pipeline_lanes.get(pipeline.name)
        own = [t.lane for workflow in pipeline.workflows.values() for t in workflow.transitions]
        own += [NOTIFY] if pipeline.announce else []
        for name in table.model_fields_set if table is not None else ():
            place, lane = f"pipelines.{pipeline.name}.lanes.{name}", getattr(table, name)
            if name not in own:
                used = ", ".join(dict.fromkeys(own))
                raise Misconfigured(f"{place}: {pipeline.name} has no step in this lane; its lanes are {used}")
            share = Share(getattr(lane, "concurrency", None), lane.batch, lane.rate_per_minute)
            for key in ("concurrency", "batch"):
                wanted, most = getattr(share, key), getattr(lanes[name], key)
                if wanted is not None and wanted > most:
                    raise Misconfigured(
                        f"{place}.{key}: {wanted} is more than the {most} of the whole lane; raise lanes.{name}.{key}"
                    )
            shares.setdefault(pipeline.name, {})[name] = share
    return shares
