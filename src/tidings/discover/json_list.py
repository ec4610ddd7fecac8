"""Reads entries from any JSON API: expressions say where the list and each field are, and how to turn its pages."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Any, Literal
from urllib.parse import parse_qsl, urlencode, urljoin, urlsplit, urlunsplit

import jmespath
import msgspec
from jmespath.exceptions import JMESPathError
from msgspec import Meta

from tidings.discover.feed.entry import FeedEntry
from tidings.discover.listing import EntryListing, RawEntry, UnexpectedContent, entry_of
from tidings.model.contracts import Kit
from tidings.model.errors import BadInput
from tidings.model.item import Rejected
from tidings.model.urls import shown_url
from tidings.model.web import Response

ACCEPT = "application/json, application/*+json;q=0.9, */*;q=0.1"
BYTES_MAX = 10 * 1024 * 1024
ENTRIES_MAX = 10_000
NAMES_SHOWN = 12

Expression = Annotated[str, Meta(min_length=1, max_length=500)]
Name = Annotated[str, Meta(min_length=1, max_length=100)]
Count = Annotated[int, Meta(ge=1, le=50)]


class JsonOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where things are in an answer, as JMESPath expressions; those of fields are relative to an entry."""

    items: Expression = "@"
    title: Expression = "title"
    url: Expression = "url"
    id: Expression = "id"
    text: Expression | None = None
    """The words of an entry, plain or HTML."""
    author: Expression | None = None
    published: Expression | None = None
    image: Expression | None = None
    tags: Expression | None = None
    paging: Literal["none", "page", "offset", "cursor", "link"] = "none"
    """`page` and `offset` count; `cursor` passes on what `next` names, `link` follows that, or the header."""
    parameter: Name | None = None
    """The query parameter that pages are turned by: by default `page`, `offset` or `cursor`."""
    first: Annotated[int, Meta(ge=0, le=1_000_000)] | None = None
    """The first page or offset: by default 1 and 0."""
    next: Expression | None = None
    """Where an answer names the next cursor, or the next address."""
    pages: Count = 5
    """How many pages are read at most."""


_FIELDS = ("title", "url", "id", "text", "author", "published", "image", "tags")


@dataclass(frozen=True, slots=True)
class JsonPage:
    """One answer and the entries in it."""

    answer: Any
    entries: list[Any]
    response: Response


def checked_json(options: JsonOptions) -> JsonOptions:
    """Return the options; raise BadInput naming the one that makes no sense."""
    for name in ("items", *_FIELDS, "next"):
        expression = getattr(options, name)
        if expression is not None:
            _compiled(name, expression)
    if options.paging == "cursor" and options.next is None:
        raise BadInput("options.next: say where an answer names the next cursor, such as `meta.next_cursor`")
    if options.paging == "none" and options.next is not None:
        raise BadInput("options.paging: `next` is used with paging = cursor or link")
    return options


async def read_json(kit: Kit, address: str, options: JsonOptions) -> EntryListing:
    """Read all pages of a list; raise UnexpectedContent naming the expression that found nothing."""
    found: dict[str, FeedEntry] = {}
    rejected: list[Rejected] = []
    url: str | None = _first_address(address, options)
    count, incomplete = 0, None
    seen: set[str] = set()
    for number in range(1, options.pages + 1):
        if url is None or url in seen:
            break
        seen.add(url)
        page = await _page(kit, url, options)
        if number == 1:
            _check_fields(page, options)
        before = len(found)
        for raw in page.entries:
            count += 1
            entry = entry_of(_raw_entry(raw, options), page.response.url)
            if entry is None:
                rejected.append(Rejected(count, "the entry has neither words nor an address"))
            else:
                found.setdefault(entry.id, entry)
        url = _next_address(url, page, number, options)
        if len(found) >= ENTRIES_MAX:
            incomplete = f"more than {ENTRIES_MAX:,} entries"
            break
        if number > 1 and len(found) == before:
            break  # The last page over and over, as some services answer behind their end.
    else:
        incomplete = f"there are more pages than {options.pages} (option `pages`)" if url is not None else None
    return EntryListing(tuple(found.values()), rejected=tuple(rejected), incomplete=incomplete)


async def _page(kit: Kit, url: str, options: JsonOptions) -> JsonPage:
    response = await kit.fetcher.page(url, accept=ACCEPT, max_bytes=BYTES_MAX, conditional=True)
    try:
        answer = msgspec.json.decode(response.body)
    except (msgspec.DecodeError, RecursionError) as error:
        raise UnexpectedContent(f"{shown_url(url)} did not answer with JSON: {str(error)[:200]}") from error
    entries = _search("items", options.items, answer)
    if entries is None:
        raise UnexpectedContent(f"items: `{options.items}` found nothing in the answer; {_names(answer)}")
    if not isinstance(entries, list):
        raise UnexpectedContent(f"items: `{options.items}` found {_kind(entries)}, not a list; {_names(answer)}")
    return JsonPage(answer, entries[:ENTRIES_MAX], response)


