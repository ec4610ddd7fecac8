"""PostgreSQL is cut off, frozen, killed, stopped, restarted, promoted and filled up under real processes at work.

Every case: what was accepted before, during and after is there and processed, no lease is closed twice, and work goes
on within seconds. The table of outcomes is printed at the end.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.cuts.machines import machines
from tests.cuts.scene import Outcome, Scene, is_full, judged, scene
from tests.support.cluster import Cluster
from tests.support.disks import SmallDisk, small_disk
from tests.support.proxy import Proxy, proxied
from tests.support.waiting import until

SILENT_SECONDS_MAX = 14.0
"""From a host's silent death until the next upload is accepted, where another one stands ready."""
HEALED_SECONDS_MAX = 12.0
"""From the end of a fault until the next upload is accepted."""
SEED = int(os.environ.get("TIDINGS_CUTS_SEED", "15"))
FAKETIME = Path("/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1")
DAYS_SECONDS = 48 * 3600

full_only = pytest.mark.skipif(not is_full(), reason="only in `make cuts`")


def note(outcomes: list[Outcome], outcome: Outcome, seconds_max: float) -> None:
    outcomes.append(outcome)
    assert outcome.lost == 0
    assert outcome.settled_twice == 0
    assert outcome.accepted_seconds < seconds_max, outcome


async def test_a_link_goes_down_and_comes_back(tmp_path: Path, outcomes: list[Outcome]) -> None:
    with (
        machines(1) as all_,
        Cluster(tmp_path, address=all_.databases[0].address, inside=all_.databases[0].inside) as db,
    ):
        async with scene(tmp_path, db.url, all_.inside) as there:
            all_.databases[0].cut()
            await there.troubled()
            all_.databases[0].join()
            healed = time.monotonic()
            outcome = await judged(there, "the link is down, then up", "its return", healed, lambda: db.socket_url)
    note(outcomes, outcome, HEALED_SECONDS_MAX)


async def test_a_leader_dies_without_a_word_and_a_standby_is_promoted(tmp_path: Path, outcomes: list[Outcome]) -> None:
    """The leader's cable is cut for good, under load. Both hosts are in the URL and nothing says which one writes."""
    with machines(2) as all_:
        first, second = all_.databases
        port = 5432
        with (
            Cluster(tmp_path, address=first.address, port=port, inside=first.inside) as leader,
            replica(tmp_path, leader, second.address, port, second.inside) as standby,
        ):
            leader.set("synchronous_standby_names", "*")
            url = f"postgresql://postgres@{first.address},{second.address}:{port}/postgres?sslmode=disable"
            async with scene(tmp_path, url, all_.inside) as there:
                first.cut()
                leader.signal(signal.SIGSTOP)
                cut = time.monotonic()
                standby.promote()
                case = "the leader's link is cut for good, a synchronous standby is promoted"
                outcome = await judged(there, case, "the cut", cut, lambda: standby.socket_url)
    note(outcomes, outcome, SILENT_SECONDS_MAX)


@contextmanager
def replica(folder: Path, leader: Cluster, address: str, port: int, inside: tuple[str, ...]) -> Iterator[Cluster]:
    """Start a standby that follows a leader."""
    standby = Cluster(folder, address=address, port=port, inside=inside, name="standby")
    try:
        standby.copy(leader)
        standby.start()
        yield standby
    finally:
        standby.__exit__()


async def test_a_proxy_freezes(tmp_path: Path, outcomes: list[Outcome]) -> None:
    """TCP sees a live host: only our own limits notice."""
    with Cluster(tmp_path) as db, proxied(db.url) as (proxy, url):
        async with scene(tmp_path, url) as there:
            proxy.freeze()
            await there.troubled()
            proxy.thaw()
            healed = time.monotonic()
            outcome = await judged(there, "a proxy freezes, then thaws", "its thaw", healed, lambda: db.socket_url)
    note(outcomes, outcome, HEALED_SECONDS_MAX)


@full_only
async def test_a_proxy_misbehaves_by_a_seeded_plan(tmp_path: Path, outcomes: list[Outcome]) -> None:
    with Cluster(tmp_path) as db, proxied(db.url) as (proxy, url):
        async with scene(tmp_path, url) as there:
            faults = threading.Thread(target=misbehave, args=(proxy, random.Random(SEED)))
            faults.start()
            await until(lambda: not faults.is_alive(), seconds=180)
            healed = time.monotonic()
            case = f"a proxy freezes, resets and delays 12 times (seed {SEED})"
            outcome = await judged(there, case, "the last", healed, lambda: db.socket_url)
    note(outcomes, outcome, HEALED_SECONDS_MAX)


