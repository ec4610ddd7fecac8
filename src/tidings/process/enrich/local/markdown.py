"""Reads Markdown for its prose, with a real parser: paragraphs whole, entities and reference links resolved.

Badges, tables, comments, check lists, code and rows of links are left out; code spans, links and code blocks are kept
apart for those who look for names.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import Final

from markdown_it import MarkdownIt
from markdown_it.token import Token

from tidings.process.enrich.local.furniture import is_sentence
from tidings.process.enrich.local.sentences import split_line

TEXT_CHARS_MAX: Final = 20_000
LINE_CHARS_MAX: Final = 2_000
LINES_MAX: Final = 1_000
HTML_DEPTH_MAX: Final = 2
WRAPPED_CHARS_MIN: Final = 50
"""A line of so many characters was broken because it was full, not because its author was done."""

BRACKETS: Final = re.compile(r"((?:!?\[|\]\(?|[*_~`<&|]){24})(?:!?\[|\]\(?|[*_~`<&|])+")
"""A parser's time grows with the square of such rows, and no text needs them."""
COMMENT: Final = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
HIDDEN: Final = re.compile(
    r"<(table|pre|style|script|svg|h[1-6]|summary)\b.*?(?:</\1\s*>|\Z)", re.DOTALL | re.IGNORECASE
)
BREAK: Final = re.compile(r"<br\s*/?>|</(?:p|div|li)>", re.IGNORECASE)
TAG: Final = re.compile(r"</?[a-zA-Z!][^<>]{0,500}>")
BARE_LINK: Final = re.compile(r"<?\bhttps?://[^\s<>]{1,2000}>?")
SHORTCODE: Final = re.compile(r":[a-z0-9_+-]{2,30}:(?!\w)")
FOOTNOTE: Final = re.compile(r"\[\^[^\[\]]{1,40}\]|^\[![A-Z]{3,12}\]")
TASK: Final = re.compile(r"\[[ xX]?\](?:\s|$)")
WORDS: Final = re.compile(r"[^\W\d_]{2,}")


@dataclass(slots=True)
class Markdown:
    """What a Markdown text is made of."""

    prose: list[str] = field(default_factory=list)
    """Paragraphs and list entries, as plain text, each beginning where a sentence does."""
    uncoded: list[str] = field(default_factory=list)
    """The same without what stands in code marks, which may be anything."""
    code_spans: list[str] = field(default_factory=list)
    numbered: list[str] = field(default_factory=list)
    """The entries of numbered lists."""
    code_blocks: list[str] = field(default_factory=list)
    links: list[str] = field(default_factory=list)
    """The addresses that the text links to or spells out, in order."""


@dataclass(slots=True)
class ProseLine:
    """One line of a paragraph, and what it is made of."""

    text: str = ""
    linked_chars: int = 0
    bold_chars: int = 0


@dataclass(slots=True)
class MarkdownPlace:
    """Where in the document the walk is."""

    skips: frozenset[str]
    reads_quotes: bool = True
    in_quote: int = 0
    lists: list[str] = field(default_factory=list)
    is_skipping: bool = False
    in_table: bool = False
    in_details: int = 0
    is_interrupted: bool = False
    """A code block or a list came between: what follows in lower case may go on with a sentence."""


def read(text: str, skip_sections: frozenset[str] = frozenset(), *, quotes: bool = True) -> Markdown:
    """Take a Markdown text apart, leaving out the sections whose heading holds one of these words.

    Without `quotes`, what its author quotes from others is left out too.
    """
    parts = Markdown()
    _walk(_bounded(text), parts, MarkdownPlace(skip_sections, quotes), HTML_DEPTH_MAX)
    return parts


def plain(text: str) -> str:
    """Return a short Markdown text as one line of plain text."""
    return " ".join(line.text for tokens in _inlines(_bounded(text)) for line in _lines(tokens) if line.text)


@cache
def _parser() -> MarkdownIt:
    return MarkdownIt("commonmark", {"maxNesting": 20}).enable(["table", "strikethrough"])


def _bounded(text: str) -> str:
    """Cut a text to a size and shape that is read in little time."""
    lines = COMMENT.sub("", text[:TEXT_CHARS_MAX]).splitlines()[:LINES_MAX]
    return BRACKETS.sub(r"\1", "\n".join(line[:LINE_CHARS_MAX] for line in lines))


def _inlines(text: str) -> Iterator[list[Token]]:
    for token in _parser().parse(text):
        if token.type == "inline":
            yield token.children or []


