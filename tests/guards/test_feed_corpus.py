"""Feeds that other projects test their readers with: we find what feedparser finds, and every difference has a name."""

from __future__ import annotations

from pathlib import Path

from quality import feeds

FILES = 2_047
FOUND_BY_US_FLOOR = 1_497
REFUSED = ["atom/2/brief-entry-noerror.xml"]
"""A bare Atom entry without a feed around it."""


def test_no_entry_of_the_public_corpora_is_lost_without_a_reason(samples: Path) -> None:
    readings = [feeds.read(each) for each in feeds.files(samples / "feeds")]

    assert len(readings) == FILES
    assert sum(each.ours for each in readings) >= FOUND_BY_US_FLOOR
    assert [each.file.path for each in readings if not each.is_explained] == REFUSED
