"""Reads a sitemap: an index of others or a list of pages, packed or not, with the additions for news."""

from __future__ import annotations

import gzip
import re
from dataclasses import replace
from io import BytesIO
from typing import Annotated
from urllib.parse import unquote, urlsplit

import msgspec
from lxml import etree
from msgspec import Meta

from tidings.discover.feed.entry import FeedEntry, newest_first
from tidings.discover.listing import EntryListing, RawEntry, UnexpectedContent, entry_of
from tidings.discover.times import time_ms
from tidings.model.contracts import Kit
from tidings.model.errors import BadInput, Permanent
from tidings.model.item import Rejected
from tidings.model.urls import public_host, shown_url, web_address

ACCEPT = "application/xml, text/xml, application/gzip;q=0.9, text/plain;q=0.5, */*;q=0.1"
BYTES_MAX = 20 * 1024 * 1024
UNPACKED_BYTES_MAX = 52_428_800
"""What the protocol allows for one file."""
PLACES_MAX = 50_000
MAPS_MAX = 20
"""How many files of an index are read in one look, the newest first."""


class SitemapOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which pages are taken."""

    newest: Annotated[int, Meta(ge=1, le=10_000)] = 200
    """How many pages are taken at most, the newest first."""
    pattern: Annotated[str, Meta(max_length=200)] | None = None
    """Only addresses that hold this text, such as /blog/."""


class SitemapPlace(msgspec.Struct, frozen=True, omit_defaults=True):
    """One address that a sitemap names."""

    url: str
    modified_ms: int | None = None
    title: str = ""
    published_ms: int | None = None
    author: str = ""
    tags: list[str] = []


class Sitemap(msgspec.Struct, frozen=True):
    """What one file said."""

    maps: list[SitemapPlace] = []
    pages: list[SitemapPlace] = []
    trouble: str = ""
    is_cut: bool = False


async def read_sitemap(kit: Kit, address: str, options: SitemapOptions) -> EntryListing:
    """Read the newest pages of a sitemap, through its index if it is one; a site's address means its /sitemap.xml."""
    top = await _map(kit, _sitemap_address(address))
    if top.trouble:
        raise UnexpectedContent(f"{shown_url(address)}: {top.trouble}")
    maps = [top.maps[place] for place in newest_first([each.modified_ms for each in top.maps])]
    found = list(top.pages)
    left_out = [f"{len(maps) - MAPS_MAX} files of the index"] if len(maps) > MAPS_MAX else []
    rejected: list[Rejected] = []
    if top.is_cut:
        left_out.append(f"what stands behind {PLACES_MAX:,} addresses of a file")
    for number, each in enumerate(maps[:MAPS_MAX], start=1):
        try:
            part = await _map(kit, each.url)
        except Permanent as error:
            rejected.append(Rejected(number, f"{shown_url(each.url)}: {error}"[:300]))
            continue
        if part.trouble:
            rejected.append(Rejected(number, f"{shown_url(each.url)}: {part.trouble}"[:300]))
        found += part.pages
    wanted = [each for each in found if options.pattern is None or options.pattern in each.url]
    if found and not wanted:
        raise UnexpectedContent(f"pattern: none of {len(found)} addresses holds `{options.pattern}`")
    dated = newest_first([each.published_ms or each.modified_ms for each in wanted])
    chosen = {wanted[place].url: wanted[place] for place in dated[: options.newest]}
    if len(wanted) > options.newest:
        left_out.append(f"{len(wanted) - options.newest:,} older pages (option `newest`)")
    entries = tuple(entry for each in chosen.values() if (entry := _entry(each)) is not None)
    incomplete = f"left out: {', '.join(left_out)}" if left_out else None
    return EntryListing(entries, public_host(address), rejected=tuple(rejected), incomplete=incomplete)


def _sitemap_address(address: str) -> str:
    return web_address("/sitemap.xml", address) or address if urlsplit(address).path in ("", "/") else address


async def _map(kit: Kit, url: str) -> Sitemap:
    response = await kit.fetcher.page(url, accept=ACCEPT, max_bytes=BYTES_MAX, conditional=True)
    return await kit.extractor.apart(Sitemap, parse_sitemap, response.body, response.url)


