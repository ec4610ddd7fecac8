"""How the journal keeps an attempt: its steps as short arrays, and by name whatever is remarkable."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import msgspec

from tidings.model.item import HELD, JournalRow, Kept, Step
from tidings.store.database import Row

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(list[Any]).decode


def keep(steps: Sequence[Kept]) -> bytes | None:
    """Write the steps of an attempt. Half of all that was written once was steps."""
    return _encode(steps) if steps else None


def recall(row: Row) -> list[JournalRow]:
    """Read a row. That of an item that was run before it was born tells of two moments: it was born, and it moved."""
    number, item, at, kind, token, attempt, start, end, ended, error, actor, kept = row
    told = JournalRow(number, item, at, kind, token, attempt, start, end, ended, error, actor, _steps(kept, start))
    if kind != "born" or not start:
        return [told]
    return [JournalRow(number, item, at, "born", 0, 0, "", start, "born", None, None), replace(told, kind="attempt")]


def _steps(kept: bytes | None, state: str) -> list[Step]:
    """Read the steps of an attempt that began in a state."""
    steps: list[Step] = []
    for each in _decode(kept) if kept else ():
        if isinstance(each, dict):
            step = msgspec.convert(each, Step)
        else:
            transition, target, ms, *criterion = each
            step = Step(transition, state, target, ms, *((criterion[0], HELD) if criterion else ()))
        steps.append(step)
        state = step.to_state
    return steps
