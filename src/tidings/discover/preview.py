"""Looks at a source once without keeping anything: what it would bring."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec

from tidings.model.contracts import Kit
from tidings.model.errors import TidingsError, Transient
from tidings.model.item import Finding
from tidings.model.pipeline import Pipeline, Run
from tidings.model.previews import Looked, Preview, PreviewEntry
from tidings.model.source_definition import SourceDefinition

ENTRIES_MAX = 10
FINDINGS_MAX = 10_000
SECONDS_MAX = 45.0
TEXT_CHARS_MAX = 300


async def look(pipeline: Pipeline, definition: SourceDefinition, kit: Kit) -> Looked:
    """Ask a source as it would be asked the first time; what goes wrong stands in the preview.

    Raise BadInput where the definition itself is wrong.
    """
    source = pipeline.source("", definition)
    preview = Preview(
        pipeline=pipeline.name, kind=definition.kind, address=definition.address, options=definition.options
    )
    run = Run(source.name, kit.clock.now_ms(), is_first=True)
    findings: list[Finding] = []
    notes: list[str] = []
    rejected = 0
    wait: float | None = None
    try:
        async with asyncio.timeout(SECONDS_MAX):
            async for page in source.pages(run, kit):
                findings += page.findings
                rejected += len(page.rejected)
                notes += [told for told in (page.note, page.incomplete) if told]
                wait = page.next_check_seconds or wait
                if len(findings) >= FINDINGS_MAX:
                    break
    except TimeoutError:
        return Looked(msgspec.structs.replace(preview, error=f"it did not answer within {SECONDS_MAX:g} s"))
    except TidingsError as error:
        asked = error.retry_after_seconds if isinstance(error, Transient) else None
        return Looked(msgspec.structs.replace(preview, error=str(error), next_look_seconds=asked))
    cards = [card for card in (_card(pipeline, finding) for finding in findings[:ENTRIES_MAX]) if card is not None]
    shown = msgspec.structs.replace(
        preview,
        title=next((str(card["feed_title"]) for card in cards if card.get("feed_title")), None),
        found=len(findings),
        entries=[_entry(card) for card in cards],
        rejected=rejected,
        note="; ".join(dict.fromkeys(notes)) or None,
        next_look_seconds=wait,
    )
    return Looked(shown, findings[0] if findings else None)


def _card(pipeline: Pipeline, finding: Finding) -> dict[str, Any] | None:
    """Draw a finding as readers would see it at once."""
    presenter, workflow = pipeline.presenters.get(finding.kind), pipeline.workflows.get(finding.kind)
    if presenter is None or workflow is None:
        return None
    presentation = presenter(finding.key, workflow.decode(finding.payload))
    card: dict[str, Any] = msgspec.to_builtins(presentation.card) if presentation is not None else {}
    return card


def _entry(card: dict[str, Any]) -> PreviewEntry:
    text = card.get("summary") or card.get("excerpt") or ""
    return PreviewEntry(
        title=str(card.get("title") or card.get("id") or "without a title"),
        url=card.get("url"),
        at=card.get("published_at") if card.get("date_given", True) else None,
        text=str(text)[:TEXT_CHARS_MAX],
    )
