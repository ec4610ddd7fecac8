"""`tidings search`: everything published, by query."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from tidings.cli.options import ConfigOption, JsonOption
from tidings.cli.output import fail, moment, redact_lines, say, show_json
from tidings.cli.store import opened_search
from tidings.model.clock import SystemClock
from tidings.model.contracts import Found, Hit, SearchOrder
from tidings.model.errors import BadInput, SearchTooSlow
from tidings.model.query import Query, parse, point_at
from tidings.model.vocabulary import vocabulary_of
from tidings.serve.api.card_search import ORDERS, CardHit, join_cards
from tidings.serve.api.search import hit_values
from tidings.serve.gathered_shelf import GatheredShelf

HITS_MAX = 500


def search(
    query: Annotated[
        str, typer.Argument(metavar="QUERY", help='Such as: type:story by:pg score:>100 -word "a phrase".')
    ],
    config: ConfigOption = None,
    pipeline: Annotated[str | None, typer.Option(help="Only this pipeline.")] = None,
    order: Annotated[SearchOrder, typer.Option(help=f"What comes first: {', '.join(ORDERS)}.")] = "relevance",
    limit: Annotated[int, typer.Option(min=1, max=HITS_MAX, help="How many at most.")] = 20,
    explain: Annotated[bool, typer.Option("--explain", help="Say how each rank came about.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Search everything published."""
    with opened_search(config) as (index, store, pipelines):
        if pipeline is not None and pipeline not in pipelines:
            fail(f"there is no pipeline {pipeline!r}; known: {', '.join(pipelines)}")
        vocabulary = vocabulary_of(pipelines.values(), within=pipeline)
        try:
            parsed = parse(query, vocabulary, now_ms=SystemClock().now_ms())
            found = index.search(parsed.root, pipeline=pipeline, limit=limit, order=order, explain=explain)
        except BadInput as error:
            fail(point_at(query, error))
        except SearchTooSlow as error:
            fail(str(error))
        hits = join_cards(found.hits, GatheredShelf(store.shelf, pipelines), pipelines)
    if as_json:
        shown = [hit_values(each) for each in hits]
        show_json({"hits": shown, "total": found.total, "instead": found.instead, "warnings": parsed.warnings})
    else:
        _tell(parsed, found, hits)


def _tell(parsed: Query, found: Found, hits: list[CardHit]) -> None:
    for warning in parsed.warnings:
        sys.stderr.write(f"tidings: {redact_lines(warning)}\n")
    if found.instead is not None:
        say(f"showing results for {found.instead}")
    for each in hits:
        _tell_hit(each.hit)
    more = f"; --limit {min(found.total, HITS_MAX)} shows more" if len(found.hits) < min(found.total, HITS_MAX) else ""
    nothing = "nothing found; every word must be there, qualifiers look like type:story"
    say(f"{found.total:,} found{more}" if found.total else nothing)


def _tell_hit(hit: Hit) -> None:
    by = f" by {hit.author}" if hit.author else ""
    score = f", {hit.score} points" if hit.score is not None else ""
    say(f"{hit.title or hit.key}  [{hit.pipeline} {hit.kind} {hit.key}]\n  {moment(hit.time_ms)}{by}{score}")
    snippet = " ".join(hit.snippet.replace(chr(2), "").replace(chr(3), "").split())[:200]
    if snippet and snippet != hit.title:
        say(f"  {snippet}")
    if hit.explanation is not None:
        say("\n".join(f"    {line}" for line in hit.explanation.splitlines()))