def _walk(text: str, parts: Markdown, place: MarkdownPlace, depth: int) -> None:
    """Sort the blocks of a text into its parts."""
    heading = False
    for token in _parser().parse(text):
        kind = token.type
        if kind in ("heading_open", "heading_close"):
            heading = kind == "heading_open"
        elif kind in ("blockquote_open", "blockquote_close"):
            place.in_quote += 1 if kind == "blockquote_open" else -1
        elif place.in_quote and not place.reads_quotes:
            continue
        elif kind in ("table_open", "table_close"):
            place.in_table = kind == "table_open"
        elif kind in ("bullet_list_open", "ordered_list_open"):
            place.lists.append(kind)
        elif kind in ("bullet_list_close", "ordered_list_close"):
            place.lists.pop()
            place.is_interrupted = True
        elif kind in ("fence", "code_block"):
            if not place.is_skipping:
                parts.code_blocks.append(token.content)
            place.is_interrupted = True
        elif kind == "html_block":
            _read_html(token.content, parts, place, depth)
        elif kind == "inline" and heading:
            place.is_skipping = _is_side(token.content, place.skips)
            place.is_interrupted = False
        elif kind == "inline" and not (place.is_skipping or place.in_table or place.in_details):
            _read_paragraph(token, parts, place)


def _is_side(heading: str, skips: frozenset[str]) -> bool:
    return not skips.isdisjoint(WORDS.findall(heading.lower()))


def _read_html(html: str, parts: Markdown, place: MarkdownPlace, depth: int) -> None:
    """Read the text inside of HTML as Markdown again: GitHub's README files are often centered by tags."""
    lowered = html.lower()
    place.in_details = max(0, place.in_details + lowered.count("<details") - lowered.count("</details"))
    if place.in_details or place.is_skipping or not depth:
        return
    text = TAG.sub(" ", BREAK.sub("\n\n", HIDDEN.sub("\n\n", html)))
    if WORDS.search(text):
        inner = MarkdownPlace(place.skips, place.reads_quotes)
        _walk("\n".join(line.strip() for line in text.splitlines()), parts, inner, depth - 1)


def _read_paragraph(token: Token, parts: Markdown, place: MarkdownPlace) -> None:
    """Take a paragraph's prose, names and links; a check list has none of its author's own words."""
    if place.lists and TASK.match(token.content):
        return
    children = token.children or []
    parts.code_spans += [each.content.strip() for each in children if each.type == "code_inline"]
    parts.links += [str(each.attrs["href"]) for each in children if each.type == "link_open" and "href" in each.attrs]
    said = " ".join(each.content for each in children if each.type == "text")
    parts.links += [link for found in BARE_LINK.findall(said) if (link := found.strip("<>.,;:)")) not in parts.links]
    is_numbered = bool(place.lists) and place.lists[-1] == "ordered_list_open"
    if not is_numbered:
        parts.uncoded.append("".join(" ` " if each.type == "code_inline" else each.content for each in children))
    for text in _paragraphs(_lines(children)):
        if is_numbered:
            parts.numbered.append(text)
            continue
        begun = text if place.lists or not place.is_interrupted else _from_a_beginning(text, children)
        if begun:
            parts.prose.append(begun)
        place.is_interrupted = False


def _from_a_beginning(text: str, children: list[Token]) -> str:
    """Drop the end of a sentence that began before a code block or a list."""
    if not text[0].islower() or (children and children[0].type == "code_inline"):
        return text
    return " ".join(split_line(text)[1:])


def _paragraphs(lines: list[ProseLine]) -> Iterator[str]:
    """Join lines that were only wrapped; leave out headings in bold, and rows of links."""
    text, wraps = "", False
    for line in lines:
        if not line.text or _is_label(line):
            wraps = False
            continue
        if text and (wraps or line.text[0].islower()) and not text.endswith(":"):
            text += f" {line.text}"
        else:
            if text:
                yield text
            text = line.text
        wraps = len(line.text) >= WRAPPED_CHARS_MIN
    if text:
        yield text


def _is_label(line: ProseLine) -> bool:
    """Tell a line that is all bold or all links, and no sentence, from prose."""
    said = sum(map(len, WORDS.findall(line.text)))
    return bool(said) and not is_sentence(line.text) and max(line.linked_chars, line.bold_chars) >= said


def _lines(children: list[Token]) -> list[ProseLine]:
    """Return a paragraph's lines as plain text: link texts stay, addresses, images and marks go."""
    lines, line, in_link, in_bold = [], ProseLine(), 0, 0
    for token in children:
        kind = token.type
        if kind in ("softbreak", "hardbreak") or (kind == "html_inline" and BREAK.match(token.content)):
            lines.append(line)
            line = ProseLine()
        elif kind in ("text", "code_inline"):
            words = sum(map(len, WORDS.findall(token.content)))
            line.text += token.content
            line.linked_chars += words if in_link else 0
            line.bold_chars += words if in_bold else 0
        elif kind in ("link_open", "link_close"):
            in_link += 1 if kind == "link_open" else -1
        elif kind in ("strong_open", "strong_close"):
            in_bold += 1 if kind == "strong_open" else -1
    for each in (*lines, line):
        bare = BARE_LINK.sub(" ", FOOTNOTE.sub(" ", SHORTCODE.sub(" ", each.text)))
        each.text = " ".join(bare.split())
    return [*lines, line]
