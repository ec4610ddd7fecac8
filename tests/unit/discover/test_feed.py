from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tidings.discover.feed import NotAFeed, ParsedFeed, find_feeds, next_check_seconds, parse_feed
from tidings.discover.feed.entry import ENTRIES_MAX

URL = "https://example.org/feed"
FIRST_DAY = datetime(1995, 1, 1, tzinfo=UTC)


def rss(*items: str, channel: str = "", root: str = '<rss version="2.0">') -> bytes:
    body = "".join(f"<item>{item}</item>" for item in items)
    return f'<?xml version="1.0"?>{root}<channel><title>T</title>{channel}{body}</channel></rss>'.encode()


def read(body: bytes, content_type: str | None = "application/rss+xml") -> ParsedFeed:
    return parse_feed(body, content_type, URL)


def only(body: bytes, content_type: str | None = None):
    (entry,) = read(body, content_type).entries
    return entry


# The recorded samples


def test_every_item_of_the_edge_feed_is_read(samples: Path):
    entries = {e.title: e for e in read((samples / "news/synthetic_rss_edge_cases.xml").read_bytes()).entries}
    assert len(entries) == 12
    assert entries["No guid, no date"].id == entries["No guid, no date"].url == "https://example.org/a"
    assert entries["No guid, no date"].published_ms is None
    assert entries["Same link, other tracking"].url == "https://example.org/a"
    assert entries["Numeric guid"].id == "1"
    assert entries["Zone name in date"].published_ms == 1_780_408_800_000
    assert entries["Date not a date"].published_ms is None
    assert entries["ISO date in RSS"].published_ms == 1_780_383_600_000
    assert entries["Relative link"].url == "https://example.org/f"
    assert entries["Script link"].url is None
    assert "Double & escaped <b>" in entries
    assert "Latin-1 text: café €" in entries
    assert entries[""].summary_text == "No title at all"
    assert entries["No link, guid is one"].url == "https://example.org/k"


def test_coindesk_keeps_its_text_behind_an_empty_second_description(samples: Path):
    feed = read((samples / "news/synthetic_coindesk_rss.xml").read_bytes())
    assert len(feed.entries) == 12
    assert feed.entries[0].summary_text.startswith("May turned out to be another weak month")
    assert feed.entries[1].author == "Synthetic Author, Second Author"
    assert feed.entries[0].image == "https://images.example.org/a.png?fm=jpg&w=1920&h=1080"
    assert feed.entries[0].categories == ("Markets", "Bitcoin", "News")
    assert feed.ttl_seconds == 300
    assert feed.language == "en-us"


def test_cointelegraph_loses_its_tracking_and_its_picture_paragraph(samples: Path):
    feed = read((samples / "news/synthetic_cointelegraph_rss.xml").read_bytes())
    assert all(e.url == e.id for e in feed.entries)
    assert feed.entries[0].summary_text.startswith("Whale buying")
    assert feed.update_seconds == 3600


def test_atom_entries_keep_their_own_ids(samples: Path):
    feed = read((samples / "news/synthetic_atom.xml").read_bytes(), "application/atom+xml")
    assert feed.format == "atom10"
    assert len(feed.entries) == 12
    assert feed.entries[1].id.startswith("tag:example.org,2022:")
    assert feed.entries[1].url == (
        "https://cryptopotato.com/terra-founder-do-kwons-twitter-goes-private-as-luna-plunges-20/"
    )


# Formats


def test_json_feed_is_read():
    body = b"""{"version":"https://jsonfeed.org/version/1.1","title":"J","home_page_url":"https://j.example/",
      "language":"en","items":[
        {"id":7,"url":"/a?utm_source=x","title":"A","content_html":"<p>Hi <a href='b'>b</a><script>x</script></p>",
         "date_published":"2026-01-02T03:04:05Z","authors":[{"name":"N"}],"tags":["t","t"],"image":"/i.png"},
        {"id":"b","content_text":"plain"},"nonsense",{"title":"nothing to go by"}]}"""
    feed = read(body, "application/feed+json")
    assert feed.format == "json11"
    assert (feed.repeated, feed.empty) == (0, (3,))
    first, second, third = feed.entries
    assert (third.title, third.url) == ("nothing to go by", None)
    assert (first.id, first.url, first.author) == ("7", "https://j.example/a", "N")
    assert first.content_html.startswith('<p>Hi <a href="https://j.example/b"')
    assert "script" not in first.content_html
    assert first.published_ms == 1_767_323_045_000
    assert first.image == "https://j.example/i.png"
    assert (second.url, second.summary_text, second.published_ms) == (None, "plain", None)


