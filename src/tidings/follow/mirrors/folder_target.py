"""A folder as a target, `file:///FOLDER`: a static copy that any web server gives out."""

from __future__ import annotations

import asyncio
import fcntl
import os
import secrets
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import unquote, urlsplit

from tidings.follow.mirrors.target import KEY_BYTES_MAX, WrittenByAnother
from tidings.model.errors import Misconfigured, Transient

T = TypeVar("T")
LOCK = ".writer"
UNFINISHED = ".new-"
"""What the name of a file that is still being written begins with."""


class FolderTarget:
    """Files below one folder. Each is replaced as a whole: a reader sees the old one or the new one."""

    has_paths = True
    key_bytes_max = KEY_BYTES_MAX
    batch_max = 500

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        path = unquote(parts.path)
        if parts.netloc or not path.startswith("/") or path == "/":
            raise Misconfigured("the address of a folder is file:///FOLDER, with the whole path")
        self._folder = Path(path)
        self.place = f"folder {path}"
        self._lock: int | None = None

    async def hold(self) -> bool:
        """Lock the folder for as long as this process lives, unless another has."""
        return self._lock is not None or await self._call(self._take_lock)

    def _take_lock(self) -> bool:
        self._folder.mkdir(parents=True, exist_ok=True)
        opened = os.open(self._folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(opened)
            return False
        self._lock = opened
        # What a process that died was writing is not part of the copy.
        for unfinished in self._folder.rglob(f"{UNFINISHED}*"):
            unfinished.unlink(missing_ok=True)
        return True

    async def get_many(self, keys: Sequence[str]) -> dict[str, bytes]:
        """Return the files that exist."""
        return await self._call(self._read, keys)

    def _read(self, keys: Sequence[str]) -> dict[str, bytes]:
        found: dict[str, bytes] = {}
        for key in keys:
            try:
                found[key] = (self._folder / key).read_bytes()
            except (FileNotFoundError, NotADirectoryError):
                continue
        return found

    async def put_many(self, values: Mapping[str, bytes]) -> set[str]:
        """Write files; all are on disk when it returns."""
        await self._call(self._write, values)
        return set()

    def _write(self, values: Mapping[str, bytes]) -> None:
        folders: set[Path] = set()
        for key, value in values.items():
            file = self._folder / key
            file.parent.mkdir(parents=True, exist_ok=True)
            # In the same folder: a rename across file systems is a copy, and readers would see half of it.
            unfinished = file.parent / f"{UNFINISHED}{secrets.token_hex(8)}"
            with unfinished.open("wb") as opened:
                opened.write(value)
                opened.flush()
                os.fsync(opened.fileno())
            unfinished.replace(file)
            folders.add(file.parent)
        # A rename is durable with its folder; without this a power cut could leave an index without its cards.
        for folder in folders:
            _sync(folder)

    async def delete_many(self, keys: Sequence[str]) -> None:
        """Remove files."""
        await self._call(self._remove, keys)

    def _remove(self, keys: Sequence[str]) -> None:
        for key in keys:
            (self._folder / key).unlink(missing_ok=True)

    async def keys(self, prefix: str) -> set[str]:
        """Return every file whose path begins so; a prefix is a folder."""
        return await self._call(self._files, prefix)

    def _files(self, prefix: str) -> set[str]:
        found = (each for each in (self._folder / prefix).rglob("*") if not each.name.startswith("."))
        return {str(each.relative_to(self._folder)) for each in found if each.is_file()}

    async def tag(self, key: str) -> str | None:
        """Return which file stands there: every write makes another."""
        return await self._call(self._tag, key)

    def _tag(self, key: str) -> str | None:
        try:
            known = (self._folder / key).stat()
        except FileNotFoundError:
            return None
        # Every write is a new file with a new inode, so two writes within one tick of the clock differ too.
        return f"{known.st_ino}-{known.st_mtime_ns}"

    async def replace(self, key: str, value: bytes, tag: str | None) -> str | None:
        """Write one file; the lock keeps others away, and a copy put there by hand is noticed."""
        if await self.tag(key) != tag:
            raise WrittenByAnother(f"{self.place}: {key} was replaced by something else")
        await self.put_many({key: value})
        return await self.tag(key)

    async def close(self) -> None:
        """Give the lock back."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    async def _call(self, call: Callable[..., T], *args: Any) -> T:
        try:
            return await asyncio.to_thread(call, *args)
        except OSError as error:
            raise Transient(f"{self.place}: {error.strerror or error}") from error


def _sync(folder: Path) -> None:
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
