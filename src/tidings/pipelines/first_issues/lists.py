"""Reads the lists of repositories: the beginners' list, written by hand, and the one in the configuration."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from tidings.model.errors import Transient
from tidings.model.item import Rejected

ENTRIES_MAX = 5_000
TEXT_CHARS_MAX = 1_000
AWESOME = "awesome-for-beginners"
CONFIGURED = "configuration"

_LINK = re.compile(r"https?://(?:www\.)?github\.com/([^/?#\s]+)/([^/?#\s]+)", re.IGNORECASE)
_OWNER = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,38})")
_NAME = re.compile(r"[A-Za-z0-9._-]{1,100}")


@dataclass(frozen=True, slots=True)
class ListedRepo:
    """One repository of a list."""

    line: int
    """Its place in the list, from 1."""
    owner: str
    name: str
    tag: str | None
    """The label for beginners as the list spells it."""
    source: str
    technologies: tuple[str, ...] = ()
    description: str | None = None

    @property
    def full_name(self) -> str:
        """The name as listed."""
        return f"{self.owner}/{self.name}"

    @property
    def key(self) -> str:
        """The item's key; GitHub's names ignore case."""
        return self.full_name.lower()


@dataclass(frozen=True, slots=True)
class RepoList:
    """What a list holds, and what of it cannot be used."""

    entries: tuple[ListedRepo, ...]
    rejected: tuple[Rejected, ...] = ()
    notes: tuple[str, ...] = ()
    trouble: Transient | None = None
    """Why a part of the lists is missing."""


def read_awesome(data: bytes) -> list[ListedRepo | Rejected]:
    """Read `data.json` of awesome-for-beginners; an entry that cannot be used never spoils the rest."""
    try:
        document = msgspec.json.decode(data)
    except (msgspec.DecodeError, RecursionError) as error:
        raise Transient(f"the beginners' list is not JSON: {error}") from error
    listed = document.get("repositories") if isinstance(document, dict) else None
    if not isinstance(listed, list) or not listed:
        raise Transient("the beginners' list holds no repositories; the last good answer stays")
    return [_awesome_entry(line, each) for line, each in enumerate(listed[:ENTRIES_MAX], start=1)]


def read_configured(repositories: Sequence[tuple[str, str | None]]) -> list[ListedRepo | Rejected]:
    """Read the repositories named in the configuration, as (owner/name, label)."""
    return [
        _entry(line, f"https://github.com/{name}", label, CONFIGURED)
        for line, (name, label) in enumerate(repositories, start=1)
    ]


def collect(read: Iterable[ListedRepo | Rejected], trouble: Transient | None = None) -> RepoList:
    """Part the usable entries from the others; a repository counts once, where it is named first."""
    first: dict[str, ListedRepo] = {}
    rejected: list[Rejected] = []
    notes: list[str] = []
    for each in read:
        if isinstance(each, Rejected):
            rejected.append(each)
        elif (earlier := first.get(each.key)) is not None:
            rejected.append(Rejected(each.line, f"{each.full_name} is already listed in place {earlier.line}"))
        else:
            first[each.key] = each
            if each.tag is None:
                notes.append(f"{each.full_name} has no label")
    return RepoList(tuple(first.values()), tuple(rejected), tuple(notes), trouble)


def split_name(full_name: str) -> tuple[str, str] | None:
    """Return owner and name if both could be GitHub's."""
    owner, slash, name = full_name.partition("/")
    name = name.removesuffix(".git")
    possible = slash and _OWNER.fullmatch(owner) and _NAME.fullmatch(name) and name not in (".", "..")
    return (owner, name) if possible else None


def _awesome_entry(line: int, value: Any) -> ListedRepo | Rejected:
    if not isinstance(value, dict):
        return Rejected(line, "the entry is not an object")
    listed = value.get("technologies")
    technologies = tuple(t for t in listed if isinstance(t, str)) if isinstance(listed, list) else ()
    return _entry(line, value.get("link"), value.get("label"), AWESOME, technologies, value.get("description"))


def _entry(
    line: int, link: Any, label: Any, source: str, technologies: tuple[str, ...] = (), description: Any = None
) -> ListedRepo | Rejected:
    if not isinstance(link, str):
        return Rejected(line, "the entry has no link")
    match = _LINK.match(link.strip())
    if match is None:
        return Rejected(line, f"not a repository on GitHub: {link[:200]}")
    names = split_name(f"{match[1]}/{match[2]}")
    if names is None:
        return Rejected(line, f"no repository can have this name: {link[:200]}")
    tag = label.strip()[:100] if isinstance(label, str) and label.strip() else None
    about = description[:TEXT_CHARS_MAX] if isinstance(description, str) else None
    return ListedRepo(line, *names, tag, source, technologies, about)