def test_rdf_and_old_atom_are_read():
    rdf = b"""<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="http://purl.org/rss/1.0/"
      xmlns:dc="http://purl.org/dc/elements/1.1/"><channel><title>R</title></channel>
      <item><title>One</title><link>https://r.example/1</link><dc:date>2026-06-02T09:00:00Z</dc:date></item></rdf:RDF>"""
    entry = only(rdf)
    assert (entry.url, entry.published_ms) == ("https://r.example/1", 1_780_390_800_000)
    old = b"""<feed version="0.3" xmlns="http://purl.org/atom/ns#"><title>O</title><entry><title>E</title>
      <link rel="alternate" href="/e"/><id>urn:1</id><modified>2026-06-02T09:00:00Z</modified></entry></feed>"""
    assert only(old).url == "https://example.org/e"


def test_full_text_is_kept_apart_from_the_summary_and_made_harmless():
    item = (
        "<title>T</title><link>https://a.example/x</link>"
        "<description>Short. The post T appeared first on A.</description>"
        "<content:encoded><![CDATA[<p onclick='x()'>Long <img src='/p.png'> and <b>bold</b></p><style>p{}</style>"
        "<a href='javascript:alert(1)'>j</a> <a href='/rel?utm_medium=z&amp;q=1'>r</a>]]></content:encoded>"
    )
    root = '<rss version="2.0" xmlns:content="http://purl.org/rss/1.0/modules/content/">'
    entry = only(rss(item, root=root))
    assert entry.summary_text == "Short."
    assert entry.content_html.startswith('<p>Long <img src="https://a.example/p.png"')
    assert " and <b>bold</b></p>" in entry.content_html
    assert "javascript" not in entry.content_html
    assert "onclick" not in entry.content_html
    assert "p{}" not in entry.content_html
    assert 'href="https://a.example/rel?q=1"' in entry.content_html
    assert entry.image == "https://a.example/p.png"


# Encodings


WORDS = "<title>café €</title><guid>1</guid>"
PLAIN = rss(WORDS).decode()
SAYS_CP1252 = PLAIN.replace('"1.0"', '"1.0" encoding="windows-1252"')
SAYS_LATIN_1 = PLAIN.replace('"1.0"', '"1.0" encoding="iso-8859-1"')


@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        (PLAIN.encode("utf-8-sig"), None),
        (PLAIN.encode("utf-16"), None),
        (PLAIN.encode("utf-16-be"), None),
        (PLAIN.encode(), "text/xml; charset=ISO-8859-1"),
        (PLAIN.encode(), "text/xml; charset=nonsense"),
        (PLAIN.encode(), "text/xml; charset=punycode"),
        (PLAIN.encode("cp1252"), "text/xml; charset=ISO-8859-1"),
        (PLAIN.encode("cp1252"), "text/xml; charset=utf-8"),
        (PLAIN.encode("cp1252"), None),
        (SAYS_CP1252.encode("cp1252"), None),
        (SAYS_LATIN_1.encode(), "text/xml; charset=utf-8"),
        (rss("<title>caf&eacute; &euro;</title><guid>1</guid>"), None),
        (rss("<title>caf&#233; &#8364;</title><guid>1</guid>"), None),
    ],
)
def test_disagreeing_encodings_end_in_the_same_words(body: bytes, content_type: str | None):
    assert only(body, content_type).title == "café €"


