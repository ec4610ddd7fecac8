"""Texts with placeholders, as a route or a channel may set them: `{title}`, `{deadline|date}`, `{summary|cut:300}`.

Nothing is evaluated: a placeholder is a name and filters from a fixed list, all checked when tidings starts.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec

from tidings.model.publication import Notice, NoticeField, Texts

LENGTH_MAX = 2_000
OF_EVERY_NOTICE = ("title", "text", "summary", "changes", "url", "time", "event")
COLOR = re.compile(r"#[0-9a-fA-F]{6}")
_PART = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]")
_ISO_DAY = re.compile(r"\d{4}-\d\d-\d\d")


class Value(NamedTuple):
    """What a name stands for: as people read it, and the moment it tells, if any."""

    text: str
    moment: str = ""


class Placeholder(NamedTuple):
    """A name, and the filters its value goes through in order."""

    name: str
    filters: tuple[tuple[str, str], ...]


def _cut(value: Value, argument: str) -> Value:
    limit = int(argument)
    if len(value.text) <= limit:
        return value
    kept = value.text[: limit - 1]
    return Value((kept.rsplit(" ", 1)[0] if " " in kept[limit // 2 :] else kept).rstrip(" ,;:.–-") + "…", value.moment)


def _date(value: Value, argument: str) -> Value:  # noqa: ARG001  # a filter's form
    found = _ISO_DAY.match(value.moment) or _ISO_DAY.match(value.text)
    if found is None:
        return value
    day = datetime.fromisoformat(found[0])
    return Value(f"{day.day} {day:%B %Y}", value.moment)


FILTERS: Mapping[str, tuple[Callable[[Value, str], Value], str]] = {
    "cut": (_cut, "number"),
    "date": (_date, ""),
    "upper": (lambda value, _: Value(value.text.upper(), value.moment), ""),
    "lower": (lambda value, _: Value(value.text.lower(), value.moment), ""),
    "capitalize": (lambda value, _: Value(value.text[:1].upper() + value.text[1:], value.moment), ""),
    "or": (lambda value, argument: value if value.text else Value(argument), "text"),
    "before": (lambda value, argument: Value(argument + value.text, value.moment) if value.text else value, "text"),
    "after": (lambda value, argument: Value(value.text + argument, value.moment) if value.text else value, "text"),
}
"""By name: what it does, and what stands behind its colon."""


def worded(notice: Notice, texts: Texts) -> Notice:
    """Write a notice in the words, colors and fields that its route or channel sets."""
    changes: dict[str, Any] = {"footer": texts.footer and render(texts.footer, notice)}
    changes |= {"username": texts.username or None, "avatar": texts.avatar or None}
    # The words are those of one notice; a digest has its own.
    if not notice.entries:
        changes |= {name: render(pattern, notice) for name in ("title", "text") if (pattern := getattr(texts, name))}
        if texts.fields is not None:
            by_label = {field.name.lower(): field for field in notice.fields}
            changes["fields"] = tuple(by_label[each.lower()] for each in texts.fields if each.lower() in by_label)
    if (color := _color(notice, texts.colors)) is not None:
        changes["color"] = color
    return msgspec.structs.replace(notice, **changes)


def render(pattern: str, notice: Notice) -> str:
    """Fill a text in; a line whose placeholders are all empty is left out."""
    lines = [_line(line, notice) for line in pattern.split("\n")]
    return "\n".join(line for line in lines if line is not None).strip()


def check(texts: Texts, names: Iterable[str], labels: Iterable[str], place: str) -> Iterator[str]:
    """Say what is wrong with texts: each name, filter, color and field, with the nearest there is."""
    known = sorted({*OF_EVERY_NOTICE, *names, *map(name_of_label, labels)})
    for setting in ("title", "text", "footer"):
        try:
            for part in _parsed(getattr(texts, setting)):
                if isinstance(part, Placeholder) and part.name not in known:
                    yield f"{place}.{setting}: there is no {{{part.name}}}{_nearest(part.name, known, '{%s}')}"
        except ValueError as error:
            yield f"{place}.{setting}: {error}"
    for value, color in texts.colors.items():
        if not COLOR.fullmatch(color):
            yield f"{place}.colors.{value}: {color!r} is no color; write one as #2ea043"
    shown = sorted(set(labels))
    for each in texts.fields or ():
        if shown and each.lower() not in {label.lower() for label in shown}:
            yield f"{place}.fields: there is no field {each!r}{_nearest(each, shown, '%s')}"


def name_of_label(label: str) -> str:
    """Return the name that a notice's field has in texts: `Opening date` is `{opening_date}`."""
    return re.sub(r"\W+", "_", label.strip().lower())


