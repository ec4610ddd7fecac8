"""`tidings export`: everything published, as JSON lines or a table."""

from __future__ import annotations

import csv
import re
import sys
from collections.abc import Iterator, Sequence
from typing import Annotated, Any

import msgspec
import typer

from tidings.cli.options import ConfigOption, PipelineArgument
from tidings.cli.output import fail, while_read
from tidings.cli.store import opened_store
from tidings.model.changes import Copies
from tidings.model.contracts import Shelf
from tidings.model.pipeline import Pipeline
from tidings.model.publication import Collection
from tidings.serve.api.full_texts import ReadableText, full_text_of, readable, with_full_text
from tidings.serve.gathered_shelf import GatheredShelf

PAGE = 500
FORMULA = re.compile("[\\s\x00-\x1f\u200b\ufeff]*[=+@\uff0b\uff0d\uff1d\uff20-]|[\t\r]")
"""A spreadsheet would take a cell that begins so for a formula; some skip blanks, some know the wide forms too."""


def export(
    pipeline: Annotated[str, PipelineArgument],
    config: ConfigOption = None,
    form: Annotated[str, typer.Option("--format", metavar="jsonl|csv", help="How to write it.")] = "jsonl",
    collection: Annotated[str | None, typer.Option(help="Only this collection, such as articles.")] = None,
) -> None:
    """Write everything published to standard output, newest first."""
    if form not in ("jsonl", "csv"):
        fail(f"--format {form!r}: use jsonl or csv")
    with opened_store(config, reads=True) as (store, pipelines), while_read():
        if pipeline not in pipelines:
            fail(f"pipeline {pipeline!r} is not on; on are {', '.join(pipelines) or 'none'}")
        chosen = _chosen(pipelines[pipeline], collection)
        published = PublishedCards(GatheredShelf(store.shelf, pipelines), store.changes, pipelines[pipeline])
        if form == "csv":
            if len(chosen) > 1:
                fail(f"a table holds one collection; add --collection {' or '.join(c.name for c in chosen)}")
            _write_csv(published, chosen[0])
        else:
            _write_lines(published, chosen)


def _chosen(pipeline: Pipeline, name: str | None) -> list[Collection]:
    # What was announced and who wrote it is no content of its own; it is written only when asked for.
    chosen = [c for c in pipeline.collections if c.name == name or (name is None and c.is_searched)]
    if not chosen:
        fail(f"{pipeline.name} publishes no {name!r}; it has {', '.join(c.name for c in pipeline.collections)}")
    return chosen


class PublishedCards:
    """The cards of a pipeline in their full form."""

    def __init__(self, shelf: Shelf, copies: Copies, pipeline: Pipeline) -> None:
        self.pipeline = pipeline
        self._shelf = shelf
        self._copies = copies

    def of(self, collection: str) -> Iterator[bytes]:
        """Yield each card, encoded, the newest first."""
        after: tuple[int, str] | None = None
        while page := self._shelf.newest(self.pipeline.name, collection, limit=PAGE, after=after):
            full = self._full_texts([entry.item for entry in page if entry.item is not None])
            for each in page:
                yield with_full_text(each.value, full[each.item]) if each.item in full else each.value
            after = (page[-1].sort, page[-1].key)

    def _full_texts(self, items: Sequence[int]) -> dict[int | None, ReadableText]:
        """Read all there is to read of items, where the pipeline gives that away."""
        if not self.pipeline.republishes or not self.pipeline.full_texts or not items:
            return {}
        copies = self._copies.accepted(items)
        found = {item: full_text_of(self.pipeline, copy.kind, copy.body) for item, copy in copies.items()}
        return {item: readable(each, images=True) for item, each in found.items() if each is not None}


def _write_lines(published: PublishedCards, chosen: list[Collection]) -> None:
    for collection in chosen:
        # Where there are several, each line says which it belongs to.
        mark = b'{"collection":%s,' % msgspec.json.encode(collection.name) if len(chosen) > 1 else b"{"
        for card in published.of(collection.name):
            sys.stdout.buffer.write(mark + card[1:] + b"\n")
    sys.stdout.buffer.flush()


def _write_csv(published: PublishedCards, collection: Collection) -> None:
    columns = list(collection.card.__struct_fields__)
    if published.pipeline.republishes and collection.kind in published.pipeline.full_texts:
        columns += ["text", "content_html"]
    sys.stdout.reconfigure(encoding="utf-8", newline="")  # type: ignore[union-attr]
    table = csv.writer(sys.stdout)
    table.writerow(columns)
    for card in published.of(collection.name):
        values = msgspec.json.decode(card)
        table.writerow([_cell(values.get(column)) for column in columns])


def _cell(value: Any) -> Any:
    if isinstance(value, (dict, list)):
        return msgspec.json.encode(value).decode()
    if isinstance(value, str) and FORMULA.match(value):
        return f"'{value}"
    return value
