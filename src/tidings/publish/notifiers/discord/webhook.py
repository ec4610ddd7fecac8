"""Carries notices to one Discord webhook, and tells apart what was done, what was not, and what nobody knows.

The webhook's address is the credential. It is rewritten to API v10, whose waits are in seconds, and appears in no
message, log line or `repr`: operators read `discord:<name>`.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from typing import Any

import msgspec

from tidings.model.backoff import RETRY_AFTER_SECONDS_MAX
from tidings.model.contracts import Fetcher, Receipt
from tidings.model.errors import Ambiguous, Misconfigured, Permanent, SlowDown, TidingsError
from tidings.model.publication import Notice
from tidings.model.web import Response
from tidings.publish.notifiers.discord.embeds import message

API_VERSION = "v10"
HOSTS = frozenset({"discord.com", "discordapp.com", "ptb.discord.com", "canary.discord.com"})
WAIT_SECONDS_UNSTATED = 60.0
CLOUDFLARE_WAIT_SECONDS = 900.0
"""Bans by Cloudflare last up to an hour, and requests made meanwhile may lengthen them."""
BLOCKED_BY_CLOUDFLARE = 40333
"""Discord's code for a request that Cloudflare refused."""
ANSWER_CHARS_MAX = 300

_WEBHOOK = re.compile(
    r"(?P<scheme>https?)://(?P<host>[A-Za-z0-9.-]+)(?P<port>:\d{1,5})?/api(?:/v\d{1,2})?/webhooks/"
    r"(?P<id>\d{1,25})/(?P<token>[A-Za-z0-9_-]{1,200})/?(?:\?thread_id=(?P<thread>\d{1,25}))?"
)
_NEEDS_A_PERSON = {
    401: "the webhook's token is wrong",
    403: "Discord forbids this webhook",
    404: "the webhook was deleted",
    410: "the webhook is gone",
}


@dataclass(frozen=True, slots=True)
class Webhook:
    """A webhook's address in its parts."""

    origin: str
    """What the web client must be allowed to call; holds no secret."""
    id: str
    token: str = field(repr=False)
    thread: str | None


class Discord:
    """The notifier of one webhook. `name` is what operators call the channel."""

    def __init__(
        self,
        webhook_url: str,
        name: str,
        fetcher: Fetcher,
        *,
        hosts: frozenset[str] = HOSTS,
        username: str | None = None,
        timeout_seconds: float = 20.0,
    ) -> None:
        webhook = parsed_webhook(webhook_url, name, hosts)
        self.name = name
        self.origin = webhook.origin
        self.limiter = f"discord:{webhook.id}"
        """The name of the rate every worker shares: two channels on one webhook share it too."""
        self._url = f"{webhook.origin}/api/{API_VERSION}/webhooks/{webhook.id}/{webhook.token}"
        self._token = webhook.token
        self._params = {"wait": "true", **({"thread_id": webhook.thread} if webhook.thread else {})}
        self._fetcher = fetcher
        self._username = checked_username(username, name)
        self._timeout_seconds = timeout_seconds

    def __repr__(self) -> str:
        return f"Discord({self._who})"

    async def send(self, notice: Notice, delivery_id: str) -> Receipt:
        """Post one message and keep its id; raise the error that says what to do otherwise."""
        body = self.render(notice, delivery_id)
        response = await self._call("POST", json=body, params=self._params)
        if response.status == 200:
            return self._receipt(response)
        raise self._failure(response)

    def render(self, notice: Notice, delivery_id: str) -> dict[str, Any]:
        """Return the message as it would be posted."""
        return message(notice, delivery_id, username=self._username)

    async def check(self) -> str:
        """Ask Discord about the webhook without posting; return what it is called, or raise what is wrong."""
        response = await self._call("GET")
        if response.status != 200:
            raise self._failure(response)
        found = _json_object(response)
        return f"webhook {found.get('name')!r} in channel {found.get('channel_id')}"

    @property
    def _who(self) -> str:
        return f"discord:{self.name}"

    async def _call(self, method: str, **request: Any) -> Response:
        try:
            return await self._fetcher.call(method, self._url, timeout_seconds=self._timeout_seconds, **request)
        except TidingsError as error:
            # The cause is dropped on purpose: whatever it says may repeat the address.
            raise type(error)(f"{self._who}: {self._masked(str(error))}") from None

    def _masked(self, text: str) -> str:
        return text.replace(self._token, "***")[:ANSWER_CHARS_MAX]

    def _receipt(self, response: Response) -> Receipt:
        stored = _json_object(response)
        message_id = stored.get("id")
        if not isinstance(message_id, str) or not message_id:
            raise Ambiguous(f"{self._who} answered 200 with a reply that cannot be read; the message may be posted")
        parts = [f"200 OK, message {message_id}"]
        parts += [f"channel {stored['channel_id']}"] if "channel_id" in stored else []
        parts += [f"at {stored['timestamp']}"] if "timestamp" in stored else []
        parts += _rate_left(response)
        return Receipt(message_id, self._masked(", ".join(parts)), not_before_ms=_not_before_ms(response))

    def _failure(self, response: Response) -> TidingsError:
        """Say what a status other than 200 means."""
        status = response.status
        reply = _json_object(response)
        if status == 429 or (status == 403 and _is_from_cloudflare(reply)):
            return self._slow_down(response, reply)
        if status in _NEEDS_A_PERSON:
            reason = self._masked(f"{_NEEDS_A_PERSON[status]} ({_reason(reply)})")
            return Misconfigured(f"{self._who} answered {status}: {reason}; set a working webhook, then resume it")
        # A gateway may answer for Discord after the message was stored; a 2xx other than 200 was not asked for.
        if status >= 500 or status < 300 or status == 408:
            return Ambiguous(f"{self._who} answered {status}; the message may or may not be posted")
        if 300 <= status < 400:
            return Misconfigured(f"{self._who} answered {status}, a redirect; copy the webhook's address again")
        reasons = "; ".join([_reason(reply), *_form_errors(reply.get("errors"))[:5]])
        return Permanent(self._masked(f"{self._who} refused the message with {status}: {reasons}"))

    def _slow_down(self, response: Response, reply: dict[str, Any]) -> SlowDown:
        # The body is in fractions of a second and counts first; the header is rounded up, and Cloudflare sends only
        # that.
        stated = (reply.get("retry_after"), response.headers.get("retry-after"))
        waits = [seconds for seconds in map(_seconds, stated) if seconds is not None]
        if _is_from_cloudflare(reply):
            wait = waits[0] if waits else CLOUDFLARE_WAIT_SECONDS
            reason = f"Cloudflare keeps this machine away from Discord for now ({response.status})"
            return SlowDown(f"{self._who}: {reason}; waiting {wait:g} s", retry_after_seconds=wait)
        wait = waits[0] if waits else WAIT_SECONDS_UNSTATED
        scope = "global" if reply.get("global") is True else response.headers.get("x-ratelimit-scope", "unnamed")
        return SlowDown(f"{self._who} asked us to wait {wait:g} s (429, {scope[:20]} limit)", retry_after_seconds=wait)


