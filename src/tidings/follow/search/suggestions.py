"""How a text that is being typed may go on."""

from __future__ import annotations

import re
from itertools import islice

import tantivy
from tantivy import Occur, Query

from tidings.follow.search.entry import decode
from tidings.follow.search.queries import Translator
from tidings.follow.search.question import IndexState
from tidings.model.query_tree import AllOf, Part, Words
from tidings.model.words import tokens

TEXT_CHARS_MAX = 200
TITLES_MAX = 3
TITLE_CHARS_MAX = 120
TERMS_MAX = 50
_LAST_WORD = re.compile(r"\S+$")


def suggestions(state: IndexState, text: str, pipeline: str | None, limit: int) -> list[str]:
    """Complete the last word, and name titles that have what was typed; none where a text ends with a space."""
    # The end counts: that is where someone types.
    text = text[-TEXT_CHARS_MAX:]
    last = _LAST_WORD.search(text)
    words = tokens(last[0]) if last is not None else []
    if last is None or not words or limit <= 0:
        return []
    before = text[: len(text) - len(words[-1])] if text.lower().endswith(words[-1]) else text[: last.start()]
    completions = [before + word for word in _completions(state, words[-1], pipeline, limit)]
    titles = _titles(state, text, pipeline, min(TITLES_MAX, limit))
    return list(dict.fromkeys([*completions[: max(1, limit - len(titles))], *titles]))[:limit]


def _completions(state: IndexState, beginning: str, pipeline: str | None, limit: int) -> list[str]:
    """Return the most frequent words with a beginning; those of titles count more."""
    counts: dict[str, int] = {}
    within = None if pipeline is None else Query.term_query(state.schema, "pipeline", pipeline, "basic")
    for field, weight in (("title", 8), ("text", 1)):
        for word, count in state.searcher.terms_with_prefix(field, beginning, within, TERMS_MAX):
            counts[word] = counts.get(word, 0) + weight * count
    best = sorted(counts, key=lambda word: (-counts[word], word))
    # The engine still lists the words of removed documents until it merges its files: of those nobody may learn.
    alive = (word for word in best if word != beginning and _is_found(state, word))
    return list(islice(alive, limit))


def _is_found(state: IndexState, word: str) -> bool:
    return any(
        state.searcher.search(Query.term_query(state.schema, field, word, "basic"), 1, count=False).hits
        for field in ("title", "text")
    )


def _titles(state: IndexState, text: str, pipeline: str | None, limit: int) -> list[str]:
    """Return the best titles that have all words of a text, the last one perhaps not whole."""
    words = tokens(text)
    parts: list[Part] = [*(Words(word, "title") for word in words[:-1]), Words(words[-1], "title", is_prefix=True)]
    translator = Translator(state.index, state.schema, state.searcher)
    query = Query.boolean_query([(Occur.Must, translator.query(AllOf(tuple(parts)), pipeline))])
    hits = state.searcher.search(query, limit * 3, count=False, weight_by_field="weight").hits
    titles = [_title(state.searcher, place) for _, place in hits]
    return list(dict.fromkeys(title for title in titles if len(title) <= TITLE_CHARS_MAX))[:limit]


def _title(searcher: tantivy.Searcher, place: tantivy.DocAddress) -> str:
    return decode(searcher.doc(place)["entry"][0]).document.title
