"""`python -m mutants`: undo the rules of the list one by one; every one must be noticed."""

from __future__ import annotations

import argparse
import random
import signal
import sys
from collections.abc import Sequence
from datetime import UTC, datetime

from mutants.catalog import Mutant, Unfit, load
from mutants.tree import FALLBACK_SECONDS, Tested, Tree, a_tree, try_out


def main() -> int:
    """Run the chosen mutants and print a table; 1 where one is not caught, 2 where nothing could be tried."""
    arguments = _arguments()
    # Whoever stops us must not leave a server and a copy behind.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        chosen = choose(load(), arguments.only, arguments.sample, arguments.seed)
        with a_tree() as tree:
            if not _is_sound(tree, chosen):
                return 2
            print(f"{'mutant':<34} {'rule':<5} {'seconds':>7}  caught by")
            endings = [_tried(tree, mutant) for mutant in chosen]
    except Unfit as error:
        print(error, file=sys.stderr)
        return 2
    caught = sum(tested.ending == "caught" for tested in endings)
    print(f"{caught} of {len(chosen)} mutants caught in {sum(tested.seconds for tested in endings):.0f} s")
    return 0 if caught == len(chosen) else 1


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m mutants")
    parser.add_argument("--sample", type=int, help="try only so many, drawn by the seed")
    parser.add_argument("--seed", default=datetime.now(UTC).date().isoformat(), help="what draws the sample: today")
    parser.add_argument("--only", nargs="+", help="try only these, by name or by rule")
    return parser.parse_args()


def choose(mutants: Sequence[Mutant], only: Sequence[str] | None, sample: int | None, seed: str) -> list[Mutant]:
    """Return the mutants to try, in the order of the list."""
    wanted = [m for m in mutants if only is None or m.name in only or m.rule in only]
    if not wanted:
        raise Unfit(f"there is no mutant {' or '.join(only or ())}; names and rules are in mutants/list.toml")
    if sample is not None and sample < len(wanted):
        drawn = set(random.Random(seed).sample(range(len(wanted)), sample))
        print(f"a sample of {sample}, drawn by {seed}")
        wanted = [m for n, m in enumerate(wanted) if n in drawn]
    return wanted


def _is_sound(tree: Tree, chosen: Sequence[Mutant]) -> bool:
    """Tell whether the named tests pass while every rule stands: a test that always fails catches nothing."""
    tested = tree.test(sorted({mutant.caught_by for mutant in chosen}), FALLBACK_SECONDS)
    if tested.ending != "survived":
        print(f"without any mutant: {tested.ending}, {tested.by}", file=sys.stderr)
    return tested.ending == "survived"


def _tried(tree: Tree, mutant: Mutant) -> Tested:
    tested = try_out(tree, mutant)
    by = tested.by if tested.ending == "caught" else f"NOT CAUGHT: {tested.ending} {tested.by}"
    note = "" if tested.is_named else f" (not by {mutant.caught_by})"
    print(f"{mutant.name:<34} {mutant.rule:<5} {tested.seconds:>7.1f}  {by}{note}", flush=True)
    return tested


if __name__ == "__main__":
    sys.exit(main())
