"""How a PostgreSQL is connected to, and which failures to connect pass by themselves."""

from __future__ import annotations

import os
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict

DEFAULTS: dict[str, Any] = {
    "connect_timeout": 5,
    "client_encoding": "utf8",
    # A host that dies without a word is noticed by these alone: without them a worker waited for more than 780 s.
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 8000,
}
SEVERAL: dict[str, Any] = {
    "target_session_attrs": "read-write",
    # Each host is tried in turn, and the first may be the dead one.
    "connect_timeout": 2,
}
_PASSING = (
    "starting up",
    "shutting down",
    "in recovery mode",
    "not yet accepting connections",
    "not accepting connections",
    "too many clients",
    "too many connections",
    "remaining connection slots",
    "server closed the connection unexpectedly",
    "session is read-only",
    "server is in hot standby mode",
)
_ABSENT = (
    "Connection refused",
    "No such file or directory",
    "No route to host",
    "Network is unreachable",
    "timeout expired",
    "failed to resolve host",
)


def parameters(url: str) -> dict[str, Any]:
    """Return what to add to a URL: our defaults for all it does not say, nor the environment.

    Several hosts are a cluster, in which only the one that takes writes is of use.
    """
    try:
        stated = conninfo_to_dict(url)
    except psycopg.ProgrammingError:
        return dict(DEFAULTS)  # connecting fails, and tells why
    several = "," in str(stated.get("host", "")) + str(stated.get("hostaddr", ""))
    wanted = DEFAULTS | (SEVERAL if several else {})
    stated_by_environment = {
        option.keyword.decode()
        for option in psycopg.pq.Conninfo.get_defaults()
        if option.envvar and option.envvar.decode() in os.environ
    }
    return {name: value for name, value in wanted.items() if name not in stated.keys() | stated_by_environment}


def hosts_from(url: str, host: str, port: int) -> dict[str, str]:
    """Return the hosts of a URL in their order, but with one of them in front: the one that took us last.

    Else every connection after a failover would first wait for the dead one.
    """
    stated = conninfo_to_dict(url)
    columns = {name: str(stated[name]).split(",") for name in ("host", "hostaddr", "port") if stated.get(name)}
    count = max(map(len, columns.values()), default=0)
    rows = list(zip(*(values * count if len(values) == 1 else values for values in columns.values()), strict=True))
    if count < 2:
        return {}
    rows.sort(key=lambda row: host not in row or ("port" in columns and (row[-1] or "5432") != str(port)))
    return dict(zip(columns, (",".join(values) for values in zip(*rows, strict=True)), strict=True))


def is_passing(error: psycopg.Error) -> bool:
    """Tell whether the server is there and will take us soon. Failures to connect carry no code, only their text."""
    return _tells(error, _PASSING)


def is_absent(error: psycopg.Error) -> bool:
    """Tell whether nothing answers at the address yet."""
    return _tells(error, _ABSENT)


def reason(error: BaseException) -> str:
    """Return the first line of what went wrong."""
    return (str(error).splitlines() or [type(error).__name__])[0]


def _tells(error: psycopg.Error, texts: tuple[str, ...]) -> bool:
    told = str(error)
    return any(text in told for text in texts)