def merged(over: Texts, under: Texts) -> Texts:
    """Return what a route sets and, where it sets nothing, what its channel does."""
    return Texts(
        title=over.title or under.title,
        text=over.text or under.text,
        footer=over.footer or under.footer,
        colors={**under.colors, **over.colors},
        fields=over.fields if over.fields is not None else under.fields,
        username=over.username or under.username,
        avatar=over.avatar or under.avatar,
    )


def _line(line: str, notice: Notice) -> str | None:
    parts = _parsed(line)
    filled = [_filled(part, notice) if isinstance(part, Placeholder) else part for part in parts]
    values = [text for part, text in zip(parts, filled, strict=True) if isinstance(part, Placeholder)]
    return None if values and not any(values) else "".join(filled)


def _filled(placeholder: Placeholder, notice: Notice) -> str:
    value = value_of(placeholder.name, notice)
    for name, argument in placeholder.filters:
        value = FILTERS[name][0](value, argument)
    return value.text


def value_of(name: str, notice: Notice) -> Value:
    """Return what a name stands for in a notice; nothing where it does not say it."""
    if name in OF_EVERY_NOTICE and name != "event":
        text = getattr(notice, name) or (notice.text if name == "summary" else "")
        return Value(text, text if name == "time" else "")
    attribute = notice.attributes.get(name)
    day = str(attribute) if isinstance(attribute, str) else ""
    field = next((each for each in notice.fields if name_of_label(each.name) == name), None)
    if field is not None:
        return Value(field.value, _moment(field, day))
    if isinstance(attribute, list):
        return Value(", ".join(map(str, attribute[:3])))
    return Value("" if attribute is None else str(attribute), day)


def _moment(field: NoticeField, day: str) -> str:
    return day if _ISO_DAY.match(day) else field.time or ""


def _color(notice: Notice, colors: Mapping[str, str]) -> int | None:
    for name in ("status", "event", "type"):
        said = notice.attributes.get(name)
        if (chosen := colors.get(str(said[0] if isinstance(said, list) and said else said))) is not None:
            return int(chosen[1:], 16)
    return int(colors["default"][1:], 16) if "default" in colors else None


@lru_cache(maxsize=512)
def _parsed(text: str) -> tuple[str | Placeholder, ...]:
    if len(text) > LENGTH_MAX:
        raise ValueError(f"it has more than {LENGTH_MAX} characters")
    parts: list[str | Placeholder] = []
    end = 0
    for match in _PART.finditer(text):
        parts.append(text[end : match.start()])
        end = match.end()
        if match[0] in ("{", "}"):
            raise ValueError(f"a brace stands alone at character {match.start() + 1}; write {match[0] * 2} for a brace")
        parts.append(match[0][0] if match[1] is None else _placeholder(match[1]))
    return tuple(part for part in (*parts, text[end:]) if part != "")


def _placeholder(text: str) -> Placeholder:
    name, *filters = text.split("|")
    return Placeholder(name.strip(), tuple(_filter(each) for each in filters))


def _filter(text: str) -> tuple[str, str]:
    name, _, argument = text.partition(":")
    name = name.strip()
    if name not in FILTERS:
        raise ValueError(f"there is no filter {name!r}{_nearest(name, FILTERS, '%s')}")
    wanted = FILTERS[name][1]
    if (wanted == "number" and not re.fullmatch(r"\s*[1-9]\d{0,3}\s*", argument)) or (
        wanted == "text" and not argument
    ):
        raise ValueError(f"the filter {name} needs a {wanted}: {name}:{'300' if wanted == 'number' else '...'}")
    if not wanted and argument:
        raise ValueError(f"the filter {name} takes nothing behind a colon")
    return name, argument.strip() if wanted == "number" else argument


def _nearest(name: str, known: Iterable[str], form: str) -> str:
    names = sorted(known)
    near = difflib.get_close_matches(name, names, 1)
    return f"; did you mean {form % near[0]}?" if near else f"; there are {', '.join(form % each for each in names)}"
