"""All there is to read of items, made harmless: for a card's full form, its page, feeds and exports."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
from markupsafe import Markup

from tidings.model.harmless import visible
from tidings.model.pipeline import Pipeline
from tidings.model.publication import FullText
from tidings.net.sanitizer import image_count, readable_html, without_images
from tidings.serve.backend import ReadBackend
from tidings.serve.http.operations import Parameter

IMAGES = Parameter(
    "images",
    "Whether full texts name images by their address; a reader that shows them asks the sites they are on.",
    "boolean",
    default=False,
)
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "text": {"type": "string", "description": "All there is to read, as plain text."},
        "content_html": {"type": "string", "description": "The same as HTML that does nothing: no scripts, no styles."},
    },
}
HELP = " `text` and `content_html` hold the full text, where it is known and may be republished."


@dataclass(frozen=True, slots=True)
class ReadableText:
    """A full text, ready to be shown."""

    text: str
    html: str
    images: int
    """How many images it has, whether they are shown or only described."""

    @property
    def markup(self) -> Markup:
        """The HTML, for a template."""
        return Markup(self.html)  # noqa: S704  # `readable` sanitized it


class FullTexts:
    """Reads full texts from the accepted bodies of items."""

    def __init__(self, backend: ReadBackend) -> None:
        self._backend = backend

    def are_given(self, pipeline: str, kind: str) -> bool:
        """Tell whether readers get the full texts of a kind."""
        declared = self._backend.pipelines[pipeline]
        return self._backend.accepted is not None and declared.republishes and kind in declared.full_texts

    async def read(
        self, pipeline: str, items: Sequence[int], *, images: bool, for_operator: bool = False
    ) -> Mapping[int, ReadableText]:
        """Return what is known of items and may be shown; the images only where they are wanted."""
        declared, accepted = self._backend.pipelines[pipeline], self._backend.accepted
        if accepted is None or not items or not declared.full_texts or not (declared.republishes or for_operator):
            return {}
        copies = await self._backend.executor.read(accepted, items)
        found = {item: full_text_of(declared, copy.kind, copy.body) for item, copy in copies.items()}
        return {item: readable(each, images=images) for item, each in found.items() if each is not None}


def full_text_of(pipeline: Pipeline, kind: str, body: bytes) -> FullText | None:
    """Return what a pipeline tells in full of an accepted body."""
    tell, workflow = pipeline.full_texts.get(kind), pipeline.workflows.get(kind)
    return tell(workflow.decode(body)) if tell is not None and workflow is not None else None


def readable(full: FullText, *, images: bool) -> ReadableText:
    """Make a full text harmless once more, whatever its pipeline did."""
    html = readable_html(visible(full.content_html))
    return ReadableText(visible(full.text), html if images else without_images(html), image_count(html))


def with_full_text(card: bytes, full: ReadableText) -> bytes:
    """Return an encoded card in its full form."""
    return card[:-1] + b"," + msgspec.json.encode({"text": full.text, "content_html": full.html})[1:]
