"""Keeps a copy of the SQLite file: runs Litestream beside the process and asks it, every few seconds, how far it is."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import logging
import os
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Protocol

import msgspec

from tidings.follow.replica.litestream import NAME, ReplicaPlace, last_words, newest_copy, program, shown, write_config
from tidings.model.contracts import Executor
from tidings.model.errors import Misconfigured, StoreUnavailable
from tidings.model.views import FollowerView
from tidings.watch.logs import Seldom, event

LOCK_SUFFIX = "-replica"
NOTE_SECONDS = 10.0
AGAIN_SECONDS = 2.0
AGAIN_SECONDS_MAX = 60.0
START_SECONDS = 20.0
SYNC_SECONDS = 30
ANSWER_BYTES_MAX = 100_000
END_SECONDS = 10.0
FAILURES_MAX = 5
"""After so many in a row Litestream is started again."""
TELL_SECONDS = 60.0


class SyncAnswer(msgspec.Struct):
    """What Litestream answers about one copy that it was asked to bring up to date."""

    error: str = ""


class CopyFailed(StoreUnavailable):
    """The copy could not be brought up to date; it is tried again."""


class CopiedPlaces(Protocol):
    """Where the database keeps to which places it was copied, or from which it was restored."""

    def holds(self, url: str) -> bool: ...  # noqa: D102
    def put(self, url: str) -> None: ...  # noqa: D102


class Copier:
    """Runs in every process of one SQLite file; the one that holds the lock copies, the others wait for it to end."""

    def __init__(
        self,
        file: Path,
        place: ReplicaPlace,
        *,
        owner: str,
        executor: Executor,
        note: Callable[[FollowerView], None],
        places: CopiedPlaces,
        copy_log: Callable[[Path], None],
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._file = file.resolve()
        self._place = place
        self._owner = owner
        self._executor = executor
        self._note = note
        self._places = places
        self._copy_log = copy_log
        self._monotonic = monotonic
        self._seldom = Seldom()
        self._synced_at = monotonic()
        """When the last question began whose answer was that all is copied."""
        self._error: str | None = None
        self._told_at = float("-inf")
        self._noted: tuple[float, bool] = (float("-inf"), False)

    async def run(self, stop: asyncio.Event) -> None:
        """Copy until told to stop; a last time when it is. What fails is told and tried again."""
        program()
        with contextlib.ExitStack() as held:
            lock = await self._our_turn(stop)
            if lock is None:
                return
            held.callback(os.close, lock)
            self._synced_at = self._monotonic()
            pause = AGAIN_SECONDS
            while not stop.is_set():
                try:
                    await self._refuse_another_database()
                    # Litestream that starts again reads pages from the file which so far stand in SQLite's log alone:
                    # "read database page 2: EOF", again and again, until the log is copied.
                    await asyncio.to_thread(self._copy_log, self._file)
                    async with self._litestream(lock) as litestream:
                        pause = AGAIN_SECONDS
                        await self._keep_asking(litestream, stop)
                except StoreUnavailable as error:
                    await self._tell(str(error))
                    await _wait(stop, pause)
                    pause = min(2 * pause, AGAIN_SECONDS_MAX)

    async def _our_turn(self, stop: asyncio.Event) -> int | None:
        """Take the lock beside the file; the kernel lets go of it when its holder and its Litestream are dead."""
        lock = os.open(self._file.with_name(self._file.name + LOCK_SUFFIX), os.O_RDWR | os.O_CREAT, 0o644)
        while not stop.is_set():
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                await _wait(stop, AGAIN_SECONDS)
            else:
                return lock
        os.close(lock)
        return None

    async def _refuse_another_database(self) -> None:
        """Never write a new database over the copies of one that was lost: they may be all that is left of it."""
        if await self._executor.read(self._places.holds, self._place.url):
            return
        with tempfile.TemporaryDirectory(prefix="tidings-") as folder:
            newest = await asyncio.to_thread(newest_copy, self._file, Path(folder), self._place)
        if newest is not None:
            raise Misconfigured(
                f"replicate.url: {shown(self._place)} holds copies of another database, the newest of {newest}, and "
                f"{self._file.name} was never copied there. Bring it back: move {self._file.name} away, then "
                "tidings restore --from URL. To begin afresh, name an empty place"
            )
        await self._executor.write(self._places.put, self._place.url)

    @asynccontextmanager
    async def _litestream(self, lock: int) -> AsyncIterator[_Litestream]:
        """Run the program, until it answers.

        It ends when the reader of a pipe ends, whose only writer is this process: so it copies what is left and ends
        even where this process is killed. It holds our lock until then, so that no second one starts meanwhile.
        """
        with tempfile.TemporaryDirectory(prefix="tidings-") as name, contextlib.ExitStack() as held:
            folder = Path(name)
            pipe = folder / "alive"
            os.mkfifo(pipe, 0o600)
            ours = os.open(pipe, os.O_RDWR | os.O_CLOEXEC)
            held.callback(os.close, ours)
            config = write_config(self._file, folder, self._place)
            process = await asyncio.create_subprocess_exec(
                program(), "replicate", "-config", str(config), "-exec", f"cat {pipe}",
                env=self._place.environment(), stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.PIPE, pass_fds=(lock,),
            )  # fmt: skip
            litestream = _Litestream(process, folder / "socket")
            listening = asyncio.create_task(litestream.listen())
            try:
                await self._until_it_answers(litestream)
                yield litestream
            finally:
                await litestream.end()
                # Where Litestream was killed, the reader of the pipe has outlived it and holds its end of ours.
                held.close()
                await listening

    async def _until_it_answers(self, litestream: _Litestream) -> None:
        until = self._monotonic() + START_SECONDS
        while not litestream.listens():
            if litestream.has_ended() or self._monotonic() > until:
                raise CopyFailed(f"Litestream did not start: {last_words(bytes(litestream.said))}")
            await asyncio.sleep(0.05)

    async def _keep_asking(self, litestream: _Litestream, stop: asyncio.Event) -> None:
        failures = 0
        while True:
            # The last question comes after the stop: what was written until then is copied too.
            is_last = stop.is_set()
            began = self._monotonic()
            try:
                await self._sync(litestream.socket)
            except CopyFailed as error:
                if litestream.has_ended():
                    raise CopyFailed(f"Litestream ended: {last_words(bytes(litestream.said))}") from error
                await self._tell(str(error))
                failures += 1
            else:
                failures = 0
                self._synced_at = began
                await self._tell(None)
            if failures >= FAILURES_MAX:
                raise CopyFailed(self._error or "it fails")
            if is_last:
                return
            await _wait(stop, self._place.every_seconds)

    async def _sync(self, socket: Path) -> None:
        """Bring the copy up to date and wait for it; raise CopyFailed with the reason where that fails."""
        question = msgspec.json.encode({"path": str(self._file), "wait": True, "timeout": SYNC_SECONDS})
        try:
            async with asyncio.timeout(SYNC_SECONDS + 5):
                status, answer = await _post(socket, "/sync", question)
        except (OSError, TimeoutError, ValueError, asyncio.IncompleteReadError) as error:
            raise CopyFailed(f"Litestream does not answer ({type(error).__name__})") from error
        if status != 200:
            try:
                reason = msgspec.json.decode(answer, type=SyncAnswer).error
            except msgspec.MsgspecError:
                reason = ""
            raise CopyFailed(f"the copy at {shown(self._place)} fails: {reason or f'status {status}'}")

    async def _tell(self, error: str | None) -> None:
        """Note at once that it fails or goes on, and every few seconds that we are here; a note is a write itself."""
        if error is not None:
            if error != self._error or self._monotonic() >= self._told_at + TELL_SECONDS:
                self._told_at = self._monotonic()
                event("database not copied", level=logging.WARNING, error=error)
        elif self._error is not None:
            event("database copied again")
        is_news = (error is None) != (self._error is None) or not self._noted[1]
        self._error = error
        if not is_news and self._monotonic() < self._noted[0]:
            return
        self._noted = (self._monotonic() + NOTE_SECONDS, True)
        behind = self._monotonic() - self._synced_at
        view = FollowerView(
            name=NAME,
            process=self._owner,
            behind_seconds=round(behind, 1) if behind > 2 * self._place.every_seconds + 1 else 0.0,
            error=error,
        )
        try:
            await self._executor.write(self._note, view)
        except StoreUnavailable as failure:
            self._seldom.event("replica not noted", error=str(failure))


class _Litestream:
    """The program while it runs: the socket on which it answers, and the last of what it said."""

    def __init__(self, process: asyncio.subprocess.Process, socket: Path) -> None:
        self._process = process
        self.socket = socket
        self.said = bytearray()

    def listens(self) -> bool:
        """Tell whether it answers questions yet."""
        return self.socket.exists()

    def has_ended(self) -> bool:
        """Tell whether it is gone."""
        return self._process.returncode is not None

    async def listen(self) -> None:
        """Read what it says, so that it never waits for a reader; keep the end of it."""
        assert self._process.stderr is not None
        while data := await self._process.stderr.read(4096):
            self.said += data
            del self.said[:-4096]

    async def end(self) -> None:
        """End it; it copies what is left first."""
        if self.has_ended():
            return
        with contextlib.suppress(ProcessLookupError):
            self._process.terminate()
        try:
            await asyncio.wait_for(self._process.wait(), END_SECONDS)
        except TimeoutError:
            self._process.kill()
            await self._process.wait()


async def _post(socket: Path, path: str, body: bytes) -> tuple[int, bytes]:
    """Ask over a socket of this machine, as Litestream's own command does; the answer has a length."""
    reader, writer = await asyncio.open_unix_connection(str(socket), limit=ANSWER_BYTES_MAX)
    try:
        head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        writer.write(head.encode() + body)
        await writer.drain()
        status = int((await reader.readline()).split()[1])
        length = 0
        while (line := (await reader.readline()).strip()) != b"":
            name, _, value = line.partition(b":")
            if name.lower() == b"content-length":
                length = min(int(value), ANSWER_BYTES_MAX)
        return status, await reader.readexactly(length)
    except IndexError:
        raise ValueError("no status") from None
    finally:
        writer.close()


async def _wait(stop: asyncio.Event, seconds: float) -> None:
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(stop.wait(), seconds)
