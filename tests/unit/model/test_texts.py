"""Texts with placeholders: filled in, never evaluated, and checked with the nearest name."""

from __future__ import annotations

import pytest

from tidings.model.publication import Notice, NoticeField, Texts
from tidings.model.texts import check, merged, render, worded
from tidings.pipelines.eu_funding.notices import SAMPLE, notice_of

NOTICE = notice_of(SAMPLE, SAMPLE.found_at)
NAMES = tuple(NOTICE.attributes)
LABELS = tuple(field.name for field in NOTICE.fields)


@pytest.mark.parametrize(
    ("text", "filled"),
    [
        ("{title}", NOTICE.title),
        ("{status|upper}: {title|cut:9}", "OPEN: Quiet…"),
        ("until {deadline|date}", "until 21 September 2027"),
        ("{opening_date}", "12 January 2027"),
        ("{budget}", "EUR 20 million"),
        ("{project|or:no project}", "no project"),
        ("{changes|after: }{identifier}", "SAMPLE-2027-HARBOUR-01"),
        ("{summary|cut:30}", "If you can read this, the…"),
        ("a {{brace}} stays", "a {brace} stays"),
        ("{project}\n{status}", "Open"),
        ("{keyword}", ""),
        ("{event|capitalize} call", "New call"),
    ],
)
def test_a_placeholder_is_filled_in(text, filled):
    assert list(check(Texts(text=text), NAMES, (*LABELS, "Project"), "routes")) == []
    assert render(text, NOTICE) == filled


@pytest.mark.parametrize(
    "text", ["{__class__}", "{title.__class__}", "{title!r}", "{0}", "{title:>9999999}", "{}", "{ti{t}le}"]
)
def test_nothing_is_evaluated(text):
    assert list(check(Texts(title=text), NAMES, LABELS, "routes")) != []


@pytest.mark.parametrize(
    ("texts", "problem"),
    [
        (Texts(title="{titel}"), "routes.title: there is no {titel}; did you mean {title}?"),
        (Texts(text="{deadlin|date}"), "routes.text: there is no {deadlin}; did you mean {deadline}?"),
        (Texts(text="{summary|cot:3}"), "routes.text: there is no filter 'cot'; did you mean cut?"),
        (Texts(text="{summary|cut}"), "routes.text: the filter cut needs a number: cut:300"),
        (Texts(footer="{title|upper:9}"), "routes.footer: the filter upper takes nothing behind a colon"),
        (Texts(footer="a } b"), "routes.footer: a brace stands alone at character 3; write }} for a brace"),
        (Texts(colors={"open": "green"}), "routes.colors.open: 'green' is no color; write one as #2ea043"),
        (Texts(fields=("Dedline",)), "routes.fields: there is no field 'Dedline'; did you mean Deadline?"),
    ],
)
def test_a_mistake_is_told_with_the_nearest(texts, problem):
    assert list(check(texts, NAMES, LABELS, "routes")) == [problem]


def test_a_route_chooses_words_color_and_fields():
    texts = Texts(
        title="[{programme}] {title}",
        footer="EU Fund Tracker • Powered by Cloudflare Workers",
        colors={"open": "#123456"},
        fields=("Deadline", "budget"),
        username="EU funds",
        avatar="https://example.org/eu.png",
    )

    notice = worded(NOTICE, texts)

    assert notice.title == f"[Horizon Europe (HORIZON)] {NOTICE.title}"
    assert (notice.text, notice.color) == (NOTICE.text, 0x123456)
    assert [field.name for field in notice.fields] == ["Deadline", "Budget"]
    assert (notice.footer, notice.username) == (texts.footer, "EU funds")


def test_without_texts_a_notice_stays_as_it_is():
    assert worded(NOTICE, Texts()) == NOTICE


def test_what_a_stranger_wrote_is_never_read_as_a_placeholder():
    stranger = Notice(title="{status} {title|cut:1}", fields=(NoticeField("Deadline", "{title}"),))

    assert render("{title} {deadline}", stranger) == "{status} {title|cut:1} {title}"


def test_a_route_says_more_than_its_channel():
    channel, route = Texts(footer="channel", username="news", colors={"open": "#000001"}), Texts(footer="route")

    assert merged(route, channel) == Texts(footer="route", username="news", colors={"open": "#000001"})