def misbehave(proxy: Proxy, rng: random.Random) -> None:
    """Do twelve things to a connection, each for up to 5 seconds."""
    for _ in range(12):
        what, seconds = rng.choice(["freeze", "reset", "delay"]), rng.uniform(0.2, 5)
        if what == "reset":
            proxy.reset()
        elif what == "freeze":
            proxy.freeze()
        else:
            proxy.delay_seconds = rng.uniform(0.01, 0.5)
        threading.Event().wait(seconds)
        proxy.delay_seconds = 0.0
        proxy.thaw()


@full_only
async def test_the_server_is_killed_and_started_again(tmp_path: Path, outcomes: list[Outcome]) -> None:
    with Cluster(tmp_path) as db:
        async with scene(tmp_path, db.url) as there:
            db.kill()
            await there.troubled()
            db.start()
            started = time.monotonic()
            case = "PostgreSQL is killed (-9) and started again"
            outcome = await judged(there, case, "its start", started, lambda: db.socket_url)
    note(outcomes, outcome, HEALED_SECONDS_MAX)


@full_only
async def test_the_server_is_restarted(tmp_path: Path, outcomes: list[Outcome]) -> None:
    with Cluster(tmp_path) as db:
        async with scene(tmp_path, db.url) as there:
            begun = time.monotonic()
            db.restart()
            case = "PostgreSQL is restarted"
            outcome = await judged(there, case, "the order to restart", begun, lambda: db.socket_url)
    note(outcomes, outcome, HEALED_SECONDS_MAX)


@full_only
async def test_the_server_is_stopped_for_a_while(tmp_path: Path, outcomes: list[Outcome]) -> None:
    with Cluster(tmp_path) as db:
        async with scene(tmp_path, db.url) as there:
            db.signal(signal.SIGSTOP)
            await there.troubled()
            db.signal(signal.SIGCONT)
            healed = time.monotonic()
            case = "PostgreSQL is stopped (SIGSTOP), then continued"
            outcome = await judged(there, case, "its return", healed, lambda: db.socket_url)
    note(outcomes, outcome, HEALED_SECONDS_MAX)


@contextmanager
def a_small_disk() -> Iterator[SmallDisk]:
    """Mount a disk where another user may enter."""
    place = Path(tempfile.mkdtemp(prefix="tpd"))
    place.chmod(0o755)
    try:
        with small_disk(place, megabytes=160) as disk:
            if not disk.mounted:
                if os.environ.get("CI"):
                    pytest.fail("no disk can be mounted; in CI it must")
                pytest.skip("no disk can be mounted")
            yield disk
    finally:
        place.rmdir()


@full_only
async def test_the_servers_disk_is_full(tmp_path: Path, outcomes: list[Outcome]) -> None:
    """PostgreSQL may end itself when it cannot write its log; then it is started again, as a supervisor would."""
    with a_small_disk() as disk, Cluster(tmp_path, place=disk.folder) as db:
        async with scene(tmp_path, db.url) as there:
            with disk.filled():
                await there.troubled(120)
            freed = time.monotonic()
            if not db.is_alive:
                db.start()
            case = "PostgreSQL's disk is full, then has room"
            outcome = await judged(there, case, "the room", freed, lambda: db.socket_url)
    note(outcomes, outcome, HEALED_SECONDS_MAX)


async def goes_on(there: Scene, since: float) -> None:
    await until(lambda: len(there.since(since)) >= 20, watching=tuple(there.processes))


def needs_faketime() -> None:
    if not FAKETIME.exists():
        if os.environ.get("CI"):
            pytest.fail("libfaketime is missing; in CI it must be there")
        pytest.skip("libfaketime is not installed")


@full_only
async def test_the_clocks_of_our_processes_jump(tmp_path: Path, outcomes: list[Outcome]) -> None:
    """Two days ahead, then two days back, while they hold leases: only the database's clock counts."""
    needs_faketime()
    clock = tmp_path / "clock"
    clock.write_text("+0")
    faked = {"LD_PRELOAD": str(FAKETIME), "FAKETIME_TIMESTAMP_FILE": str(clock), "FAKETIME_NO_CACHE": "1",
             "FAKETIME_DONT_FAKE_MONOTONIC": "1", "DONT_FAKE_MONOTONIC": "1"}  # fmt: skip
    with Cluster(tmp_path) as db:
        async with scene(tmp_path, db.url, **faked) as there:
            for jump in (f"+{DAYS_SECONDS}", f"-{DAYS_SECONDS}", "+0"):
                jumped = time.monotonic()
                clock.write_text(jump)
                await goes_on(there, jumped)
            case = "our processes' clocks jump 48 h ahead, back, and home"
            outcome = await judged(there, case, "the last jump", jumped, lambda: db.socket_url)
    note(outcomes, outcome, HEALED_SECONDS_MAX)


def test_nothing_is_left_behind() -> None:
    """Namespaces outlive their processes unless somebody removes them."""
    try:
        listed = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, check=True).stdout
    except (FileNotFoundError, subprocess.CalledProcessError):
        pytest.skip("there are no network namespaces here")
    assert "tidings-" not in listed
