"""Any RSS, Atom or JSON feed, from the configuration alone: found, read in full, summarized, searchable, announced."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import replace
from hashlib import blake2b
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, field_validator, model_validator

from tidings.model.durations import duration_seconds
from tidings.model.errors import BadInput, Misconfigured
from tidings.model.pipeline import Addressed, Pipeline, SourceKind
from tidings.model.publication import Retention
from tidings.model.source_definition import SourceDefinition, checked_definition
from tidings.model.urls import canonical_url, checked_address, public_host
from tidings.pipelines.feeds.body import KIND, PIPELINE
from tidings.pipelines.feeds.cards import ENTRIES, EXAMPLE, full_text, present
from tidings.pipelines.feeds.kinds import kinds
from tidings.pipelines.feeds.notices import announce, notice, renew
from tidings.pipelines.feeds.rhythm import Bounds
from tidings.pipelines.feeds.workflow import entry_workflow

FEEDS_MAX = 1_000
Seconds = Annotated[float, BeforeValidator(duration_seconds), Field(ge=60)]


class FeedSetting(BaseModel):
    """One feed to watch."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)

    url: str
    """The feed's address, or a site's that announces one."""
    kind: str = "feed"
    """What stands at the address; `feed` reads RSS, Atom and JSON Feed."""
    name: Annotated[str, Field(min_length=1, max_length=100)] | None = None
    """Its title; by default what it calls itself."""
    category: Annotated[str, Field(min_length=1, max_length=100)] | None = None
    """The folder it stands in, for people and other readers."""
    labels: list[str] = []
    """What routes and searches know its entries by: `label:sea`."""
    full_text: bool = True
    """Whether to read the page behind each entry."""
    interval: Seconds | None = None
    """A fixed time between two looks; by default the feed's own rhythm decides."""
    cron: str | None = None
    """Instead of an interval: when it is asked (UTC), such as `0 7 * * 1-5`."""
    include: str = ""
    """Only entries that this query finds; empty: all."""
    exclude: str = ""
    """No entries that this query finds."""
    priority: int = 1
    """0: before others, 1: as usual, 2: after them."""
    language: str | None = None
    """What its entries are written in, where the feed says nothing or something wrong."""
    announce_newer_than: Annotated[float, BeforeValidator(duration_seconds)] | None = None
    """Only entries younger than that are announced; by default three days."""
    options: dict[str, Any] = {}
    """What its kind wants to know besides."""

    def definition(self) -> SourceDefinition:
        """Return it in the form that the sources of the store have too."""
        said = {
            "address": self.url,
            "kind": self.kind,
            "title": self.name,
            "category": self.category,
            "labels": self.labels,
            "full_text": self.full_text,
            "interval": self.interval,
            "cron": self.cron,
            "include": self.include,
            "exclude": self.exclude,
            "priority": self.priority,
            "language": self.language,
            "announce_newer_than": self.announce_newer_than,
            "options": self.options,
        }
        return checked_definition({key: value for key, value in said.items() if value is not None})

    @field_validator("url")
    @classmethod
    def _is_an_address(cls, url: str) -> str:
        checked_address(url)
        return url.strip()


def _addressed(value: Any) -> Any:
    return {"url": value} if isinstance(value, str) else value


class Settings(BaseModel):
    """What can be set under [pipelines.feeds]."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)

    feeds: Annotated[list[Annotated[FeedSetting, BeforeValidator(_addressed)]], Field(max_length=FEEDS_MAX)] = []
    """The feeds: addresses, or tables with a url and what else is to be said of a feed."""
    interval: Seconds = 3600.0
    """The time between two looks while a feed's rhythm is unknown."""
    min_interval: Seconds = 900.0
    """The shortest time between two looks, however often a feed changes."""
    max_interval: Seconds = 86_400.0
    """The longest time between two looks, however quiet a feed is."""
    republish: bool = True
    """Whether the API, feeds and exports carry full texts. Off: only summaries; operators still read them."""
    keep_days: Annotated[float, Field(gt=0)] = 365
    """How long entries are kept."""

    @model_validator(mode="after")
    def _feeds_differ(self) -> Settings:
        addresses = [canonical_url(feed.url) for feed in self.feeds]
        if len(set(addresses)) != len(addresses):
            raise ValueError("a feed is named twice")
        return self

    @model_validator(mode="after")
    def _bounds_make_sense(self) -> Settings:
        if not self.min_interval <= self.interval <= self.max_interval:
            raise ValueError("min_interval, interval and max_interval must grow in this order")
        return self


def build(settings: Settings) -> Pipeline:
    """Declare the pipeline: one source per feed of the file, and whatever is added at run time."""
    declared = _declared(settings)
    names = source_names(settings.feeds)
    sources = (_source(declared, name, feed) for name, feed in zip(names, settings.feeds, strict=True))
    return replace(declared, sources=tuple(sources))


def _declared(settings: Settings) -> Pipeline:
    return Pipeline(
        name=PIPELINE,
        title="Feeds",
        about="Whatever your feeds bring: RSS, Atom or JSON, read in full and summarized.",
        workflows={KIND: entry_workflow()},
        source_kinds=source_kinds(settings),
        source_keys=lambda name: f"{name.removeprefix(f'{PIPELINE}.')}/",
        collections=(ENTRIES,),
        presenters={KIND: present},
        full_texts={KIND: full_text},
        republishes=settings.republish,
        announce={KIND: announce},
        renew={KIND: renew},
        retention=(Retention(KIND, days=settings.keep_days, forget_days=settings.keep_days + 365),),
        sample_notice=notice(EXAMPLE),
    )


def _source(declared: Pipeline, name: str, feed: FeedSetting) -> Addressed:
    try:
        return declared.source(name, feed.definition())
    except BadInput as error:
        raise Misconfigured(f"pipelines.{PIPELINE}.feeds: {public_host(feed.url)}: {error}") from None


def source_kinds(settings: Settings) -> tuple[SourceKind, ...]:
    """Return what can be watched, in the file and at run time alike."""

    def bounds_of(definition: SourceDefinition) -> Bounds:
        return Bounds(settings.interval, settings.min_interval, settings.max_interval, definition.interval)

    def name_of(definition: SourceDefinition) -> str:
        return _plain(definition.title or "") or _plain(public_host(definition.address)) or "feed"

    return kinds(bounds_of, name_of)


def source_names(feeds: list[FeedSetting]) -> list[str]:
    """Name each feed after what it is called, or its host; a second one of a name gets a mark of its address too.

    That is what a feed is called when it is first seen. The store keeps the name with the address from then on.
    """
    names: list[str] = []
    for feed in feeds:
        plain = _plain(feed.name or "") or _plain(public_host(feed.url)) or "feed"
        marked = f"{plain}-{blake2b(feed.url.encode(), digest_size=3).hexdigest()}"
        names.append(marked if plain in names else plain)
    return names


def _plain(name: str) -> str:
    letters = unicodedata.normalize("NFKD", name.replace("'", "")).encode("ascii", "ignore").decode()
    return re.sub(r"[^a-z0-9]+", "-", letters.lower()).strip("-")


def endpoints(settings: Settings) -> tuple[str, ...]:  # noqa: ARG001 - every pipeline has this face
    """Return nothing: feeds and pages are strangers', fetched as untrusted pages."""
    return ()


def advice(settings: Settings) -> list[str]:
    """Say what an operator could improve."""
    if settings.feeds:
        return []
    return ["feeds watches nothing yet: add addresses to pipelines.feeds.feeds"]
