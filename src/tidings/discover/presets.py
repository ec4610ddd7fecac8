"""Feeds of well-known services, by the address that people see in their browser."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import parse_qs, urlsplit

from tidings.model.errors import BadInput

_NAME = r"[A-Za-z0-9_.-]{1,100}"


@dataclass(frozen=True, slots=True)
class Preset:
    """A service whose public feeds can be told from the address of a page."""

    kind: str
    title: str
    feed_address: Callable[[str], str]
    """From the address that a person gives to the feed's; raises BadInput saying which addresses it knows."""


def _github_releases(address: str) -> str:
    parts = _segments(address)
    if urlsplit(address).hostname not in ("github.com", "www.github.com") or len(parts) < 2:
        raise _unknown("github-releases", address, "https://github.com/OWNER/REPOSITORY")
    return f"https://github.com/{parts[0]}/{parts[1].removesuffix('.git')}/releases.atom"


def _mastodon(address: str) -> str:
    parts, site = _segments(address), urlsplit(address)
    match parts:
        case [name] if re.fullmatch(rf"@{_NAME}", name):
            return f"{site.scheme}://{site.netloc}/{name.removesuffix('.rss')}.rss"
        case ["tags", tag]:
            return f"{site.scheme}://{site.netloc}/tags/{tag.removesuffix('.rss')}.rss"
    raise _unknown("mastodon", address, "https://SERVER/@NAME or https://SERVER/tags/TAG")


def _bluesky(address: str) -> str:
    match _segments(address):
        case ["profile", name, *_] if urlsplit(address).hostname == "bsky.app":
            return f"https://bsky.app/profile/{name}/rss"
    raise _unknown("bluesky", address, "https://bsky.app/profile/NAME")


def _youtube(address: str) -> str:
    site, parts = urlsplit(address), _segments(address)
    host = (site.hostname or "").removeprefix("www.").removeprefix("m.")
    playlist = parse_qs(site.query).get("list", [""])[0]
    if host == "youtube.com":
        if parts[:1] == ["feeds"]:
            return address
        if re.fullmatch(r"[\w-]{10,60}", playlist):
            return f"https://www.youtube.com/feeds/videos.xml?playlist_id={playlist}"
        if parts[:1] == ["channel"] and len(parts) > 1 and re.fullmatch(r"UC[\w-]{22}", parts[1]):
            return f"https://www.youtube.com/feeds/videos.xml?channel_id={parts[1]}"
        if parts and re.fullmatch(rf"@{_NAME}", parts[0]):
            # Only the channel's page knows its id; it announces the feed.
            return f"https://www.youtube.com/{parts[0]}"
    raise _unknown("youtube", address, "https://www.youtube.com/channel/ID, /@NAME or /playlist?list=ID")


def _reddit(address: str) -> str:
    host = (urlsplit(address).hostname or "").removeprefix("www.").removeprefix("old.")
    match _segments(address):
        case ["r" | "user" as what, name, *_] if host == "reddit.com" and re.fullmatch(_NAME, name):
            return f"https://www.reddit.com/{what}/{name}/.rss"
    raise _unknown("reddit", address, "https://www.reddit.com/r/NAME or /user/NAME")


def _segments(address: str) -> list[str]:
    return [part for part in urlsplit(address).path.split("/") if part]


def _unknown(kind: str, address: str, known: str) -> BadInput:
    return BadInput(f"address: {address[:200]} is none that `{kind}` knows; it knows {known}")


PRESETS = (
    Preset("github-releases", "Releases of a repository on GitHub", _github_releases),
    Preset("mastodon", "Posts of a Mastodon account or tag", _mastodon),
    Preset("bluesky", "Posts of a Bluesky account", _bluesky),
    Preset("youtube", "Videos of a YouTube channel or playlist", _youtube),
    Preset("reddit", "Posts of a subreddit or user of Reddit", _reddit),
)
