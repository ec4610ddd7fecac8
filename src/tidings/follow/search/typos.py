"""The second attempt: words that no document has, replaced by the nearest ones that some have."""

from __future__ import annotations

from dataclasses import replace

import tantivy
from tantivy import Query

from tidings.follow.search.deadline import Deadline
from tidings.follow.search.entry import decode
from tidings.follow.search.queries import Translator, word_parts
from tidings.model.query_tree import AllOf, AnyOf, Not, Part, Words
from tidings.model.words import tokens

WORD_CHARS_MIN = 4
TWO_TYPOS_CHARS_MIN = 8
EXAMPLES = 40
"""How many documents with a similar word are looked at."""


def corrections(root: Part, translator: Translator, deadline: Deadline) -> dict[str, str]:
    """Return the nearest known word for each unknown one of a query."""
    found = {}
    for word in dict.fromkeys(word for part in word_parts(root) if not part.is_prefix for word in tokens(part.text)):
        if len(word) >= WORD_CHARS_MIN and word.isalpha() and not translator.is_known(word):
            deadline.check()
            nearest = _nearest(word, translator)
            if nearest is not None:
                found[word] = nearest
    return found


def corrected(root: Part, words: dict[str, str]) -> Part:
    """Return a query with other words."""
    match root:
        case Words():
            return replace(root, text=" ".join(words.get(word, word) for word in tokens(root.text)) or root.text)
        case Not():
            return root
        case AllOf():
            return AllOf(tuple(corrected(part, words) for part in root.parts))
        case AnyOf():
            return AnyOf(tuple(corrected(part, words) for part in root.parts))
    return root


def wording(root: Part) -> str:
    """Return the words of a query, as they are shown."""
    texts = [(part.text, len(tokens(part.text)) > 1, part.is_prefix) for part in word_parts(root)]
    return " ".join((f'"{text}"' if is_phrase else text) + "*" * is_prefix for text, is_phrase, is_prefix in texts)


def _nearest(word: str, translator: Translator) -> str | None:
    distances = (1, 2) if len(word) >= TWO_TYPOS_CHARS_MIN else (1,)
    for distance in distances:
        for field in ("title", "text"):
            near = _near(word, field, distance, translator)
            if near:
                return max(near, key=lambda each: (translator.frequency(each), each))
    return None


def _near(word: str, field: str, distance: int, translator: Translator) -> set[str]:
    """Return the words at a distance: the engine finds only the documents, which are then looked through."""
    query = Query.fuzzy_term_query(translator.schema, field, word, distance, transposition_cost_one=True)
    # The engine does not tell which of its words were near enough.
    hits = translator.searcher.search(query, EXAMPLES, count=False).hits
    return {token for _, place in hits for token in _words_of(translator.searcher, place, field) if
            _is_within(token, word, distance)}  # fmt: skip


def _words_of(searcher: tantivy.Searcher, place: tantivy.DocAddress, field: str) -> set[str]:
    document = decode(searcher.doc(place)["entry"][0]).document
    return set(tokens(document.title if field == "title" else document.text))


def _is_within(one: str, other: str, distance: int) -> bool:
    """Tell whether so many inserted, removed, changed or swapped letters make one word of the other."""
    if abs(len(one) - len(other)) > distance:
        return False
    before: list[int] = []
    row = list(range(len(other) + 1))
    for i, a in enumerate(one, 1):
        next_row = [i]
        for j, b in enumerate(other, 1):
            cost = min(row[j] + 1, next_row[j - 1] + 1, row[j - 1] + (a != b))
            if i > 1 and j > 1 and a == other[j - 2] and one[i - 2] == b:
                cost = min(cost, before[j - 2] + 1)
            next_row.append(cost)
        before, row = row, next_row
    return row[-1] <= distance
