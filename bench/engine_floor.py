"""The least a durable queue must do: claim a batch and settle it, each in a transaction, through three stages.

Hand-written for one table with one purpose: leases with owner, token and expiry, as any queue that survives a crash
needs them, and the state column; no workflow, journal, priorities, retries or revisions.
"""

from __future__ import annotations

import json
import sys
import time
from itertools import pairwise
from pathlib import Path

import apsw
import psycopg

STATES = ("found", "first", "second", "done")
LEASE_MS = 900_000


def sqlite(path: Path, payloads: list[bytes], batch: int, synchronous: str) -> dict[str, float]:
    """Fill a queue on SQLite, then measure emptying it."""
    connection = apsw.Connection(str(path))
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute(f"PRAGMA synchronous = {synchronous}")
    connection.execute("PRAGMA cache_size = -65536")
    connection.execute("PRAGMA wal_autocheckpoint = 4000")
    connection.execute(
        "CREATE TABLE jobs (id INTEGER PRIMARY KEY, state TEXT NOT NULL, lease_owner TEXT, "
        "lease_token INTEGER NOT NULL DEFAULT 0, lease_until INTEGER, payload BLOB NOT NULL)"
    )
    connection.execute(
        f"CREATE INDEX jobs_due ON jobs (state, id) WHERE lease_until IS NULL AND state <> '{STATES[-1]}'"
    )
    with connection:
        connection.executemany("INSERT INTO jobs (state, payload) VALUES (?, ?)", [(STATES[0], p) for p in payloads])
    started, cpu = time.perf_counter(), time.process_time()
    for state, target in pairwise(STATES):
        while _sqlite_step(connection, state, target, batch):
            pass
    measured = {"seconds": time.perf_counter() - started, "cpu": time.process_time() - cpu}
    assert list(connection.execute("SELECT count(*) FROM jobs WHERE state = ?", (STATES[-1],))) == [(len(payloads),)]
    connection.close()
    return measured


def _sqlite_step(connection: apsw.Connection, state: str, target: str, batch: int) -> int:
    now = _now_ms()
    connection.execute("BEGIN IMMEDIATE")
    claimed = list(
        connection.execute(
            "UPDATE jobs SET lease_owner = ?, lease_token = lease_token + 1, lease_until = ? WHERE id IN ("
            f"SELECT id FROM jobs WHERE state = ? AND lease_until IS NULL AND state <> '{STATES[-1]}' "
            "ORDER BY id LIMIT ?) RETURNING id, lease_token, payload",
            ("floor", now + LEASE_MS, state, batch),
        )
    )
    connection.execute("COMMIT")
    if claimed:
        now = _now_ms()
        connection.execute("BEGIN IMMEDIATE")
        connection.executemany(
            "UPDATE jobs SET state = ?, lease_owner = NULL, lease_until = NULL "
            "WHERE id = ? AND lease_token = ? AND lease_until > ?",
            [(target, job, token, now) for job, token, _ in claimed],
        )
        connection.execute("COMMIT")
    return len(claimed)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def fill_postgres(url: str, payloads: list[bytes]) -> None:
    """Fill a queue on PostgreSQL."""
    with psycopg.connect(url) as connection:
        connection.execute("DROP TABLE IF EXISTS floor_jobs")
        connection.execute(
            "CREATE TABLE floor_jobs (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, state text NOT NULL,"
            " lease_owner text, lease_token bigint NOT NULL DEFAULT 0, lease_until bigint, payload bytea NOT NULL)"
            " WITH (fillfactor = 75)"
        )
        connection.execute(
            "CREATE INDEX floor_jobs_due ON floor_jobs (state, id) "
            f"WHERE lease_until IS NULL AND state <> '{STATES[-1]}'"
        )
        with connection.cursor() as cursor, cursor.copy("COPY floor_jobs (state, payload) FROM STDIN") as copy:
            for payload in payloads:
                copy.write_row((STATES[0], payload))
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("VACUUM ANALYZE floor_jobs")


def empty_postgres(url: str, batch: int) -> dict[str, float]:
    """Empty the queue, as one of any number of processes."""
    with psycopg.connect(url, autocommit=True) as connection:
        started, cpu = time.perf_counter(), time.process_time()
        for state, target in pairwise(STATES):
            while _postgres_step(connection, state, target, batch):
                pass
        return {"seconds": time.perf_counter() - started, "cpu": time.process_time() - cpu}


def _postgres_step(connection: psycopg.Connection, state: str, target: str, batch: int) -> int:
    claimed = connection.execute(
        "UPDATE floor_jobs SET lease_owner = %s, lease_token = lease_token + 1, lease_until = %s WHERE id = ANY(ARRAY("
        f"SELECT id FROM floor_jobs WHERE state = %s AND lease_until IS NULL AND state <> '{STATES[-1]}' "
        "ORDER BY id LIMIT %s FOR UPDATE SKIP LOCKED)) RETURNING id, lease_token, payload",
        ("floor", _now_ms() + LEASE_MS, state, batch),
    ).fetchall()
    if claimed:
        connection.execute(
            "UPDATE floor_jobs j SET state = %s, lease_owner = NULL, lease_until = NULL "
            "FROM unnest(%s::bigint[], %s::bigint[]) AS v (i, t) "
            "WHERE j.id = v.i AND j.lease_token = v.t AND j.lease_until > %s",
            (target, [row[0] for row in claimed], [row[1] for row in claimed], _now_ms()),
        )
    return len(claimed)


def main() -> None:
    """Wait for a line, then empty the queue and tell how long it took."""
    url, batch = sys.argv[1], int(sys.argv[2])
    print("ready", flush=True)
    sys.stdin.readline()
    print(json.dumps(empty_postgres(url, batch)), flush=True)


if __name__ == "__main__":
    main()
