"""What operators see and do, for the command line and the dashboard alike; synchronous, like the store."""

from __future__ import annotations

from typing import Protocol

from tidings.model.item_views import DeadGroup, DeliveryView, Event, ItemRow, ItemView, Replayed
from tidings.model.views import AlertView, ChannelView, Point, SourceView, StatusView


class StatusViews(Protocol):
    """How everything is doing: pipelines, sources, channels, alerts, and the history behind the charts."""

    def status(self) -> StatusView:
        """Return everything at a glance."""
        ...

    def sources(self) -> list[SourceView]:
        """Return every source and its health."""
        ...

    def channels(self) -> list[ChannelView]:
        """Return the channels and their limiters."""
        ...

    def alerts(self, *, all_of_them: bool = False) -> list[AlertView]:
        """Return the firing alerts, or the recent history too."""
        ...

    def points(self, series: str, *, since_ms: int) -> list[Point]:
        """Return a series of low-resolution history, such as `due:PIPELINE` or `settled:PIPELINE`."""
        ...


class ItemViews(Protocol):
    """Items as people see them, and what happened to them."""

    def items(
        self,
        *,
        pipeline: str | None = None,
        kind: str | None = None,
        state: str | None = None,
        standing: str | None = None,
        limit: int = 50,
        before: int | None = None,
    ) -> list[ItemRow]:
        """List items, newest first, with ids below `before`."""
        ...

    def item(self, item: int) -> ItemView | None:
        """Return one item, whole."""
        ...

    def find(self, pipeline: str, kind: str, key: str) -> ItemView | None:
        """Return one item, whole, by its name."""
        ...

    def deliveries(self, *, limit: int = 50, channel: str | None = None) -> list[DeliveryView]:
        """List notices, newest first."""
        ...

    def dead_letters(self) -> list[DeadGroup]:
        """Return dead letters grouped by cause."""
        ...

    def events(self, *, after: int, limit: int = 200) -> list[Event]:
        """Return what happened after an event id, oldest first; `after` -1 returns only the newest event."""
        ...


class ItemActions(Protocol):
    """What an operator does to items. Each raises BadInput where it is not possible."""

    def transition(self, item: int, name: str, *, actor: str, reason: str) -> None:
        """Perform a manual transition."""
        ...

    def replay(
        self, pipeline: str, *, state: str | None, query: str | None, actor: str, dry_run: bool, item: int | None = None
    ) -> Replayed:
        """Process items again from a state, where they came past it."""
        ...

    def revive(
        self, *, item: int | None = None, pipeline: str | None = None, cause: str | None = None, actor: str
    ) -> int:
        """Bring dead letters back: one, those of a cause, or all."""
        ...


class Burials(Protocol):
    """Dead letters forgotten for good."""

    def purge(self, *, item: int | None = None, pipeline: str | None = None, cause: str | None = None) -> int:
        """Bury dead letters; tombstones stay."""
        ...


class Switches(Protocol):
    """Pipelines, sources and channels that people stop, start and hurry. BadInput where there is no such part."""

    def pause(self, part: str, *, reason: str) -> None:
        """Stop a part without losing anything: `pipeline:P`, `source:S` or `channel:C`."""
        ...

    def resume(self, part: str) -> None:
        """Start it again."""
        ...

    def check_now(self, source: str) -> None:
        """Make a source due at once."""
        ...


class Tokens(Protocol):
    """Who may use the API: live tokens and their scopes."""

    def scope_of(self, token: str) -> str | None:
        """Return the scope of a live token, or None."""
        ...

    def reader_of(self, token: str) -> str | None:
        """Return whose marks a live token gives, where it names a reader."""
        ...

    def note_use(self, token: str) -> None:
        """Note that a token was used just now; within a minute only the first use is written."""
        ...

    def are_there(self) -> bool:
        """Tell whether any live token exists."""
        ...