def _check_fields(page: JsonPage, options: JsonOptions) -> None:
    """Raise UnexpectedContent if an expression that was given finds nothing in any entry."""
    if not page.entries:
        return
    defaults = JsonOptions()
    for name in _FIELDS:
        expression = getattr(options, name)
        if expression is None or expression == getattr(defaults, name):
            continue
        if all(_search(name, expression, entry) is None for entry in page.entries):
            raise UnexpectedContent(
                f"{name}: `{expression}` found nothing in any of {len(page.entries)} entries; {_names(page.entries[0])}"
            )


def _raw_entry(raw: Any, options: JsonOptions) -> RawEntry:
    values = {name: _search(name, getattr(options, name), raw) for name in _FIELDS if getattr(options, name)}
    tags = values.pop("tags", None)
    texts = {name: text for name, value in values.items() if (text := _text(value))}
    return RawEntry(**texts, is_html=True, tags=_tags(tags))


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return ""
    return str(value)


def _tags(value: Any) -> list[str]:
    values = value if isinstance(value, list) else [value]
    return [text for each in values[:100] if (text := _text(each))]


def _first_address(address: str, options: JsonOptions) -> str:
    if options.paging in ("page", "offset") and options.first is not None:
        return _with_parameter(address, options, str(options.first))
    return address


def _next_address(url: str, page: JsonPage, number: int, options: JsonOptions) -> str | None:
    """Return the address of the next page; None where this was the last one."""
    if not page.entries or options.paging == "none":
        return None
    if options.paging == "page":
        first = options.first if options.first is not None else 1
        return _with_parameter(url, options, str(first + number))
    if options.paging == "offset":
        before = int(dict(parse_qsl(urlsplit(url).query)).get(_parameter(options), options.first or 0))
        return _with_parameter(url, options, str(before + len(page.entries)))
    named = _text(_search("next", options.next, page.answer)) if options.next is not None else ""
    if options.paging == "cursor":
        return _with_parameter(url, options, named) if named else None
    target = named or _link(page.response.headers.get("link", ""))
    if not target:
        return None
    joined = urljoin(page.response.url, target)
    # What is sent to one service, such as a key in its address, is no other host's business.
    return joined if urlsplit(joined)[:2] == urlsplit(page.response.url)[:2] else None


def _parameter(options: JsonOptions) -> str:
    return options.parameter or options.paging


def _with_parameter(url: str, options: JsonOptions, value: str) -> str:
    parts, name = urlsplit(url), _parameter(options)
    kept = [(key, each) for key, each in parse_qsl(parts.query, keep_blank_values=True) if key != name]
    return urlunsplit(parts._replace(query=urlencode([*kept, (name, value)])))


def _link(header: str) -> str:
    """Return the target with rel=next of a Link header."""
    for part in _links(header[:8_000]):
        target, _, parameters = part.partition(">")
        pairs = (each.strip().partition("=") for each in parameters.split(";"))
        relations = [value.strip(' ",').lower().split() for key, _, value in pairs if key.strip().lower() == "rel"]
        if any("next" in each for each in relations):
            return target.strip()
    return ""


def _links(header: str) -> Iterator[str]:
    yield from header.split("<")[1:]


@lru_cache(maxsize=512)
def _parsed(expression: str) -> Any:
    return jmespath.compile(expression)


def _compiled(name: str, expression: str) -> Any:
    try:
        return _parsed(expression)
    except JMESPathError as error:
        told = " ".join(str(error).split())[:200]
        raise BadInput(f"options.{name}: `{expression}` is no JMESPath expression: {told}") from error


def _search(name: str, expression: str | None, value: Any) -> Any:
    try:
        return _compiled(name, expression).search(value) if expression is not None else None
    except (JMESPathError, RecursionError, ArithmeticError) as error:
        told = " ".join(str(error).split())[:200]
        raise UnexpectedContent(f"{name}: `{expression}` does not fit what was answered: {told}") from error


def _names(value: Any) -> str:
    """Say what there is, for who wrote the expression."""
    if isinstance(value, dict):
        shown = ", ".join(str(name)[:40] for name in list(value)[:NAMES_SHOWN])
        return f"there are: {shown}{', …' if len(value) > NAMES_SHOWN else ''}"
    return f"there is {_kind(value)}"


def _kind(value: Any) -> str:
    if isinstance(value, list):
        return f"a list of {len(value)}"
    return {dict: "an object", str: "a text", bool: "true or false", type(None): "nothing"}.get(type(value), "a number")
