"""A test that failed once is never hidden: it is named, counted, and too many of them fail the run."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests import failed_once
from tests.support.environment import ROOT, clean_environment

FLAKY = """
from pathlib import Path
import pytest

@pytest.mark.parametrize("number", range({count}))
def test_flaky(number):
    marker = Path(__file__).with_suffix(f".tried-{{number}}")
    tried = marker.exists()
    marker.touch()
    assert tried
"""


def ran(folder: Path, *runs: str) -> tuple[int, str]:
    program = ROOT / "tests" / "failed_once.py"
    environment = clean_environment(PYTEST_DISABLE_PLUGIN_AUTOLOAD="1")
    command = [sys.executable, str(program), *runs]
    ended = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    report = (folder / failed_once.REPORT).read_text()
    assert report in ended.stdout
    return ended.returncode, report


def test_what_failed_once_is_named_and_counted_over_all_runs(tmp_path: Path) -> None:
    (tmp_path / "test_one.py").write_text(FLAKY.format(count=1))
    (tmp_path / "test_two.py").write_text(FLAKY.format(count=2) + "\ndef test_sound(): pass\n")
    code, report = ran(tmp_path, "test_one.py", "test_two.py -k 'flaky or sound'")
    assert code == 0
    assert report.splitlines() == [
        "failed once, passed alone: 3",
        "  test_one.py::test_flaky[0]",
        "  test_two.py::test_flaky[0]",
        "  test_two.py::test_flaky[1]",
        "failed twice: 0",
    ]


def test_too_many_that_failed_once_fail_the_run(tmp_path: Path) -> None:
    (tmp_path / "test_one.py").write_text(FLAKY.format(count=failed_once.ONCE_MAX + 1))
    code, report = ran(tmp_path, "test_one.py")
    assert code == 1
    assert f"failed once, passed alone: {failed_once.ONCE_MAX + 1}" in report


def test_what_fails_alone_too_fails_the_run(tmp_path: Path) -> None:
    (tmp_path / "test_one.py").write_text(FLAKY.format(count=1) + "\ndef test_broken(): assert False\n")
    code, report = ran(tmp_path, "test_one.py")
    assert code == 1
    assert report.splitlines() == [
        "failed once, passed alone: 1",
        "  test_one.py::test_flaky[0]",
        "failed twice: 1",
        "  test_one.py::test_broken",
    ]


def test_a_run_that_did_not_come_to_its_end_is_no_success(tmp_path: Path) -> None:
    (tmp_path / "test_one.py").write_text("import os\ndef test_gone(): os._exit(0 or 9)\n")
    assert ran(tmp_path, "test_one.py") == (1, "failed once, passed alone: 0\nfailed twice: 1\n"
                                               "  pytest test_one.py ended with code 9\n")  # fmt: skip
    (tmp_path / "test_one.py").write_text("def test_one(): pass\n")
    assert ran(tmp_path, "nowhere.py")[0] == 1


def test_a_sound_run_says_so(tmp_path: Path) -> None:
    (tmp_path / "test_one.py").write_text("def test_one(): pass\n")
    assert ran(tmp_path, "test_one.py") == (0, "failed once, passed alone: 0\nfailed twice: 0\n")
