"""The store's faces in memory, as small as they can be: enough for the server's own tests."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from tidings.model.contracts import Hit, ShelfEntry, ThreadNode
from tidings.model.errors import BadInput, StoreUnavailable
from tidings.model.item import Appended, Finding
from tidings.model.publication import Document, Presentation
from tidings.model.query import Query, matches
from tidings.model.views import (
    AlertView,
    ChannelView,
    DeadGroup,
    DeliveryView,
    Event,
    IntakeView,
    ItemRow,
    ItemView,
    PipelineView,
    Point,
    Replayed,
    SourceView,
    StatusView,
)


class InlineExecutor:
    """Runs every call at once; refuses when told so."""

    def __init__(self) -> None:
        self.is_down = False
        self.reads = 0

    async def write(self, call: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        return self._run(call, *args, **kwargs)

    async def read(self, call: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        self.reads += 1
        return self._run(call, *args, **kwargs)

    def _run(self, call: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        if self.is_down:
            raise StoreUnavailable("the database does not answer")
        return call(*args, **kwargs)


class MemoryShelf:
    def __init__(self) -> None:
        self.entries: dict[str, dict[str, ShelfEntry]] = {}
        self.collections: dict[tuple[str, str], str] = {}
        self.versions: dict[str, int] = {}
        self.asked: list[str] = []

    def put(self, pipeline: str, key: str, value: Any, *, collection: str = "", sort: int = 0, at: int = 0) -> None:
        version = self.versions[pipeline] = self.versions.get(pipeline, 0) + 1
        raw = value if isinstance(value, bytes) else msgspec.json.encode(value)
        self.entries.setdefault(pipeline, {})[key] = ShelfEntry(key, raw, version, 1, sort, at)
        self.collections[pipeline, key] = collection

    def remove(self, pipeline: str, key: str) -> None:
        self.versions[pipeline] = self.versions.get(pipeline, 0) + 1
        del self.entries[pipeline][key]

    def get(self, pipeline: str, key: str) -> ShelfEntry | None:
        return self.entries.get(pipeline, {}).get(key)

    def get_many(self, pipeline: str, keys: Sequence[str]) -> dict[str, ShelfEntry]:
        entries = self.entries.get(pipeline, {})
        return {key: entries[key] for key in keys if key in entries}

    def newest(
        self, pipeline: str, collection: str, *, limit: int, after: tuple[int, str] | None = None
    ) -> list[ShelfEntry]:
        entries = [e for k, e in self.entries.get(pipeline, {}).items() if self.collections[pipeline, k] == collection]
        entries.sort(key=lambda entry: (entry.sort, entry.key), reverse=True)
        return [e for e in entries if after is None or (e.sort, e.key) < after][:limit]

    def count(self, pipeline: str, collection: str) -> int:
        return len(self.newest(pipeline, collection, limit=10**9))

    def version(self, pipeline: str) -> int:
        self.asked.append(pipeline)
        return self.versions.get(pipeline, 0)


class MemoryIndex:
    def __init__(self) -> None:
        self.documents: list[tuple[str, str, str, Document]] = []

    def search(
        self, query: Query, *, pipeline: str | None = None, limit: int = 50, offset: int = 0, newest: bool = False
    ) -> tuple[list[Hit], int]:
        found = [
            (name, kind, key, document)
            for name, kind, key, document in self.documents
            if pipeline in (None, name) and matches(query, document, name)
        ]
        found.sort(key=lambda each: each[3].time_ms, reverse=True)
        hits = [_hit(*each, query) for each in found[offset : offset + limit]]
        return hits, len(found)


def _hit(pipeline: str, kind: str, key: str, document: Document, query: Query) -> Hit:
    snippet = document.text[:200]
    for term in query.terms:
        if not term.negated:
            snippet = snippet.replace(term.text, f"\x02{term.text}\x03")
    return Hit(
        pipeline=pipeline,
        kind=kind,
        key=key,
        title=document.title,
        snippet=snippet,
        rank=1.0,
        author=document.author,
        type=document.type,
        score=document.score,
        time_ms=document.time_ms,
        url=document.url,
        attributes=document.attributes,
    )


class MemoryLinks:
    def __init__(self) -> None:
        self.below: dict[str, list[str]] = {}

    def thread(self, pipeline: str, relation: str, root: str, limit: int = 10_000) -> list[ThreadNode]:
        nodes: list[ThreadNode] = [ThreadNode(root, None, None, 0)]
        for node in nodes:
            for position, child in enumerate(self.below.get(node.ref, ())):
                nodes.append(ThreadNode(child, node.ref, position, node.depth + 1))
        return nodes[: limit + 1]

    def parents(self, pipeline: str, relation: str, child: str) -> list[str]:
        return [parent for parent, children in self.below.items() if child in children]

    def children(self, pipeline: str, relation: str, parent: str, limit: int = 1000) -> list[str]:
        return self.below.get(parent, [])[:limit]


class MemoryIntake:
    def __init__(self) -> None:
        self.known: dict[tuple[str, str, str], str] = {}
        self.appends = 0

    def append(self, pipeline: str, findings: Sequence[Finding], **_: Any) -> Appended:
        self.appends += 1
        total = Appended()
        for finding in findings:
            name = (pipeline, finding.kind, finding.key)
            before = self.known.get(name)
            self.known[name] = finding.fingerprint
            same, new = before == finding.fingerprint, before is None
            total += Appended(new=int(new), changed=int(not same and not new), unchanged=int(same))
        return total

    def merge(self, pipeline: str, limit: int = 500) -> Any:
        raise AssertionError("the server does not merge")

    def trim(self, pipeline: str) -> int:
        raise AssertionError("the server does not trim")

    def cursor(self, source: str) -> tuple[Any, Any, bool]:
        return None, None, False

    def unmerged(self, pipeline: str) -> int:
        return 0


class MemoryDesk:
    """Answers from lists the test fills; writes are noted in `acts`."""

    def __init__(self, tokens: dict[str, str] | None = None) -> None:
        self.tokens = tokens or {}
        self.acts: list[tuple[Any, ...]] = []
        self.used: list[str] = []
        self.views: dict[int, ItemView] = {}
        self.pipelines: dict[str, PipelineView] = {}
        self.dead: list[DeadGroup] = []
        self.firing: list[AlertView] = []
        self.source_views: list[SourceView] = []
        self.delivery_views: list[DeliveryView] = []
        self.channel_views: list[ChannelView] = []
        self.series: dict[str, list[Point]] = {}
        self.happened: list[Event] = []
        self.now_ms = 0

    def status(self) -> StatusView:
        paused = [f"channel:{view.name}" for view in self.channel_views if view.paused]
        paused += [f"pipeline:{name}" for name, view in self.pipelines.items() if view.paused]
        return StatusView(self.pipelines, self.firing, self.now_ms, paused)

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
        rows = sorted((view.item for view in self.views.values()), key=lambda row: -row.id)
        wanted = {"pipeline": pipeline, "kind": kind, "state": state, "standing": standing}
        chosen = [r for r in rows if all(v is None or getattr(r, k) == v for k, v in wanted.items())]
        return [row for row in chosen if before is None or row.id < before][:limit]

    def item(self, item: int) -> ItemView | None:
        return self.views.get(item)

    def find(self, pipeline: str, kind: str, key: str) -> ItemView | None:
        for view in self.views.values():
            if (view.item.pipeline, view.item.kind, view.item.key) == (pipeline, kind, key):
                return view
        return None

    def transition(self, item: int, name: str, *, actor: str, reason: str) -> ItemView:
        view = self.views[item]
        if name not in view.transitions:
            raise BadInput(f"{name} is not possible from {view.item.state}")
        self.acts.append(("transition", item, name, actor, reason))
        return view

    def replay(
        self, pipeline: str, *, state: str | None, query: str | None, actor: str, dry_run: bool, item: int | None = None
    ) -> Replayed:
        self.acts.append(("replay", pipeline, state, query, dry_run, item))
        return Replayed(3, 0)

    def dead_letters(self) -> list[DeadGroup]:
        return self.dead

    def revive(
        self, *, item: int | None = None, pipeline: str | None = None, cause: str | None = None, actor: str
    ) -> int:
        self.acts.append(("revive", item, pipeline, cause, actor))
        return 1

    def purge(self, *, item: int | None = None, pipeline: str | None = None, cause: str | None = None) -> int:
        self.acts.append(("purge", item, pipeline, cause))
        return 1

    def pause(self, part: str, *, reason: str) -> None:
        if part.endswith(":nowhere"):
            raise BadInput(f"there is no {part}")
        self.acts.append(("pause", part, reason))

    def resume(self, part: str) -> None:
        self.acts.append(("resume", part))

    def sources(self) -> list[SourceView]:
        return self.source_views

    def check_now(self, source: str) -> None:
        if source not in {view.name for view in self.source_views}:
            raise BadInput(f"there is no source {source}")
        self.acts.append(("check", source))

    def deliveries(self, *, limit: int = 50, channel: str | None = None) -> list[DeliveryView]:
        return [view for view in self.delivery_views if channel in (None, view.channel)][:limit]

    def channels(self) -> list[ChannelView]:
        return self.channel_views

    def alerts(self, *, all_of_them: bool = False) -> list[AlertView]:
        return [alert for alert in self.firing if all_of_them or alert.cleared_at is None]

    def points(self, series: str, *, since_ms: int) -> list[Point]:
        return [point for point in self.series.get(series, []) if point.at >= since_ms]

    def events(self, *, after: int, limit: int = 200) -> list[Event]:
        if after < 0:
            return self.happened[-1:]
        return [event for event in self.happened if event.id > after][:limit]

    def scope_of(self, token: str) -> str | None:
        return self.tokens.get(token)

    def use_token(self, token: str) -> None:
        self.used.append(token)

    def has_tokens(self) -> bool:
        return bool(self.tokens)


def present(
    shelf: MemoryShelf, index: MemoryIndex, pipeline: str, kind: str, singular: str, shown: Presentation
) -> None:
    """Put a presentation where the store would put it."""
    shelf.put(
        pipeline, f"{singular}:{shown.id}", shown.card, collection=shown.collection, sort=shown.sort, at=shown.sort
    )
    if shown.document is not None:
        index.documents.append((pipeline, kind, shown.id, shown.document))


def empty_pipeline_view() -> PipelineView:
    return PipelineView(states={}, intake=IntakeView(0, 0, 0))
