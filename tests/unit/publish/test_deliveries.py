"""Deliveries are born by routes, keyed by channel, parent and revision."""

from __future__ import annotations

import msgspec
import pytest

from tidings.model.publication import Notice, Route
from tidings.model.vocabulary import vocabulary_of
from tidings.model.workflow import Work
from tidings.pipelines.eu_funding import Settings, build
from tidings.publish.deliveries import deliveries_for, present_delivery
from tidings.publish.delivery import Delivery, short_id

NOW = 1_800_000_000_000
NOTICE = Notice(
    title="Quiet harbours",
    text="Noise of small vessels.",
    time="2027-01-15T08:00:00Z",
    attributes={
        "programme": ["HORIZON", "Horizon Europe"],
        "status": "open",
        "type": "grant",
        "deadline": "2027-09-21",
    },
)
WORK = Work("eu_funding", "opportunity", "1TOPICS", "summarized", 1, 3, NOW, body=None)
VOCABULARY = vocabulary_of([build(Settings())])


def channels(notice: Notice, *routes: tuple[str, str]) -> list[str]:
    asked = [Route("eu_funding", channel, query) for channel, query in routes]
    return [
        msgspec.json.decode(f.payload, type=Delivery).channel
        for f in deliveries_for("eu_funding", WORK, [notice], asked, VOCABULARY)
    ]


def test_a_delivery_tells_channel_parent_and_revision_in_its_key():
    (born,) = deliveries_for("eu_funding", WORK, [NOTICE], [Route("eu_funding", "eu")])

    body = msgspec.json.decode(born.payload, type=Delivery)
    assert (born.kind, born.key) == ("delivery", "eu/opportunity/1TOPICS/3")
    assert body == Delivery(
        id=short_id("eu_funding", born.key),
        channel="eu",
        parent="opportunity:1TOPICS",
        notice=NOTICE,
        queued_at=NOW,
        route=Route("eu_funding", "eu").name,
    )
    assert len(body.id) == 12


@pytest.mark.parametrize(
    ("query", "matches"),
    [
        ("", True),
        ("programme:HORIZON status:open", True),
        ('programme:"horizon europe"', True),
        ("programme:LIFE", False),
        ("status:forthcoming", False),
        ("-status:closed", True),
        ("type:grant", True),
        ("type:cascade", False),
        ("deadline:<2027-10-01", True),
        ("deadline:>2027-10-01", False),
        ("harbours", True),
        ("-vessels", False),
        ("after:2027-01-01", True),
    ],
)
def test_routes_choose_by_query(query, matches):
    assert channels(NOTICE, ("eu", query)) == (["eu"] if matches else [])


def test_several_channels_get_one_each_and_none_gets_two():
    routes = [("a", ""), ("b", "status:open"), ("a", "programme:HORIZON"), ("c", "status:closed")]

    assert channels(NOTICE, *routes) == ["a", "b"]


def test_routes_of_other_pipelines_do_not_count():
    assert deliveries_for("eu_funding", WORK, [NOTICE], [Route("hacker_news", "eu")]) == ()


def test_two_notices_of_one_revision_are_two_deliveries():
    born = deliveries_for("eu_funding", WORK, [NOTICE, NOTICE], [Route("eu_funding", "eu")])

    assert [finding.key for finding in born] == ["eu/opportunity/1TOPICS/3", "eu/opportunity/1TOPICS/3/1"]


def test_a_sent_delivery_is_shown_with_its_proof():
    body = Delivery(
        id="abc", channel="eu", parent="opportunity:1", notice=NOTICE, queued_at=NOW, message_id="9", sent_at=NOW + 5
    )

    shown = present_delivery("eu/opportunity/1/1", body)

    assert shown is not None
    assert (shown.collection, shown.id, shown.sort, shown.document) == ("deliveries", "abc", NOW + 5, None)
    assert (shown.card.state, shown.card.message_id, shown.card.sent_at) == ("sent", "9", "2027-01-15T08:00:00.005Z")
