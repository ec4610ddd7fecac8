"""Puts a run of the benchmark into the README: `python -m bench --json | python docs/measured.py`."""

from __future__ import annotations

import json
import os
import platform
import sys
from pathlib import Path
from typing import Any

README = Path(__file__).resolve().parents[1] / "README.md"
BEGIN = "<!-- python -m bench --json | python docs/measured.py -->"
END = "<!-- end -->"
LEFT_OUT = ("CPU, ", "page ", "old articles")


def main() -> None:
    """Read rows from standard input and write the table between its marks."""
    rows: list[dict[str, Any]] = json.load(sys.stdin)
    before, _, rest = README.read_text("utf-8").partition(BEGIN)
    after = rest.partition(END)[2]
    README.write_text(f"{before}{BEGIN}\n{table(rows)}\n{END}{after}", "utf-8")


def table(rows: list[dict[str, Any]]) -> str:
    """Write what a reader wants to know first; `make bench` prints the rest."""
    busy = sum(row.get("other_cpus", 0) for row in rows) / max(1, len(rows))
    cores = os.cpu_count()
    shown = [row for row in rows if not row["what"].startswith(LEFT_OUT) and row.get("value") is not None]
    pages = [row for row in rows if row["what"].startswith("page ")]
    lines = [
        f"`make bench` on {cores} cores ({platform.machine()}, Python {platform.python_version()}), of which "
        f"other work used {busy:.1f} meanwhile. The *floor* is",
        "the same work written by hand for this one purpose, in the same run; of summaries and judgments it is merely",
        "splitting the text, of memory the limit we set ourselves.",
        "",
        "| what | measured | | floor | ratio |",
        "|---|---:|---|---:|---:|",
        *(_line(row) for row in shown),
    ]
    if pages:
        slowest = max(pages, key=lambda row: float(row["value"]))
        lines.append(
            f"| slowest of {len(pages)} pages, 95 of 100 requests within | {_number(slowest['value'])} | ms | | |"
        )
    return "\n".join(lines)


def _line(row: dict[str, Any]) -> str:
    ratio = f"{row['ratio']:.2f}" if row.get("ratio") else ""
    return f"| {row['what']} | {_number(row['value'])} | {row['unit']} | {_number(row.get('floor'))} | {ratio} |"


def _number(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


if __name__ == "__main__":
    main()
