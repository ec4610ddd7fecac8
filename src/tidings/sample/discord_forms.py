"""The forms Discord accepts: every documented length, and the answer it gives when one is exceeded."""

from __future__ import annotations

import json
import re
from datetime import datetime
from typing import Any

CONTENT_MAX = 2000
EMBEDS_MAX = 10
TOTAL_MAX = 6000
FIELDS_MAX = 25
URL_MAX = 2048
TEXTS = {"title": 256, "description": 4096}
_URL = re.compile(r"https?://[A-Za-z0-9._-]+(?::\d{1,5})?(?:[/?#][\x21-\x7e]*)?")


class Refusal(Exception):
    """A form Discord does not take, with its answer."""

    def __init__(self, path: str, code: str, message: str) -> None:
        super().__init__(f"{path}: {message}")
        tree: dict[str, Any] = {"_errors": [{"code": code, "message": message}]}
        for name in reversed(path.split(".")):
            tree = {name: tree}
        self.body: dict[str, Any] = {"message": "Invalid Form Body", "code": 50035, "errors": tree}
        self.unversioned: dict[str, Any] = {"embeds": ["0"]} if path.startswith("embeds") else {path: [message]}


class Empty(Refusal):
    """A message without anything to show."""

    def __init__(self) -> None:
        super().__init__("content", "", "")
        self.body = self.unversioned = {"message": "Cannot send an empty message", "code": 50006}


class Blocked(Refusal):
    """A message one of Discord's filters stops."""

    def __init__(self) -> None:
        super().__init__("content", "", "")
        self.body = self.unversioned = {"message": "Message blocked by harmful links filter", "code": 240000}


def check_message(body: bytes, content_type: str) -> dict[str, Any]:
    """Return the message, or raise the Refusal Discord would answer with."""
    if not content_type.startswith("application/json"):
        raise Refusal("content_type", "CONTENT_TYPE_INVALID", 'Expected "Content-Type" header to be application/json')
    try:
        message = json.loads(body.decode("utf-8"))
        body.decode("utf-8").encode("utf-8")
    except (ValueError, UnicodeError):
        raise Refusal("body", "INVALID_JSON", "The request body contains invalid JSON.") from None
    if not isinstance(message, dict):
        raise Refusal("body", "DICT_TYPE_CONVERT", "Only dictionaries may be used in a DictType")
    _text(message, "content", "content", CONTENT_MAX)
    _username(message)
    embeds = message.get("embeds") or []
    if len(embeds) > EMBEDS_MAX:
        raise Refusal("embeds", "BASE_TYPE_BAD_LENGTH", f"Must be {EMBEDS_MAX} or fewer in length.")
    total = sum(_embed(embed, f"embeds.{number}") for number, embed in enumerate(embeds))
    if total > TOTAL_MAX:
        raise Refusal("embeds", "MAX_EMBED_SIZE_EXCEEDED", f"Embed size exceeds maximum size of {TOTAL_MAX}")
    if not embeds and not (message.get("content") or "").strip():
        raise Empty
    return message


def length(text: str) -> int:
    """Count as strictly as Discord might: UTF-16 units, outer blanks trimmed."""
    return len(text.strip().encode("utf-16-le", "surrogatepass")) // 2


def _embed(embed: dict[str, Any], path: str) -> int:
    """Check one embed and return what it counts towards the total."""
    total = sum(_text(embed, name, f"{path}.{name}", limit) for name, limit in TEXTS.items())
    total += _text(embed.get("footer") or {}, "text", f"{path}.footer.text", 2048)
    total += _text(embed.get("author") or {}, "name", f"{path}.author.name", 256)
    total += _fields(embed.get("fields") or [], path)
    _url(embed, "url", f"{path}.url")
    for part in ("image", "thumbnail", "author"):
        _url(embed.get(part) or {}, "url", f"{path}.{part}.url")
    color = embed.get("color")
    if color is not None and not (isinstance(color, int) and 0 <= color <= 0xFFFFFF):
        raise Refusal(f"{path}.color", "NUMBER_TYPE_MAX", "int value should be less than or equal to 16777215.")
    _timestamp(embed.get("timestamp"), f"{path}.timestamp")
    if not total:
        raise Empty
    return total


def _fields(fields: list[dict[str, Any]], path: str) -> int:
    if len(fields) > FIELDS_MAX:
        raise Refusal(f"{path}.fields", "BASE_TYPE_BAD_LENGTH", f"Must be {FIELDS_MAX} or fewer in length.")
    total = 0
    for number, field in enumerate(fields):
        for name, limit in (("name", 256), ("value", 1024)):
            where = f"{path}.fields.{number}.{name}"
            size = _text(field, name, where, limit)
            if not size:
                raise Refusal(where, "BASE_TYPE_REQUIRED", "This field is required")
            total += size
    return total


def _text(holder: dict[str, Any], name: str, path: str, limit: int) -> int:
    text = holder.get(name)
    if text is None:
        return 0
    if not isinstance(text, str):
        raise Refusal(path, "STRING_TYPE_CONVERT", f'Could not interpret "{text}" as string.')
    size = length(text)
    if size > limit:
        raise Refusal(path, "BASE_TYPE_MAX_LENGTH", f"Must be {limit} or fewer in length.")
    return size


def _url(holder: dict[str, Any], name: str, path: str) -> None:
    url = holder.get(name)
    if url is None:
        return
    if not isinstance(url, str) or len(url) > URL_MAX or not _URL.fullmatch(url):
        raise Refusal(path, "URL_TYPE_INVALID_URL", "Not a well formed URL.")


def _timestamp(timestamp: Any, path: str) -> None:
    if timestamp is None:
        return
    try:
        datetime.fromisoformat(timestamp)
    except (TypeError, ValueError):
        said = f"Could not parse {timestamp}. Should be ISO8601."
        raise Refusal(path, "DATE_TIME_TYPE_PARSE", said) from None


def _username(message: dict[str, Any]) -> None:
    name = message.get("username")
    if name is None:
        return
    if not 1 <= length(name) <= 80:
        raise Refusal("username", "BASE_TYPE_BAD_LENGTH", "Must be between 1 and 80 in length.")
    if re.search("discord|clyde", name, re.IGNORECASE):
        raise Refusal("username", "USERNAME_INVALID_CONTAINS", 'Username cannot contain "discord"')
