# ruff: noqa: E501  # as other programs write it
"""Lists of feeds: what other readers export, what strangers send, and what we write."""

from __future__ import annotations

import pytest

from tidings.discover.opml import Outline, read_opml, write_opml
from tidings.model.errors import BadInput

MINIFLUX = b"""<?xml version="1.0" encoding="UTF-8"?>
<opml version="2.0">
  <head><title>Miniflux</title><dateCreated>Wed, 18 Nov 2026 08:00:00 UTC</dateCreated></head>
  <body>
    <outline text="Harbor">
      <outline title="The Beacon" text="The Beacon" xmlUrl="https://beacon.example/feed.xml" htmlUrl="https://beacon.example/" description="" type="rss"></outline>
      <outline title="Tides &amp; Times" text="Tides &amp; Times" xmlUrl="https://tides.example/atom?a=1&amp;b=2" htmlUrl="https://tides.example/" type="rss"></outline>
    </outline>
    <outline text="All">
      <outline title="Lamps" text="Lamps" xmlUrl="https://lamps.example/rss" type="rss"></outline>
    </outline>
  </body>
</opml>"""
FRESHRSS = b"""<?xml version="1.0" encoding="UTF-8"?>
<opml xmlns:frss="https://freshrss.org/opml" version="2.0">
  <head><title>FreshRSS</title><dateCreated>Wed, 18 Nov 2026 08:00:00 +0000</dateCreated></head>
  <body>
    <outline text="News" frss:priority="important">
      <outline text="The Beacon" type="rss" xmlUrl="https://beacon.example/feed.xml" htmlUrl="https://beacon.example/" description="Lights" frss:cssFullContent="article"/>
      <outline text="A page" type="HTML+XPath" xmlUrl="https://page.example/" frss:xPathItem="//article"/>
    </outline>
    <outline text="Single" type="rss" xmlUrl="https://single.example/feed" category="/Science/Sea,/Other"/>
  </body>
</opml>"""
FEEDLY = b"""<?xml version="1.0" encoding="UTF-8"?>

<opml version="1.0">
    <head><title>A reader's subscriptions in feedly Cloud</title></head>
    <body>
        <outline text="Tech" title="Tech">
            <outline type="rss" text="The Beacon" title="The Beacon" xmlUrl="http://beacon.example/feed.xml" htmlUrl="http://beacon.example"/>
        </outline>
        <outline type="rss" text="Alone" title="Alone" xmlUrl="https://alone.example/feed" htmlUrl="https://alone.example"/>
    </body>
</opml>"""


def feeds(data: bytes) -> list[tuple[str, str | None, str | None]]:
    return [(each.address, each.title, each.category) for each in read_opml(data).outlines if not each.trouble]


def test_minifluxs_export_is_read_with_its_categories() -> None:
    assert feeds(MINIFLUX) == [
        ("https://beacon.example/feed.xml", "The Beacon", "Harbor"),
        ("https://tides.example/atom?a=1&b=2", "Tides & Times", "Harbor"),
        ("https://lamps.example/rss", "Lamps", "All"),
    ]


def test_freshrss_export_is_read_and_its_scraped_pages_are_named() -> None:
    assert feeds(FRESHRSS) == [
        ("https://beacon.example/feed.xml", "The Beacon", "News"),
        ("https://single.example/feed", "Single", "Science / Sea"),
    ]
    (page,) = (each for each in read_opml(FRESHRSS).outlines if each.trouble)
    assert (page.line, page.trouble) == (7, "its type is 'HTML+XPath', which is no feed")


def test_feedlys_export_is_read() -> None:
    assert feeds(FEEDLY) == [
        ("http://beacon.example/feed.xml", "The Beacon", "Tech"),
        ("https://alone.example/feed", "Alone", None),
    ]


def test_what_is_written_reads_the_same() -> None:
    written = write_opml(
        [
            Outline(0, "https://a.example/?x=1&y=\"'", 'A <b> & "c"', "Sea / Ships"),
            Outline(0, "https://b.example/", "Bänder 🎏", None),
            Outline(0, "https://c.example/", None, "Sea / Ships"),
        ],
        "Mine & yours",
    )
    assert sorted(feeds(written)) == [
        ("https://a.example/?x=1&y=\"'", 'A <b> & "c"', "Sea / Ships"),
        ("https://b.example/", "Bänder 🎏", None),
        ("https://c.example/", "https://c.example/", "Sea / Ships"),
    ]


BOMB = b'<?xml version="1.0"?><!DOCTYPE opml [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]><opml>&b;</opml>'
OUTSIDE = (
    b'<!DOCTYPE opml [<!ENTITY x SYSTEM "file:///etc/passwd">]><opml><outline xmlUrl="https://a.example/&x;"/></opml>'
)


@pytest.mark.parametrize(
    ("data", "mistake"),
    [
        (BOMB, "declares the entity 'a'"),
        (OUTSIDE, "declares the entity 'x'"),
        (b"<rss/>", "no <opml> element"),
        (b"", "no OPML: line 1"),
        (b"{}", "no OPML: line 1"),
        (b"<opml>" + b" " * (20 * 1024 * 1024), "at most"),
        (b"<opml>" + b'<outline text="f">' * 5000, "folders stand more than 200 deep"),
    ],
)
def test_what_is_hostile_or_no_list_is_refused(data: bytes, mistake: str) -> None:
    with pytest.raises(BadInput, match=mistake):
        read_opml(data)


def test_folders_fifty_deep_and_ten_megabytes_are_read() -> None:
    deep = b'<outline text="f">' * 50 + b'<outline xmlUrl="https://a.example/"/>' + b"</outline>" * 50
    (outline,) = read_opml(b"<opml><body>" + deep + b"</body></opml>").outlines
    assert outline.category is not None
    assert len(outline.category) <= 100
    one = b'<outline text="%s" xmlUrl="https://a.example/%d"/>'
    large = b"<opml><body>" + b"".join(one % (b"x" * 500, number) for number in range(19_000)) + b"</body></opml>"
    assert len(large) > 10_000_000
    assert len(read_opml(large).outlines) == 19_000


@pytest.mark.parametrize(
    ("declared", "written"), [("windows-1251", "cp1251"), ("utf-16", "utf-16"), ("iso-8859-5", "iso-8859-5")]
)
def test_other_encodings_are_read(declared: str, written: str) -> None:
    text = f'<?xml version="1.0" encoding="{declared}"?><opml><outline text="Маяк" xmlUrl="https://a.example/"/></opml>'
    assert feeds(text.encode(written)) == [("https://a.example/", "Маяк", None)]


def test_a_wrong_encoding_is_told_and_read_as_far_as_possible() -> None:
    text = '<?xml version="1.0" encoding="utf-8"?><opml><outline text="Bäcker" xmlUrl="https://a.example/"/></opml>'
    reading = read_opml(text.encode("latin-1"))
    assert [each.title for each in reading.outlines] == ["Bäcker"]
    assert reading.notes == ["it is not utf-8, as it says; letters may be wrong"]
    unknown = read_opml(text.replace("utf-8", "klingon").encode())
    assert "not known" in unknown.notes[0]


def test_what_is_cut_off_is_read_up_to_there() -> None:
    reading = read_opml(MINIFLUX[:500])
    assert len(reading.outlines) >= 1
    assert "the rest was not" in reading.notes[0]
