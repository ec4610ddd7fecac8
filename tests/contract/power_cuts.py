"""A disk whose power can be cut: it notes every write and every sync, and can say what a cut would have left."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, NamedTuple

import apsw

VFS_NAME = "tidings-power"
SECTOR_BYTES = 512
FILES = ("", "-wal")
"""What SQLite keeps on the disk, by the end of its name; the third file, -shm, is memory."""


class Operation(NamedTuple):
    """One thing that was asked of the disk."""

    kind: Literal["write", "truncate", "sync"]
    file: str
    offset: int = 0
    data: bytes = b""


class WatchedDisk:
    """Passes everything on to the real disk and remembers it, in order."""

    def __init__(self, database: Path) -> None:
        self.database = database
        self.operations: list[Operation] = []
        self._before = {ending: _content(database, ending) for ending in FILES}

    def note(self, operation: Operation) -> None:
        """Remember an operation; the order of threads is that of the disk."""
        self.operations.append(operation)

    def unsynced(self, operations: list[Operation]) -> int:
        """Count the writes that no sync of their file has followed."""
        return sum(len(lost) for _, lost in (_split(operations, ending) for ending in FILES))

    def cut(self, moment: int, folder: Path, rng: random.Random) -> Path:
        """Write what the disk may hold after a power cut behind so many operations.

        Whatever was synced is there. Of the writes since, any may be there, wholly, in part or not at all, because
        a disk writes its cache in an order of its own.
        """
        folder.mkdir()
        for ending in FILES:
            content = bytearray(self._before[ending])
            safe, risked = _split(self.operations[:moment], ending)
            for operation in safe:
                _apply(content, operation)
            for operation in risked:
                if rng.random() < 0.5:
                    _apply(content, _torn(operation, rng))
            (folder / f"{self.database.name}{ending}").write_bytes(content)
        return folder / self.database.name


class _File(apsw.VFSFile):
    def __init__(self, base: str, name: Any, flags: list[int], disk: WatchedDisk, ending: str) -> None:
        super().__init__(base, name, flags)
        self._disk = disk
        self._ending = ending

    def xWrite(self, data: Any, offset: int) -> None:
        self._disk.note(Operation("write", self._ending, offset, bytes(data)))
        super().xWrite(data, offset)

    def xTruncate(self, newsize: int) -> None:
        self._disk.note(Operation("truncate", self._ending, newsize))
        super().xTruncate(newsize)

    def xSync(self, flags: int) -> None:
        super().xSync(flags)
        self._disk.note(Operation("sync", self._ending))


class _WatchedVfs(apsw.VFS):
    def __init__(self, disk: WatchedDisk) -> None:
        self._disk = disk
        self._base = apsw.vfs_names()[0]
        super().__init__(VFS_NAME, self._base, makedefault=True)

    def xOpen(self, name: Any, flags: list[int]) -> apsw.VFSFile:
        path = name.filename() if isinstance(name, apsw.URIFilename) else name
        for ending in FILES:
            if path == f"{self._disk.database}{ending}":
                return _File(self._base, name, flags, self._disk, ending)
        return apsw.VFSFile(self._base, name, flags)


@contextmanager
def watched_disk(database: Path) -> Iterator[WatchedDisk]:
    """Watch what SQLite asks of the disk for one database; connections must be opened and closed inside."""
    disk = WatchedDisk(database)
    vfs = _WatchedVfs(disk)
    try:
        yield disk
    finally:
        vfs.unregister()


def _content(database: Path, ending: str) -> bytes:
    file = Path(f"{database}{ending}")
    return file.read_bytes() if file.exists() else b""


def _split(operations: list[Operation], ending: str) -> tuple[list[Operation], list[Operation]]:
    """Part the changes of a file at its last sync."""
    mine = [operation for operation in operations if operation.file == ending]
    last = max((n for n, operation in enumerate(mine) if operation.kind == "sync"), default=-1)
    changes = [(n, operation) for n, operation in enumerate(mine) if operation.kind != "sync"]
    return [o for n, o in changes if n < last], [o for n, o in changes if n > last]


def _apply(content: bytearray, operation: Operation) -> None:
    if operation.kind == "truncate":
        del content[operation.offset :]
        return
    content.extend(b"\0" * (operation.offset - len(content)))
    content[operation.offset : operation.offset + len(operation.data)] = operation.data


def _torn(operation: Operation, rng: random.Random) -> Operation:
    """Keep whole sectors from the beginning of a write, sometimes not all of them."""
    sectors = -(-len(operation.data) // SECTOR_BYTES)
    if operation.kind != "write" or rng.random() < 0.5:
        return operation
    return operation._replace(data=operation.data[: rng.randint(0, sectors) * SECTOR_BYTES])
