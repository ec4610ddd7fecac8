"""Follows a stream kept in a file and mirrors it, until it is killed: `python mirror_process.py FILE URL`."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import msgspec

from tidings.follow.mirrors.addresses import TargetAddress, open_target
from tidings.follow.mirrors.budget import WriteBudget
from tidings.follow.mirrors.mirror import Mirror, MirrorPace
from tidings.follow.mirrors.names import MirroredCollection, MirroredPipeline
from tidings.model.changes import Change
from tidings.model.clock import SystemClock

PIPELINE = "bitcoin_news"
PLAN = MirroredPipeline(PIPELINE, {"articles": MirroredCollection("articles", "article", True, "BTC_ID_INDEX")})


class Uncounted:
    """A ledger without a limit."""

    async def reserve(self, name: str, amount: int, limit: int) -> bool:
        return True

    async def settle(self, name: str, reserved: int, actual: int) -> None:
        return None

    async def count(self, name: str, amount: int) -> None:
        return None


def a_mirror(url: str) -> Mirror:
    clock = SystemClock()
    budget = WriteBudget(Uncounted(), clock, mirror="edge", pipeline=PIPELINE, limit=0)
    return Mirror(
        "edge", open_target(TargetAddress(url)), [PLAN], budget=budget, clock=clock, pace=MirrorPace(0, 0, 2_000)
    )


def write_stream(file: Path, changes: list[Change]) -> None:
    file.with_suffix(".new").write_bytes(msgspec.json.encode(changes))
    file.with_suffix(".new").replace(file)


def read_stream(file: Path, after: str | None) -> list[Change]:
    changes = msgspec.json.decode(file.read_bytes(), type=list[Change])
    return sorted(change for change in changes if change.version > int(after or 0))


async def follow(mirror: Mirror, file: Path, limit: int = 7) -> bool:
    """Follow one batch; return whether there was one."""
    if not await mirror.is_our_turn():
        return True
    changes = read_stream(file, await mirror.position(PIPELINE))[:limit]
    if changes:
        await mirror.follow(PIPELINE, changes, str(changes[-1].version))
    await mirror.flush()
    return bool(changes)


async def main(file: Path, url: str) -> None:
    mirror = a_mirror(url)
    while True:
        if not await follow(mirror, file):
            await asyncio.sleep(0.005)
            print("idle", flush=True)


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2]))
