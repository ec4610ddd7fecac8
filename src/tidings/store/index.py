"""The full-text search: FTS5 and tsvector behind one query function."""

from __future__ import annotations

import math
from typing import Any

import msgspec

from tidings.model.contracts import Hit
from tidings.model.query import COLUMNS, Qualifier, Query, Term
from tidings.model.words import words
from tidings.store.database import Database, Row, Tx

CANDIDATES = 400
SNIPPET_CHARS = 240
HALF_LIFE_DAYS = 365.0
_OPEN, _CLOSE = "\x02", "\x03"


class SearchIndex:
    """Finds documents; they are written by the settle."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def search(
        self, query: Query, *, pipeline: str | None = None, limit: int = 50, offset: int = 0, newest: bool = False
    ) -> tuple[list[Hit], int]:
        """Return hits, best (or newest) first, and how many there are in all."""
        where, values = _conditions(query, pipeline, self._database.dialect)
        matching = _match(query.terms, self._database.dialect)
        if matching is None:
            return [], 0
        by_rank = not newest and any(not term.negated for term in query.terms)
        with self._database.reading() as tx:
            now = tx.one("now")
            assert now is not None
            find = _find_sqlite if self._database.dialect == "sqlite" else _find_postgres
            want = CANDIDATES if by_rank else limit + offset
            rows, total = find(tx, matching, where, values, by_rank, max(want, limit + offset))
        hits = [_hit(row, now[0]) for row in rows]
        if by_rank:
            hits.sort(key=lambda hit: (-hit.rank, -hit.time_ms, hit.key))
        return hits[offset : offset + limit], total


def _conditions(query: Query, pipeline: str | None, dialect: str) -> tuple[list[str], dict[str, Any]]:
    """Write each qualifier as a bound condition."""
    where: list[str] = []
    values: dict[str, Any] = {}
    if pipeline is not None:
        where.append("d.pipeline = :pipeline")
        values["pipeline"] = pipeline
    for number, qualifier in enumerate(query.qualifiers):
        condition = _condition(qualifier, f"v{number}", f"n{number}", dialect)
        values[f"v{number}"] = qualifier.value.lower() if isinstance(qualifier.value, str) else qualifier.value
        if qualifier.name not in COLUMNS:
            values[f"n{number}"] = qualifier.name
        where.append(f"NOT coalesce({condition}, false)" if qualifier.negated else condition)
    return where, values


_COLUMN = {"type": "d.type", "by": "d.author", "score": "d.score", "time": "d.time", "pipeline": "d.pipeline"}

# An attribute may hold one value or a list: either way, each value is a row.
_EACH_SQLITE = "SELECT 1 FROM json_each(d.attributes, '$.' || :{n}) e"
_TEXT_SQLITE = "CASE e.type WHEN 'true' THEN 'true' WHEN 'false' THEN 'false' ELSE lower(e.value) END"
_EACH_POSTGRES = """SELECT 1 FROM jsonb_array_elements_text(CASE jsonb_typeof(d.attributes -> :{n})
    WHEN 'array' THEN d.attributes -> :{n} ELSE jsonb_build_array(d.attributes -> :{n}) END) e (value)"""


def _condition(qualifier: Qualifier, value: str, name: str, dialect: str) -> str:
    column = _COLUMN.get(qualifier.name)
    operator = qualifier.operator
    if column is not None:
        return f"lower({_text(column, dialect)}) = :{value}" if operator == "=" else f"{column} {operator} :{value}"
    if dialect == "sqlite":
        number = "CASE WHEN e.type IN ('integer', 'real') THEN e.value END"
        test = f"{_TEXT_SQLITE} = :{value}" if operator == "=" else f"{number} {operator} :{value}"
        return f"EXISTS ({_EACH_SQLITE.format(n=name)} WHERE {test})"
    number = "CASE WHEN e.value ~ '^-?[0-9]+([.][0-9]+)?$' THEN e.value::float8 END"
    test = f"lower(e.value) = :{value}" if operator == "=" else f"{number} {operator} :{value}"
    return f"EXISTS ({_EACH_POSTGRES.format(n=name)} WHERE {test})"


def _text(column: str, dialect: str) -> str:
    return f"CAST({column} AS TEXT)" if dialect == "sqlite" else f"{column}::text"


def _match(terms: tuple[Term, ...], dialect: str) -> str | None:
    """Write the terms in the dialect's own search language; None where nothing can match."""
    wanted: list[list[str]] = []
    unwanted: list[list[str]] = []
    for term in terms:
        found = words(term.text)
        if found:
            (unwanted if term.negated else wanted).append(found)
        elif not term.negated:
            return None
    if dialect == "sqlite":
        text = " AND ".join(f'"{" ".join(each)}"' for each in wanted)
        for each in unwanted:
            text = f'{text} NOT "{" ".join(each)}"' if text else text
        return text or ("" if not unwanted else "\x00" + "\x00".join(" ".join(each) for each in unwanted))
    parts = [f"({' <-> '.join(each)})" for each in wanted] + [f"!({' <-> '.join(each)})" for each in unwanted]
    return " & ".join(parts)


_FIELDS = "d.pipeline, d.kind, d.key, d.author, d.type, d.score, d.time, d.url, d.attributes"


