"""Feeds that other projects test their readers with: what feedparser finds in them, what we find, and why they differ.

`python -m quality.feeds` prints a table by corpus, then each file in which we keep fewer entries.
"""

from __future__ import annotations

import base64
import gzip
import io
import json
import sys
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import feedparser

from quality.data import FOLDER, Missing, missing
from tidings.discover.feed import NotAFeed, parse_feed

CORPUS = "corpus_dev.jsonl.gz"


class FeedFile(NamedTuple):
    """One file of a corpus."""

    corpus: str
    path: str
    content_type: str | None
    body: bytes


@dataclass(frozen=True, slots=True)
class FileReading:
    """What was found in a file."""

    file: FeedFile
    theirs: int
    ours: int
    repeated: int = 0
    empty: int = 0
    refused: str = ""

    @property
    def unexplained(self) -> int:
        """How many entries feedparser finds that we neither keep nor name."""
        return 0 if self.refused else max(0, self.theirs - self.ours - self.repeated - self.empty)

    @property
    def is_explained(self) -> bool:
        """Tell whether every entry that feedparser finds is kept, or left out for a reason."""
        return self.unexplained == 0 and not (self.refused and self.theirs)


def files(folder: Path = FOLDER / "feeds") -> Iterator[FeedFile]:
    """Read the corpora."""
    path = folder / CORPUS
    if not path.exists():
        raise missing(path)
    with gzip.open(path) as lines:
        for line in lines:
            row = json.loads(line)
            yield FeedFile(row["corpus"], row["path"], row["content_type"], base64.b64decode(row["body"]))


def read(file: FeedFile) -> FileReading:
    """Read a file both ways."""
    headers = {"content-type": file.content_type} if file.content_type else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = len(feedparser.parse(io.BytesIO(file.body), response_headers=headers).entries)
        try:
            feed = parse_feed(file.body, file.content_type, "https://feed.example/x")
        except NotAFeed as error:
            return FileReading(file, theirs, 0, refused=str(error))
    return FileReading(file, theirs, len(feed.entries), feed.repeated, len(feed.empty))


def table(readings: Iterable[FileReading]) -> list[str]:
    """Sum up by corpus, as a table of Markdown."""
    sums: dict[str, Counter[str]] = {}
    for each in readings:
        for name in (each.file.corpus, "all"):
            sums.setdefault(name, Counter()).update(
                files=1,
                theirs=each.theirs,
                ours=each.ours,
                more=max(0, each.ours - each.theirs),
                repeated=each.repeated,
                empty=each.empty,
                refused=int(bool(each.refused)),
                lost=0 if each.is_explained else max(each.unexplained, each.theirs),
            )
    lines = [
        "| corpus | files | feedparser alone | tidings | by tidings only | repeated | empty | files refused | lost |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for name in (*sorted(set(sums) - {"all"}), "all"):
        found = sums[name]
        values = [found[key] for key in ("files", "theirs", "ours", "more", "repeated", "empty", "refused", "lost")]
        lines.append(f"| {name} | {' | '.join(f'{value:,}' for value in values)} |")
    return lines


def differences(readings: Iterable[FileReading]) -> list[str]:
    """Name each file in which we keep fewer entries than feedparser finds, and why."""
    told = []
    for each in readings:
        if each.ours >= each.theirs:
            continue
        reasons = [f"{each.repeated} repeated"] * bool(each.repeated) + [f"{each.empty} empty"] * bool(each.empty)
        why = each.refused or ", ".join(reasons) or "UNEXPLAINED"
        told.append(f"{each.file.corpus} {each.file.path}: {each.theirs} by feedparser, {each.ours} by us: {why}")
    return told


def main() -> int:
    try:
        readings = [read(each) for each in files()]
    except (Missing, OSError) as problem:
        print(f"not scored: {problem}", file=sys.stderr)
        return 1
    print("\n".join([*table(readings), "", *differences(readings)]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
