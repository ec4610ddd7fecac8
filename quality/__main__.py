"""Print every score beside its baselines; exit with 1 if one is missed."""

from __future__ import annotations

import sys

from quality import extraction, sentiment, stories, summary
from quality.data import Missing
from quality.table import Row, show

PARTS = {"extraction": extraction.run, "sentiment": sentiment.run, "summary": summary.run, "stories": stories.run}


def main() -> int:
    rows: list[Row] = []
    is_missing = False
    for name, run in PARTS.items():
        try:
            rows += run()
        except Missing as problem:
            is_missing = True
            print(f"{name} not scored: {problem}", file=sys.stderr)
    show(rows)
    return 1 if is_missing or not all(row.is_reached for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
