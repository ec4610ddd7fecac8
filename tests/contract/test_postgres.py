"""A PostgreSQL that cannot be reached says why, at once, and tells no secret."""

from __future__ import annotations

import socket

import psycopg
import pytest
from tests.conftest import new_postgres_database

from tidings.model.errors import Misconfigured, StoreUnavailable
from tidings.store.postgres import PostgresDatabase


def closed_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return int(listening.getsockname()[1])


def test_a_server_that_is_not_there_is_named_with_the_reason() -> None:
    port = closed_port()
    database = PostgresDatabase(f"postgresql://someone:hunter2@127.0.0.1:{port}/none")
    with pytest.raises(StoreUnavailable) as caught, database.reading():
        pass
    database.close()

    assert str(caught.value).startswith("PostgreSQL failed: ")
    assert f'"127.0.0.1", port {port} failed: Connection refused' in str(caught.value)
    assert "hunter2" not in str(caught.value)


def test_a_database_that_does_not_exist_is_named(postgres_server: str) -> None:
    database = PostgresDatabase(postgres_server.replace("/postgres?", "/nowhere?"))
    with pytest.raises(StoreUnavailable, match='database "nowhere" does not exist'), database.transaction():
        pass
    database.close()


@pytest.mark.parametrize("address", ["someone:hun%ter2@127.0.0.1/none", "someone:hun%ter2@127.0.0.1/none?colour=red"])
def test_an_address_that_cannot_be_read_is_told_without_quoting_it(address: str) -> None:
    database = PostgresDatabase(f"postgresql://{address}")
    with pytest.raises(Misconfigured, match="database_url cannot be read") as caught, database.reading():
        pass
    database.close()

    assert "ter2" not in str(caught.value)
    assert caught.value.__cause__ is None


def test_texts_arrive_whole_whatever_the_server_would_encode_them_in(postgres_server: str) -> None:
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        connection.execute("CREATE DATABASE latin ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0")
    database = PostgresDatabase(postgres_server.replace("/postgres?", "/latin?"))
    with database.transaction() as tx:
        tx.sql("CREATE TABLE samples (series text, at bigint, value float8, PRIMARY KEY (series, at))", {})
        tx.many("put_sample", [("naïve", 1, 2.5)])
        assert tx.sql("SELECT value FROM samples WHERE series = :series", {"series": "naïve"}) == [(2.5,)]
    database.close()


def test_a_server_lost_later_is_told_with_the_reason_too(postgres_server: str) -> None:
    url = new_postgres_database(postgres_server)
    name = url.split("/")[3].split("?")[0]
    database = PostgresDatabase(url)
    with database.reading() as tx:
        assert tx.sql("SELECT 1", {}) == [(1,)]
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)")

    with pytest.raises(StoreUnavailable, match=f'database "{name}" does not exist'), database.reading():
        pass
    database.close()
