"""Every notice becomes an embed that Discord takes."""

from __future__ import annotations

import json

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidings.model.publication import Notice, NoticeField
from tidings.publish.notifiers.discord.embeds import embed, embed_address, message
from tidings.publish.wording import units
from tidings.sample.discord_forms import Refusal, check_message

ANY_CHARACTER = st.characters(categories=["L", "M", "N", "P", "S", "Z", "C"])
SHORT = st.text(ANY_CHARACTER, max_size=40)
PATTERN = st.sampled_from(
    ["word ", "*", "@everyone ", "\u202e", "😀", "a" * 50 + " ", "[x](http://y) ", "\n\n", "é", "`\\"]
)
TEXT = st.one_of(SHORT.map(lambda text: (text, 1)), st.tuples(PATTERN, st.sampled_from([3, 90, 300, 1100, 5000])))
"""A piece and how often it is repeated: long texts, told briefly."""
URL = st.one_of(st.just(""), SHORT, SHORT.map("https://example.org/{}".format), SHORT.map("https://{}.example/".format))
TIME = st.one_of(st.none(), SHORT, st.datetimes().map(str), st.just("Tue, 03 Nov 2026 10:00:00 GMT"))


def long(spec: tuple[str, int]) -> str:
    return spec[0] * spec[1]


@settings(max_examples=200, deadline=None)
@given(TEXT, URL, TEXT, st.lists(st.tuples(TEXT, TEXT), max_size=30), st.one_of(st.none(), st.integers()), TIME, SHORT)
def test_discord_takes_every_notice(title, url, text, fields, color, time, delivery_id):
    named = tuple(NoticeField(long(name), long(value)) for name, value in fields)
    notice = Notice(title=long(title), url=url, text=long(text), fields=named, color=color, time=time)

    taken = check_message(msgspec.json.encode(message(notice, delivery_id)), "application/json")

    assert taken["allowed_mentions"] == {"parse": []}
    assert len(taken["embeds"]) == 1


def a_notice(**changes) -> Notice:
    return msgspec.structs.replace(
        Notice(title="A call", url="https://example.org/a", text="A summary.", color=0x2EA043), **changes
    )


def test_an_embed_has_linked_title_summary_color_fields_and_footer():
    notice = a_notice(fields=(NoticeField("Status", "Open"),), time="2026-11-03T10:00:00Z")

    drawn = embed(notice, "0badcafe")

    assert drawn == {
        "title": "A call",
        "url": "https://example.org/a",
        "description": "A summary.",
        "color": 0x2EA043,
        "fields": [{"name": "Status", "value": "Open", "inline": True}],
        "footer": {"text": "tidings • 0badcafe"},
        "timestamp": "2026-11-03T10:00:00.000Z",
    }


def test_the_title_is_cut_at_a_word():
    title = embed(a_notice(title="word " * 100), "1")["title"]

    assert title.endswith("word…")
    assert 250 <= units(title) <= 256


def test_everything_at_its_limit_stays_below_the_total():
    fields = tuple(NoticeField(f"{n} " + "n" * 300, "v" * 2000) for n in range(30))

    drawn = embed(a_notice(title="t" * 300, text="d" * 5000, fields=fields), "1")

    total = units(drawn["title"]) + units(drawn["description"]) + units(drawn["footer"]["text"])
    total += sum(units(field["name"]) + units(field["value"]) for field in drawn["fields"])
    assert 5900 <= total <= 6000
    assert units(drawn["description"]) >= 1500


def test_empty_fields_are_left_out():
    fields = (NoticeField("Stage", " \u200b "), NoticeField("", "x"), NoticeField("Type", "Grant"))

    assert [field["name"] for field in embed(a_notice(fields=fields), "1")["fields"]] == ["Type"]


def test_a_moment_is_told_in_the_time_of_each_reader():
    hour = NoticeField("Deadline", "15 September 2026, 17:00 Brussels time", time="2026-09-15T15:00:00Z")
    day = NoticeField("Deadline", "15 September 2026", time="2026-09-15T22:00:00Z", is_day=True)

    drawn = embed(Notice(title="A call", fields=(hour, day)), "id")["fields"]

    assert drawn[0]["value"] == "15 September 2026, 17:00 Brussels time\n<t:1789484400:F>, <t:1789484400:R>"
    assert drawn[1]["value"] == "15 September 2026\n<t:1789509600:R>"


def test_an_untitled_notice_still_has_a_title():
    assert embed(a_notice(title="\u202e", text=""), "1")["title"] == "Untitled"


@pytest.mark.parametrize(
    "url",
    [None, "", "ftp://example.org/", "//example.org", "https://", "https://user@example.org/", "javascript:alert(1)",
     "https://exa mple.org/", "https://example.org:x/", "https://example.org/" + "a" * 2048],
)  # fmt: skip
def test_an_address_discord_would_refuse_is_left_out(url):
    assert embed_address(url) is None


def test_an_address_is_percent_encoded():
    assert embed_address(" https://Exämple.org/a b?c=ü%20#d ") == "https://xn--exmple-cua.org/a%20b?c=%C3%BC%20#d"


@pytest.mark.parametrize(
    ("holder", "path"),
    [
        ({"title": "x" * 257}, ["embeds", "0", "title"]),
        ({"title": "x", "description": "x" * 4097}, ["embeds", "0", "description"]),
        ({"title": "x", "fields": [{"name": "n", "value": ""}]}, ["embeds", "0", "fields", "0", "value"]),
        ({"title": "x", "fields": [{"name": "n" * 257, "value": "v"}]}, ["embeds", "0", "fields", "0", "name"]),
        ({"title": "x", "fields": [{"name": "n", "value": "v"}] * 26}, ["embeds", "0", "fields"]),
        ({"title": "x", "footer": {"text": "x" * 2049}}, ["embeds", "0", "footer", "text"]),
        ({"title": "x", "url": "nonsense"}, ["embeds", "0", "url"]),
        ({"title": "x", "color": 2**24}, ["embeds", "0", "color"]),
        ({"title": "x", "timestamp": "Tue, 03 Nov 2026 10:00:00 GMT"}, ["embeds", "0", "timestamp"]),
        ({"title": "x", "description": "y" * 4000, "footer": {"text": "z" * 2000}}, ["embeds"]),
        ({"title": "😀" * 129}, ["embeds", "0", "title"]),
    ],
)
def test_the_stand_in_names_the_place_of_each_excess(holder, path):
    with pytest.raises(Refusal) as refusal:
        check_message(json.dumps({"embeds": [holder]}).encode(), "application/json")

    tree = refusal.value.body["errors"]
    for name in path:
        tree = tree[name]
    assert tree["_errors"]
    assert refusal.value.body["code"] == 50035
