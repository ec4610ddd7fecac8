"""How the journal keeps the steps of an attempt: as short arrays, and by name whatever is remarkable."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from tidings.model.item import Step

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(list[Any]).decode


def keep(steps: Sequence[Step], state: str) -> bytes | None:
    """Write the steps of an attempt that began in a state. Half of all that was written once was steps."""
    kept: list[Any] = []
    for step in steps:
        if step.from_state != state or step.verdict not in (None, "yes") or _is_remarkable(step):
            kept.append(step)
        elif step.criterion is None:
            kept.append((step.transition, step.to_state, step.ms))
        else:
            kept.append((step.transition, step.to_state, step.ms, step.criterion))
        state = step.to_state
    return _encode(kept) if kept else None


def _is_remarkable(step: Step) -> bool:
    return bool(step.note or step.model or step.cost_micros or step.tokens)


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
