"""The index follows: entries and position move together, and nothing is lost or doubled."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
from tests.support.environment import ROOT, clean_environment
from tests.support.search import PIPELINE, all_pages, an_entry, keys

from tidings.follow.search.folder import LOCK_NAME
from tidings.follow.search.index import SearchIndex
from tidings.follow.search.schema import SCHEMA_VERSION
from tidings.model.errors import BadInput, Transient
from tidings.model.query_tree import AllOf, AnyOf, Compare, Not, Part, Words

Opened = Callable[..., SearchIndex]


@pytest.fixture
def opened() -> Iterator[Opened]:
    """Opens indexes that are closed after the test."""
    with ExitStack() as ends:
        yield lambda *args, **kwargs: ends.enter_context(closing(SearchIndex(*args, **kwargs)))


def test_what_was_taken_in_twice_is_found_once(opened: Opened, tmp_path: Path) -> None:
    index = opened(tmp_path)
    for position in ("1", "1", "2"):
        index.apply(
            PIPELINE, [an_entry(1, "Learning Rust"), an_entry(1, "Learning Zig"), an_entry(2, "Zig")], [], position
        )

    assert index.search(Words("zig")).total == 2
    assert index.search(Words("rust")).total == 0
    assert index.position(PIPELINE) == "2"


def test_what_is_withdrawn_is_no_longer_found(opened: Opened, tmp_path: Path) -> None:
    index = opened(tmp_path)
    index.apply(PIPELINE, [an_entry(1, "Rust"), an_entry(2, "Rust")], [], "1")
    index.apply(PIPELINE, [], [1, 99], "2")

    assert keys(index, Words("rust")) == ["2"]


def test_an_item_of_another_pipeline_may_have_the_same_number(opened: Opened) -> None:
    index = opened()
    index.apply("a", [an_entry(1, "Rust", pipeline="a")], [], "1")
    index.apply("b", [an_entry(1, "Rust", pipeline="b")], [], "1")
    index.apply("b", [], [1], "2")

    assert [hit.pipeline for hit in index.search(Words("rust")).hits] == ["a"]


def test_a_reopened_index_knows_what_it_has_and_how_far_it_is(opened: Opened, tmp_path: Path) -> None:
    index = opened(tmp_path)
    index.apply(PIPELINE, [an_entry(1, "Rust")], [], "v7")
    index.close()

    again = opened(tmp_path)
    again.apply(PIPELINE, [an_entry(1, "Zig")], [], "v8")

    assert (keys(again, Words("zig")), keys(again, Words("rust"))) == (["1"], [])
    assert (again.position(PIPELINE), again.position("other")) == ("v8", None)


def test_a_forgotten_pipeline_begins_from_nothing_and_the_others_stay(opened: Opened) -> None:
    index = opened()
    index.apply("a", [an_entry(1, "Rust", pipeline="a")], [], "1")
    index.apply("b", [an_entry(2, "Rust", pipeline="b")], [], "5")
    index.forget("a")

    assert keys(index, AllOf()) == ["2"]
    assert (index.position("a"), index.position("b")) == (None, "5")


def test_the_notes_of_positions_are_never_found(opened: Opened) -> None:
    index = opened()
    index.apply("a", [], [], "1")

    assert index.search(AllOf(), with_facets=True).total == 0


def test_what_is_not_flushed_is_lost_together_with_its_position(opened: Opened, tmp_path: Path) -> None:
    index = opened(tmp_path)
    index.apply(PIPELINE, [an_entry(1, "Rust")], [], "1")
    index.apply(PIPELINE, [an_entry(2, "Rust")], [], "2", flush=False)
    assert index.position(PIPELINE) == "2"
    assert keys(index, Words("rust")) == ["1"]

    copy = tmp_path.with_name("copy")
    shutil.copytree(tmp_path, copy, ignore=shutil.ignore_patterns(".tmp*"))
    as_after_a_crash = opened(copy)

    assert as_after_a_crash.position(PIPELINE) == "1"
    index.flush()
    assert sorted(keys(index, Words("rust"))) == ["1", "2"]


def test_much_that_waits_is_committed_by_itself() -> None:
    index = SearchIndex(pending_max=3)
    index.apply(PIPELINE, [an_entry(1, "Rust"), an_entry(2, "Rust")], [], "1", flush=False)

    assert len(keys(index, Words("rust"))) == 2


def test_an_entry_that_cannot_be_written_leaves_the_index_as_it_was(opened: Opened, tmp_path: Path) -> None:
    index = opened(tmp_path)
    index.apply(PIPELINE, [an_entry(1, "Rust")], [], "1")
    with pytest.raises(OverflowError):
        index.apply(PIPELINE, [an_entry(2, "Rust"), an_entry(3, "Rust", time_ms=2**70)], [], "2")

    with pytest.raises(Transient):  # what had not been committed is gone: who follows must ask where to go on
        index.apply(PIPELINE, [an_entry(4, "Rust")], [], "3")
    assert (index.position(PIPELINE), keys(index, Words("rust"))) == ("1", ["1"])
    index.apply(PIPELINE, [an_entry(4, "Rust")], [], "3")
    assert sorted(keys(index, Words("rust"))) == ["1", "4"]


def test_one_process_writes_and_another_reads(opened: Opened, tmp_path: Path) -> None:
    now = 0.0
    writer = opened(tmp_path)
    writer.apply(PIPELINE, [an_entry(1, "Rust")], [], "1")
    reader = opened(tmp_path, monotonic=lambda: now)
    assert keys(reader, Words("rust")) == ["1"]

    writer.apply(PIPELINE, [an_entry(2, "Rust")], [], "2")
    now = 1.0

    assert sorted(keys(reader, Words("rust"))) == ["1", "2"]
    assert reader.position(PIPELINE) == "2"
    assert not reader.is_writer
    with pytest.raises(Transient):
        reader.apply(PIPELINE, [], [], "3")
    writer.close()
    assert reader.is_writer
    with pytest.raises(Transient, match="position first"):  # The other one may have gone on since it was last asked.
        reader.apply(PIPELINE, [an_entry(3, "Rust")], [], "3")
    assert reader.position(PIPELINE) is not None
    reader.apply(PIPELINE, [an_entry(3, "Rust")], [], "3")
    assert len(keys(reader, Words("rust"))) == 3


def test_a_reader_waits_for_an_index_that_is_not_there_yet(opened: Opened, tmp_path: Path) -> None:
    now = 0.0
    held = opened(tmp_path)
    shutil.rmtree(tmp_path / f"v{SCHEMA_VERSION}")
    reader = opened(tmp_path, monotonic=lambda: now)
    assert reader.search(AllOf()).total == 0
    held.close()

    writer = opened(tmp_path)
    writer.apply(PIPELINE, [an_entry(1, "Rust")], [], "1")
    now = 1.0

    assert keys(reader, Words("rust")) == ["1"]


@pytest.mark.parametrize("damage", ["flip", "cut", "gone", "meta", "foreign"])
def test_a_damaged_index_begins_from_nothing(opened: Opened, tmp_path: Path, damage: str) -> None:
    index = opened(tmp_path)
    index.apply(PIPELINE, [an_entry(n, "Rust", "and a text that is long enough " * 5) for n in range(50)], [], "1")
    index.close()
    _damage(tmp_path / f"v{SCHEMA_VERSION}", damage)

    again = opened(tmp_path)

    assert again.search(Words("rust")).total == 0
    assert again.position(PIPELINE) is None
    again.apply(PIPELINE, [an_entry(1, "Rust")], [], "1")
    assert keys(again, Words("rust")) == ["1"]


def _damage(home: Path, damage: str) -> None:
    file = next(home.glob("*.term"))
    data = file.read_bytes()
    match damage:
        case "flip":
            file.write_bytes(data[:10] + bytes([data[10] ^ 255]) + data[11:])
        case "cut":
            file.write_bytes(data[: len(data) // 2])
        case "gone":
            file.unlink()
        case "meta":
            (home / "meta.json").write_text("{}")
        case "foreign":
            text = (home / "meta.json").read_text()
            (home / "meta.json").write_text(text.replace('"points"', '"other"'))


def test_an_index_of_another_version_is_removed(opened: Opened, tmp_path: Path) -> None:
    old = tmp_path / f"v{SCHEMA_VERSION - 1}"
    old.mkdir()
    (old / "meta.json").write_text("{}")

    index = opened(tmp_path)

    assert index.position(PIPELINE) is None
    assert {path.name for path in tmp_path.iterdir()} == {f"v{SCHEMA_VERSION}", LOCK_NAME}


def test_an_index_that_is_removed_while_it_is_used_begins_from_nothing(opened: Opened, tmp_path: Path) -> None:
    index = opened(tmp_path)
    index.apply(PIPELINE, [an_entry(1, "Rust")], [], "1")
    shutil.rmtree(tmp_path / f"v{SCHEMA_VERSION}")

    with pytest.raises(ValueError, match="file"):
        index.apply(PIPELINE, [an_entry(2, "Rust")], [], "2")
    assert index.position(PIPELINE) is None
    assert index.search(Words("rust")).total == 0
    index.apply(PIPELINE, [an_entry(3, "Rust")], [], "1")
    assert keys(index, Words("rust")) == ["3"]


def test_one_whose_whole_folder_was_removed_gives_way_to_another(opened: Opened, tmp_path: Path) -> None:
    now, folder = 0.0, tmp_path / "index"
    first = opened(folder, monotonic=lambda: now)
    first.apply(PIPELINE, [an_entry(1, "Rust")], [], "1")
    shutil.rmtree(folder)
    second = opened(folder)
    second.apply(PIPELINE, [an_entry(2, "Rust")], [], "1")
    now = 1.0

    assert second.is_writer
    assert not first.is_writer
    with pytest.raises(Transient, match="another process"):
        first.apply(PIPELINE, [an_entry(3, "Rust")], [], "2")
    assert keys(first, Words("rust")) == keys(second, Words("rust")) == ["2"]

    second.close()
    assert first.is_writer
    assert first.position(PIPELINE) == "1"
    first.apply(PIPELINE, [an_entry(3, "Rust")], [], "2")
    assert sorted(keys(first, Words("rust"))) == ["2", "3"]


SEARCHER = """
import sys
from pathlib import Path
from tidings.follow.search.index import SearchIndex
from tidings.model.query_tree import Words
index = SearchIndex(Path(sys.argv[1]))
print(index.search(Words("rust")).total, flush=True)
sys.stdin.readline()
index.search(Words("text"), limit=500)
"""


def test_files_cut_under_a_running_process_cost_at_most_that_process(opened: Opened, tmp_path: Path) -> None:
    index = opened(tmp_path)
    index.apply(PIPELINE, [an_entry(n, f"Rust {n}", f"a text {n} " * 50) for n in range(500)], [], "1")
    index.close()
    command = [sys.executable, "-c", SEARCHER, str(tmp_path)]
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=clean_environment()
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"500\n"
    for file in (tmp_path / f"v{SCHEMA_VERSION}").iterdir():
        if file.suffix in (".term", ".store", ".pos", ".idx"):
            os.truncate(file, 0)
    process.communicate(b"\n")  # A file that shrinks under its memory map ends a process with SIGBUS.

    again = opened(tmp_path)

    assert again.position(PIPELINE) is None
    again.apply(PIPELINE, [an_entry(1, "Rust")], [], "1")
    assert keys(again, Words("rust")) == ["1"]


@pytest.mark.parametrize(
    ("root", "limit"),
    [
        (AllOf((Words("rust"),) * 200), "100 are allowed"),
        (Words("rust " * 300), "200 are allowed"),
        (Not(AnyOf((Words("r", is_prefix=True),) * 11)), "10 are allowed"),
    ],
)
def test_a_query_that_asks_too_much_is_refused_and_costs_nothing(
    opened: Opened, tmp_path: Path, root: Part, limit: str
) -> None:
    index = opened(tmp_path)
    index.apply(PIPELINE, [an_entry(1, "Rust")], [], "1")
    with pytest.raises(BadInput, match=limit):
        index.search(root)

    assert keys(index, Words("rust")) == ["1"]


FEEDER = """
import sys
from pathlib import Path
from tests.support.search import PIPELINE, an_entry
from tidings.follow.search.index import SearchIndex
index = SearchIndex(Path(sys.argv[1]))
start = int(index.position(PIPELINE) or 0)
for step in range(start, int(sys.argv[2])):
    put = [an_entry(step * 3 + n, f"Rust {step}", "again" if n else "") for n in range(3)]
    put.append(an_entry(1_000_000, f"Rust, version {step}"))
    index.apply(PIPELINE, put, [step * 3 - 1], str(step + 1), flush=step % 4 == 3)
    print(step, flush=True)
