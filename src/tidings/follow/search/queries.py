"""A parsed query as a tantivy query: the same documents match as in memory, and the better ones score higher."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from decimal import Decimal

import tantivy
from tantivy import FieldType, Occur

from tidings.follow.search.schema import INTEGER_MAX, LANGUAGE, NO_SCORE, POSITION, THREAD, mark, stem_term
from tidings.model.errors import BadInput
from tidings.model.query_tree import AllOf, AnyOf, Compare, InThread, Not, Operator, Part, Words
from tidings.model.values import text_of, url_words
from tidings.model.words import ENGLISH, STEMMERS, stem, tokens

PARTS_MAX = 100
WORDS_MAX = 200
PREFIXES_MAX = 10
"""Each may take 0.2 seconds over 500,000 items where it stands in a row with a frequent word."""
EXPANSIONS_MAX = 200
TITLE_BOOST, TEXT_BOOST = 4.0, 0.5
"""For the stem, and once more for the word as it is written; a word in the title counts eight times as in the text."""
PREFIX_SCORE = 1.0

_LANGUAGES = {stemmer: code for code, stemmer in reversed(STEMMERS.items())} | {"": "-"}


@dataclass(frozen=True, slots=True)
class Translator:
    """Translates for one state of an index."""

    index: tantivy.Index
    schema: tantivy.Schema
    searcher: tantivy.Searcher

    def query(self, root: Part, pipeline: str | None = None) -> tantivy.Query:
        """Translate a whole query, within one pipeline or in all."""
        _check_size(root)
        if pipeline is not None:
            root = AllOf((Compare("pipeline", "=", pipeline), *(root.parts if isinstance(root, AllOf) else (root,))))
        return self._part(root)

    def _part(self, part: Part) -> tantivy.Query:
        match part:
            case Words():
                return self._words(part)
            case Compare():
                return _unscored(self._compare(part))
            case InThread():
                return _unscored(self._mark(THREAD, part.key))
            case Not():
                return self._all_of(AllOf((part,)))
            case AllOf():
                return self._all_of(part)
            case AnyOf():
                return _any_of([self._part(each) for each in part.parts])

    def _all_of(self, part: AllOf) -> tantivy.Query:
        clauses = [(Occur.Must, self._part(each)) for each in part.parts if not isinstance(each, Not)]
        # A query that only excludes matches nothing in the engine; people mean everything else.
        clauses = clauses or [(Occur.Must, self.everything())]
        clauses += [(Occur.MustNot, self._part(each.part)) for each in part.parts if isinstance(each, Not)]
        return tantivy.Query.boolean_query(clauses) if len(clauses) > 1 else clauses[0][1]

    def everything(self) -> tantivy.Query:
        """Match every entry, but not the notes of how far the index has followed."""
        return tantivy.Query.boolean_query(
            [
                (Occur.Must, _unscored(tantivy.Query.all_query())),
                (Occur.MustNot, self._mark(POSITION, "")),
            ]
        )

    def _words(self, part: Words) -> tantivy.Query:
        found = tokens(part.text)
        if not found:
            return tantivy.Query.empty_query()
        fields = (part.field,) if part.field else ("title", "text")
        if part.is_prefix:
            return _any_of([self._prefix(field, found) for field in fields])
        if len(found) > 1:
            return _any_of([_boosted(self._phrase(field, found), 2 * _boost(field)) for field in fields])
        return _any_of([clause for field in fields for clause in self._word(field, found[0])])

    def _word(self, field: str, word: str) -> list[tantivy.Query]:
        clauses = [
            tantivy.Query.term_query(self.schema, f"{field}_stems", term, "freq") for term in self._stem_terms(word)
        ]
        # Same hits and nearly the same ranks with half the terms to read.
        if self._is_only_form(field, word):
            return [_boosted(each, 2 * _boost(field)) for each in clauses]
        clauses.append(tantivy.Query.term_query(self.schema, field, word, "freq"))
        return [_boosted(each, _boost(field)) for each in clauses]

    def _is_only_form(self, field: str, word: str) -> bool:
        """Tell whether all documents with a word's stem have the word itself: looking for both would cost twice."""
        stems = sum(self.searcher.doc_freq(f"{field}_stems", term) for term in self._stem_terms(word))
        return stems == self.searcher.doc_freq(field, word)

    def _stem_terms(self, word: str) -> list[str]:
        """Return the term of a word's stem in each language that some document is in."""
        others = [stem_term(stemmer, stem(word, _LANGUAGES[stemmer])) for stemmer in self.stemmers()]
        return [stem_term(ENGLISH, stem(word)), *others]

    def is_known(self, word: str) -> bool:
        """Tell whether some document has a word, or an inflection of it."""
        fields = ("title_stems", "text_stems")
        return any(self.searcher.doc_freq(field, term) for term in self._stem_terms(word) for field in fields)

    def frequency(self, word: str) -> int:
        """Return how many documents have a word as it is written; in title and text it counts twice."""
        return self.searcher.doc_freq("title", word) + self.searcher.doc_freq("text", word)

    def _phrase(self, field: str, words: list[str]) -> tantivy.Query:
        return tantivy.Query.phrase_query(self.schema, field, list(words))

    def _prefix(self, field: str, words: list[str]) -> tantivy.Query:
        *before, beginning = words
        if not before:
            pattern = re.escape(beginning) + ".*"
            return tantivy.Query.const_score_query(
                tantivy.Query.regex_query(self.schema, field, pattern), PREFIX_SCORE * _boost(field)
            )
        # In a row with others, the beginning stands for the most frequent words that begin so.
        ends = self.searcher.terms_with_prefix(field, beginning, limit=EXPANSIONS_MAX)
        return _boosted(_any_of([self._phrase(field, [*before, end]) for end, _ in ends]), _boost(field))

    def stemmers(self) -> list[str]:
        """Return the stemmers of the documents that are not in English."""
        beginning = mark(LANGUAGE, "")
        return [term[len(beginning) :] for term, _ in self.searcher.terms_with_prefix("marks", beginning)]

    def _compare(self, part: Compare) -> tantivy.Query:
        if part.name == "url":
            return self._url(part)
        field = {"score": "points", "time": "time"}.get(part.name)
        if part.operator == "=":
            return self._mark(part.name, text_of(part.value)) if field is None else self._equal(field, part.value)
        if field is not None:
            return self._integers(field, part.operator, float(part.value))
        return self._numbers(part.name, part.operator, float(part.value))

    def _url(self, part: Compare) -> tantivy.Query:
        words = url_words(str(part.value))
        if part.operator != "=" or not words:
            return tantivy.Query.empty_query()
        return self._phrase("url", words) if len(words) > 1 else self._term("url", words[0])

    def _equal(self, field: str, value: str | float) -> tantivy.Query:
        text = text_of(value)
        if not re.fullmatch(r"0|-?[1-9]\d{0,17}", text):
            return tantivy.Query.empty_query()
        return tantivy.Query.range_query(self.schema, field, FieldType.Integer, int(text), int(text))

    def _integers(self, field: str, operator: Operator, value: float) -> tantivy.Query:
        # A number from a query may be infinite, or too large for the engine's 64 bits.
        bounded = max(-float(INTEGER_MAX), min(float(INTEGER_MAX), value))
        low = {">": math.floor(bounded) + 1, ">=": math.ceil(bounded)}.get(operator, NO_SCORE + 1)
        high = {"<": math.ceil(bounded) - 1, "<=": math.floor(bounded)}.get(operator)
        return tantivy.Query.range_query(self.schema, field, FieldType.Integer, max(low, NO_SCORE + 1), high)

    def _numbers(self, name: str, operator: Operator, value: float) -> tantivy.Query:
        # The binding makes ranges over its own fields alone; over a name in a JSON field only the parser does.
        # The name becomes part of a text that is parsed. Nothing but a plain word may get there.
        if not re.fullmatch(r"\w+", name, re.ASCII):
            return tantivy.Query.empty_query()
        number = format(Decimal(repr(float(value))), "f")  # The parser knows no exponents.
        interval = {
            ">": f"{{{number} TO *}}", ">=": f"[{number} TO *}}", "<": f"{{* TO {number}}}", "<=": f"{{* TO {number}]"
        }[operator]  # fmt: skip
        return self.index.parse_query(f"numbers.{name}:{interval}", ["text"])

    def _mark(self, name: str, value: str) -> tantivy.Query:
        return self._term("marks", mark(name, value))

    def _term(self, field: str, term: str) -> tantivy.Query:
        return tantivy.Query.term_query(self.schema, field, term, "basic")


