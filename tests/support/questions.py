"""Sixty questions as people ask them of Hacker News, with their answers.

They cover what hn.algolia.com documents for its search: words, phrases, prefixes and typos; tags for the kind, the
author and the story of an item; filters on points, comments and time; relevance or date.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tests.support.search import an_entry
from tidings.follow.search.entry import SearchEntry
from tidings.model.clock import read_time
from tidings.model.query_tree import AllOf, AnyOf, Compare, InThread, Not, Part, Words
from tidings.model.vocabulary import Vocabulary


def _day(text: str) -> int:
    found = read_time(text)
    assert found is not None
    return found


def _story(item: int, day: str, title: str, by: str, score: int, comments: int, **fields: Any) -> SearchEntry:
    attributes = {"comments": comments, **fields.pop("attributes", {})}
    shown: dict[str, Any] = {
        "type": "story",
        "author": by,
        "score": score,
        "time_ms": _day(day),
        "attributes": attributes,
    }
    return an_entry(item, title, **shown, **fields)


def _comment(item: int, day: str, text: str, by: str, thread: tuple[str, ...]) -> SearchEntry:
    return an_entry(item, "", text, type="comment", author=by, time_ms=_day(day), thread=thread)


ASK, SHOW = {"attributes": {"topic": "ask"}}, {"attributes": {"topic": "show"}}
CORPUS = (
    _story(1, "2016-03-01", "Ask HN: Who is hiring? (March 2016)", "whoishiring", 700, 900, **ASK),
    _story(2, "2017-03-01", "Ask HN: Who is hiring? (March 2017)", "whoishiring", 650, 800, **ASK),
    _story(3, "2017-03-02", "Ask HN: Who wants to be hired? (March 2017)", "whoishiring", 120, 200, **ASK),
    _story(
        4, "2015-05-15", "Announcing Rust 1.0", "steveklabnik", 1500, 400, url="https://blog.rust-lang.org/2015/05/15/"
    ),
    _story(
        5,
        "2018-12-06",
        "Announcing Rust 1.31 and Rust 2018",
        "steveklabnik",
        900,
        210,
        url="https://blog.rust-lang.org/2018/12/06/Rust-1.31-and-rust-2018.html",
    ),
    _story(
        6,
        "2019-07-01",
        "Show HN: A fast C++ JSON parser",
        "lemire",
        480,
        130,
        url="https://github.com/lemire/simdjson",
        **SHOW,
    ),
    _story(
        7, "2016-06-27", "Announcing .NET Core 1.0", "runesoerensen", 800, 300, url="https://devblogs.microsoft.com/x"
    ),
    _story(
        8,
        "2016-03-23",
        "How one developer broke Node.js and Babel in 11 lines",
        "DanielRibeiro",
        1400,
        500,
        url="https://www.theregister.co.uk/2016/03/23/npm_left_pad_chaos/",
    ),
    _story(
        9, "2018-06-04", "Microsoft acquires GitHub", "symisc_devel", 3200, 1100, url="https://news.microsoft.com/a"
    ),
    _story(
        10,
        "2020-01-15",
        "PostgreSQL 12 features you may have missed",
        "pg_fan",
        250,
        60,
        url="https://www.postgresql.org/about/",
    ),
    _story(
        11, "2021-02-01", "Show HN: 日本語の形態素解析", "taku", 45, 3, url="https://github.com/taku910/mecab", **SHOW
    ),
    _story(
        12,
        "2022-08-08",
        "Les maisons passives à Zürich",
        "helvetia",
        12,
        1,
        language="fr",
        url="https://www.lemonde.fr/maison",
    ),
    _story(13, "2023-04-01", "Why is the 4.5GHz limit still with us?", "clocky", 33, 14),
    _story(14, "2009-10-10", "Poll: Which editor do you use?", "pg", 90, 75),
    _story(
        15, "2023-05-05", "C# 12 and the road ahead", "anders", 210, 90, url="https://devblogs.microsoft.com/csharp"
    ),
    _story(16, "2024-02-02", "SQLite or PostgreSQL for a small web app?", "asker", 5, 8, **ASK),
    _story(17, "2024-02-03", "Learn C in a weekend", "oldschool", 66, 20),
    _story(18, "2024-02-04", "Startup raises $5m to replace spreadsheets", "vc_news", 19, 2),
    _comment(101, "2017-03-01", "SEEKING WORK, remote: Rust and embedded C.", "alice", ("2",)),
    _comment(102, "2017-03-02", "Mozilla is hiring compiler engineers for Rust and Servo.", "bob", ("2",)),
    _comment(103, "2017-03-03", "Do you hire juniors?", "alice", ("2", "102")),
    _comment(
        104,
        "2018-12-07",
        "The borrow checker was rewritten; compilers learn, too. See std::vector in C++17.",
        "carol",
        ("5",),
    ),
    _comment(105, "2018-12-08", '@carol that is not what "borrow" means. #rustlang', "dang", ("5", "104")),
    _comment(106, "2018-06-04", "I moved everything to GitLab at 10:30 this morning.", "dang", ("9",)),
    _comment(107, "2016-03-23", "left-pad was eleven lines; npm unpublished it.", "carol", ("8",)),
    _comment(
        108,
        "2019-07-02",
        "Parsing JSON at 2.5GB/s, 100% branchless. Naïve parsers are ten times slower.",
        "lemire",
        ("6",),
    ),
)


VOCABULARY = Vocabulary(frozenset({"comments", "topic"}))
"""What the corpus declares."""


@dataclass(frozen=True, slots=True)
class Case:
    """A query as it is written, as it is parsed, and what it finds."""

    text: str
    root: Part
    found: set[int]


def _words(*texts: str) -> Part:
    return AllOf(tuple(Words(text) for text in texts))


def _is(name: str, value: str) -> Compare:
    return Compare(name, "=", value)


def _time(operator: Any, day: str) -> Compare:
    return Compare("time", operator, float(_day(day)))


CASES = (
    Case("rust", Words("rust"), {4, 5, 101, 102}),
    Case("RUST", Words("RUST"), {4, 5, 101, 102}),
    Case("Ask HN: who is hiring", _words("Ask", "HN:", "who", "is", "hiring"), {1, 2}),
    Case('"who is hiring"', Words("who is hiring"), {1, 2}),
    Case('"hiring who"', Words("hiring who"), set()),
    Case("hire", Words("hire"), {1, 2, 3, 102, 103}),
    Case("hired", Words("hired"), {1, 2, 3, 102, 103}),
    Case("compiler", Words("compiler"), {102, 104}),
    Case("compilers", Words("compilers"), {102, 104}),
    Case("C++", Words("C++"), {6, 104}),
    Case("c++17", Words("c++17"), {104}),
    Case("C#", Words("C#"), {15}),
    Case("C", Words("C"), {17, 101}),
    Case(".NET", Words(".NET"), {7}),
    Case("node.js", Words("node.js"), {8}),
    Case("node", Words("node"), {8}),
    Case("@carol", Words("@carol"), {105}),
    Case("#rustlang", Words("#rustlang"), {105}),
    Case("rustlang", Words("rustlang"), {105}),
    Case("4.5GHz", Words("4.5GHz"), {13}),
    Case("100%", Words("100%"), {108}),
    Case("$5m", Words("$5m"), {18}),
    Case("10:30", Words("10:30"), {106}),
    Case("std::vector", Words("std::vector"), {104}),
    Case("left-pad", Words("left-pad"), {107}),
    Case("naive", Words("naive"), {108}),
    Case("Zurich", Words("Zurich"), {12}),
    Case("maison", Words("maison"), {12}),
    Case("日本語", Words("日本語"), {11}),
    Case("解析", Words("解析"), {11}),
    Case("borr*", Words("borr", is_prefix=True), {104, 105}),
    Case("postg*", Words("postg", is_prefix=True), {10, 16}),
    Case('"announcing rust 1.3*"', Words("announcing rust 1.3", is_prefix=True), {5}),
    Case("rust -servo", AllOf((Words("rust"), Not(Words("servo")))), {4, 5, 101}),
    Case('-"who is hiring" hired', AllOf((Not(Words("who is hiring")), Words("hired"))), {3, 102, 103}),
    Case("gitlab OR github", AnyOf((Words("gitlab"), Words("github"))), {9, 106}),
    Case("(sqlite OR json) -parser", AllOf((AnyOf((Words("sqlite"), Words("json"))), Not(Words("parser")))), {16}),
    Case("title:rust", Words("rust", "title"), {4, 5}),
    Case("text:rust", Words("rust", "text"), {101, 102}),
    Case("type:poll", _is("type", "poll"), set()),
    Case("type:story rust", AllOf((_is("type", "story"), Words("rust"))), {4, 5}),
    Case("type:comment rust", AllOf((_is("type", "comment"), Words("rust"))), {101, 102}),
    Case("topic:show", _is("topic", "show"), {6, 11}),
    Case("topic:ask sqlite", AllOf((_is("topic", "ask"), Words("sqlite"))), {16}),
    Case("by:dang", _is("by", "dang"), {105, 106}),
    Case("by:DANG github", AllOf((_is("by", "DANG"), Words("github"))), set()),
    Case("by:carol OR by:alice", AnyOf((_is("by", "carol"), _is("by", "alice"))), {101, 103, 104, 107}),
    Case("site:github.com", _is("site", "github.com"), {6, 11}),
    Case("site:rust-lang.org", _is("site", "rust-lang.org"), {4, 5}),
    Case("site:devblogs.microsoft.com", _is("site", "devblogs.microsoft.com"), {7, 15}),
    Case("url:left_pad", _is("url", "left_pad"), {8}),
    Case("url:github.com/lemire", _is("url", "github.com/lemire"), {6}),
    Case("score:>1000", Compare("score", ">", 1000.0), {4, 8, 9}),
    Case("score:5..20", AllOf((Compare("score", ">=", 5.0), Compare("score", "<=", 20.0))), {12, 16, 18}),
    Case("comments:>=800 rust", AllOf((Compare("comments", ">=", 800.0), Words("rust"))), set()),
    Case("comments:>=800", Compare("comments", ">=", 800.0), {1, 2, 9}),
    Case("comments:3", _is("comments", "3"), {11}),
    Case("rust after:2017-01-01", AllOf((Words("rust"), _time(">=", "2017-01-01"))), {5, 101, 102}),
    Case("before:2016-01-01", _time("<", "2016-01-01"), {4, 14}),
    Case(
        "since:2016-03-01 before:2016-03-24", AllOf((_time(">=", "2016-03-01"), _time("<", "2016-03-24"))), {1, 8, 107}
    ),
    Case("story:2", InThread("2"), {2, 101, 102, 103}),
    Case("story:2 hire", AllOf((InThread("2"), Words("hire"))), {2, 102, 103}),
    Case("thread:102", InThread("102"), {102, 103}),
    Case("postgressql", Words("postgressql"), {10, 16}),
    Case("githbu", Words("githbu"), {9}),
    Case("the zzzzzz", _words("the", "zzzzzz"), set()),
)
