"""Reads Markdown for its prose: no badges, code, tables, comments or tags. Linear in the text, whatever it holds."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

TEXT_CHARS_MAX: Final = 40_000
LINE_CHARS_MAX: Final = 4_000
LINES_MAX: Final = 2_000

COMMENT_OPENS, COMMENT_CLOSES = "<!--", "-->"
FENCE: Final = re.compile(r"\s{0,8}(```|~~~)")
HEADING: Final = re.compile(r"\s{0,3}#{1,6}\s")
UNDERLINE: Final = re.compile(r"\s{0,3}(?:={3,}|-{3,}|\*{3,}|_{3,})\s*$")
LIST_MARK: Final = re.compile(r"^\s{0,20}(?:[-*+]|\d{1,3}[.)])\s{1,4}(?:\[[ xX]\]\s)?")
NUMBERED: Final = re.compile(r"\s{0,20}\d{1,3}[.)]\s")
OPEN_TASK: Final = re.compile(r"\s{0,20}[-*+]\s{1,4}\[ \]\s")
# Every quantifier is bounded or excludes its own opening, so that no input makes a search start over and over.
IMAGE: Final = re.compile(r"!\[[^\[\]]{0,300}\](?:\([^()\s]{0,500}[^()]{0,200}\)|\[[^\[\]]{0,100}\])")
LINK: Final = re.compile(r"\[([^\[\]]{0,500})\](?:\([^()\s]{0,500}[^()]{0,200}\)|\[[^\[\]]{0,100}\])")
TAG: Final = re.compile(r"</?[a-zA-Z!][^<>]{0,500}>")
BARE_LINK: Final = re.compile(r"<?\bhttps?://[^\s<>]{1,2000}>?")
EMPHASIS: Final = re.compile(r"(?<!\w)[*_]{1,3}(?=\S)|(?<=\S)[*_]{1,3}(?!\w)|~~")
CODE_SPAN: Final = re.compile(r"`([^`\n]{1,120})`")


@dataclass(slots=True)
class Markdown:
    """What a Markdown text is made of."""

    prose: list[str] = field(default_factory=list)
    """Paragraph lines and list entries, as plain text."""
    code_spans: list[str] = field(default_factory=list)
    numbered: list[str] = field(default_factory=list)
    tasks: list[str] = field(default_factory=list)
    code_lines: list[str] = field(default_factory=list)


def read(text: str, skip_sections: frozenset[str] = frozenset()) -> Markdown:
    """Take a Markdown text apart, leaving out the sections whose heading holds one of these words."""
    parts = Markdown()
    fence = ""
    skipping = False
    for line in _without_comments(text[:TEXT_CHARS_MAX]).splitlines()[:LINES_MAX]:
        line = line[:LINE_CHARS_MAX]
        opening = FENCE.match(line)
        if fence or opening:
            fence = _fence_after(fence, opening)
            parts.code_lines.append(line)
        elif HEADING.match(line):
            skipping = not skip_sections.isdisjoint(plain(line).lower().split())
        elif not skipping:
            _sort_line(line, parts)
    return parts


def plain(line: str) -> str:
    """Return one line as plain text: link texts stay, addresses, images, tags and emphasis go."""
    line = LINK.sub(r"\1", IMAGE.sub(" ", TAG.sub(" ", line)))
    line = LIST_MARK.sub("", BARE_LINK.sub(" ", line).lstrip("#> \t"))
    return " ".join(EMPHASIS.sub("", line.replace("`", "")).split())


def _sort_line(line: str, parts: Markdown) -> None:
    if UNDERLINE.match(line) or line.count("|") >= 2 or line.startswith(("    ", "\t")):
        if line.startswith(("    ", "\t")):
            parts.code_lines.append(line)
        return
    text = plain(line)
    parts.code_spans += CODE_SPAN.findall(line)
    if text and NUMBERED.match(line):
        parts.numbered.append(text)
    elif text and OPEN_TASK.match(line):
        parts.tasks.append(text)
    if text:
        parts.prose.append(text)


def _fence_after(fence: str, mark: re.Match[str] | None) -> str:
    """Return the fence that is open after this line: a fence is closed by its own kind only."""
    if not fence:
        return mark.group(1) if mark else ""
    return "" if mark and mark.group(1) == fence else fence


def _without_comments(text: str) -> str:
    kept = []
    while COMMENT_OPENS in text:
        before, _, rest = text.partition(COMMENT_OPENS)
        kept.append(before)
        _, closed, text = rest.partition(COMMENT_CLOSES)
        if not closed:
            break
    return "".join([*kept, text])
