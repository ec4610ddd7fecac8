"""How a query that is being typed may go on: known qualifiers and their values first, then words of the index."""

from __future__ import annotations

from tidings.model.query import LENGTH_MAX
from tidings.model.vocabulary import EVERYWHERE, TEXT_NAMES, Vocabulary
from tidings.serve.api.card_search import CardSearch

SUGGESTIONS_MAX = 10
_QUALIFIERS_MAX = 4
_NAME_CHARS_MIN = 2
_QUOTE = '"'


async def suggest(search: CardSearch, text: str, pipeline: str | None, limit: int) -> list[str]:
    """Return whole queries: what was typed, with its last word completed."""
    typed = text[:LENGTH_MAX].replace("\0", " ")
    if typed.count(_QUOTE) % 2:
        return await _inside_quotes(search, typed, pipeline, limit)
    last = typed.split(" ")[-1]
    if not last.strip('-("') or last.endswith(_QUOTE):
        return []
    named = _qualifiers(search.vocabulary(pipeline), typed, last)
    return list(dict.fromkeys([*named, *await _words(search, typed, last, pipeline, limit)]))[:limit]


async def _words(search: CardSearch, typed: str, last: str, pipeline: str | None, limit: int) -> list[str]:
    """Complete the last word by those of the index; behind `title:` and `text:` only that word."""
    name, colon, value = last.rpartition(":")
    if not colon:
        return await search.suggest(typed, pipeline, limit)
    if not value or name.lstrip("-(").lower() not in TEXT_NAMES:
        return []
    before = typed[: len(typed) - len(value)]
    return [f"{before}{each}" for each in await search.suggest(value, pipeline, limit) if " " not in each]


async def _inside_quotes(search: CardSearch, typed: str, pipeline: str | None, limit: int) -> list[str]:
    """Complete the last word of a phrase, and close it; the value of an enumeration may be quoted too."""
    before, _, phrase = typed.rpartition(_QUOTE)
    name = before.split(" ")[-1].lstrip("-(").lower().removesuffix(":") if before.endswith(":") else ""
    if name and name not in TEXT_NAMES:
        known = search.vocabulary(pipeline).values.get(name, ())
        return [f"{before}{_QUOTE}{each}{_QUOTE}" for each in known if each.lower().startswith(phrase.lower())][:limit]
    if not phrase or phrase.endswith(" "):
        return []
    found = await search.suggest(phrase, pipeline, limit)
    # Titles are whole queries of their own, not how the phrase goes on.
    return [f"{before}{_QUOTE}{each}{_QUOTE}" for each in found if each.startswith(phrase)]


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
