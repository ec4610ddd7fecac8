"""Draws a notice as a Discord embed that keeps to every documented limit, whatever the notice holds."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote, urlsplit, urlunsplit

from tidings.model.clock import read_time, rfc3339
from tidings.model.publication import Notice, NoticeEntry, NoticeField
from tidings.publish.wording import fit, units

TITLE_MAX = 256
DESCRIPTION_MAX = 4096
FIELDS_MAX = 25
FIELD_NAME_MAX = 256
FIELD_VALUE_MAX = 1024
FOOTER_MAX = 2048
TOTAL_MAX = 6000
URL_MAX = 2048
COLOR_MAX = 0xFFFFFF
DESCRIPTION_RESERVE = 1500
"""What fields leave to the description, where it needs that much."""
FIELD_WORTH_SHOWING = 24
ENTRY_TITLE_MAX = 200
LISTING_RESERVE = 60
"""What a digest's list keeps free to say of how many there was no room to tell."""

PRODUCT = "tidings"
_URL_SAFE = "/%:@!$&'()*+,;=~-._?#[]"


def message(notice: Notice, delivery_id: str, *, username: str | None = None) -> dict[str, Any]:
    """Return the body of a webhook call: one embed, and nobody mentioned."""
    body: dict[str, Any] = {"embeds": [embed(notice, delivery_id)], "allowed_mentions": {"parse": []}}
    shown = {"username": notice.username or username, "avatar_url": embed_address(notice.avatar)}
    return {**{name: value for name, value in shown.items() if value}, **body}


def embed(notice: Notice, delivery_id: str) -> dict[str, Any]:
    """Draw one notice; text that does not fit is cut, optional parts that are not well formed are left out."""
    title = fit(notice.title, TITLE_MAX) or "Untitled"
    footer = fit(f"{notice.footer or PRODUCT} • {delivery_id}", FOOTER_MAX, markdown=False)
    left = TOTAL_MAX - units(title) - units(footer)
    # All parts of an embed share 6,000 characters. Without a reserve, 25 long fields would leave no room for the text.
    reserve = min(units(fit(notice.text, DESCRIPTION_MAX)), DESCRIPTION_RESERVE)
    fields = _fields(notice.fields, left - reserve)
    left -= sum(units(field["name"]) + units(field["value"]) for field in fields)
    room = min(DESCRIPTION_MAX, left)
    parts = {
        "title": title,
        "url": embed_address(notice.url),
        "description": listed(notice, room) if notice.entries else fit(notice.text, room),
        "color": notice.color if notice.color is not None and 0 <= notice.color <= COLOR_MAX else None,
        "fields": fields,
        "footer": {"text": footer},
        "timestamp": _timestamp(notice.time),
    }
    return {name: part for name, part in parts.items() if part not in (None, "", [])}


def listed(notice: Notice, room: int) -> str:
    """List what a digest tells of, linked; say of how many there was no room to tell."""
    closing = fit(notice.closing, DESCRIPTION_MAX // 4)
    room -= units(closing) + LISTING_RESERVE
    lines: list[str] = []
    group, shown = "", 0
    for entry in notice.entries:
        heading = [f"{chr(10) * bool(lines)}**{fit(entry.group, FIELD_NAME_MAX)}**"] if entry.group != group else []
        added = [*heading, _line(entry)]
        if (room := room - sum(units(each) + 1 for each in added)) < 0:
            break
        lines, group, shown = lines + added, entry.group, shown + 1
    if more := len(notice.entries) - shown:
        lines.append(f"\n… and {more} more, for which this message has no room.")
    return "\n".join([*lines, *([f"\n{closing}"] if closing else [])])


def _line(entry: NoticeEntry) -> str:
    title, address = fit(entry.title, ENTRY_TITLE_MAX) or "Untitled", embed_address(entry.url)
    # A bracket in the address would end the link early.
    linked = f"[{title}]({address.replace('(', '%28').replace(')', '%29')})" if address else title
    moment = read_time(entry.time)
    own_time = f" (<t:{moment // 1000}:R>)" if moment is not None else ""
    return f"- {linked}" + (f"\n  {fit(entry.text, ENTRY_TITLE_MAX)}{own_time}" if entry.text else "")


def embed_address(url: str | None) -> str | None:
    """Return an address Discord accepts, percent-encoded, or None where the whole message would be refused for it."""
    try:
        parts = urlsplit((url or "").strip())
        host = (parts.hostname or "").encode("idna").decode("ascii")
        port = f":{parts.port}" if parts.port is not None else ""
        if parts.scheme not in ("http", "https") or not host or "@" in parts.netloc or not _is_host(host):
            return None
        rest = [quote(part, safe=_URL_SAFE) for part in (parts.path, parts.query, parts.fragment)]
    except (ValueError, UnicodeError):
        return None
    address = urlunsplit((parts.scheme, host + port, *rest))
    return address if len(address) <= URL_MAX else None


def _is_host(host: str) -> bool:
    return all(character.isalnum() or character in "-._" for character in host)


def _fields(fields: tuple[NoticeField, ...], room: int) -> list[dict[str, Any]]:
    """Place fields in order until the room is used up; the last one may be cut to fit."""
    placed: list[dict[str, Any]] = []
    for field in fields[: 2 * FIELDS_MAX]:
        name, value = fit(field.name, FIELD_NAME_MAX), fit(field.value, FIELD_VALUE_MAX)
        if not name or not value:
            continue
        space = room - units(name)
        if len(placed) == FIELDS_MAX or space < min(units(value), FIELD_WORTH_SHOWING):
            break
        value = value if units(value) <= space else fit(field.value, space)
        value += _own_time(field, min(space, FIELD_VALUE_MAX) - units(value))
        placed.append({"name": name, "value": value, "inline": field.inline})
        room -= units(name) + units(value)
    return placed


def _own_time(field: NoticeField, room: int) -> str:
    """Tell a moment in the reader's own time, which Discord writes for each reader; nothing where it does not fit."""
    moment = read_time(field.time)
    if moment is None:
        return ""
    seconds = moment // 1000
    told = f"\n<t:{seconds}:R>" if field.is_day else f"\n<t:{seconds}:F>, <t:{seconds}:R>"
    return told if len(told) <= room else ""


def _timestamp(time: str | None) -> str | None:
    """Discord reads ISO 8601 only; anything else costs the whole message."""
    return rfc3339(read_time(time))
