"""Reads entries from list pages: CSS selectors say where the entries and their fields are."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from tidings.discover.feed.entry import FeedEntry
from tidings.discover.listing import EntryListing, RawEntry, UnexpectedContent, entry_of
from tidings.discover.markup_tree import base_of, check_selector, html_of, select, tree_of, value_of, words_of
from tidings.model.contracts import Kit
from tidings.model.item import Rejected
from tidings.model.urls import shown_url, web_address

ACCEPT = "text/html, application/xhtml+xml;q=0.9, */*;q=0.1"
BYTES_MAX = 10 * 1024 * 1024
ENTRIES_MAX = 2_000
"""Of one page."""
TEXT_CHARS_MAX = 100_000

Selector = Annotated[str, Meta(min_length=1, max_length=300)]
Count = Annotated[int, Meta(ge=1, le=20)]


class HtmlOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """CSS selectors: `items` of the entries on the page, the others within an entry; `a@href` takes an attribute."""

    items: Selector
    title: Selector | None = None
    """By default the words of the link."""
    url: Selector = "a@href"
    text: Selector | None = None
    author: Selector | None = None
    published: Selector | None = None
    """By default what a `time` element within the entry says."""
    image: Selector | None = None
    tags: Selector | None = None
    next: Selector | None = None
    """The link to the next page, such as `a[rel=next]@href`."""
    pages: Count = 1
    """How many pages are read at most."""


class HtmlPage(msgspec.Struct, frozen=True):
    """What a page said."""

    title: str = ""
    base: str = ""
    entries: list[RawEntry] = []
    next: str = ""
    trouble: str = ""


_FIELDS = ("title", "url", "text", "author", "published", "image")


def checked_html(options: HtmlOptions) -> HtmlOptions:
    """Return the options; raise BadInput naming a selector that cannot be read."""
    for name in ("items", *_FIELDS, "tags", "next"):
        selector = getattr(options, name)
        if selector is not None:
            check_selector(name, selector)
    return options


async def read_html(kit: Kit, address: str, options: HtmlOptions) -> EntryListing:
    """Read the list and the pages behind it; raise UnexpectedContent naming the selector that found nothing."""
    found: dict[str, FeedEntry] = {}
    rejected: list[Rejected] = []
    url: str | None = address
    seen: set[str] = set()
    title, count = "", 0
    while url is not None and url not in seen and len(seen) < options.pages:
        seen.add(url)
        response = await kit.fetcher.page(url, accept=ACCEPT, max_bytes=BYTES_MAX, conditional=True)
        content_type = response.headers.get("content-type")
        selectors = msgspec.to_builtins(options)
        page = await kit.extractor.apart(HtmlPage, parse_list, response.body, content_type, response.url, selectors)
        if page.trouble and len(seen) == 1:
            raise UnexpectedContent(f"{shown_url(url)}: {page.trouble}")
        title = title or page.title
        for raw in page.entries:
            count += 1
            entry = entry_of(raw, page.base)
            if entry is None:
                rejected.append(Rejected(count, "the entry has neither words nor an address"))
            else:
                found.setdefault(entry.id, entry)
        url = web_address(page.next, page.base) if page.next else None
    left = url is not None and url not in seen and options.next is not None
    incomplete = f"there are more pages than {options.pages} (option `pages`)" if left else None
    return EntryListing(tuple(found.values()), title or None, rejected=tuple(rejected), incomplete=incomplete)


def parse_list(body: bytes, content_type: str | None, url: str, selectors: dict[str, object]) -> HtmlPage:
    """Read one page; made to be called in a child process."""
    options = msgspec.convert(selectors, HtmlOptions)
    tree = tree_of(body, content_type)
    if tree is None:
        return HtmlPage(trouble="the page is empty")
    elements = select(tree, options.items)[:ENTRIES_MAX]
    if not elements:
        return HtmlPage(trouble=f"items: `{options.items}` found nothing on the page")
    entries = [_raw_entry(element, options) for element in elements]
    for name in _FIELDS:
        selector = getattr(options, name)
        if selector is not None and not any(getattr(entry, name) for entry in entries):
            return HtmlPage(trouble=f"{name}: `{selector}` found nothing in any of {len(entries)} entries")
    following = value_of(tree, options.next) if options.next is not None else ""
    return HtmlPage(value_of(tree, "title")[:300], base_of(tree, url), entries, following)


def _raw_entry(element: object, options: HtmlOptions) -> RawEntry:
    text_element = select(element, options.text)[:1] if options.text is not None and "@" not in options.text else []
    if text_element:
        text = html_of(text_element[0])[:TEXT_CHARS_MAX]
    else:
        text = value_of(element, options.text) if options.text is not None else ""
    return RawEntry(
        title=value_of(element, options.title) if options.title is not None else _link_words(element),
        url=value_of(element, options.url),
        text=text,
        is_html=bool(text_element),
        author=value_of(element, options.author) if options.author is not None else "",
        published=value_of(element, options.published) if options.published is not None else _time(element),
        image=value_of(element, options.image) if options.image is not None else "",
        tags=[words_of(each) for each in select(element, options.tags)[:30]] if options.tags is not None else [],
    )


def _link_words(element: object) -> str:
    return next((words for each in select(element, "a") if (words := words_of(each).strip())), "")


def _time(element: object) -> str:
    return value_of(element, "time@datetime") or value_of(element, "time")