def test_japanese_mail_encoding_is_believed():
    body = rss("<title>ビットコイン</title><guid>1</guid>").decode().replace('"1.0"', '"1.0" encoding="iso-2022-jp"')
    assert only(body.encode("iso-2022-jp")).title == "ビットコイン"


def test_a_few_broken_bytes_do_not_turn_the_rest_to_gibberish():
    body = rss("<title>café</title><guid>1</guid><description>" + "ü" * 2000 + "</description>")
    broken = body.replace(b"<guid>", b"\xff<guid>")
    entry = only(broken)
    assert "café" in entry.title or entry.summary_text.startswith("ü")


# Broken, hostile and huge input


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"   \n",
        b"<!DOCTYPE html><html><body>Just a moment...</body></html>",
        b"<html><head><title>403</title></head></html>",
        b'<?xml version="1.0"?><html xmlns="http://www.w3.org/1999/xhtml"><body/></html>',
        b"Service unavailable",
        b"{}",
        b"[1,2]",
        b'{"items": ',
        b'{"error":"nope"}',
        b"[" * 100_000,
        b"<sitemap><url/></sitemap>",
        b"\x00\x01\x02\x03",
        b"%PDF-1.7",
    ],
)
def test_what_is_no_feed_is_refused_with_a_reason(body: bytes):
    with pytest.raises(NotAFeed) as refusal:
        read(body, "application/rss+xml")
    assert str(refusal.value).startswith(URL)


def test_a_refusal_tells_no_secret_of_the_address():
    with pytest.raises(NotAFeed) as refusal:
        parse_feed(b"<html>", None, "https://user:word@example.org/feed?token=canary")
    assert "canary" not in str(refusal.value)
    assert "word" not in str(refusal.value)


@pytest.mark.parametrize(
    "body",
    [
        rss("<title>A & B</title><guid>1</guid>"),
        rss("<title>A &nbsp; B</title><guid>1</guid>"),
        rss("<title>A\x08 B</title><guid>1</guid>"),
        b"\n\n  " + rss("<title>A</title><guid>1</guid>"),
        b"Warning: something in line 3\n" + rss("<title>A</title><guid>1</guid>"),
        rss("<title>A</title><guid>1</guid>")[:-14],
        rss("<title>A</title><guid>1</guid>") + b"<script>trailing()</script>",
        rss("<title>A</title><guid>1</guid><unclosed>"),
        rss("<title>A</title><guid>1</guid><media:content url='x'/>"),
        rss("<title><![CDATA[A]]></title><guid>1</guid><description><![CDATA[never closed"),
    ],
)
def test_broken_xml_still_gives_its_entry(body: bytes):
    assert only(body).title.startswith("A")


def test_entities_are_neither_expanded_nor_loaded(tmp_path: Path):
    secret = tmp_path / "secret"
    secret.write_text("canary")
    laughs = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 10))
    body = (
        f'<?xml version="1.0"?><!DOCTYPE rss [<!ENTITY l0 "ha">{laughs}<!ENTITY file SYSTEM "file://{secret}">'
        '<!ENTITY web SYSTEM "http://127.0.0.1:9/">]><rss version="2.0"><channel><title>T</title>'
        "<item><title>A &l9; &file; &web;</title><guid>1</guid></item></channel></rss>"
    )
    entry = only(body.encode())
    assert "canary" not in entry.title
    assert "haha" not in entry.title
    assert len(entry.title) < 200


def test_the_number_of_entries_is_bounded():
    feed = read(rss(*(dated(day) for day in range(ENTRIES_MAX + 200))))
    assert len(feed.entries) == ENTRIES_MAX
    assert feed.entries[0].title == str(ENTRIES_MAX + 199)
    assert feed.left_out == f"the 200 oldest of {ENTRIES_MAX + 200:,} entries"
    assert feed.flaw is None


def test_a_huge_entry_is_cut():
    huge = "x" * 900_000
    entry = only(rss(f"<title>{huge}</title><guid>{huge}</guid><description>{huge} {huge}</description>"))
    assert len(entry.title) <= 500
    assert len(entry.id) <= 1000
    assert len(entry.summary_text) <= 4000