def _find_sqlite(
    tx: Tx, matching: str, where: list[str], values: dict[str, Any], by_rank: bool, limit: int
) -> tuple[list[Row], int]:
    if matching.startswith("\x00"):
        # FTS5 has no query of refusals alone: take all, less what matches any of them.
        refused = " OR ".join(f'"{part}"' for part in matching[1:].split("\x00"))
        where = [*where, "d.id NOT IN (SELECT rowid FROM documents_text WHERE documents_text MATCH :refused)"]
        values = {**values, "refused": refused}
        matching = ""
    values = {**values, "limit": limit}
    if matching:
        where = [*where, "documents_text MATCH :words"]
        values["words"] = matching
    condition = f"WHERE {' AND '.join(where)}" if where else ""
    text = "FROM documents d JOIN documents_text ON documents_text.rowid = d.id" if matching else "FROM documents d"
    total = tx.sql(f"SELECT count(*) {text} {condition}", values)[0][0]
    order = "ORDER BY rank" if by_rank else "ORDER BY d.time DESC, d.id DESC"
    rank = "-bm25(documents_text, 8.0, 1.0)" if matching else "0.0"
    ids = tx.sql(f"SELECT d.id, {rank} {text} {condition} {order} LIMIT :limit", values)
    if not ids:
        return [], total
    ranks: dict[int, float] = dict(ids)
    numbers = msgspec.json.encode(list(ranks)).decode()
    if matching:
        sql = (
            f"SELECT d.id, {_FIELDS}, highlight(documents_text, 0, '\x02', '\x03'), "  # noqa: S608  # constant fields
            "snippet(documents_text, 1, '\x02', '\x03', '…', 32) "
            "FROM documents_text JOIN documents d ON d.id = documents_text.rowid "
            "WHERE documents_text MATCH :words AND documents_text.rowid IN (SELECT value FROM json_each(:numbers))"
        )
        rows = tx.sql(sql, {"words": matching, "numbers": numbers})
    else:
        sql = (
            f"SELECT d.id, {_FIELDS}, t.title, substr(t.text, 1, {SNIPPET_CHARS}) "  # noqa: S608  # constant fields
            "FROM documents d JOIN documents_text t ON t.rowid = d.id "
            "WHERE d.id IN (SELECT value FROM json_each(:numbers))"
        )
        rows = tx.sql(sql, {"numbers": numbers})
    order_of = {item: place for place, item in enumerate(ranks)}
    rows.sort(key=lambda row: order_of[row[0]])
    return [(*row[1:], ranks[row[0]]) for row in rows], total


def _find_postgres(
    tx: Tx, matching: str, where: list[str], values: dict[str, Any], by_rank: bool, limit: int
) -> tuple[list[Row], int]:
    values = {**values, "limit": limit}
    if matching:
        where = [*where, "d.words @@ to_tsquery('tidings', :words)"]
        values["words"] = matching
    condition = f"WHERE {' AND '.join(where)}" if where else ""
    total = tx.sql(f"SELECT count(*) FROM documents d {condition}", values)[0][0]  # noqa: S608
    if matching and by_rank:
        rank = "ts_rank('{0.1, 0.2, 0.4, 1.0}', d.words, to_tsquery('tidings', :words))"
        marks = "'StartSel=\x02, StopSel=\x03, MaxWords=32, MinWords=12, FragmentDelimiter=…'"
        whole = "'StartSel=\x02, StopSel=\x03, HighlightAll=true'"
        title = f"ts_headline('tidings', top.title, to_tsquery('tidings', :words), {whole})"
        snippet = f"ts_headline('tidings', left(top.body, 20000), to_tsquery('tidings', :words), {marks})"
    else:
        rank, title, snippet = "0.0", "top.title", f"left(top.body, {SNIPPET_CHARS})"
    order = f"ORDER BY {rank} DESC" if by_rank else "ORDER BY d.time DESC, d.id DESC"
    fields = _FIELDS.replace("d.", "top.")
    sql = (
        f"SELECT {fields}, {title}, {snippet}, top.rank FROM (SELECT d.*, {rank} AS rank FROM documents d {condition} "  # noqa: S608
        f"{order} LIMIT :limit) AS top " + (order.replace("d.", "top.") if not by_rank else "ORDER BY top.rank DESC")
    )
    return tx.sql(sql, values), total


def _hit(row: Row, now_ms: int) -> Hit:
    pipeline, kind, key, author, type_, score, time_ms, url, attributes, title, snippet, rank = row
    decoded = msgspec.json.decode(attributes) if isinstance(attributes, str) else attributes
    plain = title.replace(_OPEN, "").replace(_CLOSE, "")
    shown = snippet if _OPEN in snippet or _OPEN not in title else title
    return Hit(
        pipeline, kind, key, plain, shown, _weigh(float(rank), score, time_ms, now_ms), author, type_, score, time_ms,
        url, decoded,
    )  # fmt: skip


def _weigh(rank: float, score: int | None, time_ms: int, now_ms: int) -> float:
    """Let score and age move a hit, but never past a much better match."""
    age_days = max(0.0, (now_ms - time_ms) / 86_400_000)
    freshness: float = 0.5 ** (age_days / HALF_LIFE_DAYS)
    return rank * (1 + 0.15 * math.log1p(max(0, score or 0))) * (1 + 0.3 * freshness)