def parse_sitemap(body: bytes, url: str) -> Sitemap:
    """Read one file; made to be called in a child process. Nothing in it is loaded or expanded."""
    try:
        text = _unpacked(body)
        if not text.lstrip().startswith(b"<") and text.lstrip()[:4] != b"\xef\xbb\xbf<":
            return _plain(text)
        return _read(text, url)
    except (BadInput, etree.XMLSyntaxError, OSError, EOFError) as error:
        return Sitemap(trouble=f"this is no sitemap that can be read: {' '.join(str(error).split())[:200]}")


def _read(text: bytes, url: str) -> Sitemap:
    maps: list[SitemapPlace] = []
    pages: list[SitemapPlace] = []
    root = ""
    parsing = etree.iterparse(
        BytesIO(text), events=("start", "end"), resolve_entities=False, no_network=True, huge_tree=False, recover=True
    )
    for event, element in parsing:
        name = _local(element)
        if not root:
            root = name
            if root not in ("urlset", "sitemapindex"):
                raise BadInput(f"it begins with <{root}>, not with <urlset> or <sitemapindex>")
        if event != "end" or name not in ("url", "sitemap"):
            continue
        place = _place(element, url)
        element.clear()
        if place is not None:
            (pages if name == "url" else maps).append(place)
        if len(pages) + len(maps) >= PLACES_MAX:
            return Sitemap(maps, pages, is_cut=True)
    if not maps and not pages:
        return Sitemap(trouble="the sitemap names no address")
    return Sitemap(maps, pages)


def _place(element: etree._Element, base: str) -> SitemapPlace | None:
    values: dict[str, str] = {}
    for each in element.iter():
        name = _local(each)
        if name and each.text and name not in values:
            # An image has a `loc` and a `title` of its own.
            parent = _local(each.getparent()) if each.getparent() is not None else ""
            if parent in ("url", "sitemap", "news", "publication"):
                values[f"publication.{name}" if parent == "publication" else name] = each.text.strip()
    url = web_address(values.get("loc", ""), base)
    if url is None:
        return None
    return SitemapPlace(
        url,
        time_ms(values.get("lastmod")),
        values.get("title", "")[:500],
        time_ms(values.get("publication_date")),
        tags=[tag.strip()[:100] for tag in values.get("keywords", "").split(",")[:30] if tag.strip()],
    )


def _local(element: etree._Element) -> str:
    return element.tag.rpartition("}")[2] if isinstance(element.tag, str) else ""


def _plain(text: bytes) -> Sitemap:
    """Read a sitemap that is a list of addresses, one on a line."""
    lines = text.decode("utf-8", "replace").splitlines()[:PLACES_MAX]
    pages = [SitemapPlace(address) for line in lines if (address := web_address(line.strip()))]
    return Sitemap(pages=pages) if pages else Sitemap(trouble="it is neither XML nor a list of addresses")


def _unpacked(body: bytes) -> bytes:
    if body[:2] != b"\x1f\x8b":
        return body
    with gzip.GzipFile(fileobj=BytesIO(body)) as packed:
        text = packed.read(UNPACKED_BYTES_MAX + 1)
    if len(text) > UNPACKED_BYTES_MAX:
        raise BadInput(f"it is larger than {UNPACKED_BYTES_MAX:,} bytes when unpacked")
    return text


def _entry(place: SitemapPlace) -> FeedEntry | None:
    raw = RawEntry(title=place.title or title_of(place.url), url=place.url, tags=place.tags)
    entry = entry_of(raw, place.url)
    when = place.published_ms if place.published_ms is not None else place.modified_ms
    return replace(entry, published_ms=when) if entry is not None else None


def title_of(url: str) -> str:
    """Make a title of an address: `/news/a-new-lamp.html` says `A new lamp`."""
    last = next((part for part in reversed(urlsplit(url).path.split("/")) if part), "")
    words = re.sub(r"[-_+]+", " ", re.sub(r"\.\w{2,5}$", "", unquote(last))).strip()
    return words[:1].upper() + words[1:] if words else public_host(url)
