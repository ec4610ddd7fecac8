"""The search: one query language, the same answers on both databases."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from tests.support.followed_search import FollowedSearch
from tests.support.store import Ground

from tidings.model.clock import DAY_MS, rfc3339
from tidings.model.contracts import Found
from tidings.model.errors import BadInput
from tidings.model.item import Finding, fingerprint
from tidings.model.pipeline import Pipeline
from tidings.model.publication import Collection, Document, Presentation
from tidings.model.query import parse
from tidings.model.vocabulary import vocabulary_of
from tidings.model.workflow import Transition, Workflow

OpenGround = Callable[..., Ground]


class Paper(msgspec.Struct, frozen=True, kw_only=True):
    title: str = ""
    text: str = ""
    by: str | None = None
    type: str | None = None
    score: int | None = None
    time_ms: int = 0
    attributes: dict[str, Any] = {}


class PaperCard(msgspec.Struct, frozen=True):
    id: str


def present(key: str, body: Paper) -> Presentation | None:
    if body.title == "withdrawn":
        return None
    attributes = {"n": 2**70} if body.title == "a huge apple" else body.attributes
    document = Document(body.title, body.text, body.by, body.type, body.score, body.time_ms, None, attributes)
    return Presentation("papers", key, PaperCard(key), 0, lambda: document)


def library(name: str = "library") -> Pipeline:
    workflow = Workflow(
        "paper", "found", ("found", "shelved"), (Transition("shelve", "found", "shelved", publishes=True),),
        frozenset({"shelved"}), body=Paper,
    )  # fmt: skip
    attributes: dict[str, tuple[str, ...]] = dict.fromkeys(("tags", "n", "ratio", "status", "ready", "odd"), ())
    collection = Collection("papers", "paper", "paper", PaperCard, "Papers", attributes=attributes)
    return Pipeline(name, "Library", "", {"paper": workflow}, collections=(collection,), presenters={"paper": present})


def shelve(ground: Ground, **papers: Paper) -> None:
    findings = [
        Finding(ground.name, "paper", key, fingerprint(msgspec.to_builtins(paper)), msgspec.json.encode(paper))
        for key, paper in papers.items()
    ]
    ground.record(*findings)
    ground.work()
    assert ground.sql("SELECT key FROM items WHERE standing = 'dead'") == []


@pytest.fixture
def ground(open_ground: OpenGround) -> Ground:
    return open_ground(library())


def search(ground: Ground, query: str, **more: Any) -> Found:
    """Search with an index that follows from nothing."""
    followed = FollowedSearch(ground.store, ground.pipelines, ground.now_ms)
    vocabulary = vocabulary_of(ground.pipelines.values(), within=more.get("pipeline"))
    return followed.search(parse(query, vocabulary, now_ms=ground.now_ms()).root, **more)


def found(ground: Ground, query: str, **more: Any) -> list[str]:
    return [hit.key for hit in search(ground, query, **more).hits]


CORPUS = {
    "rain": Paper(title="The rain in Spain", text="it falls mainly in the plain"),
    "host": Paper(
        title="See example.com/page.html now", text="mail bob@example.org, visit https://news.site.io/a-b?c=d"
    ),
    "hyphen": Paper(title="State-of-the-art machine-learning", text="well-known co-operation"),
    "accent": Paper(title="Café résumé naïve", text="Äpfel über Straße"),
    "number": Paper(title="Version 3.14 and v1.2.3", text="cost -5 1,000 1e5 covid19 2026-01-31 $5.00 50%"),
    "stem": Paper(title="Running runners ran", text="connections connected generously universities"),
    "code": Paper(title="good_first_issue label", text="C++ and C# and node.js don't can't U.S.A. AT&T"),
    "chinese": Paper(title="比特币 价格 上涨", text="ビットコイン"),
    "russian": Paper(title="Биткоин растёт", text="цена выросла"),
    "signs": Paper(title='He said "hello world" twice', text="a & b | c ! d <-> e ( f ) * :x 'q' \\ back"),
    "emoji": Paper(title="Rocket 🚀 launch", text="to the moon"),
}

ANSWERS = {
    "rain": ["rain"],
    "the": ["emoji", "hyphen", "rain"],
    "in spain": ["rain"],
    '"rain in spain"': ["rain"],
    '"rain spain"': [],
    '"spain it falls"': [],
    "example": ["host"],
    "example.com": ["host"],
    "page html": ["host"],
    "bob": ["host"],
    "machine-learning": ["hyphen"],
    '"machine learning"': ["hyphen"],
    '"learning machine"': [],
    "cafe": ["accent"],
    "CAFÉ": ["accent"],
    "apfel uber": ["accent"],
    "straße": ["accent"],
    "3.14": ["number"],
    "covid19": ["number"],
    "covid": [],
    "2026-01-31": ["number"],
    "run": ["stem"],
    "runs": ["stem"],
    "connection": ["stem"],
    "university": ["stem"],
    "good_first_issue": ["code"],
    "first issue": ["code"],
    "node.js": ["code"],
    "don't": ["code"],
    "at&t": ["code"],
    "比特币": ["chinese"],
    "биткоин": ["russian"],
    '"hello world"': ["signs"],
    "🚀": [],
    "rocket moon": ["emoji"],
    "rain -plain": [],
    "the -moon": ["hyphen", "rain"],
    "the -rain -moon": ["hyphen"],
    "& | !": [],
    "rain OR 1": ["number", "rain"],
    "rock*": ["emoji"],
    "-the -a -and": ["accent", "chinese", "russian", "stem"],
}


def test_both_databases_give_the_same_answers(ground: Ground) -> None:
    shelve(ground, **CORPUS)

    assert {query: sorted(found(ground, query)) for query in ANSWERS} == ANSWERS


@pytest.mark.parametrize(
    "query", ["' OR 1=1 --", '" )', "NEAR(a b)", "title:x AND", "a:b:c", "%s %(x)s", "\x02\x03", "$.x"]
)
def test_no_query_means_anything_to_the_database_itself(ground: Ground, query: str) -> None:
    shelve(ground, rain=CORPUS["rain"])

    try:
        assert found(ground, query) in ([], ["rain"])
    except BadInput:
        pass  # our own grammar may refuse it


def test_qualifiers_ask_for_attributes(ground: Ground) -> None:
    shelve(
        ground,
        a=Paper(title="one", by="Ada", type="story", score=10, time_ms=5 * DAY_MS,
                attributes={"tags": ["Red", "blue"], "n": 5, "ratio": 1.5, "status": "open", "ready": True,
                            "odd": None}),
        b=Paper(title="two", by="bob", type="comment", score=3, time_ms=9 * DAY_MS,
                attributes={"tags": [], "n": -2, "status": "closed", "ready": False}),
        c=Paper(title="three"),
    )  # fmt: skip
    answers = {
        "by:ada": ["a"],
        "by:ADA": ["a"],
        "-by:ada": ["b", "c"],
        "type:comment": ["b"],
        "score:10": ["a"],
        "score:>3": ["a"],
        "score:>=3": ["a", "b"],
        "score:<5": ["b"],
        "-score:>5": ["b", "c"],
        "tags:red": ["a"],
        "tags:Blue": ["a"],
        "-tags:red": ["b", "c"],
        "n:5": ["a"],
        "n:<0": ["b"],
        "ratio:>1.4": ["a"],
        "ratio:1.5": ["a"],
        "status:open": ["a"],
        "status:>1": [],
        "ready:true": ["a"],
        "ready:false": ["b"],
        "odd:x": [],
        "unheard_of:x": [],
        "-unheard_of:x": ["a", "b", "c"],
        "after:1970-01-08": ["b"],
        "before:1970-01-08": ["a", "c"],
        "pipeline:library": ["a", "b", "c"],
        "one by:ada": ["a"],
        "one by:bob": [],
        "": ["a", "b", "c"],
    }

    assert {query: sorted(found(ground, query)) for query in answers} == answers


def test_a_title_weighs_more_than_the_text(ground: Ground) -> None:
    filler = "some other words that say little of anything at all " * 3
    shelve(
        ground,
        text=Paper(title="Something else", text=f"{filler} bitcoin {filler}"),
        title=Paper(title="Bitcoin falls", text=filler),
        neither=Paper(title="Weather", text=filler),
    )

    assert found(ground, "bitcoin") == ["title", "text"]


def test_score_and_age_move_a_hit(ground: Ground) -> None:
    now = ground.now_ms()
    shelve(
        ground,
        old=Paper(title="bitcoin report", time_ms=now - 4000 * DAY_MS),
        new=Paper(title="bitcoin report", time_ms=now - DAY_MS),
        loved=Paper(title="bitcoin report", time_ms=now - DAY_MS, score=500),
    )

    assert found(ground, "bitcoin") == ["loved", "new", "old"]


def test_without_words_the_newest_come_first(ground: Ground) -> None:
    shelve(ground, **{str(n): Paper(title="apple", time_ms=n * 1000) for n in range(5)})

    assert found(ground, "") == ["4", "3", "2", "1", "0"]
    assert found(ground, "-pear") == ["4", "3", "2", "1", "0"]
    assert found(ground, "apple", order="newest") == ["4", "3", "2", "1", "0"]


def test_the_total_counts_more_than_the_page(ground: Ground) -> None:
    shelve(ground, **{str(n): Paper(title="apple", text="core") for n in range(30)})

    for query in ("apple", "", "-pear", "apple -pear"):
        answer = search(ground, query, limit=7)
        assert (len(answer.hits), answer.total) == (7, 30)


def test_a_snippet_shows_the_found_words(ground: Ground) -> None:
    text = "Nothing here. " * 40 + "The halving of rewards made miners nervous. " + "Nothing there. " * 40
    shelve(ground, a=Paper(title="Mining news", text=text))

    (hit,) = search(ground, "reward").hits
    assert "\x02rewards\x03" in hit.snippet
    assert len(hit.snippet) < 400
    (hit,) = search(ground, "mining").hits
    assert hit.title == "Mining news"
    assert "\x02" not in hit.title
    (hit,) = search(ground, "").hits
    assert hit.snippet.startswith("Nothing here.")


def test_hits_tell_what_was_published(ground: Ground) -> None:
    paper = Paper(title="T", text="word", by="ada", type="story", score=7, time_ms=99, attributes={"tags": ["x", "é"]})
    shelve(ground, a=paper)

    (hit,) = search(ground, "word").hits

    assert (hit.pipeline, hit.kind, hit.key, hit.author, hit.type) == ("library", "paper", "a", "ada", "story")
    assert (hit.score, hit.time_ms, hit.attributes) == (7, 99, {"tags": ["x", "é"]})


def test_a_newer_revision_replaces_and_a_withdrawal_removes(ground: Ground) -> None:
    shelve(ground, a=Paper(title="apples"))
    shelve(ground, a=Paper(title="pears"))
    assert (found(ground, "apples"), found(ground, "pears")) == ([], ["a"])
    assert search(ground, "").total == 1

    shelve(ground, a=Paper(title="withdrawn"))
    assert (found(ground, "pears"), found(ground, "")) == ([], [])


def test_pipelines_are_searched_apart_or_together(open_ground: OpenGround) -> None:
    ground = open_ground(library(), library("archive"))
    shelve(ground, a=Paper(title="apples"))
    ground.name = "archive"
    shelve(ground, b=Paper(title="apples"))

    assert found(ground, "apples", pipeline="library") == ["a"]
    assert sorted(found(ground, "apples")) == ["a", "b"]
    assert found(ground, "apples pipeline:archive") == ["b"]


def test_what_a_database_cannot_hold_is_found_all_the_same(ground: Ground) -> None:
    odd = "nul \0 here"
    shelve(ground, a=Paper(title=odd, text=odd, by=odd, type=odd, attributes={"tags": [odd], odd: odd}))

    assert found(ground, "nul") == ["a"]
    assert found(ground, '"nul here"') == ["a"]


def test_very_long_words_and_texts_are_indexed_without_harm(ground: Ground) -> None:
    shelve(ground, a=Paper(title="long " + "x" * 5000, text=" ".join(f"w{n}" for n in range(60_000))))

    assert found(ground, "long") == ["a"]
    assert found(ground, "w17") == ["a"]


def test_a_document_that_cannot_be_indexed_costs_only_itself(ground: Ground) -> None:
    shelve(
        ground,
        bad=Paper(title="apple", attributes={"nested": {"a": 1}}),
        huge=Paper(title="a huge apple"),
        good=Paper(title="apple pie"),
    )

    assert found(ground, "apple") == ["good"]
    assert found(ground, "") == ["good"]


def test_a_time_beyond_our_calendar_costs_no_search(ground: Ground) -> None:
    shelve(
        ground,
        late=Paper(title="apple", time_ms=10**18),
        early=Paper(title="apple", time_ms=-(10**17)),
        good=Paper(title="apple", time_ms=DAY_MS),
    )

    answer = search(ground, "apple", order="newest", with_facets=True)

    assert [hit.key for hit in answer.hits] == ["late", "good", "early"]
    assert list(answer.facets["day"]) == ["9999-12-31", "1970-01-02", "0001-01-01"]
    assert all(rfc3339(hit.time_ms) for hit in answer.hits)
