"""A hit as readers see it."""

from __future__ import annotations

import tantivy

from tidings.follow.search.entry import SearchEntry, decode
from tidings.follow.search.pages import Ranked, freshness_weight
from tidings.follow.search.passages import Wanted, beginning, marked, passage, wanted
from tidings.follow.search.queries import word_parts
from tidings.follow.search.schema import score_weight
from tidings.model.contracts import Hit
from tidings.model.publication import Document
from tidings.model.query_tree import Part, Words
from tidings.model.words import forms, stem, tokens


def hit_of(searcher: tantivy.Searcher, ranked: Ranked, root: Part, now_ms: int, *, explain: bool = False) -> Hit:
    """Read a hit, with the best passage of each field."""
    entry = decode(searcher.doc(ranked.place)["entry"][0])
    document = entry.document
    parts = word_parts(root)
    passages = _passages(document, parts)
    return Hit(
        pipeline=entry.pipeline,
        kind=entry.kind,
        key=entry.key,
        title=document.title,
        # A hit found by its author or a mark has no passage, so it shows how its text begins.
        snippet=passages.get("text") or passages.get("title") or beginning(document.text),
        rank=ranked.rank,
        author=document.author,
        type=document.type,
        score=document.score,
        time_ms=document.time_ms,
        url=document.url,
        attributes=document.attributes,
        shelf_key=entry.shelf_key,
        item=entry.item,
        passages=passages,
        explanation=_explanation(entry, ranked.rank, parts, now_ms) if explain else None,
    )


def _passages(document: Document, parts: list[Words]) -> dict[str, str]:
    found = {
        "title": marked(document.title, _wanted(parts, "title", document)),
        "text": passage(document.text, _wanted(parts, "text", document)),
    }
    return {field: text for field, text in found.items() if text is not None}


def _wanted(parts: list[Words], field: str, document: Document) -> Wanted:
    return wanted(tuple(parts), field, document.language)


def _explanation(entry: SearchEntry, rank: float, parts: list[Words], now_ms: int) -> str:
    """Say what a rank is made of: how well the words match, what the score adds, what the age adds."""
    document = entry.document
    of_score, of_age = score_weight(document.score), freshness_weight(document.time_ms, now_ms)
    where = "; ".join(f"{part.text}: {_where(part, document)}" for part in parts)
    return f"{rank:.2f} = words {rank / of_score / of_age:.2f} × score {of_score:.2f} × age {of_age:.2f} ({where})"


def _where(part: Words, document: Document) -> str:
    places = []
    words = tokens(part.text)
    for field, text in (("title", document.title), ("text", document.text)):
        found = tokens(text) if part.field in ("", field) else []
        if any(found[n : n + len(words)] == words for n in range(len(found))):
            places.append(f"in the {field}")
        elif len(words) == 1 and any(_is_stem(words[0], each, document) for each in found):
            places.append(f"in the {field} by its stem")
        elif part.is_prefix and any(each.startswith(words[-1]) for each in found):
            places.append(f"in the {field} by its beginning")
    return ", ".join(places) or "not found"


def _is_stem(word: str, found: str, document: Document) -> bool:
    return stem(word, document.language) in forms(found, document.language)
