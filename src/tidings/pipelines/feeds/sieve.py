"""What a source's owner wants of its entries: those that `include` finds, without those that `exclude` does."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import msgspec

from tidings.model.errors import BadInput
from tidings.model.item import Finding, Rejected
from tidings.model.pipeline import Pipeline
from tidings.model.query import Query, parse
from tidings.model.query_match import matches
from tidings.model.source_definition import SourceDefinition
from tidings.model.vocabulary import Vocabulary, vocabulary_of
from tidings.pipelines.feeds.body import KIND, PIPELINE, EntryBody
from tidings.pipelines.feeds.cards import ENTRIES, present
from tidings.pipelines.feeds.workflow import entry_workflow

_decode = msgspec.json.Decoder(EntryBody).decode


def check_sieve(definition: SourceDefinition, now_ms: int = 0) -> None:
    """Refuse queries that cannot be read, or ask for what no entry has."""
    for field, text in (("include", definition.include), ("exclude", definition.exclude)):
        if not text:
            continue
        try:
            query = parse(text, _vocabulary(), now_ms=now_ms)
        except BadInput as error:
            raise BadInput(f"{field}: {error}", position=error.position) from None
        for name in query.unknown_names:
            raise BadInput(f"{field}: entries have no {name!r}")


def sieved(
    findings: Sequence[Finding], definition: SourceDefinition, now_ms: int
) -> tuple[tuple[Finding, ...], tuple[Rejected, ...]]:
    """Return the wanted findings, and the others with the reason why each is kept out."""
    if not definition.include and not definition.exclude:
        return tuple(findings), ()
    include = parse(definition.include, _vocabulary(), now_ms=now_ms) if definition.include else None
    exclude = parse(definition.exclude, _vocabulary(), now_ms=now_ms) if definition.exclude else None
    wanted: list[Finding] = []
    others: list[Rejected] = []
    for line, finding in enumerate(findings, start=1):
        body = _decode(finding.payload)
        if include is not None and not _means(include, finding.key, body):
            others.append(Rejected(line, f"kept out, not included by {definition.include!r}: {body.title[:100]}"))
        elif exclude is not None and _means(exclude, finding.key, body):
            others.append(Rejected(line, f"kept out, excluded by {definition.exclude!r}: {body.title[:100]}"))
        else:
            wanted.append(finding)
    return tuple(wanted), tuple(others)


def told(kept_out: Sequence[Rejected], note: str | None) -> str | None:
    """Say how many were kept out, beside what else there is to say."""
    words = f"{len(kept_out)} kept out by include or exclude" if kept_out else None
    return "; ".join(part for part in (words, note) if part) or None


def _means(query: Query, key: str, body: EntryBody) -> bool:
    """Tell whether a query means an entry as its source reports it: its page is not read yet."""
    document = present(key, msgspec.structs.replace(body, text=body.feed_text)).document
    return document is not None and matches(query, document(), PIPELINE)


@cache
def _vocabulary() -> Vocabulary:
    entries = Pipeline(name=PIPELINE, title="", about="", workflows={KIND: entry_workflow()}, collections=(ENTRIES,))
    return vocabulary_of([entries])
