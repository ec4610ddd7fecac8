from __future__ import annotations

import msgspec
from tests.unit.pipelines.hacker_news.working import NOW_MS, a_body, a_comment, presented

from tidings.model.clock import rfc3339
from tidings.model.query import Query, parse
from tidings.model.query_match import matches
from tidings.model.vocabulary import Vocabulary
from tidings.pipelines.hacker_news.cards import ITEMS, moment


def asked(text: str) -> Query:
    return parse(text, Vocabulary(frozenset(ITEMS.attributes)), now_ms=NOW_MS)


def test_a_story_has_a_card_with_the_names_of_the_api():
    story = a_body(
        title="Show HN: a &lt;b&gt; &amp; c",
        url="https://www.example.com/x?y=1",
        score=9,
        descendants=2,
        kids=(102, 101),
    )

    shown = presented(story)

    assert msgspec.to_builtins(shown.card) == {
        "id": 100,
        "type": "story",
        "state": "completed",
        "by": "someone",
        "time": 1_700_000_000,
        "published_at": "2023-11-14T22:13:20Z",
        "title": "Show HN: a <b> & c",
        "url": "https://www.example.com/x?y=1",
        "site": "example.com",
        "score": 9,
        "descendants": 2,
        "kids": (102, 101),
        "topic": "show",
    }
    assert (shown.collection, shown.id, shown.sort) == ("items", "100", 1_700_000_000_000)


def test_the_search_knows_words_author_type_score_time_and_place():
    comment = a_comment(text='one<p>two &lt;3 <a href="https://x.example/">x</a></p>', kids=(105,), score=4, dead=True)

    make = presented(comment).document
    assert make is not None
    document = make()

    assert document.text.split() == ["one", "two", "<3", "x"]
    assert (document.author, document.type, document.score, document.time_ms) == (
        "someone",
        "comment",
        4,
        1_700_000_000_000,
    )
    assert document.attributes == {"replies": 1, "parent": 50, "dead": "true"}
    for query in (
        "type:comment by:someone two",
        "parent:50",
        "score:>3",
        "dead:true",
        "replies:>0",
        "before:2024-01-01",
    ):
        assert matches(asked(query), document), query
    assert not matches(asked("-dead:true"), document)


def test_a_deleted_item_keeps_its_place_and_loses_its_words():
    shown = presented(a_comment(deleted=True, text="secret", kids=(105,)))

    assert shown.document is None
    assert msgspec.to_builtins(shown.card) == {
        "id": 100,
        "type": "comment",
        "state": "completed",
        "time": 1_700_000_000,
        "published_at": "2023-11-14T22:13:20Z",
        "kids": (105,),
        "parent": 50,
        "deleted": True,
    }


def test_an_item_without_a_time_stands_where_it_came_in():
    shown = presented(a_body(time=None, ingested_at=NOW_MS))

    assert (shown.sort, shown.card.published_at) == (NOW_MS, None)


def test_a_title_of_nothing_is_none():
    assert presented(a_body(title="  ")).card.title is None


def test_moments_agree_with_the_calendar():
    for seconds in (0, 951_782_399, 951_782_400, 1_700_000_000, 4_102_444_799):
        assert moment(seconds) == (rfc3339(seconds * 1000) or "").replace(".000", "")


def test_the_filters_name_fields_of_the_card():
    fields = ITEMS.card.__struct_fields__

    assert {each.field for each in ITEMS.filters} <= set(fields)
    assert set(ITEMS.facets) | {ITEMS.time_field, ITEMS.title_field, ITEMS.link_field, ITEMS.summary_field} <= set(
        fields
    )
