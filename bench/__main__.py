"""`make bench`: everything measured, in one table, beside the floor of the same run."""

from __future__ import annotations

import argparse
import importlib
import json
import os
import time
from typing import Any

from bench.machine import Neighbors

MODULES = ("engine", "hn_ingest", "hn_live", "fetch", "enrich", "news", "serve", "search", "stories", "mirrors")
PEERS = "peers"
HEADS = ("what", "measured", "unit", "floor", "ratio")


def main() -> None:
    """Measure what was asked for and print it."""
    asked = _arguments()
    names = [asked.only] if asked.only else [*MODULES, *([PEERS] if asked.peers else [])]
    rows: list[dict[str, Any]] = []
    for name in names:
        rows += _measure(name, asked.quick, quiet=asked.json)
    print(json.dumps(rows, indent=1) if asked.json else table(rows))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer items: a minute instead of many")
    parser.add_argument("--peers", action="store_true", help="other job queues on the same work, where installed")
    parser.add_argument("--only", choices=[*MODULES, PEERS], help="one part alone")
    parser.add_argument("--json", action="store_true", help="print JSON")
    return parser.parse_args()


def _measure(name: str, quick: bool, *, quiet: bool) -> list[dict[str, Any]]:
    try:
        module = importlib.import_module(f"bench.{name}")
    except ImportError as error:
        print(f"{name} is left out: {error}", flush=True) if not quiet else None
        return []
    if not quiet:
        print(f"measuring {name} ...", flush=True)
    neighbors, started = Neighbors(), time.perf_counter()
    rows = [{**row, "part": name} for row in module.run(quick)]
    busy = neighbors.seconds() / (time.perf_counter() - started)
    for row in rows:
        row["other_cpus"] = round(busy, 2)
    if not quiet:
        print(f"  others used {busy:.2f} of {os.cpu_count()} cores meanwhile", flush=True)
    return rows


def table(rows: list[dict[str, Any]]) -> str:
    """Write rows in aligned columns."""
    lines = [HEADS, *(_cells(row) for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(HEADS))]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if column in (0, 2) else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    reason = row.get("reason")
    if reason:
        return (row["what"], "-", str(reason)[:60], "", "")
    ratio = row.get("ratio")
    return (row["what"], _number(row["value"]), row["unit"], _number(row.get("floor")), _ratio(ratio))


def _ratio(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}" if value >= 0.1 else f"{value:.3f}"


def _number(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


if __name__ == "__main__":
    main()
