"""Scores the extraction of main texts from pages, beside every paragraph of the page."""

from __future__ import annotations

import html
import re

from quality.data import pages
from quality.score import shingles
from quality.table import Row, timed
from tidings.process.extract.page import extract_page

CHARS_MAX = 10_240
REACH = 0.95
PARAGRAPH = re.compile(r"<p\b[^<>]{0,500}>(.*?)</p>", re.DOTALL | re.IGNORECASE)
TAG = re.compile(r"<[^<>]{0,2000}>")


def run() -> list[Row]:
    gold = pages()
    texts, ms = timed(lambda page: extract_page(page[1], page[0], CHARS_MAX).text, gold)
    ours = shingles((true[:CHARS_MAX], text[:CHARS_MAX]) for (_, _, true), text in zip(gold, texts, strict=True))
    naive = shingles((true[:CHARS_MAX], paragraphs(page)[:CHARS_MAX]) for _, page, true in gold)
    beside = f"all paragraphs {naive:.3f}; {len(gold)} pages, {ms:.1f} CPU ms each"
    return [Row("extraction, pages", ours, "F1", REACH, beside=beside)]


def paragraphs(page: bytes) -> str:
    found = PARAGRAPH.findall(page.decode("utf-8", "replace"))
    return "\n".join(html.unescape(TAG.sub("", part)) for part in found)
