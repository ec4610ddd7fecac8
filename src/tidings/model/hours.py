"""Times of the day as people write them in settings: when a digest goes out, and when it has to be quiet.

`daily at 08:00 Europe/Brussels` stays eight o'clock there when clocks are changed. An hour that a day skips is told an
hour later; one that a day has twice counts once.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo, available_timezones

DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
HOUR_MS = 3_600_000
TIMES_MAX = 24
DIGEST_FORMS = (
    "hourly, daily at 08:00 Europe/Brussels, daily at 08:00 and 17:00 Europe/Brussels, weekdays at 08:00 "
    "Europe/Brussels, or weekly on Monday at 08:00 Europe/Brussels"
)
QUIET_FORMS = "22:00-07:00 Europe/Brussels, or 12:00-13:00, 22:00-07:00 Europe/Brussels"

_CLOCK = r"(?:[01]?\d|2[0-3]):[0-5]\d"
_DIGEST = re.compile(
    rf"(?:(?P<often>daily|every day|weekdays|weekly)(?:\s+on\s+(?P<days>[a-z, ]+?))?"
    rf"(?:\s+at\s+(?P<times>{_CLOCK}(?:(?:\s*,\s*|\s+and\s+){_CLOCK})*))?)(?:\s+(?P<zone>[A-Za-z][\w+/-]*))?",
    re.IGNORECASE,
)
_HOURLY = re.compile(r"(?:hourly|every hour)(?:\s+at\s+:(?P<minute>[0-5]\d))?(?:\s+(?P<zone>[A-Za-z][\w+/-]*))?", re.I)
_QUIET = re.compile(
    rf"(?P<spans>{_CLOCK}\s*[-–]\s*{_CLOCK}(?:\s*,\s*{_CLOCK}\s*[-–]\s*{_CLOCK})*)(?:\s+(?P<zone>[A-Za-z][\w+/-]*))?"
)
_SPAN = re.compile(rf"({_CLOCK})\s*[-–]\s*({_CLOCK})")


@dataclass(frozen=True, slots=True)
class Times:
    """Moments that come again: some times of some days of the week, or a minute of each hour."""

    zone: ZoneInfo
    times: tuple[time, ...] = ()
    days: frozenset[int] = frozenset(range(7))
    minute: int | None = None
    """Each hour, at this minute."""

    def next_after(self, now_ms: int) -> int:
        """Return the first such moment behind a time, in milliseconds."""
        if self.minute is not None:
            first = now_ms - now_ms % HOUR_MS + self.minute * 60_000
            return first if first > now_ms else first + HOUR_MS
        today = _local(now_ms, self.zone).date()
        days = (today + timedelta(days=ahead) for ahead in range(-1, 9))
        return min(at for day in days if day.weekday() in self.days for at in self._on(day) if at > now_ms)

    def _on(self, day: date) -> Iterator[int]:
        yield from (_instant(day, each, self.zone) for each in self.times)


@dataclass(frozen=True, slots=True)
class QuietHours:
    """Spans of each day; one that ends before it begins goes over midnight."""

    zone: ZoneInfo
    spans: tuple[tuple[time, time], ...]

    def ends_at(self, now_ms: int) -> int | None:
        """Return when the quiet ends that a time falls into, in milliseconds; None where it is not quiet."""
        today = _local(now_ms, self.zone).date()
        found = [
            ends
            for day in (today - timedelta(days=1), today)
            for begin, end in self.spans
            if _instant(day, begin, self.zone) <= now_ms
            and now_ms < (ends := _instant(day + timedelta(days=end <= begin), end, self.zone))
        ]
        return max(found, default=None)


@lru_cache(maxsize=256)
def parse_times(text: str) -> Times:
    """Read when digests go out; raise ValueError saying how to write it."""
    words = " ".join(text.split())
    if hourly := _HOURLY.fullmatch(words):
        return Times(_zone(hourly["zone"]), minute=int(hourly["minute"] or 0))
    match = _DIGEST.fullmatch(words)
    if match is None:
        raise ValueError(f"{text!r} cannot be read; write {DIGEST_FORMS}")
    clocks = re.findall(_CLOCK, match["times"] or "08:00")
    times = tuple(sorted({time.fromisoformat(each.zfill(5)) for each in clocks}))
    if len(times) > TIMES_MAX:
        raise ValueError(f"{text!r} names more than {TIMES_MAX} times; write hourly")
    return Times(_zone(match["zone"]), times, _days(match["often"].lower(), match["days"], text))


@lru_cache(maxsize=256)
def parse_quiet(text: str) -> QuietHours:
    """Read when it has to be quiet; raise ValueError saying how to write it."""
    match = _QUIET.fullmatch(" ".join(text.split()))
    if match is None:
        raise ValueError(f"{text!r} cannot be read; write {QUIET_FORMS}")
    pairs = _SPAN.findall(match["spans"])
    spans = tuple((time.fromisoformat(a.zfill(5)), time.fromisoformat(b.zfill(5))) for a, b in pairs)
    if any(begin == end for begin, end in spans):
        raise ValueError(f"{text!r} is quiet for ever or never; write {QUIET_FORMS}, or `tidings pause --channel NAME`")
    return QuietHours(_zone(match["zone"]), spans)


def spoken_moment(moment_ms: int, zone: ZoneInfo | None = None) -> str:
    """Write a moment for people: `08:00 (Europe/Brussels) on Thursday, 19 November`."""
    local = _local(moment_ms, zone or ZoneInfo("UTC"))
    return f"{local:%H:%M} ({zone.key if zone else 'UTC'}) on {local:%A}, {local.day} {local:%B}"


def _days(often: str, named: str | None, text: str) -> frozenset[int]:
    if often == "weekdays":
        return frozenset(range(5))
    if often != "weekly":
        if named:
            raise ValueError(f"{text!r} names days; write weekly on {named.strip()} at ...")
        return frozenset(range(7))
    words = [word for word in re.split(r"[,\s]+|\band\b", (named or "monday").lower()) if word]
    return frozenset(_day(word, text) for word in words)


def _day(word: str, text: str) -> int:
    for number, day in enumerate(DAYS):
        if day == word.removesuffix("s") or (len(word) >= 3 and day.startswith(word)):
            return number
    near = difflib.get_close_matches(word, DAYS, 1)
    hint = f"did you mean {near[0].title()}?" if near else "name one as Monday"
    raise ValueError(f"{text!r}: {word!r} is no day of the week; {hint}")


def _zone(name: str | None) -> ZoneInfo:
    try:
        return ZoneInfo(name or "UTC")
    except (KeyError, OSError, ValueError):
        pass
    known = {each.lower(): each for each in available_timezones()}
    wanted = (name or "").lower()
    ends = [each for low, each in known.items() if low.rpartition("/")[2] == wanted.rpartition("/")[2]]
    near = ends or [known[each] for each in difflib.get_close_matches(wanted, list(known), 1)]
    hint = f"did you mean {sorted(near)[0]}?" if near else "name one as Europe/Brussels"
    raise ValueError(f"there is no time zone {name!r}; {hint}")


def _local(moment_ms: int, zone: ZoneInfo) -> datetime:
    return datetime.fromtimestamp(moment_ms / 1000, UTC).astimezone(zone)


def _instant(day: date, clock: time, zone: ZoneInfo) -> int:
    return round(datetime.combine(day, clock, zone).timestamp() * 1000)
