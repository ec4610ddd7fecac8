"""One query language: read, and refused with a pointer to what is wrong."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidings.model.errors import BadInput
from tidings.model.query import DEPTH_MAX, LENGTH_MAX, NOTHING, PARTS_MAX, Query, parse, point_at
from tidings.model.query_tree import AllOf, AnyOf, Compare, InThread, Not, Part, Words, parts_of
from tidings.model.vocabulary import Vocabulary

DAY_MS = 86_400_000
NEW_YEAR_2016_MS = 1_451_606_400_000
NEW_YEAR_2026_MS = 1_767_225_600_000
NOW_MS = NEW_YEAR_2026_MS + 45 * DAY_MS + 3_600_000
VOCABULARY = Vocabulary(
    attributes=frozenset({"sentiment", "deadline", "repo", "topic", "stars"}),
    values={"type": ("story", "comment"), "sentiment": ("positive", "negative")},
)


def asked(text: str, vocabulary: Vocabulary = VOCABULARY) -> Query:
    return parse(text, vocabulary, now_ms=NOW_MS)


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("rust", Words("rust")),
        ("  rust  ", Words("rust")),
        ("-rust", Not(Words("rust"))),
        ("NOT rust", Not(Words("rust"))),
        ("not rust", AllOf((Words("not"), Words("rust")))),
        ("go AND NOT (rust OR zig)", AllOf((Words("go"), Not(AnyOf((Words("rust"), Words("zig"))))))),
        ("go OR NOT type:story", AnyOf((Words("go"), Not(Compare("type", "=", "story"))))),
        ('"memory safety"', Words("memory safety")),
        ("“memory safety”", Words("memory safety")),
        ('-"memory safety"', Not(Words("memory safety"))),
        ("rus*", Words("rus", is_prefix=True)),
        ('"memory saf*"', Words("memory saf", is_prefix=True)),
        ('"memory saf"*', Words("memory saf", is_prefix=True)),
        ("title:rust", Words("rust", "title")),
        ('-text:"memory saf*"', Not(Words("memory saf", "text", is_prefix=True))),
        ("type:story", Compare("type", "=", "story")),
        ("TYPE:Story", Compare("type", "=", "Story")),
        ("-type:story", Not(Compare("type", "=", "story"))),
        ('by:"two words"', Compare("by", "=", "two words")),
        ("url:https://example.com/a", Compare("url", "=", "https://example.com/a")),
        ("site:example.com", Compare("site", "=", "example.com")),
        ("repo:a..b", Compare("repo", "=", "a..b")),
        ("repo:a/b(c)", Compare("repo", "=", "a/b(c)")),
        ("score:42", Compare("score", "=", "42")),
        ("score:>10", Compare("score", ">", 10.0)),
        ("score:>=10.5", Compare("score", ">=", 10.5)),
        ("score:<-3", Compare("score", "<", -3.0)),
        ('score:<="7"', Compare("score", "<=", 7.0)),
        ("score:5..20", AllOf((Compare("score", ">=", 5.0), Compare("score", "<=", 20.0)))),
        ("score:5..", Compare("score", ">=", 5.0)),
        ("stars:..20", Compare("stars", "<=", 20.0)),
        ("story:8863", InThread("8863")),
        ("-thread:8863", Not(InThread("8863"))),
    ],
)
def test_a_part_is_read(text: str, part: Part) -> None:
    assert asked(text) == Query(part)


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("before:2026-01-01", Compare("time", "<", NEW_YEAR_2026_MS)),
        ("until:2026-01-01", Compare("time", "<", NEW_YEAR_2026_MS)),
        ("after:2026-01-01", Compare("time", ">=", NEW_YEAR_2026_MS)),
        ("since:2026-01-01T01:00:00+01:00", Compare("time", ">=", NEW_YEAR_2026_MS)),
        ("since:2016", Compare("time", ">=", NEW_YEAR_2016_MS)),
        ("since:2016-02", Compare("time", ">=", NEW_YEAR_2016_MS + 31 * DAY_MS)),
        ("after:7d", Compare("time", ">=", NOW_MS - 7 * DAY_MS)),
        ("after:36h", Compare("time", ">=", NOW_MS - 36 * 3_600_000)),
        ("before:1y", Compare("time", "<", NOW_MS - 365 * DAY_MS)),
        ("before:6mo", Compare("time", "<", NOW_MS - 180 * DAY_MS)),
        ("after:today", Compare("time", ">=", NEW_YEAR_2026_MS + 45 * DAY_MS)),
        ("after:Yesterday", Compare("time", ">=", NEW_YEAR_2026_MS + 44 * DAY_MS)),
        ("after:99999999999999999999d", Compare("time", ">=", 0)),
        ("-after:2026-01-01T00:00:00Z", Not(Compare("time", ">=", NEW_YEAR_2026_MS))),
        (
            "time:2026-01-01",
            AllOf((Compare("time", ">=", NEW_YEAR_2026_MS), Compare("time", "<", NEW_YEAR_2026_MS + DAY_MS))),
        ),
        ("time:2016", AllOf((Compare("time", ">=", NEW_YEAR_2016_MS), Compare("time", "<", 1_483_228_800_000)))),
        (
            "time:2016-12..2025",
            AllOf((Compare("time", ">=", 1_480_550_400_000), Compare("time", "<", NEW_YEAR_2026_MS))),
        ),
        ("time:>2025", Compare("time", ">=", NEW_YEAR_2026_MS)),
        ("deadline:<2026-01-01", Compare("deadline", "<", NEW_YEAR_2026_MS)),
        ("deadline:<=2026-01-01", Compare("deadline", "<", NEW_YEAR_2026_MS + DAY_MS)),
        ("deadline:>2026-01-01", Compare("deadline", ">=", NEW_YEAR_2026_MS + DAY_MS)),
        ("deadline:2026-01-01..", Compare("deadline", ">=", NEW_YEAR_2026_MS)),
        ("deadline:2026-01-01", Compare("deadline", "=", "2026-01-01")),
    ],
)
def test_times_are_read_as_people_write_them(text: str, part: Part) -> None:
    assert asked(text) == Query(part)


A, B, C, D = Words("a"), Words("b"), Words("c"), Words("d")


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("a b", AllOf((A, B))),
        ("a AND b", AllOf((A, B))),
        ("a OR b", AnyOf((A, B))),
        ("a b OR c d", AllOf((A, AnyOf((B, C)), D))),
        ("a OR b OR c", AnyOf((A, B, C))),
        ("(a b) OR (c d)", AnyOf((AllOf((A, B)), AllOf((C, D))))),
        ("a -(b c)", AllOf((A, Not(AllOf((B, C)))))),
        ("a OR -b", AnyOf((A, Not(B)))),
        ("((a))", A),
        ("a or b", AllOf((A, Words("or"), B))),
        ("ORANGE", Words("ORANGE")),
        ("a(b)", Words("a(b)")),
        ("main() (2016)", AllOf((Words("main()"), Words("2016")))),
        ("by:pg OR by:dang", AnyOf((Compare("by", "=", "pg"), Compare("by", "=", "dang")))),
    ],
)
def test_parts_are_joined(text: str, part: Part) -> None:
    assert asked(text) == Query(part)


@pytest.mark.parametrize(
    "text", ["HN:", "10:30", "https://example.com/?q=1", "std::vector", "C:", "text::x", "foo:bar"]
)
def test_what_only_looks_like_a_qualifier_is_text(text: str) -> None:
    assert (asked(text).root, asked(text).warnings) == (Words(text), ())


def test_a_headline_can_be_pasted() -> None:
    query = asked("Ask HN: Who is hiring? (May – 2026)")
    words = [part.text for part in parts_of(query.root) if isinstance(part, Words)]
    assert words == ["Ask", "HN:", "Who", "is", "hiring?", "May", "2026"]
    assert query.warnings == ()


@pytest.mark.parametrize("text", ["tom & jerry", "tom - jerry", "tom () jerry", "tom ??? jerry ''"])
def test_what_holds_no_word_is_left_out(text: str) -> None:
    assert asked(text) == Query(AllOf((Words("tom"), Words("jerry"))))


def test_where_no_word_is_left_nothing_is_meant_and_that_is_told() -> None:
    query = asked("-!!!")
    assert query.root == NOTHING
    assert query.warnings == ("there is no word to search for in `-!!!`",)


@pytest.mark.parametrize("text", ["", "   ", "\n\t"])
def test_nothing_asked_is_everything(text: str) -> None:
    assert asked(text) == Query()
    assert asked(text).is_empty


@pytest.mark.parametrize(
    ("text", "part", "warning"),
    [
        ("sentimnt:positive", Words("sentimnt:positive"), "did you mean `sentiment:`?"),
        ("Tpye:story", Words("Tpye:story"), "did you mean `type:`?"),
        ("scor:>100", Words("scor:>100"), "did you mean `score:`?"),
        ("type:storie", Compare("type", "=", "storie"), "did you mean `type:story`? known are story, comment"),
        (
            "sentiment:glad",
            Compare("sentiment", "=", "glad"),
            "`sentiment:glad` finds nothing; known are positive, neg",
        ),
        ("score:abc", Compare("score", "=", "abc"), "`score:abc` finds nothing: score is a number, as in score:100"),
        ("score:10*", Compare("score", "=", "10*"), "score is a number"),
        ("by:m*", Compare("by", "=", "m*"), "`by:m*` asks for that very value: a * completes words of title and text"),
    ],
)
def test_what_is_probably_misspelled_is_told(text: str, part: Part, warning: str) -> None:
    query = asked(text)
    assert query.root == part
    assert warning in query.warnings[0]


@pytest.mark.parametrize(
    "text",
    [
        '"sentimnt:positive"',
        "sentimnt: positive",
        "TYPE:Story",
        "type:>3",
        "HN:x",
        "a:b",
        "score:10",
        "score:-5..",
        'by:"m*"',
    ],
)
def test_what_may_well_be_meant_is_not_doubted(text: str) -> None:
    assert asked(text).warnings == ()


def test_a_name_of_another_pipeline_finds_nothing_and_that_is_told() -> None:
    vocabulary = Vocabulary(frozenset({"sentiment"}), pipeline="hacker_news", absent=frozenset({"sentiment"}))
    query = asked("sentiment:positive", vocabulary)
    assert query.root == Compare("sentiment", "=", "positive")
    assert query.warnings == ("`sentiment:` finds nothing here: hacker_news does not have it",)


@pytest.mark.parametrize(
    ("text", "position", "message"),
    [
        ('rust "memory', 5, "never closed"),
        ('by:"someone', 3, "never closed"),
        ("rust type:", 9, "type: needs a value, such as type:something"),
        ("type: story", 4, "type: needs a value"),
        ("(type:)", 5, "type: needs a value"),
        ('before:""', 7, "before: needs a value"),
        ("score:> 3", 6, "score: needs a value"),
        ("title:(a b)", 6, "write (title:this OR title:that)"),
        ("rust OR", 5, "OR needs something on both sides"),
        ("OR rust", 0, "OR needs something on both sides"),
        ("(a OR) b", 3, "OR needs something on both sides"),
        ("a OR OR b", 5, "OR needs something on both sides"),
        ("a (b", 2, "never closed; add a )"),
        ("a b) c", 3, "closes none"),
        ("score:>many", 7, "'many' is neither"),
        ("score:>=nan", 8, "'nan' is neither"),
        ("score:>1e999", 7, "needs a finite number"),
        ("score:5..many", 6, "such as score:5..20"),
        ("score:>2026-99-01", 7, "'2026-99-01' is no date"),
        ("rust before:soon", 12, "'soon' is no date; write one like 2026-01-31"),
        ("since:2026-13", 6, "'2026-13' is no date"),
        ("since:10000", 6, "'10000' is no date"),
        ('before:"soon"', 8, "'soon' is no date"),
        ("a\0b", 1, "NUL"),
        ("x" * (LENGTH_MAX + 1), LENGTH_MAX, "at most 1000 are allowed"),
        ("x " * (PARTS_MAX + 1), 2 * PARTS_MAX, "more than 40 parts"),
        ("(" * (DEPTH_MAX + 1) + "a" + ")" * (DEPTH_MAX + 1), DEPTH_MAX, "more than 20 deep"),
    ],
)
def test_what_cannot_be_read_is_pointed_at(text: str, position: int, message: str) -> None:
    with pytest.raises(BadInput) as refused:
        asked(text)
    assert message in str(refused.value)
    assert refused.value.position == position
    _, shown, mark = point_at(text, refused.value).rsplit("\n", 2)
    assert shown == f"  {text}"
    assert mark.index("^") == position + 2


def test_an_error_without_a_place_is_told_alone() -> None:
    assert point_at("rust", BadInput("too busy")) == "too busy"


PIECES = ("a", "OR", "AND", "(", ")", "-", "type:", "story", " ", '"', "after:", "7d", "..", "score:", "5")


@given(
    text=st.text(max_size=60)
    | st.text(alphabet='ab-": ><=0()*.\n', max_size=40)
    | st.lists(st.sampled_from(PIECES)).map("".join)
)
def test_any_text_is_read_or_refused_at_a_place_in_it(text: str) -> None:
    refused: BadInput | None = None
    try:
        query = asked(text)
    except BadInput as error:
        refused = error
    if refused is None:
        assert query.is_empty == (not text.strip())
    else:
        assert refused.position is not None
        assert 0 <= refused.position <= len(text)


@pytest.mark.parametrize("text", ["NOT", "go NOT", "(NOT)", "NOT OR go", "NOT NOT go", "NOT -go", "NOT AND go"])
def test_not_needs_something_behind_it(text: str) -> None:
    with pytest.raises(BadInput, match='NOT needs something behind it; for the word write "not"'):
        asked(text)


def test_names_that_were_read_as_text_are_told() -> None:
    assert asked("colour:red HN: std::vector 10:30 https://a.example type:story").unknown_names == ("colour",)
    assert asked('"colour:red"').unknown_names == ()
