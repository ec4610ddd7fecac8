"""Lists of what still breaks a rule: they may only get shorter, and an entry that is no longer true must go."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.support.environment import ROOT

SOURCE = ROOT / "src" / "tidings"


def sources(folder: str = "", ending: str = ".py") -> Iterator[tuple[str, str]]:
    """Yield the path within src/tidings and the text of each file."""
    for path in sorted((SOURCE / folder).rglob(f"*{ending}")):
        yield str(path.relative_to(SOURCE)), path.read_text("utf-8")


def check(found: Mapping[str, int], listed: Mapping[str, int], rule: str, test: str) -> None:
    """Compare how often each file breaks a rule with the list in a test."""
    new = {place: count for place, count in found.items() if count > listed.get(place, 0)}
    mended = {place: found.get(place, 0) for place, count in listed.items() if found.get(place, 0) < count}
    assert not new, f"{rule}: broken in {new}; the list has { ({place: listed.get(place, 0) for place in new}) }"
    assert not mended, f"mended, so write the new number into {Path(test).name} (0: remove the line): {mended}"
