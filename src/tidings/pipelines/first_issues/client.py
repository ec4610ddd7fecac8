"""Asks GitHub's REST API: conditional requests, pages, and every answer told apart."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import msgspec

from tidings.model.contracts import Kit
from tidings.model.errors import Misconfigured, Permanent, Transient
from tidings.model.harmless import storable
from tidings.model.web import Response
from tidings.net.client import retry_after_seconds
from tidings.pipelines.first_issues.quota import CallGate, Purpose

PER_PAGE = "100"
CALL_SECONDS = 20.0
MOVED = frozenset({301, 302, 307, 308})
OUT_OF_REACH = frozenset({404, 410, 451})
_LINK = re.compile(r'<([^>]*)>\s*;[^,]*?\brel="?([a-z]+)"?')


class GitHubClient:
    """The few reads we need. Statuses that mean something about a thing are returned, everything else is raised."""

    def __init__(self, *, base_url: str, token: str | None, daily_calls: int) -> None:
        self._base_url = base_url.rstrip("/")
        self._headers = {"accept": "application/vnd.github+json", "x-github-api-version": "2022-11-28"}
        if token:
            self._headers["authorization"] = f"Bearer {token}"
        self.pace = CallGate(daily_calls=daily_calls)

    async def get(
        self,
        kit: Kit,
        path: str,
        params: Mapping[str, str] | None = None,
        *,
        purpose: Purpose = "work",
        conditional: bool = True,
    ) -> Response:
        """Ask once. Return success, a redirect, or an answer that says the thing is out of reach."""
        now_ms = await self.pace.admit(kit, purpose)
        response: Response | None = None
        try:
            response = await kit.fetcher.call(
                "GET",
                self.address(path),
                headers=self._headers,
                params=params,
                timeout_seconds=CALL_SECONDS,
                conditional=conditional,
            )
        finally:
            await self.pace.done(kit, response, now_ms)
        await self.pace.obey(kit, response)
        if response.status == 200 or response.status in MOVED or response.status in OUT_OF_REACH:
            return response
        raise failure(response, path, now_ms)

    async def pages(
        self, kit: Kit, path: str, params: Mapping[str, str], *, pages_max: int, conditional: bool = True
    ) -> tuple[list[Any], bool, Response]:
        """Read a list to its end or to `pages_max`; return it, whether more is left, and the last answer.

        An answer other than success ends the list; the caller looks at its status.
        """
        entries: list[Any] = []
        response = await self.get(kit, path, {**params, "per_page": PER_PAGE}, conditional=conditional)
        for page in range(1, pages_max + 1):
            if response.status != 200:
                return entries, False, response
            entries.extend(json_list(response, path))
            following = links(response.headers).get("next")
            if following is None:
                return entries, False, response
            if page < pages_max:
                # The address is followed as given, it names the repository by number.
                response = await self.get(kit, following, conditional=conditional)
        return entries, True, response

    def address(self, path: str) -> str:
        """Return where to ask for a path, or for an address GitHub gave us.

        What GitHub links to is asked at the configured host whatever host it names: our token goes nowhere else.
        """
        if not path.startswith(("https://", "http://")):
            return self._base_url + path
        ours, theirs = urlsplit(self._base_url), urlsplit(path)
        return urlunsplit((ours.scheme, ours.netloc, theirs.path, theirs.query, ""))


def failure(response: Response, path: str, now_ms: int) -> Exception:
    """Say what an answer that is neither success nor a state of the thing asks of us."""
    what = f"GitHub answered {response.status} for {path.partition('?')[0]}"
    reason = message(response)
    if response.status == 401:
        return Misconfigured(f"{what}: {reason or 'bad credentials'}; check pipelines.first_issues.token")
    if response.status >= 500 or response.status in (408, 425):
        return Transient(
            f"{what}; it may recover", retry_after_seconds=retry_after_seconds(response.headers, now_ms / 1000)
        )
    return Permanent(f"{what}: {reason or 'no reason given'}", status=response.status)


def message(response: Response) -> str:
    """Return GitHub's own words on an answer, cut short; errors may be HTML."""
    try:
        answer = msgspec.json.decode(response.body)
    except msgspec.MsgspecError:
        return ""
    text = answer.get("message") if isinstance(answer, dict) else None
    return text[:200] if isinstance(text, str) else ""


def block_reason(response: Response) -> str:
    """Say why a repository is out of reach."""
    try:
        block = msgspec.json.decode(response.body).get("block") or {}
        reason = block.get("reason")
    except (msgspec.MsgspecError, AttributeError):
        reason = None
    words = message(response) or {404: "Not Found", 410: "Gone", 451: "Repository access blocked"}[response.status]
    return f"{words} ({reason})" if isinstance(reason, str) else words


def json_object(response: Response, what: str) -> dict[str, Any]:
    """Read an object, or raise Transient: a proxy's page posing as success heals by itself."""
    value = _json(response, what)
    if not isinstance(value, dict):
        raise Transient(f"GitHub's answer for {what} is not an object")
    return value


def json_list(response: Response, what: str) -> list[Any]:
    """Read a list of objects, or raise Transient."""
    value = _json(response, what)
    if not isinstance(value, list):
        raise Transient(f"GitHub's answer for {what} is not a list")
    return [each for each in value if isinstance(each, dict)]


def _json(response: Response, what: str) -> Any:
    try:
        return msgspec.json.decode(response.body)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise Transient(f"GitHub's answer for {what.partition('?')[0]} is not JSON") from error


def links(headers: Mapping[str, str]) -> dict[str, str]:
    """Read the Link header: relation -> address."""
    return {relation: address for address, relation in _LINK.findall(headers.get("link", ""))}


def readme_text(response: Response, chars_max: int) -> str:
    """Read the README out of its envelope; what cannot be read counts as empty."""
    try:
        envelope = msgspec.json.decode(response.body)
        if not isinstance(envelope, dict) or envelope.get("encoding") != "base64":
            return ""
        text = base64.b64decode(envelope.get("content") or "").decode("utf-8", "replace")
        return storable(text)[:chars_max]
    except (msgspec.MsgspecError, binascii.Error, TypeError):
        return ""


def label_names(labels: Any) -> list[str]:
    """Read an issue's labels; the schema allows objects and plain strings."""
    if not isinstance(labels, list):
        return []
    names = [each.get("name") if isinstance(each, dict) else each for each in labels]
    return [name for name in names if isinstance(name, str)]


def assignees_of(data: Any) -> list[str]:
    """Read who is assigned, from the list or the older single field."""
    listed = data.get("assignees")
    people = listed if isinstance(listed, list) and listed else [data.get("assignee")]
    return sorted(login for each in people if isinstance(each, dict) and (login := text_of(each, "login")))


def is_pull_request(data: Any) -> bool:
    """Tell a pull request from an issue; old answers carry the key on both, with null addresses."""
    pull_request = data.get("pull_request")
    return isinstance(pull_request, dict) and any(pull_request.get(name) for name in ("url", "html_url"))


def text_of(data: Any, name: str) -> str | None:
    """Return a field if it holds text."""
    value = data.get(name)
    return storable(value) or None if isinstance(value, str) else None


def number_of(data: Any, name: str) -> int:
    """Return a field if it holds a whole number of at least 0, else 0."""
    value = data.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**63 else 0
