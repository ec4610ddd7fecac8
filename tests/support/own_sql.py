"""SQL of a test's own: to look where no call of the store looks, and to make situations that no call makes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from tidings.store.db.database import Tx
from tidings.store.db.postgres_tx import PostgresTx
from tidings.store.db.sqlite_tx import SqliteTx

_PARAMETER = re.compile(r"(?<![:\w]):([a-z][a-z_0-9]*)")


def own_sql(tx: Tx, text: str, values: Mapping[str, Any] | None = None) -> list[tuple[Any, ...]]:
    """Run a statement in a transaction; parameters are written `:name`."""
    if isinstance(tx, SqliteTx):
        return list(tx.connection.execute(text, dict(values or {})))
    assert isinstance(tx, PostgresTx)
    cursor = tx.connection.execute(_PARAMETER.sub(r"%(\1)s", text.replace("%", "%%")), values or {})
    return cursor.fetchall() if cursor.description else []
