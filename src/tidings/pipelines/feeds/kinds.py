"""The kinds of sources that entries come from."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

from tidings.discover.html_list import HtmlOptions, checked_html, read_html
from tidings.discover.json_list import JsonOptions, checked_json, read_json
from tidings.discover.listing import EntryListing, ListingLook, ReadListing
from tidings.discover.page_watch import PageOptions, checked_page, read_page
from tidings.discover.presets import PRESETS, Preset
from tidings.discover.schedule import check_schedule
from tidings.discover.sitemap import SitemapOptions, read_sitemap
from tidings.model.contracts import Kit
from tidings.model.errors import BadInput, Misconfigured
from tidings.model.pipeline import Addressed, NoOptions, SourceKind
from tidings.model.source_definition import SourceDefinition
from tidings.pipelines.feeds.listing_source import ListingSource
from tidings.pipelines.feeds.rhythm import Bounds
from tidings.pipelines.feeds.sieve import check_sieve
from tidings.pipelines.feeds.source import FeedSource

BoundsOf = Callable[[SourceDefinition], Bounds]
Build = Callable[[str, SourceDefinition, Any], Addressed]
NameOf = Callable[[SourceDefinition], str]


def kinds(bounds_of: BoundsOf, name_of: NameOf) -> tuple[SourceKind, ...]:
    """Return every kind; a source without a name gets the one that its definition suggests."""

    def feed(name: str, definition: SourceDefinition, _options: NoOptions) -> FeedSource:
        return FeedSource(name or name_of(definition), definition, bounds_of(definition))

    def preset_of(preset: Preset) -> Callable[[str, SourceDefinition, Any], Addressed]:
        def preset_feed(name: str, definition: SourceDefinition, _options: NoOptions) -> FeedSource:
            url = preset.feed_address(definition.address)
            return FeedSource(name or name_of(definition), definition, bounds_of(definition), url)

        return preset_feed

    def listing(
        read_of: Callable[[Any], ReadListing], *, reads_pages: bool = True
    ) -> Callable[[str, SourceDefinition, Any], Addressed]:
        def build(name: str, definition: SourceDefinition, options: Any) -> ListingSource:
            read = read_of(options)
            return ListingSource(name or name_of(definition), definition, read, bounds_of(definition), reads_pages)

        return build

    found = (
        SourceKind("feed", "RSS, Atom or JSON feed, or a site that announces one", feed),
        SourceKind("json", "Entries of any JSON API", listing(_json), JsonOptions),
        SourceKind("html", "Entries of a list page, by CSS selectors", listing(_html), HtmlOptions),
        SourceKind("page", "Changes of one element of a page", listing(_page, reads_pages=False), PageOptions),
        SourceKind("sitemap", "Pages of a site's sitemap", listing(_sitemap), SitemapOptions),
        *(SourceKind(each.kind, each.title, preset_of(each)) for each in PRESETS),
    )
    return tuple(replace(kind, build=_checking(kind.build)) for kind in found)


def _checking(build: Build) -> Build:
    """Refuse what every kind refuses: queries that cannot be read, and schedules that never come."""

    def checked(name: str, definition: SourceDefinition, options: Any) -> Addressed:
        check_sieve(definition)
        source = build(name, definition, options)
        try:
            check_schedule(source)
        except Misconfigured as error:
            raise BadInput(f"cron: {error}") from None
        return source

    return checked


def _json(options: JsonOptions) -> ReadListing:
    return _without_look(read_json, checked_json(options))


def _html(options: HtmlOptions) -> ReadListing:
    return _without_look(read_html, checked_html(options))


def _sitemap(options: SitemapOptions) -> ReadListing:
    return _without_look(read_sitemap, options)


def _page(options: PageOptions) -> ReadListing:
    checked = checked_page(options)

    async def read(kit: Kit, address: str, look: ListingLook) -> EntryListing:
        return await read_page(kit, address, look, checked)

    return read


def _without_look(reader: Callable[[Kit, str, Any], Awaitable[EntryListing]], options: Any) -> ReadListing:
    """Return a reader that needs nothing of earlier looks."""

    async def read(kit: Kit, address: str, _look: ListingLook) -> EntryListing:
        return await reader(kit, address, options)

    return read
