"""`make soak`: a process for every role under load for minutes; prints their memory, and fails where it keeps growing.

The sample world goes on, items are uploaded and discovered, and all kinds of pages are read over real HTTP, by readers
who come and go. Judged are the slope of each process's memory after the warm-up, and the length of SQLite's log.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.support.environment import clean_environment
from tests.support.waiting import wait_until

from bench import soak_load

SLOPE_MB_MAX = 1.0
"""The most a process may grow in a minute, once it is warm."""
WAL_BYTES_MAX = 64 << 20
WARM_SHARE = 0.4
"""The part of the run that is not judged: caches fill, and a process loads what it has not used so far."""
SAMPLE_SECONDS = 5.0
SAMPLES_MIN = 10
START_SECONDS = 120.0
ROLES = ("discover", "work", "serve")
SECRETS = ("api_key", "webhook_url", "newsdata_key", "apitube_key", "token")


def main() -> None:
    """Run it, print what was seen, and exit with 1 where a limit was broken."""
    parser = argparse.ArgumentParser(prog="python -m bench.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=20)
    parser.add_argument("--items", type=int, default=20_000, help="how many items there are when it begins")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="tidings-soak-") as folder:
        wrong = asyncio.run(soak(Path(folder), asked.minutes, asked.items))
    print("\n".join(f"FAILED: {line}" for line in wrong) or "ok: nothing grows, and the log stays short")
    sys.exit(1 if wrong else 0)


async def soak(folder: Path, minutes: float, items: int) -> list[str]:
    """Start everything, load it for a while, and return what broke a limit."""
    from tidings.sample.world import World

    async with World() as world:
        environment = configure(folder, world.settings(f"sqlite:///{folder / 'tidings.db'}"), sorted(world.loopback()))
        await asyncio.to_thread(_command, folder, environment, "upload", "hacker_news", str(_items(folder, items)))
        token = (await asyncio.to_thread(_command, folder, environment, *_TOKEN)).split()[-1]
        with contextlib.ExitStack() as running:
            watched = {role: running.enter_context(_started(folder, environment, role)) for role in ROLES}
            address = await asyncio.to_thread(_address, folder / "serve.log")
            stop = threading.Event()
            running.callback(stop.set)
            load = soak_load.Load(address, token, stop, random.Random(7))
            growing = asyncio.create_task(soak_load.grow(world, random.Random(11)))
            threads = load.start(items)
            try:
                seen = await watch(folder, watched, minutes, load)
            finally:
                stop.set()
                growing.cancel()
                for thread in threads:
                    await asyncio.to_thread(thread.join, 60)
    print(f"\nrequests: {load.told()}")
    return [*judge(seen), *load.complaints()]


_TOKEN = ("token", "create", "--scope", "operate", "--name", "soak")


@dataclass(slots=True)
class Seen:
    """What was measured of one thing: (seconds since the start, megabytes), and the megabytes at most."""

    samples: list[tuple[float, float]] = field(default_factory=list)

    @property
    def last(self) -> float:
        return self.samples[-1][1] if self.samples else 0.0

    @property
    def most(self) -> float:
        return max((size for _, size in self.samples), default=0.0)

    def slope(self) -> tuple[float, float]:
        """Return the growth in megabytes a minute after the warm-up, by least squares, and how far it may be off.

        Memory goes up with every batch and down with every trim: in a run of five minutes that alone looks like a
        megabyte a minute up or down, in one of twenty like a few tenths.
        """
        end = self.samples[-1][0]
        warm = [(at / 60, size) for at, size in self.samples if at >= end * WARM_SHARE]
        if len(warm) < SAMPLES_MIN:
            raise SystemExit("a run this short tells nothing; give it a few minutes")
        middle = sum(at for at, _ in warm) / len(warm)
        mean = sum(size for _, size in warm) / len(warm)
        spread = sum((at - middle) ** 2 for at, _ in warm)
        slope = sum((at - middle) * (size - mean) for at, size in warm) / spread
        rest = sum((size - mean - slope * (at - middle)) ** 2 for at, size in warm)
        return slope, 2 * (rest / (len(warm) - 2) / spread) ** 0.5


async def watch(
    folder: Path, watched: Mapping[str, subprocess.Popen[bytes]], minutes: float, load: soak_load.Load
) -> dict[str, Seen]:
    """Measure until the time is up; print a line a minute."""
    seen = {name: Seen() for name in (*watched, "children of work", "log")}
    started, told = time.monotonic(), 0
    print("minute  " + "".join(f"{name:>18}" for name in seen) + f"{'requests':>12}")
    while (passed := time.monotonic() - started) < minutes * 60:
        for role, process in watched.items():
            if process.poll() is not None:
                raise SystemExit(f"{role} ended: {(folder / f'{role}.log').read_text()[-2000:]}")
            seen[role].samples.append((passed, memory_mb(process.pid)))
        seen["children of work"].samples.append((passed, sum(map(memory_mb, children(watched["work"].pid)))))
        seen["log"].samples.append((passed, _size_mb(folder / "tidings.db-wal")))
        if passed >= told * 60:
            print(f"{told:6d}  " + "".join(f"{each.last:15.1f} MB" for each in seen.values()) + f"{load.done:12,}")
            sys.stdout.flush()
            told += 1
        await asyncio.sleep(SAMPLE_SECONDS)
    return seen


def judge(seen: Mapping[str, Seen]) -> list[str]:
    """Print the slopes; return those that are too steep, and a log that was too long."""
    wrong = []
    for name, each in seen.items():
        if name == "log":
            print(f"{name}: {each.most:.1f} MB at most, allowed {WAL_BYTES_MAX / 2**20:.0f}")
            if each.most > WAL_BYTES_MAX / 2**20:
                wrong.append(f"the write-ahead log grew to {each.most:.0f} MB")
            continue
        slope, doubt = each.slope()
        grown = f"{slope:+.2f} MB a minute after the warm-up (± {doubt:.2f})"
        print(f"{name}: {each.last:.1f} MB, {grown}, at most {each.most:.1f} MB")
        if slope > SLOPE_MB_MAX:
            wrong.append(f"{name} grows by {slope:.2f} MB a minute; allowed {SLOPE_MB_MAX}")
    return wrong


def configure(folder: Path, settings: dict[str, Any], loopback: list[tuple[str, int]]) -> dict[str, str]:
    """Write tidings.toml for a sample world; return the secrets, which go by environment."""
    secrets: dict[str, str] = {}
    public = _without_secrets(settings, "TIDINGS", secrets)
    public["loopback_allowed"] = [f"{host}:{port}" for host, port in loopback]
    public["durability"] = "power-safe"
    public["server"] = {"port": 0}
    (folder / "tidings.toml").write_text("".join(f"{name} = {_toml(value)}\n" for name, value in public.items()))
    return secrets


def _without_secrets(table: dict[str, Any], place: str, secrets: dict[str, str]) -> dict[str, Any]:
    kept: dict[str, Any] = {}
    for name, value in table.items():
        here = f"{place}_{name}" if place == "TIDINGS" else f"{place}__{name}"
        if name in SECRETS:
            secrets[here.upper()] = value
        else:
            kept[name] = _without_secrets(value, here, secrets) if isinstance(value, dict) else value
    return kept


def _toml(value: Any) -> str:
    """Write a value on one line; JSON's texts and numbers are TOML's too."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(name)} = {_toml(each)}" for name, each in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_toml(each) for each in value) + "]"
    return json.dumps(value)


