"""Run seeds: `python -m simulation --seeds 500`. Those that ever failed come first; a new one that fails is kept."""

from __future__ import annotations

import argparse
import itertools
import logging
import os
import signal
import sys
import time
import traceback
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from types import FrameType

from simulation.databases import SqliteFactory
from simulation.oracle.knowledge import Violation
from simulation.run import Result, run

KEPT = Path(__file__).with_name("failing_seeds.txt")
SHOWN = 60
TELL_SECONDS = 10.0
SEED_SECONDS = 120
"""A seed takes a fifth of a second; one that is still running now goes round in circles."""
_factory: SqliteFactory | None = None


def main() -> int:
    """Run what was asked for; return 1 where a seed failed."""
    asked = _asked()
    logging.disable(logging.CRITICAL)
    kept = [] if asked.only else kept_seeds(KEPT)
    seeds = list(dict.fromkeys([*kept, *range(asked.start, asked.start + asked.seeds)]))
    print(f"{len(seeds)} seeds, {len(kept)} of them kept because they failed once", flush=True)
    failed = _tell(_results(seeds, asked.jobs), len(seeds), asked.events)
    for result in failed:
        if result.seed not in kept:
            keep(KEPT, result)
    return 1 if failed else 0


def _asked() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m simulation", description=__doc__)
    parser.add_argument("--seeds", type=int, default=500, help="how many seeds to run")
    parser.add_argument("--start", type=int, default=1, help="the first of them")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="how many at a time")
    parser.add_argument("--events", type=int, default=SHOWN, help="how many of a failed seed's last events to show")
    parser.add_argument("--only", action="store_true", help="do not run the kept seeds first")
    return parser.parse_args()


def kept_seeds(path: Path) -> list[int]:
    """Read the seeds that ever failed."""
    lines = path.read_text().splitlines() if path.exists() else []
    return [int(line.split()[0]) for line in lines if line.strip() and not line.startswith("#")]


def keep(path: Path, result: Result) -> None:
    """Note a seed that failed, and by which rule."""
    with path.open("a") as file:
        file.write(f"{result.seed} {result.violations[0].rule}\n")
    print(f"seed {result.seed} is kept in {path.name}")


def _results(seeds: list[int], jobs: int) -> Iterator[Result]:
    if jobs <= 1:
        yield from map(_one, seeds)
        return
    with ProcessPoolExecutor(jobs) as pool:
        yield from pool.map(_one, seeds, chunksize=1)


def _one(seed: int) -> Result:
    global _factory  # one template for each process of the pool
    logging.disable(logging.CRITICAL)
    _factory = _factory or SqliteFactory()
    signal.signal(signal.SIGALRM, _cut_off)
    signal.alarm(SEED_SECONDS)
    try:
        result = run(seed, _factory.connect)
    except SeedHangsError as error:
        return Result(seed, violations=[Violation("run", f"no end within {SEED_SECONDS} s; it was at\n{error}")])
    finally:
        signal.alarm(0)
    return result if result.violations else result.without_events()


class SeedHangsError(KeyboardInterrupt):
    """Cuts a seed off. Loops let only an interrupt through: any other error would be one task's own."""


def _cut_off(_signal: int, frame: FrameType | None) -> None:
    raise SeedHangsError("".join(traceback.format_stack(frame, limit=12)))


def _tell(results: Iterable[Result], total: int, events: int) -> list[Result]:
    began = told = time.monotonic()
    failed: list[Result] = []
    commits = acknowledged = done = faults = 0
    for done, result in zip(itertools.count(1), results, strict=False):
        commits, acknowledged = commits + result.commits, acknowledged + result.acknowledged
        faults += sum(result.faults.values())
        if result.violations:
            failed.append(result)
            print(describe(result, events), flush=True)
        if time.monotonic() - told > TELL_SECONDS:
            told = time.monotonic()
            print(f"{done} of {total} seeds, {done / (told - began):.1f} a second", flush=True)
    seconds = time.monotonic() - began
    print(
        f"{done} seeds in {seconds:.0f} s ({done / max(seconds, 0.001):.1f} a second): {commits} commits checked, "
        f"{acknowledged} acknowledged copies, {faults} faults, {len(failed)} seeds failed"
    )
    return failed


def describe(result: Result, events: int) -> str:
    """Say what a seed broke, and what happened last."""
    lines = [f"seed {result.seed} failed", *(f"  {v.rule}: {v.what}" for v in result.violations[:3])]
    lines += [f"  faults: {result.faults}", *(f"  {line}" for line in result.last_events[-events:])]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