index.close()
"""


@pytest.mark.storm
def test_killed_anywhere_it_ends_as_if_it_had_never_stopped(tmp_path: Path) -> None:
    steps = 60
    kills = 200 if os.environ.get("TIDINGS_STORM") == "full" else 4
    _feed(tmp_path / "whole", steps)
    folder = tmp_path / "killed"
    for kill in range(kills):
        _feed(folder, steps * (kill + 1) // kills, killed_after=kill % 9 + 1)
    _feed(folder, steps)

    assert _content(folder) == _content(tmp_path / "whole")


def _feed(folder: Path, steps: int, killed_after: int | None = None) -> None:
    command = [sys.executable, "-c", FEEDER, str(folder), str(steps)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as feeder:
        assert feeder.stdout is not None
        for number, _ in enumerate(feeder.stdout, 1):
            if number == killed_after:
                time.sleep(random.uniform(0, 0.02))  # the kill may come at any point of the next steps
                feeder.kill()
    assert killed_after is not None or feeder.returncode == 0


def _content(folder: Path) -> tuple[str | None, list[str], list[str]]:
    index = SearchIndex(folder)
    try:
        titles = [hit.title for hit in index.search(Compare("pipeline", "=", PIPELINE), limit=1000).hits]
        return index.position(PIPELINE), titles, all_pages(index, Words("rust"), 50)
    finally:
        index.close()
