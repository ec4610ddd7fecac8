"""Feeds that other projects test their readers with: we find what feedparser finds, and every difference has a name."""

from __future__ import annotations

import base64
import gzip
import io
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import feedparser
import pytest

from tidings.discover.feed import NotAFeed, parse_feed

FILES = 2_047
FOUND_BY_US_FLOOR = 1_497
REFUSED = ["atom/2/brief-entry-noerror.xml"]
"""A bare Atom entry without a feed around it."""


class Case(NamedTuple):
    corpus: str
    path: str
    content_type: str | None
    body: bytes


def cases(samples: Path) -> Iterator[Case]:
    with gzip.open(samples / "feeds" / "corpus_dev.jsonl.gz") as lines:
        for line in lines:
            row = json.loads(line)
            yield Case(row["corpus"], row["path"], row["content_type"], base64.b64decode(row["body"]))


@pytest.mark.filterwarnings("ignore")
def test_no_entry_of_the_public_corpora_is_lost_without_a_reason(samples: Path):
    count: Counter[str] = Counter()
    unexplained: list[str] = []
    for case in cases(samples):
        headers = {"content-type": case.content_type} if case.content_type else {}
        theirs = len(feedparser.parse(io.BytesIO(case.body), response_headers=headers).entries)
        count["files"] += 1
        count["feedparser"] += theirs
        try:
            feed = parse_feed(case.body, case.content_type, "https://feed.example/x")
        except NotAFeed:
            if theirs:
                unexplained.append(case.path)
            continue
        count["ours"] += len(feed.entries)
        count["repeated"] += feed.repeated
        count["empty"] += len(feed.empty)
        if len(feed.entries) + feed.repeated + len(feed.empty) < theirs:
            unexplained.append(case.path)
    assert count["files"] == FILES
    assert count["ours"] >= FOUND_BY_US_FLOOR, count
    assert unexplained == REFUSED
