"""More like this: what shares an item's rarest words."""

from __future__ import annotations

import math
from collections import Counter

from tantivy import Occur, Query

from tidings.follow.search.entry import SearchEntry, decode
from tidings.follow.search.hits import hit_of
from tidings.follow.search.pages import Ranked
from tidings.follow.search.question import IndexState
from tidings.follow.search.schema import NAME, mark, stem_term
from tidings.model.contracts import Hit
from tidings.model.query_tree import AllOf
from tidings.model.words import formed, stemmer_name, tokens

TERMS_MAX = 15
SHARED_MIN = 2
"""How many of them another item must have at least."""
TEXT_CHARS_MAX = 5_000
TITLE_WEIGHT = 3
COMMON_SHARE = 0.1
"""A word that more documents have says nothing about what they are about."""


def similar_hits(state: IndexState, pipeline: str, kind: str, key: str, limit: int) -> list[Hit]:
    """Return the items that have the most of an item's telling words, best first."""
    itself = Query.term_query(state.schema, "marks", mark(NAME, f"{pipeline}/{kind}/{key}"), "basic")
    found = state.searcher.search(itself, 1).hits
    if not found or limit <= 0:
        return []
    entry = decode(state.searcher.doc(found[0][1])["entry"][0])
    terms = _telling_terms(state, entry)
    if not terms:
        return []
    clauses = [(Occur.Should, _either(state, term, weight)) for term, weight in terms]
    shared = Query.boolean_query(clauses, minimum_number_should_match=min(SHARED_MIN, len(clauses)))
    query = Query.boolean_query([(Occur.Must, shared), (Occur.MustNot, itself)])
    hits = state.searcher.search(query, limit, count=False).hits
    ranked = [Ranked(float(rank), 0, 0, place) for rank, place in hits]
    return [hit_of(state.searcher, each, AllOf(), 0) for each in ranked]


def _telling_terms(state: IndexState, entry: SearchEntry) -> list[tuple[str, float]]:
    """Return an item's terms by how often it has them and how rare they are elsewhere."""
    document = entry.document
    stemmer = stemmer_name(document.language)
    counts: Counter[str] = Counter()
    for text, weight in ((document.title, TITLE_WEIGHT), (document.text[:TEXT_CHARS_MAX], 1)):
        for stem in formed(tokens(text), document.language).split():
            counts[stem_term(stemmer, stem)] += weight
    total = max(1, state.searcher.num_docs)
    worths = []
    for term, count in counts.most_common(200):
        documents = max(state.searcher.doc_freq(field, term) for field in ("title_stems", "text_stems"))
        # A word that only this item has leads nowhere.
        if 1 < documents <= max(5, COMMON_SHARE * total) and len(term) > 1:
            worths.append((term, math.sqrt(count) * math.log(1 + total / documents)))
    return sorted(worths, key=lambda each: (-each[1], each[0]))[:TERMS_MAX]


def _either(state: IndexState, term: str, weight: float) -> Query:
    fields = (("title_stems", 2.0), ("text_stems", 1.0))
    clauses = [
        (Occur.Should, Query.boost_query(Query.term_query(state.schema, field, term, "freq"), boost))
        for field, boost in fields
    ]
    return Query.boost_query(Query.boolean_query(clauses), weight)
