"""Writing cards, documents and the id index inside somebody else's transaction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from tidings.model.clock import DAY_MS, day_of
from tidings.model.item import Finding
from tidings.model.pipeline import Pipeline
from tidings.model.publication import Attribute, Document, IdIndex, Presentation
from tidings.model.words import spoken
from tidings.store.database import Batch, Preparing, Tx
from tidings.watch.logs import event

TITLE_CHARS_MAX = 1_000
TEXT_CHARS_MAX = 200_000
_encode = msgspec.json.Encoder(order="deterministic").encode


def shelf_key(pipeline: Pipeline, presentation: Presentation) -> str:
    """Return the stable key a card stands under."""
    return f"{pipeline.collection(presentation.collection).singular}:{presentation.id}"


@dataclass(frozen=True, slots=True)
class Showing:
    """Cards and documents of one pipeline, ready to be written."""

    pipeline: str
    cards: Batch
    documents: tuple[Batch, ...]
    gone: list[tuple[int]]
    unindexed: list[tuple[int]]


def prepare_presentations(
    ready: Preparing,
    pipeline: Pipeline,
    shown: Sequence[tuple[int, str, str, int, Presentation | None]],
    *,
    are_fresh: bool = False,
) -> Showing:
    """Make cards and documents ready; rows are (item, kind, key, revision, presentation).

    Of items that are fresh nothing was ever shown.
    """
    cards, gone, documents, unindexed = [], [], [], []
    for item, kind, key, revision, presentation in shown:
        if presentation is None:
            gone.append((item,))
            unindexed.append((item,))
            continue
        cards.append(_card(pipeline, item, revision, presentation))
        if presentation.document is None:
            unindexed.append((item,))
        else:
            documents.append((item, kind, key, presentation.document))
    return Showing(
        pipeline.name,
        ready.prepare("put_card", cards, is_fresh=are_fresh),
        _prepare_documents(ready, pipeline.name, documents, are_fresh),
        [] if are_fresh else gone,
        [] if are_fresh else unindexed,
    )


def write_presentations(tx: Tx, showing: Showing) -> int:
    """Write or withdraw cards and documents; return the writes."""
    version = bump(tx, showing.pipeline)
    _drop_documents(tx, showing.unindexed)
    for batch in showing.documents:
        tx.write(batch)
    written = tx.write(showing.cards, version=version)
    if showing.gone:
        written += len(tx.many("drop_card", showing.gone))
    count_writes(tx, showing.pipeline, written)
    return written


def put_presentations(
    tx: Tx, pipeline: Pipeline, shown: Sequence[tuple[int, str, str, int, Presentation | None]]
) -> int:
    """Write or withdraw cards and documents at once."""
    return write_presentations(tx, prepare_presentations(tx, pipeline, shown))


def _card(pipeline: Pipeline, item: int, revision: int, shown: Presentation) -> tuple[Any, ...]:
    key = shelf_key(pipeline, shown)
    return (item, pipeline.name, key, shown.collection, shown.sort, _encode(shown.card), revision, None)


def _prepare_documents(
    ready: Preparing, pipeline: str, documents: list[tuple[int, str, str, Document]], are_fresh: bool
) -> tuple[Batch, ...]:
    rows: list[tuple[Any, ...]] = []
    texts: list[tuple[Any, ...]] = []
    for item, kind, key, d in documents:
        attributes = _attributes(d.attributes)
        rows.append(
            (item, pipeline, kind, key, _bare(d.author), _bare(d.type), d.score, d.time_ms, _bare(d.url), attributes)
        )
        texts.append((item, clean(d.title), clean(d.text)))
    return prepare_documents(ready, rows, texts, are_fresh=are_fresh)


def prepare_documents(
    ready: Preparing, rows: Sequence[tuple[Any, ...]], texts: Sequence[tuple[Any, ...]], *, are_fresh: bool = False
) -> tuple[Batch, ...]:
    """Make documents ready as they are kept: attributes by id, and (id, title, text) beside them."""
    if not rows:
        return ()
    if ready.dialect == "sqlite":
        return (
            ready.prepare("put_text", texts, is_fresh=are_fresh),
            ready.prepare("put_document", rows, is_fresh=are_fresh),
        )
    said = [(spoken(h[:TITLE_CHARS_MAX]), spoken(t[:TEXT_CHARS_MAX])) for _, h, t in texts]
    whole = [(*row, *text[1:], *both) for row, text, both in zip(rows, texts, said, strict=True)]
    return (ready.prepare("put_document", whole, is_fresh=are_fresh),)


def _bare(text: str | None) -> str | None:
    return None if text is None else clean(text)


def _attributes(attributes: Mapping[str, Attribute]) -> str:
    encoded = _encode(attributes).decode()
    # PostgreSQL's JSON holds no NUL.
    return encoded if "\\u0000" not in encoded else _encode(_without_nul(attributes)).decode()


def _without_nul(value: Any) -> Any:
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, Mapping):
        return {_without_nul(name): _without_nul(each) for name, each in value.items()}
    return [_without_nul(each) for each in value] if isinstance(value, list | tuple) else value


def _drop_documents(tx: Tx, items: list[tuple[int]]) -> None:
    if not items:
        return
    dropped = tx.many("drop_document", items)
    if dropped and tx.dialect == "sqlite":
        tx.many("drop_text", dropped)


def drop_shown(tx: Tx, items: Sequence[int]) -> int:
    """Withdraw whatever readers see of items."""
    rows = [(item,) for item in items]
    dropped = tx.many("drop_card", rows)
    _drop_documents(tx, rows)
    for name in sorted({pipeline for _, pipeline in dropped}):
        bump(tx, name)
    return len(dropped)


def drop_expired(tx: Tx) -> int:
    """Remove the entries that have expired."""
    dropped = tx.all("drop_expired_entries")
    for name in sorted({pipeline for _, pipeline in dropped}):
        bump(tx, name)
    return len(dropped)


def put_first_cards(tx: Tx, pipeline: Pipeline, born: Sequence[tuple[int, Finding]]) -> None:
    """Show new items at once, and enter them in the id index, of which the merge is the only writer."""
    version = bump(tx, pipeline.name)
    cards = []
    entries: list[tuple[str, int]] = []
    # Of two findings of one item in the same merge, the later one counts.
    for item, finding in dict(born).items():
        shown = _first_presentation(pipeline, finding)
        if shown is not None:
            cards.append(_card(pipeline, item, 0, shown))
            entries.append((shown.id, shown.sort))
    written = tx.write(tx.prepare("put_card", cards), version=version)
    written += update_id_index(tx, pipeline, entries, version)
    count_writes(tx, pipeline.name, written)


def _first_presentation(pipeline: Pipeline, finding: Finding) -> Presentation | None:
    presenter = pipeline.first_cards.get(finding.kind)
    workflow = pipeline.workflows.get(finding.kind)
    if presenter is None or workflow is None:
        return None
    try:
        return presenter(finding.key, msgspec.json.decode(finding.payload, type=workflow.body or Any))
    except Exception as error:  # noqa: BLE001  # one finding must not stop the merge; its own attempt will tell
        event("no first card", pipeline=pipeline.name, key=finding.key, error=f"{type(error).__name__}: {error}")
        return None


def update_id_index(
    tx: Tx, pipeline: Pipeline, entries: Sequence[tuple[str, int]], version: int, *, are_known_kept: bool = False
) -> int:
    """Enter ids, newest first, within number and age; return 1 if the index was written.

    Where the known are kept, an id that is in the index stays where it stands.
    """
    index = pipeline.id_index
    if index is None:
        return 0
    now = tx.one("now")
    assert now is not None
    held, oldest = _held_ids(tx, pipeline, index), now[0] - index.days * DAY_MS
    merged = dict(entries) | held if are_known_kept else held | dict(entries)
    return _write_ids(tx, pipeline, index, {i: s for i, s in merged.items() if s >= oldest}, version, now[0])


def prune_id_index(tx: Tx, pipeline: Pipeline) -> None:
    """Take out the ids that have no card any more; the caller holds the merge's lock, as the index's one writer."""
    index = pipeline.id_index
    if index is None:
        return
    singular, held = pipeline.collection(index.collection).singular, _held_ids(tx, pipeline, index)
    found = tx.many("shelf_entries", [(pipeline.name, f"{singular}:{each}") for each in held])
    keys = {row[0] for row in found}
    kept = {each: sort for each, sort in held.items() if f"{singular}:{each}" in keys}
    if len(kept) < len(held):
        now = tx.one("now")
        assert now is not None
        _write_ids(tx, pipeline, index, kept, bump(tx, pipeline.name), now[0])


def _held_ids(tx: Tx, pipeline: Pipeline, index: IdIndex) -> dict[str, int]:
    row = tx.one("shelf_entry", pipeline=pipeline.name, key=f"index:{index.collection}")
    held = msgspec.json.decode(row[1]) if row else {"ids": [], "sorts": []}
    return dict(zip(held["ids"], held["sorts"], strict=True))


def _write_ids(tx: Tx, pipeline: Pipeline, index: IdIndex, ids: Mapping[str, int], version: int, now_ms: int) -> int:
    kept = sorted(((sort, each) for each, sort in ids.items()), reverse=True)[: index.newest]
    rows = tx.all(
        "put_entry",
        pipeline=pipeline.name,
        key=f"index:{index.collection}",
        collection="",
        sort=0,
        value=_encode({"ids": [each for _, each in kept], "sorts": [sort for sort, _ in kept]}),
        version=version,
        expires_at=now_ms + index.days * DAY_MS,
    )
    return len(rows)


def bump(tx: Tx, pipeline: str) -> int:
    """Raise the shelf's version, by which processes notice changes."""
    row = tx.one("bump_shelf_version", pipeline=pipeline)
    assert row is not None
    return int(row[0])


def count_writes(tx: Tx, pipeline: str, written: int) -> None:
    """Count shelf writes per day."""
    if not written:
        return
    now = tx.one("now")
    assert now is not None
    tx.run("count_budget", name=f"shelf_writes:{pipeline}", day=day_of(now[0]), amount=written)


def clean(text: str) -> str:
    """Drop what neither database's full text can hold."""
    if text.isascii() and "\0" not in text:
        return text
    return text.replace("\0", " ").encode("utf-8", "replace").decode("utf-8") if text else ""
