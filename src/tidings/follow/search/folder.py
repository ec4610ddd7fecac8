"""The folder of an index: one process writes, any number read."""

from __future__ import annotations

import fcntl
import mmap
import os
import shutil
import struct
import zlib
from pathlib import Path
from typing import BinaryIO

import msgspec
import tantivy

from tidings.follow.search.schema import SCHEMA_VERSION, build_schema

LOCK_NAME = "writer.lock"
_TAIL = struct.Struct("<II")
_MAGIC = 1337
_SEGMENT_FILES = frozenset({".term", ".idx", ".pos", ".fieldnorm", ".fast", ".store"})


class IndexFolder:
    """Opens what lies in a folder, or begins from nothing. Without a path the index is in memory."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._lock: BinaryIO | None = None
        self.schema = build_schema()

    @property
    def is_in_memory(self) -> bool:
        """Tell whether there is no folder."""
        return self._path is None

    @property
    def is_locked_here(self) -> bool:
        """Tell whether this process is the one that writes.

        A lock on a file that was removed with its folder keeps nobody away: another process may hold a new one there.
        """
        if self._path is not None and self._lock is not None and not _is_at(self._lock, self._path / LOCK_NAME):
            self.unlock()
        return self._path is None or self._lock is not None

    def lock(self) -> bool:
        """Become the one that writes, unless another process is. The system ends the lock with its process."""
        if self.is_locked_here or self._path is None:
            return True
        self._path.mkdir(parents=True, exist_ok=True)
        file = (self._path / LOCK_NAME).open("ab")
        try:
            # The engine locks too, but only while it writes. Ours also covers removing an index and making a new one.
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.close()
            return False
        self._lock = file
        return True

    def unlock(self) -> None:
        """Let another process write."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def open(self, *, check: bool = False) -> tantivy.Index | None:
        """Open what is there; None where there is nothing, or what is there cannot be read."""
        if self._path is None or not (self._home / "meta.json").exists():
            return None
        try:
            # The engine maps its files and trusts them: a flipped bit makes it panic, or find too little, long after
            # the start.
            if check and not all(map(_is_whole, self._segment_files())):
                return None
            index = tantivy.Index(self.schema, path=str(self._home), reuse=True)
            index.config_reader("manual")
            index.reload()
            # Opening reads little. The first search is where a file that is cut off shows itself.
            index.searcher().search(tantivy.Query.all_query(), 1)
        except BaseException as error:
            if is_damage(error):
                return None
            raise
        return index

    def create(self) -> tantivy.Index:
        """Begin from nothing: remove this version's index and those of other versions. Only under the lock."""
        if self._path is None:
            index = tantivy.Index(self.schema)
        else:
            for old in self._path.glob("v*"):
                # Renamed first: an index that is half removed must not be taken for a whole one.
                gone = self._path / f"removed.{os.getpid()}"
                old.rename(gone)
                shutil.rmtree(gone, ignore_errors=True)
            for rest in self._path.glob("removed.*"):
                shutil.rmtree(rest, ignore_errors=True)
            self._home.mkdir()
            index = tantivy.Index(self.schema, path=str(self._home))
        index.config_reader("manual")
        return index

    def _segment_files(self) -> list[Path]:
        """Return the files of committed segments; one that was being written when its process died has no footer."""
        segments = msgspec.json.decode((self._home / "meta.json").read_bytes(), type=_Meta).segments
        names = {segment.segment_id.replace("-", "") for segment in segments}
        files = [file for file in self._home.iterdir() if file.suffix in _SEGMENT_FILES]
        return [file for file in files if file.name.partition(".")[0] in names]

    @property
    def _home(self) -> Path:
        assert self._path is not None
        return self._path / f"v{SCHEMA_VERSION}"


def is_damage(error: BaseException) -> bool:
    """Tell whether an error says that the index cannot be read. A panic of the engine arrives as no Exception."""
    return isinstance(error, (ValueError, OSError)) or type(error).__name__ == "PanicException"


def _is_at(file: BinaryIO, path: Path) -> bool:
    """Tell whether an open file is the one that a path leads to."""
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    except FileNotFoundError:
        return False


def _is_whole(file: Path) -> bool:
    """Compare a segment's file with the checksum in its footer: JSON, then its length and a magic number."""
    size = file.stat().st_size
    if size < _TAIL.size:
        return False
    with file.open("rb") as opened, mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as data:
        length, magic = _TAIL.unpack_from(data, size - _TAIL.size)
        start = size - _TAIL.size - length
        if magic != _MAGIC or start < 0:
            return False
        footer = msgspec.json.decode(data[start : start + length], type=_Footer)
        with memoryview(data) as view, view[:start] as body:
            return zlib.crc32(body) == footer.crc


class _Footer(msgspec.Struct):
    crc: int


class _Segment(msgspec.Struct):
    segment_id: str


class _Meta(msgspec.Struct):
    segments: list[_Segment]
