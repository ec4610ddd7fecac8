"""Fixtures every test may use: both databases for real, and the recorded samples where they are."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.environment import ROOT
from tests.support.postgres import SERVER, drop_postgres_database, new_name, new_postgres_database, running_postgres
from tidings.store.db.database import connect
from tidings.store.upkeep.migrate import migrate

SHARED = ROOT.parent / "shared" / "data"


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
    server, name = request.getfixturevalue("postgres_server"), new_name()
    yield new_postgres_database(server, name, template=request.getfixturevalue("postgres_template"))
    drop_postgres_database(server, name)


@pytest.fixture(params=["sqlite", "postgres"])
def empty_database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of a database without even our tables, once for each kind."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'tidings.db'}"
    return new_postgres_database(request.getfixturevalue("postgres_server"))


@pytest.fixture
def no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take every setting out of this process's environment, for tests that run commands in it."""
    for name in [name for name in os.environ if name.startswith("TIDINGS_")]:
        monkeypatch.delenv(name)
