"""Hacker News: every item through its declared life, to search and threads."""

from __future__ import annotations

from functools import partial
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from tidings.model.contracts import Kit, Probe
from tidings.model.durations import duration_seconds
from tidings.model.errors import Transient
from tidings.model.pipeline import Pipeline, Schedule
from tidings.net.client import raise_for_status
from tidings.pipelines.hacker_news.body import KIND, PIPELINE
from tidings.pipelines.hacker_news.cards import ITEMS, LISTS, present
from tidings.pipelines.hacker_news.client import LIST_NAMES, LISTINGS, Listing
from tidings.pipelines.hacker_news.source import FirebaseSource
from tidings.pipelines.hacker_news.upload import admit
from tidings.pipelines.hacker_news.users import RETENTION, USER, USERS, present_user, user_workflow
from tidings.pipelines.hacker_news.workflow import workflow


class Settings(BaseModel):
    """What may be set under `[pipelines.hacker_news]`."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)

    base_url: str = "https://hacker-news.firebaseio.com/v0"
    """The address of the Firebase API."""
    every: Annotated[float, BeforeValidator(duration_seconds)] = Field(
        default=60, ge=1, description="How often the API is asked."
    )
    streams: bool = True
    """Whether new and changed items are also heard of at once, by the API's streams."""
    concurrency: int = Field(default=16, ge=1, le=64, description="Requests at a time; the API takes one an item.")
    first_items: int = Field(default=500, ge=0, description="How far behind the newest item the first run starts.")
    items_per_run: int = Field(default=2_000, ge=1, le=50_000)
    """The most new items read in one run; the rest waits for the next."""
    list_size: int = Field(default=100, ge=0, le=500, description="How many ids of each list count, from its top.")
    thread_items: int = Field(default=500, ge=0, le=50_000, description="Older parents and kids read in one run.")
    rereads_per_run: int = Field(default=2_000, ge=0, le=50_000)
    """The most items read again in one run, for changes that passed unseen; the rest waits for the next."""
    listings: tuple[Listing, ...] = LISTINGS
    """The lists whose ids are read."""
    history_every: Annotated[float, BeforeValidator(duration_seconds)] = Field(
        default=300, ge=1, description="How far apart the points of an item's history are at least."
    )
    max_retries: int = Field(default=3, ge=1, le=20)
    """After so many failures an item is not tried again by itself."""
    retry_window_hours: float = Field(default=24, gt=0, le=24 * 365)
    """How long after its failure an item is tried again by itself."""
    retry_base_seconds: float = Field(
        default=60, gt=0, description="The wait before the first retry; each further is four times longer."
    )

    @model_validator(mode="after")
    def _first_retry_fits_the_window(self) -> Settings:
        if self.retry_base_seconds > self.retry_window_hours * 3600:
            raise ValueError("retry_base_seconds must not be longer than retry_window_hours")
        return self


def build(settings: Settings) -> Pipeline:
    """Declare the pipeline."""
    source = FirebaseSource(
        settings.base_url,
        Schedule(every_seconds=settings.every),
        streams=settings.streams,
        concurrency=settings.concurrency,
        first_items=settings.first_items,
        items_per_run=settings.items_per_run,
        list_size=settings.list_size,
        thread_items=settings.thread_items,
        rereads_per_run=settings.rereads_per_run,
        listings=settings.listings,
    )
    life = workflow(
        max_retries=settings.max_retries,
        retry_window_hours=settings.retry_window_hours,
        retry_base_seconds=settings.retry_base_seconds,
    )
    return Pipeline(
        name=PIPELINE,
        title="Hacker News",
        about="Stories, comments, jobs and polls of Hacker News, searchable and in threads.",
        workflows={KIND: life, USER: user_workflow()},
        sources=(source,),
        collections=(ITEMS, USERS),
        lists=tuple(LISTS[LIST_NAMES[listing]] for listing in settings.listings),
        track_seconds=settings.history_every,
        presenters={KIND: present, USER: present_user},
        retention=(RETENTION,),
        admit=admit,
    )


def probes(settings: Settings) -> dict[str, Probe]:
    """Return what asks for the newest id."""
    return {"hacker_news": partial(_newest_id, settings.base_url)}


async def _newest_id(base_url: str, kit: Kit) -> str:
    response = await kit.fetcher.call("GET", f"{base_url.rstrip('/')}/maxitem.json")
    raise_for_status(response, "Hacker News")
    if not response.body.strip().isdigit():
        raise Transient("Hacker News gives no newest id; is pipelines.hacker_news.base_url its API?")
    return f"the newest item is {int(response.body):,}"


def endpoints(settings: Settings) -> tuple[str, ...]:
    """Name the outside services this pipeline talks to."""
    return (settings.base_url,)
