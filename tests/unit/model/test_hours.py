"""When digests go out and when it is quiet, over changes of the clock."""

from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo

import pytest

from tidings.model.hours import parse_quiet, parse_times, spoken_moment

BRUSSELS = ZoneInfo("Europe/Brussels")


def at(text: str, zone: ZoneInfo = BRUSSELS) -> int:
    return round(datetime.fromisoformat(text).replace(tzinfo=zone).timestamp() * 1000)


def told(moment: int, zone: ZoneInfo = BRUSSELS) -> str:
    return f"{datetime.fromtimestamp(moment / 1000, zone):%a %Y-%m-%d %H:%M}"


@pytest.mark.parametrize(
    ("text", "now", "then"),
    [
        ("daily at 08:00 Europe/Brussels", "2026-11-18T07:59:59", "Wed 2026-11-18 08:00"),
        ("daily at 08:00 Europe/Brussels", "2026-11-18T08:00:00", "Thu 2026-11-19 08:00"),
        ("every day at 8:00 Europe/Brussels", "2026-11-18T09:00:00", "Thu 2026-11-19 08:00"),
        ("daily at 08:00 and 17:00 Europe/Brussels", "2026-11-18T09:00:00", "Wed 2026-11-18 17:00"),
        ("daily at 08:00, 12:30, 17:00 Europe/Brussels", "2026-11-18T09:00:00", "Wed 2026-11-18 12:30"),
        ("daily Europe/Brussels", "2026-11-18T09:00:00", "Thu 2026-11-19 08:00"),
        ("weekdays at 08:00 Europe/Brussels", "2026-11-20T09:00:00", "Mon 2026-11-23 08:00"),
        ("weekly on Monday at 08:00 Europe/Brussels", "2026-11-18T09:00:00", "Mon 2026-11-23 08:00"),
        ("weekly on Tue and Fri at 08:00 Europe/Brussels", "2026-11-18T09:00:00", "Fri 2026-11-20 08:00"),
        ("weekly Europe/Brussels", "2026-11-23T08:00:00", "Mon 2026-11-30 08:00"),
        ("hourly", "2026-11-18T09:00:00", "Wed 2026-11-18 10:00"),
        ("hourly at :30", "2026-11-18T09:00:00", "Wed 2026-11-18 09:30"),
        ("daily at 08:00", "2026-11-18T08:30:00", "Wed 2026-11-18 09:00"),
        # Clocks go forward on 29 March 2026 at 02:00, and back on 25 October 2026 at 03:00.
        ("daily at 08:00 Europe/Brussels", "2026-03-28T08:00:00", "Sun 2026-03-29 08:00"),
        ("daily at 08:00 Europe/Brussels", "2026-10-24T08:00:00", "Sun 2026-10-25 08:00"),
        ("daily at 02:30 Europe/Brussels", "2026-03-28T12:00:00", "Sun 2026-03-29 03:30"),
        ("daily at 02:30 Europe/Brussels", "2026-10-24T12:00:00", "Sun 2026-10-25 02:30"),
    ],
)
def test_a_digest_keeps_to_the_clock_on_the_wall(text, now, then):
    assert told(parse_times(text).next_after(at(now))) == then


@pytest.mark.parametrize("text", ["daily at 02:30 Europe/Brussels", "daily at 03:00 Europe/Brussels", "hourly"])
def test_every_moment_comes_once_even_where_an_hour_is_missing_or_comes_twice(text):
    times = parse_times(text)
    for begin, days in (("2026-03-27T00:00:00", 5), ("2026-10-23T00:00:00", 5)):
        moment, end, seen = at(begin), at(begin) + days * 86_400_000, []
        while (moment := times.next_after(moment)) < end:
            seen.append(moment)
        assert seen == sorted(set(seen))
        assert len(seen) in ((days, days - 1) if text != "hourly" else (days * 24 - 1,))


@pytest.mark.parametrize(
    ("text", "now", "ends"),
    [
        ("22:00-07:00 Europe/Brussels", "2026-11-18T21:59:59", None),
        ("22:00-07:00 Europe/Brussels", "2026-11-18T22:00:00", "Thu 2026-11-19 07:00"),
        ("22:00-07:00 Europe/Brussels", "2026-11-19T06:59:59", "Thu 2026-11-19 07:00"),
        ("22:00-07:00 Europe/Brussels", "2026-11-19T07:00:00", None),
        ("22:00 – 07:00 Europe/Brussels", "2026-03-28T23:00:00", "Sun 2026-03-29 07:00"),
        ("22:00-07:00 Europe/Brussels", "2026-10-24T23:00:00", "Sun 2026-10-25 07:00"),
        ("12:00-13:00, 22:00-07:00 Europe/Brussels", "2026-11-18T12:30:00", "Wed 2026-11-18 13:00"),
        ("00:00-06:30 Europe/Brussels", "2026-11-18T00:00:00", "Wed 2026-11-18 06:30"),
    ],
)
def test_quiet_hours_end_when_the_clock_on_the_wall_says_so(text, now, ends):
    found = parse_quiet(text).ends_at(at(now))

    assert (found and told(found)) == ends


@pytest.mark.parametrize(
    ("parse", "text", "hint"),
    [
        (parse_times, "daily at 8 Europe/Brussels", "write hourly, daily at 08:00 Europe/Brussels"),
        (parse_times, "daily at 08:00 Europe/Brusels", "did you mean Europe/Brussels?"),
        (parse_times, "daily at 08:00 Brussels", "did you mean Europe/Brussels?"),
        (parse_times, "weekly on Mondy at 08:00", "did you mean Monday?"),
        (parse_times, "daily on Monday at 08:00", "write weekly on Monday"),
        (parse_times, "", "cannot be read"),
        (parse_quiet, "22-7", "write 22:00-07:00 Europe/Brussels"),
        (parse_quiet, "22:00-22:00", "quiet for ever or never"),
        (parse_quiet, "22:00-07:00 Mars/Base", "there is no time zone 'Mars/Base'"),
        (parse_quiet, "22:00-25:00", "cannot be read"),
    ],
)
def test_what_cannot_be_read_is_told_with_what_helps(parse, text, hint):
    with pytest.raises(ValueError, match=hint.replace("?", r"\?")):
        parse(text)


def test_a_moment_is_spoken_with_its_zone():
    assert spoken_moment(at("2026-11-19T08:00:00"), BRUSSELS) == "08:00 (Europe/Brussels) on Thursday, 19 November"
