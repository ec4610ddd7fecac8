"""Reads the page behind an item: fetches and extracts it, and tells an article from what stands in its place."""

from __future__ import annotations

import hashlib
import re
from dataclasses import replace
from typing import Final
from urllib.parse import urlsplit

from tidings.model.contracts import Kit
from tidings.model.web import Extract
from tidings.process.enrich.local.summary import shared_terms
from tidings.process.extract.barrier import MISSING, REPEATED, is_elsewhere

SEEN: Final = "page.text"
SEEN_SECONDS: Final = 14 * 86_400
SEEN_CHARS: Final = 600
REPEATED_TERMS_MAX: Final = 0.34
"""A text that another address of its host showed too is an article's only if it holds so much of the title."""
COUNTED: Final = "pages.no_article"
_CHARSET = re.compile(r"""charset\s*=\s*["']?([\w.:-]{1,40})""", re.IGNORECASE)


async def read_article(
    kit: Kit, address: str, title: str, *, max_chars: int, marked_up: bool = False
) -> tuple[Extract, str]:
    """Return what the page behind an address says, and the address that answered.

    `barrier` is set where the page shows no article, and counted by cause.
    """
    page = await kit.fetcher.page(address)
    charset = _CHARSET.search(page.headers.get("content-type", ""))
    extract = await kit.extractor.extract(
        page.body, page.url, max_chars=max_chars, charset=charset[1] if charset else None, marked_up=marked_up
    )
    if extract.barrier is None and is_elsewhere(address, page.url):
        extract = replace(extract, barrier=MISSING)
    if extract.barrier is None and await _is_repeated(kit, address, title, extract.text):
        extract = replace(extract, barrier=REPEATED)
    if extract.barrier is not None:
        await kit.ledger.count(f"{COUNTED}: {extract.barrier}", 1)
    return extract, page.url


async def _is_repeated(kit: Kit, address: str, title: str, text: str) -> bool:
    """Tell whether another address of the host showed the same text, and the text is not about the title."""
    head = " ".join(text.lower().split())[:SEEN_CHARS]
    host = urlsplit(address).hostname or ""
    if not head:
        return False
    key = f"{host}:{hashlib.blake2b(head.encode('utf-8', 'replace'), digest_size=12).hexdigest()}"
    own = hashlib.blake2b(address.encode("utf-8", "replace"), digest_size=8).digest()
    before = await kit.ledger.get(SEEN, key)
    if before is None:
        await kit.ledger.put(SEEN, key, own, SEEN_SECONDS)
        return False
    return before != own and shared_terms(title, text) < REPEATED_TERMS_MAX
