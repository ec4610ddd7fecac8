"""What a person says of a source: its kind, its address, and how it is to be watched. The same for file and store."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from tidings.model.durations import duration_seconds
from tidings.model.errors import BadInput
from tidings.model.item import HIGH, LOW, NORMAL
from tidings.model.urls import checked_address

INTERVAL_SECONDS_MIN = 60.0

Label = Annotated[str, Meta(pattern=r"^[\w][\w.-]{0,39}$")]
Line = Annotated[str, Meta(min_length=1, max_length=100)]


class SourceDefinition(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """One source as it was asked for."""

    address: Annotated[str, Meta(max_length=2_000)]
    """Of a feed, of a site that announces one, or of whatever its kind reads."""
    kind: str = "feed"
    title: Line | None = None
    """By default what the source calls itself."""
    category: Line | None = None
    """The folder it stands in, for people and other readers."""
    labels: Annotated[tuple[Label, ...], Meta(max_length=20)] = ()
    """What routes and searches know its entries by: `label:sea`."""
    full_text: bool = True
    """Whether to read the page behind each entry."""
    interval: float | None = None
    """Seconds between two looks; by default the source's own rhythm decides."""
    cron: Annotated[str, Meta(max_length=100)] | None = None
    """Instead of an interval: when it is asked (UTC), such as `0 7 * * 1-5`."""
    include: Annotated[str, Meta(max_length=1_000)] = ""
    """Only entries that this query finds; empty: all."""
    exclude: Annotated[str, Meta(max_length=1_000)] = ""
    """No entries that this query finds."""
    priority: Annotated[int, Meta(ge=HIGH, le=LOW)] = NORMAL
    """0: before others, 1: as usual, 2: after them."""
    language: Annotated[str, Meta(pattern=r"^[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8})*$")] | None = None
    """What its entries are written in, where the source says nothing or something wrong."""
    announce_newer_than: float | None = None
    """Only entries younger than so many seconds are announced; by default three days."""
    options: dict[str, Any] = {}
    """What its kind wants to know besides, checked by the kind's own Struct."""


class NamedDefinition(msgspec.Struct, frozen=True, kw_only=True):
    """A source as it was asked for, under its name."""

    name: str
    pipeline: str
    origin: Literal["file", "store"]
    definition: SourceDefinition | None = None
    """None: a source that a pipeline declares by itself."""


def checked_definition(raw: Mapping[str, Any]) -> SourceDefinition:
    """Read what a person or a program says of a source; raise BadInput naming the field that is wrong."""
    values = dict(raw)
    if unknown := sorted(set(values) - set(SourceDefinition.__struct_fields__)):
        fields = ", ".join(SourceDefinition.__struct_fields__)
        raise BadInput(f"{unknown[0]}: a source has no such field; there are {fields}")
    if values.get("interval") is not None:
        values["interval"] = _interval(values["interval"])
    if values.get("announce_newer_than") is not None:
        values["announce_newer_than"] = _seconds("announce_newer_than", values["announce_newer_than"])
    if values.get("interval") is not None and values.get("cron") is not None:
        raise BadInput("cron: a source has either an interval or a cron expression")
    if isinstance(values.get("address"), str):
        values["address"] = values["address"].strip()
        try:
            checked_address(values["address"])
        except ValueError as error:
            raise BadInput(f"address: {error}") from None
    try:
        return msgspec.convert(values, SourceDefinition)
    except msgspec.ValidationError as error:
        raise BadInput(_told(error)) from None


def checked_options(options: type[msgspec.Struct], given: Mapping[str, Any]) -> Any:
    """Read what a kind wants to know besides; raise BadInput naming the option that is wrong."""
    if unknown := sorted(set(given) - set(options.__struct_fields__)):
        known = ", ".join(options.__struct_fields__) or "none"
        raise BadInput(f"options.{unknown[0]}: this kind of source has no such option; its options: {known}")
    try:
        return msgspec.convert(dict(given), options)
    except msgspec.ValidationError as error:
        raise BadInput(f"options: {_told(error)}") from None


def _seconds(field: str, value: object) -> float:
    try:
        return duration_seconds(value)
    except ValueError as error:
        raise BadInput(f"{field}: {error}") from None


def _interval(value: object) -> float:
    seconds = _seconds("interval", value)
    if seconds < INTERVAL_SECONDS_MIN:
        raise BadInput(f"interval: {seconds:g} s is too often; {INTERVAL_SECONDS_MIN:g} s is the least")
    return seconds


def _told(error: msgspec.ValidationError) -> str:
    """Say what is wrong with the field first, as in `title: Expected str, got int`."""
    what, _, where = str(error).partition(" - at ")
    field = where.strip("`").removeprefix("$").lstrip(".")
    return f"{field}: {what}" if field else what
