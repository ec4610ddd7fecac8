"""The names that qualifiers may have come from what the pipelines declare."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.support import example

from tidings.model.pipeline import Pipeline
from tidings.model.publication import Collection, Filter, Route
from tidings.model.vocabulary import vocabulary_of
from tidings.model.workflow import Work
from tidings.pipelines import bitcoin_news, eu_funding, feeds, first_issues, hacker_news
from tidings.publish.deliveries import deliveries_for

OURS: tuple[Pipeline, ...] = tuple(
    module.build(module.Settings()) for module in (bitcoin_news, eu_funding, feeds, first_issues, hacker_news)
)


def showing(name: str, collection: Collection) -> Pipeline:
    return replace(example.pipeline(), name=name, collections=(collection,))


def collection(**declared: Any) -> Collection:
    return replace(example.pipeline().collections[0], **declared)


def test_declared_attributes_are_names_and_their_values_are_known() -> None:
    vocabulary = vocabulary_of(OURS)
    for name in ("sentiment", "topic", "deadline", "label", "feed", "event", "title", "after", "story"):
        assert name in vocabulary
    assert "unclaimed" not in vocabulary
    assert vocabulary.doubt("sentiment", "POSITIVE") is None
    assert "known are positive, negative, neutral, unknown" in str(vocabulary.doubt("sentiment", "good"))
    assert vocabulary.doubt("type", "story") is None
    assert vocabulary.doubt("pipeline", "hacker_news") is None
    assert "did you mean `pipeline:hacker_news`" in str(vocabulary.doubt("pipeline", "hacker-news"))
    assert vocabulary.doubt("language", "Klingon") is None


def test_within_a_pipeline_only_its_values_are_known() -> None:
    vocabulary = vocabulary_of(OURS, within="hacker_news")
    assert "known are story, comment" in str(vocabulary.doubt("type", "article"))
    assert vocabulary.doubt("sentiment", "positive") == (
        "`sentiment:` finds nothing here: hacker_news does not have it"
    )


def test_values_are_open_where_one_collection_leaves_them_open() -> None:
    named = showing("one", collection(attributes={"topic": ("ask", "show")}))
    open_ = showing("two", collection(attributes={"topic": ()}))
    assert vocabulary_of([named, open_]).doubt("topic", "anything") is None
    assert vocabulary_of([named, open_], within="one").doubt("topic", "anything") is not None


def test_without_declared_attributes_the_filters_name_them() -> None:
    filters = (Filter("color", "color", values=("red",)), Filter("min_size", "size", "at_least", "integer"))
    vocabulary = vocabulary_of([showing("one", collection(filters=filters))])
    assert "color" in vocabulary
    assert "min_size" not in vocabulary
    assert vocabulary.doubt("color", "blue") is not None
    assert vocabulary.doubt("type", "anything") is None


@pytest.mark.parametrize(("name", "near"), [("sentimnt", "sentiment"), ("tpye", "type"), ("hn", None), ("std", None)])
def test_a_misspelled_name_is_recognized(name: str, near: str | None) -> None:
    assert vocabulary_of(OURS).nearest(name) == near


def test_what_notices_and_documents_can_be_asked_is_declared() -> None:
    for pipeline in OURS:
        vocabulary = vocabulary_of(OURS, within=pipeline.name)
        if pipeline.sample_notice is not None:
            for name, value in pipeline.sample_notice.attributes.items():
                assert name in vocabulary, (pipeline.name, name)
                assert vocabulary.doubt(name, value if isinstance(value, str) else None) is None, (pipeline.name, name)


@pytest.mark.parametrize(
    ("text", "is_meant"), [("type:entry", True), ("by:crew", False), ('by:"the relief crew"', True), ("wiping", True)]
)
def test_a_route_asks_a_notice_what_a_search_asks_its_item(text: str, is_meant: bool) -> None:
    pipeline = next(each for each in OURS if each.name == "feeds")
    assert pipeline.sample_notice is not None
    work = Work("feeds", "entry", "k", "summarized", 1, 1, 1_767_225_600_000, body=None)
    routes = [Route("feeds", "room", text)]
    born = deliveries_for("feeds", work, [pipeline.sample_notice], routes, vocabulary_of([pipeline]))
    assert bool(born) is is_meant
