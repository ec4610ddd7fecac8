"""How a query that is being typed may go on: known qualifiers and their values first, then words of the index."""

from __future__ import annotations

from tidings.model.query import LENGTH_MAX
from tidings.model.vocabulary import EVERYWHERE, Vocabulary
from tidings.serve.api.card_search import CardSearch
from tidings.serve.backend import Backend

SUGGESTIONS_MAX = 10
_QUALIFIERS_MAX = 4
_NAME_CHARS_MIN = 2


async def suggest(backend: Backend, search: CardSearch, text: str, pipeline: str | None, limit: int) -> list[str]:
    """Return whole queries: what was typed, with its last word completed."""
    typed = text[:LENGTH_MAX].replace("\0", " ")
    last = typed.split(" ")[-1]
    if not last.strip('-("'):
        return []
    named = _qualifiers(search.vocabulary(pipeline), typed, last)
    words = (
        []
        if ":" in last
        else await backend.executor.read(backend.search.suggest, typed, pipeline=pipeline, limit=limit)
    )
    return list(dict.fromkeys([*named, *words]))[:limit]


def _qualifiers(vocabulary: Vocabulary, typed: str, last: str) -> list[str]:
    """Complete the name of a qualifier, or the value of an enumeration."""
    bare = last.lstrip("-(")
    before = typed[: len(typed) - len(bare)]
    name, colon, value = bare.lower().partition(":")
    if colon:
        known = vocabulary.values.get(name, ())
        return [f"{before}{name}:{each}" for each in known if each.lower().startswith(value) and each.lower() != value]
    if len(name) < _NAME_CHARS_MIN:
        return []
    names = sorted(each for each in (EVERYWHERE | vocabulary.attributes) - vocabulary.absent if each.startswith(name))
    return [f"{before}{each}:" for each in names[:_QUALIFIERS_MAX]]
