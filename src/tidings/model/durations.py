"""Lengths of time as people write them in settings: `12h`, `15 min`, `1.5 days`, or plain seconds."""

from __future__ import annotations

import math
import re

_SECONDS = {"s": 1, "sec": 1, "second": 1, "m": 60, "min": 60, "minute": 60, "h": 3600, "hour": 3600}
_SECONDS |= {"d": 86_400, "day": 86_400, "w": 604_800, "week": 604_800}
_PART = re.compile(r"(\d+(?:\.\d+)?)\s*([a-z]+)")


def duration_seconds(value: object) -> float:
    """Read a length of time; raise ValueError saying how to write one."""
    if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
        return float(value)
    if isinstance(value, str):
        text = value.strip().lower()
        if re.fullmatch(r"\d+(\.\d+)?", text):
            return float(text)
        parts = _PART.findall(text)
        leftover = _PART.sub("", text).replace(",", "").strip()
        units = [_SECONDS.get(unit) or _SECONDS.get(unit.removesuffix("s")) for _, unit in parts]
        if parts and not leftover and all(units):
            return sum(float(number) * (unit or 0) for (number, _), unit in zip(parts, units, strict=True))
    raise ValueError("write a length of time as seconds or like 30s, 15min, 12h, 7 days")
