"""A PostgreSQL that cannot be reached says why, at once, and tells no secret."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
from tests.support.cluster import Cluster
from tests.support.logs import listening
from tests.support.own_sql import own_sql
from tests.support.postgres import new_postgres_database
from tests.support.proxy import Proxy, proxied

from tidings.model.errors import Misconfigured, StoreUnavailable
from tidings.store.db.conninfo import hosts_from
from tidings.store.db.postgres import PostgresDatabase
from tidings.store.db.postgres_tx import PostgresTx
from tidings.store.upkeep.migrate import migrate


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
        own_sql(tx, "CREATE TABLE samples (series text, at bigint, value float8, PRIMARY KEY (series, at))")
        tx.put("put_samples", [("naïve", 1, 2.5)])
        assert own_sql(tx, "SELECT value FROM samples WHERE series = :series", {"series": "naïve"}) == [(2.5,)]
    database.close()


def test_a_server_lost_later_is_told_with_the_reason_too(postgres_server: str) -> None:
    url = new_postgres_database(postgres_server)
    name = url.split("/")[3].split("?")[0]
    database = PostgresDatabase(url)
    with database.reading() as tx:
        assert own_sql(tx, "SELECT 1") == [(1,)]
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)")

    with pytest.raises(StoreUnavailable, match=f'database "{name}" does not exist'), database.reading():
        pass
    database.close()


@contextmanager
def opened(url: str, **options: Any) -> Iterator[PostgresDatabase]:
    database = PostgresDatabase(url, **options)
    try:
        yield database
    finally:
        database.close()


def stated(database: PostgresDatabase, *names: str) -> tuple[str | None, ...]:
    """Return what a connection was told, as libpq understood it."""
    with database.reading() as tx:
        assert isinstance(tx, PostgresTx)
        options = {o.keyword.decode(): o.val for o in tx.connection.pgconn.info}
        return tuple(value.decode() if (value := options[name]) is not None else None for name in names)


def test_a_connection_notices_a_host_that_dies_without_a_word(postgres_server: str) -> None:
    with proxied(postgres_server) as (_, url), opened(url) as database, database.reading() as tx:
        assert isinstance(tx, PostgresTx)
        end = socket.socket(fileno=tx.connection.fileno())
        options = (socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL, socket.TCP_KEEPCNT, socket.TCP_USER_TIMEOUT)
        assert [end.getsockopt(socket.IPPROTO_TCP, option) for option in options] == [5, 2, 3, 8000]
        end.detach()


def test_what_the_address_says_stands(postgres_server: str) -> None:
    more = "&connect_timeout=4&keepalives_idle=77&tcp_user_timeout=1234&client_encoding=latin1"
    with proxied(postgres_server) as (_, url), opened(url + more) as database:
        names = ("connect_timeout", "keepalives_idle", "tcp_user_timeout", "client_encoding", "keepalives_count")
        assert stated(database, *names) == ("4", "77", "1234", "latin1", "3")


@pytest.mark.parametrize(("more", "wanted"), [("", "read-write"), ("&target_session_attrs=any", "any")])
def test_of_several_hosts_the_one_that_takes_writes_is_meant(postgres_server: str, more: str, wanted: str) -> None:
    """The first host of the two refuses; whoever names several wants to write unless they say otherwise."""
    with proxied(postgres_server) as (proxy, url):
        several = url.replace(f":{proxy.port}/", f":{closed_port()},127.0.0.1:{proxy.port}/") + more
        with opened(several) as database:
            assert stated(database, "target_session_attrs") == (wanted,)
        with opened(url) as database:
            assert stated(database, "target_session_attrs") in (("any",), (None,))


def test_the_host_that_took_us_last_is_asked_first() -> None:
    url = "postgresql://me@a,b:7,c/db?sslmode=disable"
    assert hosts_from(url, "b", 7) == {"host": "b,a,c", "port": "7,,"}
    assert hosts_from(url, "c", 5432) == {"host": "c,a,b", "port": ",,7"}
    assert hosts_from("postgresql://a,b/db", "b", 5432) == {"host": "b,a", "port": ","}
    assert hosts_from("postgresql://a/db", "a", 5432) == {}


def test_the_clock_goes_on_while_the_server_is_away(postgres_server: str) -> None:
    """Whoever asks for it may be an event loop, which answers everybody else too."""
    with proxied(new_postgres_database(postgres_server)) as (proxy, url):
        database = PostgresDatabase(url, compare_seconds=0)
        try:
            migrate(database)
            first = database.now_ms()
            proxy.freeze()
            started = time.monotonic()
            later = [database.now_ms() for _ in range(50)]
            assert time.monotonic() - started < 1
            assert later == sorted(later)
            assert 0 <= later[0] - first < 1000
            proxy.thaw()
        finally:
            database.close()


def write(database: PostgresDatabase, number: int) -> None:
    with database.transaction() as tx:
        own_sql(tx, "INSERT INTO marks (number) VALUES (:number)", {"number": number})


def prepared(url: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE TABLE marks (number integer)")


def failing(call: Callable[[], Any], says: str, *, seconds: float) -> None:
    started = time.monotonic()
    with pytest.raises(StoreUnavailable, match=says):
        call()
    assert time.monotonic() - started < seconds


def test_a_server_that_falls_silent_is_given_up_and_the_next_call_succeeds(postgres_server: str) -> None:
    """Its host still acknowledges every packet, as with a stopped server or a stuck proxy: TCP sees nothing."""
    prepared(url := new_postgres_database(postgres_server))
    with proxied(url) as (proxy, through), opened(through) as database:
        write(database, 1)
        with database.reading() as tx:
            own_sql(tx, "SELECT 1")
        proxy.freeze()
        failing(lambda: write(database, 2), "no answer for .* s; waited for the socket", seconds=20)
        standstill = database.standstill()
        assert standstill is not None
        assert standstill.startswith("no commit for ")
        assert standstill.endswith(" s, waiting for the socket")
        proxy.thaw()
        write(database, 3)
        with database.reading() as tx:
            # What the silent server had been sent may or may not have happened: such a call is never called done.
            assert own_sql(tx, "SELECT count(*) FROM marks WHERE number IN (1, 3)") == [(2,)]
        assert database.standstill() is None


def test_what_a_reader_found_dead_no_writer_tries_again(postgres_server: str) -> None:
    """Only the connections of before are dead, as after a failover: one call pays for finding out, not one per pool."""
    prepared(url := new_postgres_database(postgres_server))
    with proxied(url) as (old, through), proxied(url) as (new, _):
        several = through.replace(f":{old.port}/", f":{old.port},127.0.0.1:{new.port}/")
        with opened(several) as database:
            write(database, 1)
            with database.reading() as tx:
                own_sql(tx, "SELECT 1")
            old.freeze()
            with pytest.raises(StoreUnavailable), database.reading() as tx:
                own_sql(tx, "SELECT 1")
            begun = time.monotonic()
            write(database, 2)
            assert time.monotonic() - begun < 5


def test_a_lost_server_is_reached_again_at_once(postgres_server: str) -> None:
    """Every connection was cut, idle ones too: none of them is tried once more."""
    prepared(url := new_postgres_database(postgres_server))
    with proxied(url) as (proxy, through), opened(through) as database:
        door = threading.Barrier(4)

        def meet(number: int) -> None:
            with database.transaction() as tx:
                own_sql(tx, "INSERT INTO marks (number) VALUES (:number)", {"number": number})
                door.wait(20)

        threads = [threading.Thread(target=meet, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        proxy.reset()
        for number in range(4, 8):
            write(database, number)
        with database.reading() as tx:
            assert own_sql(tx, "SELECT count(*) FROM marks") == [(8,)]


def test_closing_ends_calls_that_wait_for_a_silent_server(postgres_server: str) -> None:
    prepared(url := new_postgres_database(postgres_server))
    with proxied(url) as (proxy, through):
        database = PostgresDatabase(through)
        write(database, 1)
        proxy.freeze()
        failed = threading.Event()

        def waiting() -> None:
            try:
                write(database, 2)
            except StoreUnavailable:
                failed.set()

        thread = threading.Thread(target=waiting)
        thread.start()
        database.close()
        assert failed.wait(2)
        thread.join()


def test_a_commit_that_waits_for_a_lock_says_so(postgres_server: str) -> None:
    prepared(url := new_postgres_database(postgres_server))
    with opened(url) as database, psycopg.connect(url) as other:
        write(database, 1)
        other.execute("LOCK TABLE marks")
        until = time.monotonic() + 30
        while (standstill := database.standstill()) is None:
            assert time.monotonic() < until
            with pytest.raises(StoreUnavailable):
                write(database, 2)
        assert standstill.endswith("waiting for a lock")
        other.rollback()
        write(database, 3)
        assert database.standstill() is None


def test_a_commit_that_waits_for_an_absent_standby_says_so_and_is_not_repeated(tmp_path: Path) -> None:
    """The server waits without limit, and rightly: nothing may be acknowledged. We go on waiting and say for what."""
    with Cluster(tmp_path) as cluster:
        prepared(cluster.url)
        with opened(cluster.url) as database:
            write(database, 1)
            cluster.set("synchronous_standby_names", "nobody")
            resumed, written = threading.Event(), threading.Event()

            def waiting() -> None:
                # The server takes the setting up a moment later: a write before that is not held up.
                while not resumed.is_set():
                    write(database, 2)
                written.set()

            thread = threading.Thread(target=waiting)
            thread.start()
            until = time.monotonic() + 60
            wanted = "waiting for an absent synchronous standby"
            # Longer than a silent server is given: it is not silence.
            while not (said := database.standstill() or "").endswith(wanted) or int(said.split()[3]) < 12:
                assert time.monotonic() < until, said
                assert not written.is_set()
                written.wait(0.2)
            resumed.set()
            cluster.set("synchronous_standby_names", "")
            assert written.wait(60)
            thread.join()
            assert database.standstill() is None


def reached(database: PostgresDatabase, done: threading.Event) -> None:
    with database.reading() as tx:
        own_sql(tx, "SELECT 1")
    done.set()


def test_a_server_that_is_full_is_waited_for_with_a_line(postgres_server: str) -> None:
    url = new_postgres_database(postgres_server)
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        connection.execute(f"DROP ROLE IF EXISTS narrow_{url.split('/')[3].split('?')[0]}")
        connection.execute(role := f"CREATE ROLE narrow_{url.split('/')[3].split('?')[0]} LOGIN CONNECTION LIMIT 1")
    narrow = url.replace("//postgres:", f"//{role.split()[2]}:").replace("//postgres@", f"//{role.split()[2]}@")
    with psycopg.connect(narrow) as other, opened(narrow) as database, listening() as lines:
        done = threading.Event()
        thread = threading.Thread(target=reached, args=(database, done))
        thread.start()
        assert lines.has_told.wait(20)
        assert "waiting for PostgreSQL" in lines.told[0]
        assert "too many connections for role" in lines.told[0]
        assert not done.is_set()
        other.close()
        assert done.wait(20)
        thread.join()


def test_a_server_that_is_not_up_yet_is_waited_for_where_a_process_starts(postgres_server: str) -> None:
    port = closed_port()
    url = f"postgresql://postgres@127.0.0.1:{port}/postgres?sslmode=disable"
    with opened(url, awaits_absent=True) as database, listening() as lines:
        done = threading.Event()
        thread = threading.Thread(target=reached, args=(database, done))
        thread.start()
        assert lines.has_told.wait(20)
        assert "Connection refused" in lines.told[0]
        parts = psycopg.conninfo.conninfo_to_dict(postgres_server)
        proxy = Proxy(f"{parts['host']}/.s.PGSQL.{parts.get('port') or 5432}", port)
        assert done.wait(20)
        thread.join()
        proxy.close()


def test_a_wrong_database_is_told_at_once(postgres_server: str) -> None:
    wrong = postgres_server.replace("/postgres?", "/nowhere?")
    with opened(wrong, awaits_absent=True) as database, listening() as lines:
        with pytest.raises(StoreUnavailable, match="does not exist"), database.reading():
            pass
        assert lines.told == []


def test_a_server_that_stays_away_is_not_waited_for_without_limit() -> None:
    url = f"postgresql://postgres@127.0.0.1:{closed_port()}/postgres"
    with opened(url, awaits_absent=True, patience_seconds=1.0) as database:
        failing(lambda: write(database, 1), "Connection refused", seconds=10)
