"""Disks that are full or read-only: for real where this user may mount one, else by the limits of the process."""

from __future__ import annotations

import contextlib
import os
import resource
import subprocess
from collections.abc import Iterator
from pathlib import Path

import apsw

NOBODY = 65_534


class SmallDisk:
    """A folder on a disk of a few megabytes; `full()` leaves not a byte of it."""

    def __init__(self, folder: Path, *, mounted: bool) -> None:
        self.folder = folder
        self.mounted = mounted

    @contextlib.contextmanager
    def full(self, database: Path) -> Iterator[None]:
        """Fill the disk; the log is emptied first, or small writes would still fit in it."""
        connection = apsw.Connection(str(database))
        list(connection.execute("PRAGMA wal_checkpoint(TRUNCATE)"))
        connection.close()
        with self._ballast() if self.mounted else _no_more_bytes():
            yield

    @contextlib.contextmanager
    def filled(self) -> Iterator[None]:
        """Fill the disk, whoever's files are on it."""
        with self._ballast():
            yield

    @contextlib.contextmanager
    def _ballast(self) -> Iterator[None]:
        ballast = self.folder / "ballast"
        with ballast.open("wb", buffering=0) as file, contextlib.suppress(OSError):
            while True:
                file.write(b"\0" * 4096)
        try:
            yield
        finally:
            ballast.unlink()


@contextlib.contextmanager
def _no_more_bytes() -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@contextlib.contextmanager
def small_disk(folder: Path, *, megabytes: int = 8) -> Iterator[SmallDisk]:
    """Mount a small disk in memory, or where that is not allowed use the folder as it is."""
    folder.mkdir(exist_ok=True)
    command = ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tidings-test", str(folder)]
    try:
        mounted = subprocess.run(command, capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        mounted = False
    try:
        yield SmallDisk(folder, mounted=mounted)
    finally:
        if mounted:
            subprocess.run(["umount", "-l", str(folder)], check=True)


@contextlib.contextmanager
def without_rights() -> Iterator[None]:
    """Be a user whom permissions bind, even where the tests run as root."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)
