"""Tries an address in every way it could be read, so that a person sees what each would find."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import msgspec

from tidings.discover.json_list import ACCEPT as JSON_ACCEPT
from tidings.discover.json_list import BYTES_MAX
from tidings.discover.markup_tree import select, tree_of, words_of
from tidings.discover.presets import PRESETS
from tidings.discover.preview import look
from tidings.model.contracts import Kit
from tidings.model.errors import BadInput, TidingsError
from tidings.model.pipeline import Pipeline
from tidings.model.previews import Looked
from tidings.model.source_definition import SourceDefinition

DEPTH_MAX = 4
ENTRIES_MIN = 3
WORDS_MIN = 2
_NAMES = {
    "title": ("title", "name", "headline", "subject", "full_name"),
    "url": ("html_url", "url", "link", "permalink", "web_url", "href", "uri"),
    "id": ("id", "uuid", "guid", "key", "slug"),
    "text": ("content", "body", "description", "summary", "excerpt", "text"),
    "published": ("published_at", "published", "date", "created_at", "created", "pub_date", "timestamp", "updated_at"),
    "author": ("author", "author_name", "by", "user"),
    "tags": ("tags", "categories", "labels", "keywords"),
}
"""What services usually call a field, the likeliest first."""


class GuessedSelector(msgspec.Struct, frozen=True):
    """Which elements of a page look like its list; empty where none do."""

    items: str = ""


async def probe(pipeline: Pipeline, address: str, kit: Kit) -> list[Looked]:
    """Look at an address once with every kind that may fit, with options guessed; those that found most come first."""
    looks = [await look(pipeline, each, kit) for each in await _candidates(pipeline, address, kit)]
    return sorted(looks, key=lambda each: (bool(each.preview.error), each.preview.kind == "page"))


async def _candidates(pipeline: Pipeline, address: str, kit: Kit) -> list[SourceDefinition]:
    known = {each.name for each in pipeline.source_kinds}
    presets = [SourceDefinition(address=address, kind=each.kind) for each in PRESETS if _is_known(each.kind, address)]
    json, html = await _guesses(address, kit)
    found = [SourceDefinition(address=address, kind="feed"), *presets]
    if json is not None:
        found.append(SourceDefinition(address=address, kind="json", options=json))
    if html:
        found.append(SourceDefinition(address=address, kind="html", options={"items": html}))
    found += [SourceDefinition(address=address, kind=kind) for kind in ("sitemap", "page")]
    return [each for each in found if each.kind in known]


def _is_known(kind: str, address: str) -> bool:
    try:
        next(each for each in PRESETS if each.kind == kind).feed_address(address)
    except BadInput:
        return False
    return True


async def _guesses(address: str, kit: Kit) -> tuple[dict[str, str] | None, str]:
    """Return options for a JSON list and a selector for a list of a page, where the answer looks like one."""
    try:
        response = await kit.fetcher.page(address, accept=f"{JSON_ACCEPT}, text/html", max_bytes=BYTES_MAX)
        if response.body.lstrip()[:1] in (b"{", b"["):
            return guessed_options(msgspec.json.decode(response.body)), ""
        content_type = response.headers.get("content-type")
        guess = await kit.extractor.apart(GuessedSelector, guessed_selector, response.body, content_type)
    except (TidingsError, msgspec.DecodeError, RecursionError):
        return None, ""
    return None, guess.items


def guessed_options(answer: Any) -> dict[str, str] | None:
    """Return expressions for the first list of objects in an answer, by the names that fields usually have."""
    for path, entries in _lists(answer, "", 0):
        options = {"items": path or "@"}
        for field, names in _NAMES.items():
            name = next((each for each in names if any(entry.get(each) for entry in entries)), None)
            if name is not None:
                options[field] = name
        if "title" in options or "text" in options:
            return options
    return None


def _lists(value: Any, path: str, depth: int) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    if isinstance(value, list):
        if value and all(isinstance(each, dict) for each in value[:50]):
            yield path, value[:50]
    elif isinstance(value, dict) and depth < DEPTH_MAX:
        for name, each in value.items():
            if name.isidentifier() and name.isascii():
                yield from _lists(each, f"{path}.{name}" if path else name, depth + 1)


def guessed_selector(body: bytes, content_type: str | None) -> GuessedSelector:
    """Find what is repeated on a page with a link and some words in each; made to be called in a child process."""
    tree = tree_of(body, content_type)
    if tree is None:
        return GuessedSelector()
    counts: Counter[str] = Counter()
    for element in tree.iter("li", "article", "div", "tr", "section", "h2", "h3"):
        name = _selector_of(element)
        links = select(element, "a[href]") if name else []
        words = max((len(words_of(each).split()) for each in links[:5]), default=0)
        if words >= WORDS_MIN and len(links) <= 10:
            counts[name] += min(words, 12)
    repeated = [(score, name) for name, score in counts.items() if len(select(tree, name)) >= ENTRIES_MIN]
    return GuessedSelector(max(repeated)[1] if repeated else "")


def _selector_of(element: Any) -> str:
    """Name an element by its tag and first class; lists and articles need none."""
    classes = [
        each for each in (element.get("class") or "").split() if each.replace("-", "").replace("_", "").isalnum()
    ]
    if classes and not classes[0][0].isdigit():
        return f"{element.tag}.{classes[0]}"
    return str(element.tag) if element.tag == "article" else ""
