"""How values read on a page: times, lengths of time, numbers, foreign text made harmless."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote, urlsplit

import nh3
from markupsafe import Markup, escape

from tidings.model.clock import rfc3339
from tidings.model.durations import duration_seconds
from tidings.model.views import ItemRow, RunView, SourceView

_INVISIBLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060\u2066-\u2069\ufeff]")
"""Control characters, and what turns the direction of a line around."""
_CLEANER = nh3.Cleaner(
    tags={"p", "br", "a", "ul", "ol", "li", "blockquote", "code", "pre", "em", "strong", "i", "b", "h2", "h3", "h4"},
    attributes={"a": {"href"}},
    url_schemes={"http", "https"},
    link_rel="noopener noreferrer nofollow ugc",
)
_TAG = re.compile("<[^>]{0,2000}>")
_BLOCK = re.compile("<(?:p|ul|ol|li|blockquote|pre|h[234])[> ]")
_INLINE = re.compile(r"</?(?:a|b|i|em|strong|code)(?:\s[^>]{0,2000})?>")
"""What stands within a line and parts no words."""
_EXACT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z")
_STANDINGS = {
    "done": ("good", "done"),
    "waits": ("wait", "waits for you"),
    "parked": ("parked", "parked"),
    "dead": ("bad", "dead letter"),
    "rejected": ("muted", "rejected"),
}
_UNITS = ((60, "s", 1), (3600, "min", 60), (86_400, "h", 3600), (30 * 86_400, "d", 86_400))
_URL_LENGTH_MAX = 2_000


def tidy(text: Any, length_max: int = 2_000) -> str:
    """Return foreign text without control characters and direction changes, cut to a length."""
    clean = _INVISIBLE.sub("", "" if text is None else str(text))
    return clean if len(clean) <= length_max else clean[: length_max - 1] + "…"


def visible(value: Any) -> Any:
    """Keep invisible characters out of whatever a template writes; markup of ours passes."""
    return _INVISIBLE.sub("", value) if type(value) is str else value


def exactly(value: Any) -> Markup:
    """Write a value that comes back to us in a form: nothing dropped, invisible characters as references."""
    text = str(escape(value))
    return Markup(_INVISIBLE.sub(lambda found: f"&#{ord(found[0])};", text))  # noqa: S704  # just escaped


def clean_html(html: Any) -> Markup:
    """Return foreign HTML reduced to the safe subset; words before the first paragraph become one."""
    clean = _CLEANER.clean(tidy(html, 200_000))
    block = _BLOCK.search(clean)
    lead, rest = (clean[: block.start()], clean[block.start() :]) if block else (clean, "")
    return Markup(f"<p>{lead}</p>{rest}" if lead.strip() else rest)  # noqa: S704  # it was just cleaned


def words_of(html: Any, length_max: int = 400) -> str:
    """Return the words of foreign HTML."""
    bare = _TAG.sub(" ", _INLINE.sub("", _CLEANER.clean(tidy(html, 20_000))))
    for entity, character in (("&lt;", "<"), ("&gt;", ">"), ("&nbsp;", " "), ("&quot;", '"'), ("&amp;", "&")):
        bare = bare.replace(entity, character)
    return tidy(" ".join(bare.split()), length_max)


def safe_url(url: Any) -> str | None:
    """Return a web address that may stand in a link, or None."""
    if not isinstance(url, str) or len(url) > _URL_LENGTH_MAX or _INVISIBLE.search(url):
        return None
    try:
        parts = urlsplit(url.strip())
    except ValueError:
        return None
    return url.strip() if parts.scheme in ("http", "https") and parts.netloc else None


def host_of(url: str | None) -> str | None:
    """Return the host of an address, as people say it; a loopback address says nothing."""
    if url is None:
        return None
    try:
        host = urlsplit(url).hostname
    except ValueError:
        return None
    return tidy(host.removeprefix("www."), 80) if host and not host.startswith("127.") else None


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
        return datetime.fromtimestamp(ms / 1000, UTC).date().isoformat()
    said = lasting(abs(seconds))
    return f"{said} ago" if seconds > 0 else f"in {said}"


def when(ms: int | None, now_ms: int, *, due: bool = False) -> Markup:
    """Return a relative time with the exact one behind it; what is `due` and late is due now."""
    if ms is None:
        return Markup('<span class="muted">never</span>')
    said = "now" if due and ms <= now_ms else ago(ms, now_ms)
    form = Markup('<time datetime="{0}" title="{0}" data-at="{1}"{2}>{3}</time>')
    return form.format(rfc3339(ms), ms, Markup(" data-due") if due else "", said)


def told(text: Any, now_ms: int) -> Markup:
    """Return a sentence of ours: code between backticks as code, exact times as times people read."""

    def relative(found: re.Match[str]) -> str:
        try:
            ms = round(datetime.fromisoformat(found[0]).timestamp() * 1000)
        except (ValueError, OverflowError):
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
    said = f"{found} ({', '.join(parts)})" if parts else found
    return f"{said}, {count(run.pages, 'page')}" if run.pages else said


def paced(view: SourceView) -> str:
    """Say how often a source is asked, and when it wishes to be asked less often than that."""
    run = view.last_run
    if run is None or view.next_check_at is None or view.health != "healthy":
        return view.schedule
    try:
        usual = duration_seconds(view.schedule.removeprefix("every "))
    except ValueError:
        return view.schedule
    waits = (view.next_check_at - run.started_at) / 1000
    return f"{view.schedule}, or slower where the source wishes" if waits > 2 * usual + 60 else view.schedule


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


def segment(text: Any) -> str:
    """Quote a value for use in an address; slashes stay."""
    return quote(str(text), safe="/:@!$'()*+,;=~-._")


def shell(text: Any) -> str:
    """Quote a value for a command line that is shown."""
    bare = tidy(text, 200)
    if re.fullmatch(r"[\w@%+=:,./-]+", bare, re.ASCII):
        return bare
    return "'" + bare.replace("'", "'\\''") + "'"


def marked_text(html: str) -> Markup:
    """Pass on a snippet that `searching.marked` has escaped."""
    return Markup(_INVISIBLE.sub("", html))  # noqa: S704  # escaped there, marks added behind


def coded(text: Any) -> Markup:
    """Return plain text with what stands between backticks as code."""
    return Markup(re.sub("`([^`]+)`", r"<code>\1</code>", str(escape(tidy(text)))))  # noqa: S704  # just escaped


def lines(text: Any) -> Markup:
    """Return plain text with its paragraphs kept."""
    parts = [part.strip() for part in re.split(r"\n\s*\n", tidy(text, 50_000)) if part.strip()]
    return Markup("").join(Markup("<p>{}</p>").format(escape(part)) for part in parts)
