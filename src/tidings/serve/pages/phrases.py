"""How values read on a page: times, lengths of time, numbers, commands, how an item is doing."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any

from markupsafe import Markup, escape

from tidings.model.clock import day_of, read_time, rfc3339
from tidings.model.durations import duration_seconds
from tidings.model.item_views import ItemRow
from tidings.model.views import RunView, SourceView, WorkRunView
from tidings.serve.markup import coded, tidy

_EXACT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z")
_STANDINGS = {
    "done": ("good", "done"),
    "waits": ("wait", "waits for you"),
    "parked": ("parked", "parked"),
    "dead": ("bad", "dead letter"),
    "rejected": ("muted", "rejected"),
}
_UNITS = ((60, "s", 1), (3600, "min", 60), (86_400, "h", 3600), (30 * 86_400, "d", 86_400))


def lasting(seconds: float | None) -> str:
    """Say how long something lasts, in one unit."""
    if seconds is None:
        return "–"
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    for limit, unit, size in _UNITS:
        if seconds < limit:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds / 86_400:,.0f} d"


def ago(ms: int | None, now_ms: int) -> str:
    """Say when something was or will be, seen from now."""
    if ms is None:
        return "never"
    seconds = (now_ms - ms) / 1000
    if abs(seconds) < 2:
        return "just now"
    if abs(seconds) >= 60 * 86_400:
        return day_of(ms)
    words = lasting(abs(seconds))
    return f"{words} ago" if seconds > 0 else f"in {words}"


def when(ms: int | None, now_ms: int, *, due: bool = False) -> Markup:
    """Return a relative time with the exact one behind it; what is `due` and late is due now."""
    if ms is None:
        return Markup('<span class="muted">never</span>')
    words = "now" if due and ms <= now_ms else ago(ms, now_ms)
    form = Markup('<time datetime="{0}" title="{0}" data-at="{1}"{2}>{3}</time>')
    return form.format(rfc3339(ms), ms, Markup(" data-due") if due else "", words)


def told(text: Any, now_ms: int) -> Markup:
    """Return a sentence of ours: code between backticks as code, exact times as times people read."""

    def relative(found: re.Match[str]) -> str:
        ms = read_time(found[0])
        if ms is None:
            return found[0]
        return f"on {day(ms)}" if abs(ms - now_ms) >= 60 * 86_400_000 else str(when(ms, now_ms))

    return Markup(_EXACT.sub(relative, str(coded(text))))  # noqa: S704  # escaped by `coded`


def doing(row: ItemRow, now_ms: int) -> tuple[str, str]:
    """Say how an item is doing: a tone and a word."""
    if row.standing != "open":
        return _STANDINGS.get(row.standing, ("plain", row.standing))
    if row.lease_until is not None and row.lease_until > now_ms:
        return "plain", "at work"
    if row.due_at is not None and row.due_at > now_ms:
        return ("wait", "tries again") if row.last_error else ("plain", "scheduled")
    return "plain", "waiting"


def run_words(run: RunView) -> str:
    """Say what a discovery run brought, leaving out what it did not."""
    named = ("new", "changed", "unchanged", "rejected")
    parts = [f"{getattr(run, name):,} {name}" for name in named if getattr(run, name)]
    found = f"{run.found:,} found" if run.found else "found nothing"
    words = f"{found} ({', '.join(parts)})" if parts else found
    return f"{words}, {count(run.pages, 'page')}" if run.pages else words


def updater_words(run: RunView) -> str:
    """Say what a discovery run did to the log."""
    if run.ended_at is None:
        return "under way"
    counts = [f"fetched {run.found:,}", f"trimmed {run.trimmed:,}", f"added {run.added:,}"]
    counts += [f"{run.in_log:,} in the log"] if run.in_log is not None else []
    counts += [count(run.credits, "credit")] if run.credits else []
    return ", ".join([*counts, run.ended] if run.ended not in (None, "complete") else counts)


def processor_words(run: WorkRunView) -> str:
    """Say what a worker did in a run."""
    return (
        f"loaded {run.loaded:,}, processed {run.processed:,}, removed {run.removed:,}, "
        f"moved to the end {run.moved_to_end:,}, queue {run.queue_length:,}"
    )


def paced(view: SourceView) -> str:
    """Say how often a source is asked, and why the next look comes later than that."""
    run = view.last_run
    if run is None or view.next_check_at is None or view.health in ("paused", "running"):
        return view.schedule
    try:
        usual = duration_seconds(view.schedule.removeprefix("every "))
    except ValueError:
        return view.schedule
    waits = (view.next_check_at - (run.ended_at or run.started_at)) / 1000
    if waits <= usual * 1.05 + 2:
        return view.schedule
    return f"{view.schedule}; the next look waits {lasting(waits)}, {_why_later(view)}"


def _why_later(view: SourceView) -> str:
    if view.health == "out of credits":
        return "until there are credits again"
    if view.failures:
        return f"because the last {count(view.failures, 'look')} failed"
    if view.last_run is not None and view.last_run.ended == "slowed":
        return "because the source asked us to slow down"
    return "as the source wishes"


def answered(answer: Any) -> str:
    """Return what a channel answered without the message's long number, which only matters to programs."""
    return tidy(tidy(answer).partition(", message")[0], 60)


def command(text: str) -> Markup:
    """Return a command line that breaks between words, not behind the dashes inside one."""
    form = Markup('<span class="word">{}</span>')
    return Markup(" ").join(form.format(word) if "-" in word else escape(word) for word in text.split(" "))


def day(ms: int) -> str:
    """Return the date of a time, for people."""
    moment = datetime.fromtimestamp(ms / 1000, UTC)
    return f"{moment.day} {moment:%b %Y}"


def number(value: float | None) -> str:
    """Return a number with separators."""
    if value is None:
        return "–"
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:,.1f}"


def count(value: int, word: str, plural: str | None = None) -> str:
    """Return a number with its noun."""
    return f"{value:,} {word if value == 1 else plural or word + 's'}"


def shell(text: Any) -> str:
    """Quote a value for a command line that is shown."""
    bare = tidy(text, 200)
    if re.fullmatch(r"[\w@%+=:,./-]+", bare, re.ASCII):
        return bare
    return "'" + bare.replace("'", "'\\''") + "'"