def parsed_webhook(webhook_url: str, name: str, hosts: frozenset[str]) -> Webhook:
    """Read an address; refuse what cannot be a webhook on one of these hosts, without repeating it."""
    match = _WEBHOOK.fullmatch(webhook_url.strip())
    if match is None:
        raise Misconfigured(
            f"discord:{name}: the webhook's address must look like https://discord.com/api/webhooks/<id>/<token>"
        )
    host = match["host"].lower()
    if host not in hosts or (match["scheme"] == "http" and host in HOSTS):
        raise Misconfigured(f"discord:{name}: the webhook's address is not an https address on discord.com")
    # The old and trial hosts answer too, but only discord.com is documented.
    origin = f"{match['scheme']}://{'discord.com' if host in HOSTS else host}{match['port'] or ''}"
    return Webhook(origin, match["id"], match["token"], match["thread"])


def checked_username(username: str | None, name: str) -> str | None:
    """Return the sender's name as Discord takes it, or refuse it."""
    if username is None:
        return None
    if not 1 <= len(username.strip()) <= 80 or re.search("discord|clyde", username, re.IGNORECASE):
        raise Misconfigured(f"discord:{name}: username must have 1 to 80 characters and not contain discord or clyde")
    return username.strip()


def _json_object(response: Response) -> dict[str, Any]:
    """Proxies answer in HTML: that is an empty object here."""
    try:
        found = msgspec.json.decode(response.body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _is_from_cloudflare(reply: dict[str, Any]) -> bool:
    """Tell whether Cloudflare answered in Discord's place: a page, a line such as `error code: 1015`, its own JSON.

    Such an answer says nothing of the webhook: this machine's address was too busy, or shares it with others that were.
    """
    return "message" not in reply or reply.get("code") == BLOCKED_BY_CLOUDFLARE


def _reason(reply: dict[str, Any]) -> str:
    if "message" not in reply:
        return "no reason given"
    code = f", code {reply['code']}" if reply.get("code") else ""
    return f"{reply['message']}{code}"


def _form_errors(errors: Any, path: str = "") -> list[str]:
    """Flatten Discord's tree of form errors to lines of path and message."""
    if not isinstance(errors, dict) or path.count(".") > 8:
        return []
    found = [f"{path}: {each.get('message')}" for each in errors.get("_errors", []) if isinstance(each, dict)]
    for name, inner in errors.items():
        if name != "_errors":
            found += _form_errors(inner, f"{path}.{name}" if path else str(name))
    return found


def _seconds(value: Any) -> float | None:
    try:
        seconds = float(value)
    except (TypeError, ValueError):
        return None
    return min(seconds, RETRY_AFTER_SECONDS_MAX) if math.isfinite(seconds) and seconds >= 0 else None


def _not_before_ms(response: Response) -> int:
    """How long the headers ask us to wait: until the bucket refills, once it is empty."""
    reset_after = _seconds(response.headers.get("x-ratelimit-reset-after"))
    if reset_after is None or response.headers.get("x-ratelimit-remaining", "").strip() != "0":
        return 0
    return math.ceil(reset_after * 1000)


def _rate_left(response: Response) -> list[str]:
    left, limit = (response.headers.get(f"x-ratelimit-{part}") for part in ("remaining", "limit"))
    return [f"{left} of {limit} requests left"] if left and limit else []
