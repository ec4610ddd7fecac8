"""How the journal keeps the steps of an attempt: as short arrays, and by name whatever is remarkable."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from tidings.model.item import Step

_encode = msgspec.json.Encoder().encode
_PLAIN = (None, "yes")
_decode = msgspec.json.Decoder(list[Any]).decode


def keep(steps: Sequence[Step], state: str) -> bytes | None:
    """Write the steps of an attempt that began in a state. Half of all that was written once was steps."""
    kept: list[Any] = []
    for step in steps:
        is_plain = step.model is None and not step.note and step.verdict in _PLAIN
        if not is_plain or step.from_state != state or step.cost_micros or step.tokens:
            kept.append(step)
        elif step.criterion is None:
            kept.append((step.transition, step.to_state, step.ms))
        else:
            kept.append((step.transition, step.to_state, step.ms, step.criterion))
        state = step.to_state
    return _encode(kept) if kept else None


def recall(kept: bytes | None, state: str) -> list[Step]:
    """Read the steps of an attempt that began in a state."""
    steps: list[Step] = []
    for each in _decode(kept) if kept else ():
        if isinstance(each, dict):
            step = msgspec.convert(each, Step)
        else:
            transition, target, ms, *criterion = each
            step = Step(transition, state, target, ms, *((criterion[0], "yes") if criterion else ()))
        steps.append(step)
        state = step.to_state
    return steps
