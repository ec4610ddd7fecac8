"""EU funding: watches the Funding & Tenders portal and tells channels of new calls and moved deadlines."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any

import msgspec
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from tidings.model.durations import duration_seconds
from tidings.model.errors import BadInput
from tidings.model.item import Finding
from tidings.model.pipeline import Pipeline, Schedule
from tidings.model.publication import Retention
from tidings.pipelines.eu_funding.announcing import announce, notice_of
from tidings.pipelines.eu_funding.listing import parse_opportunities
from tidings.pipelines.eu_funding.opportunity import KIND, Opportunity, fingerprint_of
from tidings.pipelines.eu_funding.portal import key_of, parse_row
from tidings.pipelines.eu_funding.presentation import OPPORTUNITIES, present
from tidings.pipelines.eu_funding.source import Portal, Search
from tidings.pipelines.eu_funding.workflow import opportunity_workflow

__all__ = ["Settings", "build", "endpoints", "parse_opportunities"]

NAME = "eu_funding"


def _absolute(url: str) -> str:
    if not url.startswith(("https://", "http://")):
        raise ValueError("must be an absolute http or https address")
    return url.rstrip("/")


Address = Annotated[str, AfterValidator(_absolute)]


class Settings(BaseModel):
    """What an operator may set."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)

    base_url: Address = "https://api.tech.ec.europa.eu"
    """The portal's search service."""
    pages_url: Address = "https://ec.europa.eu/info/funding-tenders/opportunities"
    """Where topic details and the pages for people are."""
    api_key: str = "SEDIA"
    """Public and the same for everybody."""
    every: Annotated[float, BeforeValidator(duration_seconds)] = Field(default=7200, ge=60)
    """The time between two looks at the portal."""
    language: str = Field(default="en", pattern="^[a-z]{2}$")
    """The language calls are read in, as two letters."""
    pause_seconds: float = Field(default=1.0, ge=0, le=60)
    """The wait between two pages of a search."""
    walks_max: int = Field(default=5, ge=1, le=5)
    """How often a search is walked through, each time in another order, since its pages repeat and lose calls."""
    closed_pages: int = Field(default=2, ge=0, le=20)
    """How many pages of lately closed calls are read, to notice calls that close early."""
    seen_days: float = Field(default=90, gt=0)
    """How long a closed call is kept, and after that remembered so that it is not announced again."""
    queue_days: float = Field(default=7, gt=0)
    """How long a call may wait for its summary before it is given up, visibly."""
    summarize_attempts: int = Field(default=3, ge=1, le=20)
    """How often a summary is tried before the call is a dead letter."""
    announce_attempts: int = Field(default=5, ge=1, le=20)
    """How often a notice is tried before it is a dead letter."""
    announce_max_age_days: float = Field(default=7, ge=0)
    """What the first run finds is announced only if it is not older than this."""


def build(settings: Settings) -> Pipeline:
    """Declare the pipeline."""
    search = Search(settings.base_url, settings.api_key, settings.language, pause_seconds=settings.pause_seconds)
    portal = Portal(
        search,
        settings.pages_url,
        Schedule(every_seconds=settings.every),
        walks_max=settings.walks_max,
        closed_pages=settings.closed_pages,
    )
    workflow = opportunity_workflow(
        pages_url=settings.pages_url,
        summarize_attempts=settings.summarize_attempts,
        queue_days=settings.queue_days,
    )
    return Pipeline(
        name=NAME,
        title="EU funding",
        about="Calls of the EU Funding & Tenders portal: new ones, and deadlines that moved. © European Union.",
        workflows={KIND: workflow},
        sources=(portal,),
        collections=(OPPORTUNITIES,),
        presenters={KIND: present},
        announce={KIND: partial(announce, max_age_days=settings.announce_max_age_days)},
        announce_attempts=settings.announce_attempts,
        retention=(Retention(KIND, days=settings.seen_days, forget_days=settings.seen_days),),
        tombstone_days=settings.seen_days,
        admit=partial(_admit, pages_url=settings.pages_url),
        sample_notice=notice_of(SAMPLE, SAMPLE.found_at),
    )


def endpoints(settings: Settings) -> tuple[str, ...]:
    """Return the addresses the web client must be allowed to call."""
    return settings.base_url, settings.pages_url


def _admit(value: Any, *, way: str, pages_url: str) -> Finding:  # noqa: ARG001  # however it came
    """Take one search result, as the portal gives it, from an upload."""
    if not isinstance(value, dict):
        raise BadInput("an opportunity is a JSON object in the form of the portal's search results")
    found = parse_row(value, pages_url=pages_url, now_ms=0)
    return Finding(NAME, KIND, key_of(found), fingerprint_of(found), msgspec.json.encode(found))


SAMPLE = Opportunity(
    reference="00000000TOPICSen",
    identifier="SAMPLE-2027-HARBOUR-01",
    title="Quiet harbours: a sample notice from tidings",
    type="grant",
    status="open",
    url="https://ec.europa.eu/info/funding-tenders/opportunities/portal/screen/home",
    programme="HORIZON",
    programme_name="Horizon Europe",
    programme_code="43108390",
    action_type="HORIZON Innovation Actions",
    opening="2027-01-12T00:00:00Z",
    deadlines=("2027-09-21T15:00:00Z",),
    stage="single-stage",
    summary="If you can read this, the channel works. Real notices carry a summary of the call here.",
    found_at=1_800_000_000_000,
)
"""Invented: no such call exists."""
