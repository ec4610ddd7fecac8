"""The journal: what happened to an item, one row an attempt, and how its steps are kept."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import msgspec

from tidings.model.item import JournalKind, JournalRow, Step
from tidings.store.db.database import Tx

ERROR_CHARS_MAX = 500
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(list[Any]).decode


class Entry(NamedTuple):
    """A row to write; the database adds the time."""

    item: int
    kind: JournalKind
    token: int
    attempt: int
    from_state: str
    to_state: str
    ended: str
    error: str | None = None
    actor: str | None = None
    steps: bytes | None = None


class Line(NamedTuple):
    """A row as it is kept."""

    id: int
    item: int
    at: int
    kind: str
    token: int
    attempt: int
    from_state: str
    to_state: str
    ended: str
    error: str | None
    actor: str | None
    steps: bytes | None


def write(tx: Tx, entries: Iterable[Entry]) -> None:
    """Append to the journal."""
    tx.put("insert_journal", entries)


def encode_steps(steps: Sequence[Step]) -> bytes | None:
    """Write the steps of an attempt: half of all that was written once was steps, so they are short arrays."""
    return _encode(steps) if steps else None


def life(tx: Tx, item: int, limit: int) -> list[JournalRow]:
    """Read an item's journal, oldest first."""
    return [row for line in tx.rows(Line, "life", item=item, limit=limit) for row in _read(line)]


def _read(line: Line) -> list[JournalRow]:
    """Read a row. An item whose first attempt was made before its birth has one row for both: it is told as two."""
    row = JournalRow(*line[:-1], _steps(line.steps, line.from_state))
    if line.kind != "born" or not line.from_state:
        return [row]
    born = JournalRow(line.id, line.item, line.at, "born", 0, 0, "", line.from_state, "born", None, None)
    return [born, replace(row, kind="attempt")]


def _steps(kept: bytes | None, state: str) -> list[Step]:
    """Read the steps of an attempt that began in a state."""
    steps: list[Step] = []
    for each in _decode(kept) if kept else ():
        step = _older(each) if isinstance(each, dict) else msgspec.convert(each, Step)
        steps.append(msgspec.structs.replace(step, from_state=state))
        state = step.to_state
    return steps


def _older(kept: dict[str, Any]) -> Step:
    """Read a step as releases before 0.2 wrote the remarkable ones, by name; retention removes them in time."""
    verdict = kept.pop("verdict", None)
    kept.pop("from_state", None)
    return Step(**kept, refusal=None if verdict in (None, "yes") else verdict)