def _items(folder: Path, count: int) -> Path:
    from bench import hn_items

    return hn_items.write(folder / "items.jsonl", count)


def _command(folder: Path, environment: Mapping[str, str], *words: str) -> str:
    command = [sys.executable, "-m", "tidings", *words]
    ended = subprocess.run(
        command, cwd=folder, env=clean_environment(**environment), capture_output=True, text=True, check=True
    )
    return ended.stdout


@contextlib.contextmanager
def _started(folder: Path, environment: Mapping[str, str], role: str) -> Iterator[subprocess.Popen[bytes]]:
    command = [sys.executable, "-m", "tidings", "run", "--role", role, "--log-format", "json"]
    with (folder / f"{role}.log").open("wb") as log:
        process = subprocess.Popen(command, cwd=folder, env=clean_environment(**environment), stdout=log, stderr=log)
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(40)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _address(log: Path) -> str:
    """Wait until the server says where it listens."""
    line: str = wait_until(
        lambda: next((line for line in log.read_text().splitlines() if '"event":"started"' in line), ""),
        seconds=START_SECONDS,
        missing=lambda: f"the server to start: {log.read_text()[-2000:]}",
    )
    return str(json.loads(line)["dashboard"])


def memory_mb(pid: int) -> float:
    """Return the resident memory of a process; 0 once it is gone."""
    try:
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) / 1024
    except (FileNotFoundError, ProcessLookupError):
        pass
    return 0.0


def children(pid: int) -> list[int]:
    """Return the processes a process has started, by whichever thread."""
    found: list[int] = []
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            found += [int(word) for word in (task / "children").read_text().split()]
    return found


def _size_mb(file: Path) -> float:
    return file.stat().st_size / 2**20 if file.exists() else 0.0


if __name__ == "__main__":
    main()
