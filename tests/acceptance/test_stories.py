"""`tidings try stories` as a person runs it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path


def test_lines_are_grouped_in_the_order_given_and_a_bad_one_is_named(tmp_path: Path) -> None:
    lines = [
        {"id": "a", "title": "Pizza maker Sbarro files for Chapter 11 bankruptcy", "time": 1_000},
        {"id": "b", "title": "Elephants can tell languages apart, study finds", "time": 2_000},
        {
            "id": "c",
            "title": "Sbarro files for bankruptcy for second time",
            "time": 3_000,
            "url": "https://n.example/c",
        },
        {"id": "d", "title": "Discussion", "time": 4_000, "url": "http://www.n.example/c/?utm_source=x"},
        {"id": "e", "time": 5_000},
    ]
    source, target = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    source.write_text("\n".join(map(json.dumps, lines)), "utf-8")
    command = [sys.executable, "-m", "tidings", "try", "stories", "--jsonl", str(source), str(target)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    answers = [json.loads(line) for line in target.read_text("utf-8").splitlines()]
    assert [each.get("story") for each in answers] == ["a", "b", "a", "a", None]
    assert "line 5" in answers[-1]["error"]
    assert done.returncode == 1
    assert "1 of the lines failed" in done.stderr + done.stdout
