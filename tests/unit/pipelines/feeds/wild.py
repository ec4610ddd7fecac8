"""Feeds as strangers write them: broken, mislabelled, enormous, hostile. Every case is made here, from fixed seeds."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator

Case = tuple[str, str, bytes]
"""A name, a content type, and the bytes."""

RSS = "application/rss+xml"
ITEM = (
    "<item><title>Caf\u00e9 {n} \u2014 na\u00efve</title><link>https://a.example/{n}</link>"
    "<guid>https://a.example/{n}</guid><pubDate>Tue, 02 Jun 2026 0{n}:00:00 GMT</pubDate>"
    "<description><![CDATA[<p>Some <b>words</b> &amp; more \u20ac.</p>]]></description></item>"
)


def rss(items: str, declared: str = "utf-8", head: str = "") -> str:
    """Write an RSS feed around items."""
    return (
        f'<?xml version="1.0" encoding="{declared}"?>\n{head}<rss version="2.0"><channel><title>Wild</title>'
        f"<link>https://a.example/</link><description>d</description>{items}</channel></rss>"
    )


def atom(entries: str) -> str:
    """Write an Atom feed around entries."""
    return f'<feed xmlns="http://www.w3.org/2005/Atom"><title>Wild</title><id>urn:w</id>{entries}</feed>'


def items(count: int = 3) -> str:
    """Write plain items."""
    return "".join(ITEM.format(n=n % 10) for n in range(count))


def corpus() -> Iterator[Case]:
    """Yield every case."""
    yield from encodings()
    yield from shapes()
    yield from identities()
    yield from sizes()
    yield from attacks()
    yield from json_feeds()
    yield from mutations()


def encodings() -> Iterator[Case]:
    """Yield texts whose bytes, declaration and header disagree."""
    text = rss(items())
    for real in ("utf-8", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "cp1252", "utf-8-sig"):
        for declared in ("utf-8", "iso-8859-1", "utf-16", "shift_jis", "no-such-thing", ""):
            for header in (RSS, f"{RSS}; charset=utf-8", f"{RSS}; charset=latin-1", "text/plain"):
                written = rss(items(), declared).encode(real, "xmlcharrefreplace")
                yield f"{real} declared {declared or 'nothing'} under {header}", header, written
    yield "half a character", RSS, text.encode()[:-40] + b"\xe2\x82"
    yield "two encodings in one", RSS, rss("@").encode().replace(b"@", items(1).encode() + items(1).encode("cp1252"))
    yield "nul bytes", RSS, text.replace("words", "wo\0rds").encode()
    yield "control characters", RSS, text.replace("words", "wo\x01\x08\x1brds").encode()
    yield "lone surrogate references", RSS, text.replace("words", "&#xD800;&#xFFFF;&#0;").encode()


def shapes() -> Iterator[Case]:
    """Yield documents that are not quite XML, or not quite feeds."""
    text = rss(items())
    for cut in range(0, len(text), 61):
        yield f"cut after {cut}", RSS, text[:cut].encode()
    bare = {
        "nothing": "",
        "spaces": " \n\t ",
        "html": "<!doctype html><html><head><title>Blocked</title></head><body>Are you a robot?</body></html>",
        "plain words": "Service temporarily unavailable",
        "unclosed tags": rss("<item><title>One<link>https://a.example/1</item>"),
        "wrong nesting": rss("<item><title><b>One</title></b><link>https://a.example/1</link></item>"),
        "bare ampersands": rss("<item><title>A & B &nope; C</title><link>https://a.example/?a=1&b=2</link></item>"),
        "html entities": rss("<item><title>A&nbsp;B&mdash;C&hellip;</title><link>https://a.example/1</link></item>"),
        "no channel": "<rss version='2.0'><item><title>One</title><link>https://a.example/1</link></item></rss>",
        "upper case": rss(items()).upper(),
        "a warning in front": "<br /><b>Warning</b>: fopen() in feed.php on line 3\n" + text,
        "two documents": text + text,
        "nothing inside": rss(""),
        "comment bomb": rss("<!-- " + "-- " * 1000 + " -->" + items(1)),
        "rdf": (
            '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="http://purl.org/rss/1.0/">'
            '<channel rdf:about="x"><title>R</title></channel><item rdf:about="https://a.example/1">'
            "<title>One</title><link>https://a.example/1</link></item></rdf:RDF>"
        ),
        "atom without namespace": "<feed><title>A</title><entry><id>1</id><title>One</title></entry></feed>",
        "atom with html title": atom('<entry><id>1</id><title type="html">&lt;b&gt;One&lt;/b&gt;</title></entry>'),
        "atom with xhtml content": atom(
            '<entry><id>1</id><title>One</title><content type="xhtml"><div xmlns="http://www.w3.org/1999/xhtml">'
            "<p>Words</p><script>alert(1)</script></div></content></entry>"
        ),
        "sitemap": '<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"><url><loc>https://a/</loc></url></urlset>',
        "svg": '<svg xmlns="http://www.w3.org/2000/svg"><title>rss</title></svg>',
    }
    for name, body in bare.items():
        yield name, RSS, body.encode("utf-8", "replace")


def identities() -> Iterator[Case]:
    """Yield entries whose ids, addresses and dates are missing or odd."""
    links: tuple[str, ...] = (
        "",
        "/relative",
        "relative",
        "?q=1",
        "//b.example/x",
        "javascript:alert(1)",
        "data:text/html,x",
        "ftp://a/b",
    )
    links += (
        "http://[::1",
        "https://a.example:99999/",
        "https://\u2603.example/",
        " https://a.example/ ",
        "https:///x",
    )
    for link in links:
        for guid in ("", "1", "https://a.example/guid", "urn:x", " ", "\u2603" * 300):
            written = (
                f"<item><title>T</title><link>{link}</link>" + (f"<guid>{guid}</guid>" if guid else "") + "</item>"
            )
            yield f"link {link!r} guid {guid[:20]!r}", RSS, rss(written).encode()
    dates = (
        "yesterday",
        "2026-06-02",
        "0000-00-00",
        "Tue, 99 Foo 2026",
        "9999-12-31T23:59:59Z",
        "-1",
        "1e400",
        "2038-01-20",
    )
    for date in (*dates, "Tue, 02 Jun 2026 09:00:00 EST", "2026-06-02T09:00:00+99:99"):
        written = f"<item><title>T</title><guid>g</guid><pubDate>{date}</pubDate></item>"
        yield f"dated {date}", RSS, rss(written).encode()
    yield "one id for all", RSS, rss("<item><title>A</title><guid>1</guid></item>" * 5).encode()
    yield "no id, no address", RSS, rss("<item><title>A</title></item><item/>").encode()
    yield "no words", RSS, rss("<item><guid>1</guid></item>").encode()


def sizes() -> Iterator[Case]:
    """Yield feeds larger than anyone needs."""
    big = "<item><title>{t}</title><guid>1</guid><description>{d}</description></item>"
    yield "a title of a megabyte", RSS, rss(big.format(t="x" * 1_000_000, d="")).encode()
    yield "a text of two megabytes", RSS, rss(big.format(t="T", d="word " * 400_000)).encode()
    yield "html of two megabytes", RSS, rss(big.format(t="T", d="&lt;p&gt;a&lt;/p&gt;" * 100_000)).encode()
    yield (
        "five thousand entries",
        RSS,
        rss("".join(f"<item><guid>{n}</guid><title>{n}</title></item>" for n in range(5000))).encode(),
    )
    yield "deep nesting", RSS, rss("<item><title>T</title>" + "<a>" * 5000 + "</a>" * 5000 + "</item>").encode()
    attributes = " ".join(f'a{n}="1"' for n in range(20_000))
    yield "many attributes", RSS, rss(f"<item {attributes}><title>T</title></item>").encode()
    yield "many namespaces", RSS, rss("".join(f'<x{n}:y xmlns:x{n}="u{n}"/>' for n in range(5000)) + items(1)).encode()
    yield "six megabytes", RSS, rss(items(1) + "<!--" + "x" * 6_000_000 + "-->").encode()


def attacks() -> Iterator[Case]:
    """Yield documents that want more than to be read."""
    laughs = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 10))
    yield (
        "billion laughs",
        RSS,
        rss(
            "<item><title>&l9;</title><guid>1</guid></item>", head=f'<!DOCTYPE rss [<!ENTITY l0 "ha">{laughs}]>'
        ).encode(),
    )
    for address in ("file:///etc/passwd", "http://169.254.169.254/latest/"):
        head = f'<!DOCTYPE rss [<!ENTITY x SYSTEM "{address}">]>'
        yield f"entity from {address}", RSS, rss("<item><title>&x;</title><guid>1</guid></item>", head=head).encode()
    yield "external dtd", RSS, rss(items(1), head='<!DOCTYPE rss SYSTEM "http://127.0.0.1:1/x.dtd">').encode()
    yield "stylesheet", RSS, rss(items(1), head='<?xml-stylesheet href="http://127.0.0.1:1/x.xsl"?>').encode()
    yield (
        "xinclude",
        RSS,
        rss('<xi:include xmlns:xi="http://www.w3.org/2001/XInclude" href="file:///etc/passwd"/>').encode(),
    )
    scripts = (
        "<script>alert(1)</script>",
        "<img src=x onerror=alert(1)>",
        "<svg/onload=alert(1)>",
        "<a href='javascript:x'>y</a>",
    )
    for script in scripts:
        quoted = f"<![CDATA[{script}]]>"
        written = f"<item><title>{quoted}</title><guid>1</guid><description>{quoted}</description></item>"
        yield f"script {script[:12]}", RSS, rss(written).encode()


def json_feeds() -> Iterator[Case]:
    """Yield JSON feeds of the wrong shape."""
    version = "https://jsonfeed.org/version/1.1"
    odd: list[object] = [None, True, 7, -1, 1.5, "text", [], {}, [[]], [{}], [None]]
    for value in odd:
        yield (
            f"json items {value!r}",
            "application/feed+json",
            json.dumps({"version": version, "items": value}).encode(),
        )
        entry = {"id": value, "url": value, "title": value, "date_published": value, "authors": value, "tags": value}
        document = {"version": version, "title": value, "items": [entry, {"id": "1", "content_text": "Words"}]}
        yield f"json fields {value!r}", "application/feed+json", json.dumps(document).encode()
    for name, text in {
        "json broken": '{"version": "https://jsonfeed.org/version/1", "items": [',
        "json deep": '{"items":' * 5000,
        "json nan": '{"version": "https://jsonfeed.org/version/1", "items": [{"id": NaN, "title": "T"}]}',
        "json huge number": '{"version": "https://jsonfeed.org/version/1", "items": [{"id": ' + "9" * 5000 + "}]}",
        "json of something else": '{"error": "rate limited"}',
    }.items():
        yield name, "application/json", text.encode()


def mutations(count: int = 150) -> Iterator[Case]:
    """Yield good feeds with random damage."""
    rng = random.Random(2026)
    good = [rss(items()).encode(), atom("<entry><id>1</id><title>One</title><summary>S</summary></entry>").encode()]
    for number in range(count):
        body = bytearray(rng.choice(good))
        for _ in range(rng.randint(1, 12)):
            start = rng.randrange(len(body))
            end = min(len(body), start + rng.randint(1, 40))
            match rng.randrange(4):
                case 0:
                    del body[start:end]
                case 1:
                    body[start:start] = body[start:end]
                case 2:
                    body[start] = rng.randrange(256)
                case _:
                    body[start:start] = rng.choice(
                        [b"<", b">", b"&", b"]]>", b"<![CDATA[", b"\0", b"\xff", b"<!--", b'"']
                    )
        yield f"mutation {number}", RSS, bytes(body)
