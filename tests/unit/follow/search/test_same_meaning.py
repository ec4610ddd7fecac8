"""A query means the same documents to the index and to the matcher in memory, which routes use."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

from tidings.follow.search.entry import SearchEntry
from tidings.follow.search.index import SearchIndex
from tidings.model.errors import BadInput
from tidings.model.publication import Document
from tidings.model.query import Query, parse
from tidings.model.query_match import matches
from tidings.model.query_tree import AllOf, AnyOf, Compare, Not, Part, Words
from tidings.model.vocabulary import Vocabulary

NOW_MS = 1_790_000_000_000
SPOKEN = (
    "run", "running", "runs", "market", "markets", "fee", "fees", "rust", "rusty", "C++", "C#", "C", "c++17", "node.js",
    "node", "js", ".NET", "net", "#rust", "@ada", "100%", "$5m", "4.5GHz", "Zürich", "zurich", "東京", "東京都", "京",
    "Häuser", "Haus", "naïve", "snake_case", "e-mail", "don't", "2016", "10:30", "std::vector", "https://x.example/a?b=c",
    "ß", "straße", "STRASSE", "ﬁne", "İstanbul", "o'clock", "Ω", "ёлка", "서울", "a.b.c", "...", "--", "😀", "x_y",
)  # fmt: skip
BEGINNINGS = ("ru", "no", "c+", "東", "z")
NAMES = ("type", "by", "score", "time", "pipeline", "url", "site", "labels", "deadline", "stars", "mixed")
TEXTS = (
    "story",
    "Story",
    "ada",
    "Ada Lovelace",
    "help wanted",
    "5",
    "5.0",
    "-3",
    "2026-03-31",
    "true",
    "",
    "Zürich",
    "a=b",
)
NUMBERS = (-3, 0, 5, 42, 2.5, 1_790_000_000_000, 1_774_915_200_000, 1e300, -1e300)
URLS = (
    "https://www.blog.example.com/rust/a-b?q=1",
    "https://example.com",
    "http://example.com/Rust",
    "https://127.0.0.1:8000/x",
    "not an address",
    "https://[broken",
)

phrases = st.lists(st.sampled_from(SPOKEN), max_size=6).map(" ".join)
values = st.sampled_from(TEXTS) | st.sampled_from(NUMBERS) | st.integers(-10, 10)
attributes = st.dictionaries(
    st.sampled_from(("labels", "deadline", "stars", "mixed")),
    st.none() | values | st.lists(st.sampled_from(TEXTS), max_size=3),
    max_size=3,
)
documents = st.builds(
    Document,
    title=phrases,
    text=phrases,
    author=st.none() | st.sampled_from(TEXTS),
    type=st.none() | st.sampled_from(TEXTS),
    score=st.none() | st.integers(-5, 50),
    time_ms=st.sampled_from((0, 1_774_915_200_000, NOW_MS, NOW_MS - 1)),
    url=st.none() | st.sampled_from(URLS),
    attributes=attributes,
    language=st.sampled_from((None, "en", "de", "ja", "ru", "xx")),
)
words = st.builds(
    Words,
    st.lists(st.sampled_from(SPOKEN), min_size=1, max_size=3).map(" ".join)
    | st.sampled_from(("ru", "no", "c+", "東", "z")),
    st.sampled_from(("", "title", "text")),
    st.booleans(),
)
equals = st.builds(
    Compare,
    st.sampled_from(NAMES),
    st.just("="),
    st.sampled_from((*TEXTS, *URLS, "example.com", "com", "news", "rust")),
)
orders = st.builds(
    Compare, st.sampled_from(NAMES), st.sampled_from((">", ">=", "<", "<=")), st.sampled_from(NUMBERS).map(float)
)
parts: st.SearchStrategy[Part] = st.recursive(
    words | equals | orders,
    lambda inner: (
        st.builds(Not, inner)
        | st.builds(lambda each: AllOf(tuple(each)), st.lists(inner, max_size=3))
        | st.builds(lambda each: AnyOf(tuple(each)), st.lists(inner, max_size=3))
    ),
    max_leaves=6,
)
VOCABULARY = Vocabulary(frozenset({"labels", "deadline", "stars", "mixed"}))
PIECES = (
    *SPOKEN, "OR", "(", ")", "-", '"', "ru*", "title:rust", "text:fee*", "type:story", "score:>4", "score:-3..5",
    "after:1d", 'labels:"help wanted"', "deadline:<2026-04-01", "site:example.com", "url:rust", "stars:5", "time:2026",
    "mixed:>=2.5",
)  # fmt: skip
typed = st.lists(st.sampled_from(PIECES), max_size=8).map(" ".join)

# It has every word, so that none is unknown: the index would search for another one instead.
DICTIONARY = Document(" ".join(SPOKEN), " ".join(SPOKEN))


def index_of(found: Sequence[Document]) -> SearchIndex:
    index = SearchIndex(clock=lambda: NOW_MS)
    entries = [
        SearchEntry(number, "news", "article", str(number), f"article:{number}", each)
        for number, each in enumerate(found, start=1)
    ]
    assert index.position("news") is None
    index.apply("news", entries, [], "1")
    return index


def check(query: Query, found: Sequence[Document], index: SearchIndex) -> None:
    note(f"{query.root}")
    answer = index.search(query.root, limit=1_000)
    assert answer.instead is None
    in_memory = {str(number) for number, each in enumerate(found, start=1) if matches(query, each, "news")}
    assert {hit.key for hit in answer.hits} == in_memory
    assert answer.total == len(in_memory)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(found=st.lists(documents, max_size=6), roots=st.lists(parts, min_size=1, max_size=12))
def test_any_query_means_the_same_to_index_and_matcher(found: list[Document], roots: list[Part]) -> None:
    everything = [*found, DICTIONARY]
    index = index_of(everything)
    for root in roots:
        check(Query(root), everything, index)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(found=st.lists(documents, max_size=6), texts=st.lists(typed, min_size=1, max_size=12))
def test_what_people_type_means_the_same_to_index_and_matcher(found: list[Document], texts: list[str]) -> None:
    everything = [*found, DICTIONARY]
    index = index_of(everything)
    for text in texts:
        try:
            query = parse(text, VOCABULARY, now_ms=NOW_MS)
        except BadInput:
            continue
        note(text)
        check(query, everything, index)
