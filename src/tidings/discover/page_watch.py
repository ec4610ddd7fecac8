"""Watches one element of one page: each change is an entry that says what went and what came."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import SequenceMatcher
from hashlib import blake2b
from html import escape
from typing import Annotated

import msgspec
from msgspec import Meta

from tidings.discover.feed.entry import FeedEntry
from tidings.discover.listing import EntryListing, ListingLook, UnexpectedContent
from tidings.discover.markup_tree import check_selector, select, tree_of, value_of, words_of
from tidings.model.clock import rfc3339
from tidings.model.contracts import Kit
from tidings.model.urls import canonical_url, shown_url

ACCEPT = "text/html, application/xhtml+xml, text/plain;q=0.9, */*;q=0.1"
BYTES_MAX = 10 * 1024 * 1024
TEXT_CHARS_MAX = 50_000
LINES_MAX = 2_000
CONTEXT_LINES = 2
TITLE_CHARS_MAX = 80


class PageOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which part of the page is watched."""

    selector: Annotated[str, Meta(min_length=1, max_length=300)] = "body"
    """The first element it finds; `meta[name=price]@content` watches an attribute."""


class WatchedText(msgspec.Struct, frozen=True):
    """What a page says at the watched place."""

    title: str = ""
    text: str = ""
    trouble: str = ""


class WatchedVersion(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the last look saw; kept as the source's cursor."""

    number: int = 0
    text: str = ""
    at_ms: int = 0
    selector: str = ""


def checked_page(options: PageOptions) -> PageOptions:
    """Return the options; raise BadInput if the selector cannot be read."""
    check_selector("selector", options.selector)
    return options


async def read_page(kit: Kit, address: str, look: ListingLook, options: PageOptions) -> EntryListing:
    """Compare the element with what it said at the last look; a change is one entry, the first look another one."""
    response = await kit.fetcher.page(address, accept=ACCEPT, max_bytes=BYTES_MAX, conditional=True)
    content_type = response.headers.get("content-type")
    seen = await kit.extractor.apart(WatchedText, watched_text, response.body, content_type, options.selector)
    if seen.trouble:
        raise UnexpectedContent(f"{shown_url(address)}: {seen.trouble}")
    before = _kept(look.cursor, options.selector)
    title = seen.title or shown_url(address)
    if before is not None and before.text == seen.text:
        return EntryListing((), title, note="not changed", cursor=msgspec.to_builtins(before))
    number = before.number + 1 if before is not None else _number(look.cursor) + 1
    now = WatchedVersion(number, seen.text, look.now_ms, options.selector)
    entry = _entry(address, title, before, now)
    return EntryListing((entry,), title, note=f"version {number}", cursor=msgspec.to_builtins(now))


def watched_text(body: bytes, content_type: str | None, selector: str) -> WatchedText:
    """Read the watched element; made to be called in a child process."""
    tree = tree_of(body, content_type)
    if tree is None:
        return WatchedText(trouble="the page is empty")
    css = selector.partition("@")[0]
    if css.strip() and not select(tree, css):
        return WatchedText(trouble=f"selector: `{selector}` found nothing on the page")
    text = value_of(tree, selector)
    if not text:
        return WatchedText(trouble=f"selector: `{selector}` found an element without words")
    titles = select(tree, "title")
    return WatchedText(words_of(titles[0])[:300] if titles else "", text[:TEXT_CHARS_MAX])


def _kept(cursor: object, selector: str) -> WatchedVersion | None:
    """Return what was seen last, unless another place of the page was watched then."""
    version = _version(cursor)
    return version if version is not None and version.number and version.selector == selector else None


def _number(cursor: object) -> int:
    version = _version(cursor)
    return version.number if version is not None else 0


def _version(cursor: object) -> WatchedVersion | None:
    try:
        return msgspec.convert(cursor or {}, WatchedVersion)
    except msgspec.ValidationError:
        return None


def _entry(address: str, title: str, before: WatchedVersion | None, now: WatchedVersion) -> FeedEntry:
    mark = blake2b(now.text.encode("utf-8", "replace"), digest_size=6).hexdigest()
    identity = f"{canonical_url(address)}#version-{now.number}-{mark}"
    if before is None:
        return FeedEntry(
            id=identity,
            url=canonical_url(address),
            title=f"{title[:TITLE_CHARS_MAX]}: watched from now on",
            summary_text=now.text,
            content_html=f"<p>It says:</p>\n{_quoted(now.text)}",
            published_ms=now.at_ms,
        )
    steps = list(_steps(before.text, now.text))
    return FeedEntry(
        id=identity,
        url=canonical_url(address),
        title=_headline(title, before.text, now.text),
        summary_text=diff_text(steps),
        content_html=f"{diff_html(steps)}\n<h3>Now</h3>\n{_quoted(now.text)}\n"
        f"<h3>Before, since {rfc3339(before.at_ms)}</h3>\n{_quoted(before.text)}",
        published_ms=now.at_ms,
    )


def _headline(title: str, before: str, now: str) -> str:
    """Say the change itself where it is short, as a price is."""
    short = len(before) + len(now) <= TITLE_CHARS_MAX and "\n" not in before + now
    return f"{title[:TITLE_CHARS_MAX]}: {f'{before} → {now}' if short else 'changed'}"


class DiffStep(msgspec.Struct, frozen=True):
    """Some lines that stayed, went or came."""

    what: str
    lines: list[str]


def _steps(before: str, now: str) -> Iterator[DiffStep]:
    old, new = before.splitlines()[:LINES_MAX], now.splitlines()[:LINES_MAX]
    for what, a, b, c, d in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if what == "equal":
            yield DiffStep("kept", old[a:b])
            continue
        if old[a:b]:
            yield DiffStep("removed", old[a:b])
        if new[c:d]:
            yield DiffStep("added", new[c:d])


def diff_text(steps: list[DiffStep]) -> str:
    """Write a change as plain text: what went with a minus before it, what came with a plus."""
    marks = {"removed": "− ", "added": "+ "}
    return "\n".join(marks[step.what] + line for step in steps if step.what in marks for line in step.lines)


def diff_html(steps: list[DiffStep]) -> str:
    """Write a change as HTML, with two lines around it to tell the place."""
    parts: list[str] = []
    for number, step in enumerate(steps):
        if step.what == "kept":
            parts += _context(step.lines, is_first=number == 0, is_last=number == len(steps) - 1)
        else:
            tag = "del" if step.what == "removed" else "ins"
            parts += [f"<p><{tag}>{escape(line)}</{tag}></p>" for line in step.lines]
    return "\n".join(parts)


def _context(lines: list[str], *, is_first: bool, is_last: bool) -> list[str]:
    head = [] if is_first else lines[:CONTEXT_LINES]
    tail = [] if is_last else lines[len(head) :][-CONTEXT_LINES:]
    gap = ["<p>…</p>"] if len(head) + len(tail) < len(lines) else []
    return [*(f"<p>{escape(line)}</p>" for line in head), *gap, *(f"<p>{escape(line)}</p>" for line in tail)]


def _quoted(text: str) -> str:
    return "<blockquote>" + "".join(f"<p>{escape(line)}</p>" for line in text.splitlines()) + "</blockquote>"
