"""A notice drawn for the terminal, in a box, as a channel would show it."""

from __future__ import annotations

import textwrap

from tidings.model.publication import Notice
from tidings.publish.wording import facts, fit, one_line

WIDTH = 76
TEXT_MAX = 1500


def draw(notice: Notice) -> str:
    """Return a notice as lines of text: title, address, text, fields and footer."""
    blocks = [
        [one_line(notice.title, 250), *([notice.url] if notice.url else [])],
        fit(notice.text, TEXT_MAX, markdown=False).splitlines(),
        [f"{name}: {value}" for name, value in facts(notice)],
        [f"{one_line(notice.footer, 300) or 'tidings'} • <delivery>"],
    ]
    lines: list[str] = []
    for block in blocks:
        wrapped = [part for line in block for part in (textwrap.wrap(line, WIDTH) or [""])]
        lines += [*([""] if lines and wrapped else []), *wrapped]
    return "\n".join(f"| {line}".rstrip() for line in lines)
