"""EU funding: watches the Funding & Tenders portal and tells channels of new calls and moved deadlines."""

from __future__ import annotations

from functools import partial
from typing import Annotated

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from tidings.model.durations import duration_seconds
from tidings.model.pipeline import Pipeline, Schedule
from tidings.model.publication import Retention
from tidings.model.urls import checked_address
from tidings.pipelines.eu_funding.body import KIND, PIPELINE
from tidings.pipelines.eu_funding.cards import OPPORTUNITIES, present
from tidings.pipelines.eu_funding.client import PortalSearch
from tidings.pipelines.eu_funding.notices import SAMPLE, announce, notice_of, renew
from tidings.pipelines.eu_funding.saved_page import parse_opportunities
from tidings.pipelines.eu_funding.source import Portal
from tidings.pipelines.eu_funding.upload import admit
from tidings.pipelines.eu_funding.workflow import opportunity_workflow

__all__ = ["Settings", "build", "endpoints", "parse_opportunities"]


WebAddress = Annotated[str, AfterValidator(checked_address)]


class Settings(BaseModel):
    """What an operator may set."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)

    base_url: WebAddress = "https://api.tech.ec.europa.eu"
    """The portal's search service."""
    pages_url: WebAddress = "https://ec.europa.eu/info/funding-tenders/opportunities"
    """Where topic details and the pages for people are."""
    api_key: str = "SEDIA"
    """Public, and the same for all users."""
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
    search = PortalSearch(settings.base_url, settings.api_key, settings.language, pause_seconds=settings.pause_seconds)
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
        name=PIPELINE,
        title="EU funding",
        about="Calls of the EU Funding & Tenders portal: new ones, and deadlines that moved. © European Union.",
        workflows={KIND: workflow},
        sources=(portal,),
        collections=(OPPORTUNITIES,),
        presenters={KIND: present},
        announce={KIND: partial(announce, max_age_days=settings.announce_max_age_days)},
        renew={KIND: renew},
        announce_attempts=settings.announce_attempts,
        retention=(Retention(KIND, days=settings.seen_days, forget_days=settings.seen_days),),
        tombstone_days=settings.seen_days,
        admit=partial(admit, pages_url=settings.pages_url),
        sample_notice=notice_of(SAMPLE, SAMPLE.found_at),
    )


def endpoints(settings: Settings) -> tuple[str, ...]:
    """Return the addresses the web client must be allowed to call."""
    return settings.base_url, settings.pages_url
