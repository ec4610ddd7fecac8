from __future__ import annotations

import msgspec
import pytest

from tidings.model.errors import BadInput
from tidings.model.item import LOW, NORMAL
from tidings.pipelines.hacker_news.body import ItemBody
from tidings.pipelines.hacker_news.upload import admit, finding_of, given_of


def body_of(value, way="BULK"):
    return msgspec.json.decode(admit(value, way=way).payload, type=ItemBody)


def test_an_item_becomes_a_finding():
    finding = admit({"id": 5, "type": "story", "title": "T", "time": 1_700_000_000}, way="POST")

    assert (finding.pipeline, finding.kind, finding.key, finding.priority) == ("hacker_news", "item", "5", NORMAL)
    body = msgspec.json.decode(finding.payload, type=ItemBody)
    assert (body.id, body.type, body.title, body.source_type) == (5, "story", "T", "POST")
    assert admit({"id": 5}, way="BULK").priority == LOW


def test_the_same_item_has_the_same_fingerprint_whichever_way_it_came():
    firebase = {"id": 7, "type": "comment", "parent": 5, "time": 1_700_000_000, "text": "x"}
    dump = {
        "id": "7",
        "parent": "5",
        "time": "1700000000",
        "text": "x",
        "kids": [],
        "dead": False,
        "title": "",
        "url": None,
    }

    findings = [
        admit(firebase, way="POST"),
        admit(dump, way="BULK"),
        finding_of(given_of(firebase), "FIREBASE"),
        admit({**firebase, "extra_future_field": {"a": 1}}, way="BULK"),
    ]

    assert len({finding.fingerprint for finding in findings}) == 1


@pytest.mark.parametrize("change", [{"score": 2}, {"kids": [9, 8]}, {"text": "y"}, {"dead": True}, {"descendants": 1}])
def test_every_field_that_may_be_newer_counts(change):
    base = {"id": 7, "type": "story", "score": 1, "kids": [8, 9], "text": "x"}

    assert admit(base, way="POST").fingerprint != admit({**base, **change}, way="POST").fingerprint


def test_dumps_with_strings_and_no_type_are_read_and_marked():
    body = body_of({"by": "a", "id": "33103581", "parent": "33103150", "text": "t", "time": "1665022937"})

    assert (body.id, body.parent, body.time) == (33103581, 33103150, 1665022937)
    assert (body.type, body.type_inferred) == ("comment", True)


def test_a_type_is_inferred_only_for_comments():
    assert body_of({"id": 1, "title": "T"}).type is None
    assert body_of({"id": 1, "title": "T", "parent": 3}).type is None
    assert body_of({"id": 1}).type is None
    assert body_of({"id": 3, "parent": 1, "type": "story"}).type_inferred is False


def test_an_option_that_names_its_poll_as_parent_is_mended():
    body = body_of({"id": 12, "type": "pollopt", "parent": 10, "text": "yes"})

    assert (body.poll, body.parent) == (10, None)


def test_empty_numbers_of_dumps_are_missing():
    body = body_of({"id": "12", "type": "story", "score": "", "time": "1665022937.0", "descendants": None, "dead": ""})

    assert (body.score, body.time, body.descendants, body.dead) == (None, 1665022937, None, None)


def test_nobody_can_upload_our_own_notes():
    body = body_of(
        {"id": 1, "type": "story", "source_type": "FIREBASE", "retry_count": 99, "ingested_at": 5, "stack": "x"}
    )

    assert (body.source_type, body.retry_count, body.ingested_at, body.stack) == ("BULK", 0, None, None)
    assert body_of({"id": 1}, way='"},{').source_type == "UNKNOWN"


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (None, "null is no item"),
        ([], "an item must be a JSON object"),
        ("x", "an item must be a JSON object"),
        ({}, "id is missing"),
        ({"type": "story", "title": "no id"}, "id is missing"),
        ({"id": None}, "id is missing"),
        ({"id": -1}, "id: -1 is not positive"),
        ({"id": "0"}, "id: 0 is not positive"),
        ({"id": "x"}, "id: expected int, got str"),
        ({"id": True}, "id: expected int, got bool"),
        ({"id": 1.5}, "id: expected int, got float"),
        ({"id": str(2**63)}, "id: expected int <= 9223372036854775807"),
        ({"id": 1, "kids": "x"}, "kids: expected array, got str"),
        ({"id": 1, "kids": [2, {}]}, "kids: expected int, got object"),
        ({"id": 1, "text": 5}, "text: expected str, got int"),
        ({"id": 1, "type": {}}, "type: expected str, got object"),
        ({"id": 1, "dead": "perhaps"}, "dead: expected bool, got str"),
    ],
)
def test_what_cannot_be_an_item_is_refused_with_a_reason(value, reason):
    with pytest.raises(BadInput) as caught:
        admit(value, way="BULK")

    assert str(caught.value) == reason