def test_endless_nesting_is_refused():
    with pytest.raises(NotAFeed, match="nests"):
        read(b"<rss><channel><title>" + b"<a>" * 100_000)
    assert read(b"<rss><channel><item><title>" + b"<a>" * 100_000).entries == ()


@pytest.mark.parametrize(
    "piece",
    [b"<", b"&", b"<a b='", b"<!--", b"<![CDATA[", b"<?x", b"</a>", b"<item>", b"<item/>", b"<category>a</category>"],
)
def test_hostile_repetition_takes_seconds_at_most(piece: bytes):
    started = time.process_time()
    try:
        read(b"<rss><channel>" + piece * (3_000_000 // len(piece)))
    except NotAFeed:
        pass
    assert time.process_time() - started < 20


@pytest.mark.parametrize(
    "date",
    ["", "0", "Thu, 01 Jan 1970 00:00:00 GMT", "Fri, 31 Dec 9999 23:59:59 GMT", "-1", "Mon, 99 Foo 2026"],
)
def test_impossible_dates_are_no_dates(date: str):
    assert only(rss(f"<title>A</title><guid>1</guid><pubDate>{date}</pubDate>")).published_ms is None


def test_a_bare_guid_is_no_address():
    assert only(rss("<title>A</title><guid>1</guid>")).url is None


def test_a_date_in_the_future_is_reported_as_given():
    entry = only(rss("<guid>1</guid><pubDate>Tue, 19 Jan 2038 03:14:08 GMT</pubDate>"))
    assert entry.published_ms == 2**31 * 1000


def test_repeated_and_empty_entries_are_counted():
    feed = read(rss("<guid>1</guid><title>first</title>", "<guid>1</guid><title>again</title>", "<title/>"))
    assert [e.title for e in feed.entries] == ["first"]
    assert (feed.repeated, feed.empty) == (1, (3,))


def test_an_entry_without_id_and_address_is_known_by_its_content():
    body = rss("<title>Fog</title><description>thick</description>", "<description>Only words</description>")
    feed = read(body)
    assert [(e.title, e.summary_text, e.url) for e in feed.entries] == [
        ("Fog", "thick", None),
        ("", "Only words", None),
    ]
    assert len({e.id for e in feed.entries}) == 2
    assert [e.id for e in read(body).entries] == [e.id for e in feed.entries]


def test_a_recording_without_a_page_is_its_own_page():
    entry = only(rss("<title>Ep</title><enclosure url='https://pod.example/1.mp3' type='audio/mpeg' length='1'/>"))
    assert entry.url == "https://pod.example/1.mp3"


def dated(day: int) -> str:
    return (
        f"<title>{day}</title><guid>{day}</guid><pubDate>{format_datetime(FIRST_DAY + timedelta(days=day))}</pubDate>"
    )


def test_a_feed_written_oldest_first_shows_its_newest_first_and_all_of_it():
    feed = read(rss(*(dated(day) for day in range(730))))
    assert [e.title for e in feed.entries] == [str(day) for day in reversed(range(730))]
    assert (feed.left_out, feed.flaw) == (None, None)


def test_a_feed_of_more_than_four_million_characters_is_read_whole():
    words = "x" * 9_000
    feed = read(rss(*(f"{dated(day)}<description>{words}</description>" for day in range(600))))
    assert len(feed.entries) == 600
    assert (feed.left_out, feed.flaw) == (None, None)


def test_an_entry_that_nests_without_end_costs_only_itself():
    feed = read(rss("<title>A</title><guid>1</guid>", "<guid>2</guid><title>" + "<a>" * 500, "<title>C</title>"))
    assert [e.title for e in feed.entries] == ["A", "C"]
    assert feed.left_out == "1 entries with too many levels or attributes"


def test_an_empty_feed_is_a_feed():
    assert read(rss()).entries == ()


PIECES = [
    b"<rss>",
    b"<channel>",
    b"<item>",
    b"</item>",
    b"<title>",
    b"</title>",
    b"<link>",
    b"&",
    b"]]>",
    b"<![CDATA[",
    b"<guid isPermaLink='x'>",
    b"<pubDate>Tue",
    b"\xff",
    b"\x00",
    b"<entry xml:base='http://[bad'>",
    b"<link href='//[::1'/>",
    b"<content type='xhtml'><div>",
    b"<media:content url='",
    b"'/>",
    b"<dc:date>2026</dc:date>",
    b"<author>a@b (c)</author>",
    b"<enclosure url='%zz'/>",
    b"<ttl>NaN</ttl>",
    b"{",
    b"<feed xmlns='http://www.w3.org/2005/Atom'>",
    b"&#xD800;",
    b"&#0;",
]


@settings(max_examples=200, deadline=None)
@given(st.lists(st.sampled_from(PIECES) | st.binary(max_size=8), max_size=60).map(b"".join))
def test_no_bytes_crash_the_reader(body: bytes):
    for candidate in (body, b"<rss><channel>" + body, b"<feed>" + body):
        try:
            parse_feed(candidate, "text/xml", URL)
        except NotAFeed:
            pass


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_no_damage_to_a_real_feed_crashes_the_reader(samples: Path, data: st.DataObject):
    name = data.draw(st.sampled_from(["synthetic_cointelegraph_rss.xml", "synthetic_atom.xml"]))
    body = bytearray((samples / "news" / name).read_bytes()[:6000])
    for _ in range(data.draw(st.integers(1, 20))):
        body[data.draw(st.integers(0, len(body) - 1))] = data.draw(st.integers(0, 255))
    try:
        parse_feed(bytes(body), None, URL)
    except NotAFeed:
        pass


# Hints


def feed_with(ttl: float | None = None, update: float | None = None) -> ParsedFeed:
    return ParsedFeed(url=URL, format="rss20", title="T", entries=(), ttl_seconds=ttl, update_seconds=update)


@pytest.mark.parametrize(
    ("feed", "headers", "expected"),
    [
        (feed_with(), {}, None),
        (feed_with(ttl=300), {}, None),
        (feed_with(ttl=7200), {}, 7200),
        (feed_with(update=604_800), {}, 14_400),
        (None, {"cache-control": "public, max-age=5400"}, 5400),
        (feed_with(ttl=7200), {"cache-control": "max-age=60"}, 7200),
        (None, {"cache-control": "max-age=nonsense"}, None),
    ],
)
def test_the_outlets_wish_is_bounded_by_ours(feed: ParsedFeed | None, headers: dict[str, str], expected: float | None):
    assert next_check_seconds(feed, headers, every_seconds=3600) == expected


# Finding feeds


def test_announced_feeds_are_found_in_order():
    html = b"""<html><head><base href="https://cdn.example/x/">
      <!-- <link rel="alternate" type="application/rss+xml" href="/old.xml"> -->
      <link rel='alternate stylesheet' type='text/css' href='a.css'>
      <LINK REL="alternate" TYPE="application/rss+xml" HREF="/rss?a=1&amp;b=2">
      <link rel=alternate type=application/atom+xml href=atom.xml>
      <link rel="alternate" type="application/feed+json" href="//j.example/feed.json">
      <link rel="alternate" type="application/rss+xml" href="javascript:alert(1)"></head><a href="/feed">f</a>"""
    assert find_feeds(html, "https://site.example/") == [
        "https://cdn.example/rss?a=1&b=2",
        "https://cdn.example/x/atom.xml",
        "https://j.example/feed.json",
    ]


def test_links_that_look_like_feeds_are_the_second_choice():
    html = '<a href="/about">a</a> <a href="/blog/feed/">f</a> <a href="/feedback">no</a> <a href="/rss.xml">r</a>'
    assert find_feeds(html, "https://s.example/") == ["https://s.example/blog/feed/", "https://s.example/rss.xml"]


@pytest.mark.parametrize("html", ["", "<" * 500_000, "<!--" * 250_000, "<link " * 100_000, '<a href="' * 100_000])
def test_finding_feeds_survives_anything(html: str):
    started = time.process_time()
    assert find_feeds(html, "https://s.example/") == []
    assert time.process_time() - started < 5