def has_words(root: Part) -> bool:
    """Tell whether a query has words by which one hit can be better than another."""
    match root:
        case Words():
            return True
        case AllOf() | AnyOf():
            return any(has_words(part) for part in root.parts)
    return False


def word_parts(root: Part) -> list[Words]:
    """Return the words that are looked for, without those that must not occur."""
    match root:
        case Words():
            return [root]
        case AllOf() | AnyOf():
            return [words for part in root.parts for words in word_parts(part)]
    return []


def _check_size(root: Part) -> None:
    parts, words = _size(root)
    if parts > PARTS_MAX:
        raise BadInput(f"the query has {parts} parts; at most {PARTS_MAX} are allowed")
    if words > WORDS_MAX:
        raise BadInput(f"the query has {words} words; at most {WORDS_MAX} are allowed")
    prefixes = sum(part.is_prefix for part in _all_words(root))
    if prefixes > PREFIXES_MAX:
        raise BadInput(f"the query has {prefixes} words that are only begun; at most {PREFIXES_MAX} are allowed")


def _all_words(part: Part) -> list[Words]:
    """Return all words, those that must not occur too."""
    match part:
        case Not():
            return _all_words(part.part)
        case AllOf() | AnyOf():
            return [words for each in part.parts for words in _all_words(each)]
    return [part] if isinstance(part, Words) else []


def _size(part: Part) -> tuple[int, int]:
    match part:
        case Words():
            return 1, len(tokens(part.text))
        case Not():
            return _size(part.part)
        case AllOf() | AnyOf():
            sizes = [_size(each) for each in part.parts]
            return 1 + sum(size[0] for size in sizes), sum(size[1] for size in sizes)
    return 1, 0


def _any_of(queries: list[tantivy.Query]) -> tantivy.Query:
    if not queries:
        return tantivy.Query.empty_query()
    if len(queries) == 1:
        return queries[0]
    return tantivy.Query.boolean_query([(Occur.Should, each) for each in queries])


def _boost(field: str) -> float:
    return TITLE_BOOST if field == "title" else TEXT_BOOST


def _boosted(query: tantivy.Query, boost: float) -> tantivy.Query:
    return tantivy.Query.boost_query(query, boost)


def _unscored(query: tantivy.Query) -> tantivy.Query:
    return tantivy.Query.const_score_query(query, 0.0)
