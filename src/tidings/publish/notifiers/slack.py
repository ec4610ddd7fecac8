"""Posts notices to Slack, or to a chat that takes Slack's messages, by an incoming webhook."""

from __future__ import annotations

from typing import Any

from pydantic import Field, SecretStr

from tidings.model.contracts import Fetcher, Receipt
from tidings.model.errors import Misconfigured, TidingsError
from tidings.model.publication import Notice
from tidings.model.urls import link_address
from tidings.model.web import Response
from tidings.publish.notifiers import ChannelSettings
from tidings.publish.service import Service, origin, secret_value
from tidings.publish.wording import facts, fit, one_line, units

TITLE_MAX = 250
SECTION_MAX = 3000
FIELDS_MAX = 10
URL_MAX = 2000
PRODUCT = "tidings"

DISABLED = frozenset(
    {
        "action_prohibited", "channel_is_archived", "channel_not_found", "invalid_token", "no_active_hooks",
        "no_service", "no_service_id", "no_team", "posting_to_general_channel_denied", "team_disabled",
        "token_revoked", "user_not_found",
    }
)  # fmt: skip
"""What Slack answers where a webhook will take nothing until a person acts, whatever the status."""

_ESCAPED = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})


class Settings(ChannelSettings):
    """A Slack channel, or one of a chat that takes Slack's messages, by its incoming webhook."""

    url: SecretStr | None = Field(default=None, title="address")
    """Only by environment or file: TIDINGS_NOTIFIERS__SLACK__<NAME>__URL."""


def endpoints(settings: Settings, name: str, loopback: frozenset[tuple[str, int]]) -> tuple[str, ...]:  # noqa: ARG001  # the web client knows them
    """Return the webhook's origin; refuse what is no address."""
    return (origin(secret_value(settings.url), f"slack:{name}"),)


def build(settings: Settings, name: str, fetcher: Fetcher, loopback: frozenset[tuple[str, int]]) -> Slack:  # noqa: ARG001
    """Return the notifier of one webhook."""
    return Slack(secret_value(settings.url), name, fetcher)


async def check(notifier: Slack) -> str:
    """Ask with a message that must be refused, because it is empty: Slack has no other question."""
    return await notifier.check()


def preview(settings: Settings, notice: Notice) -> dict[str, Any]:  # noqa: ARG001  # it looks the same everywhere
    """Return the body of the request."""
    return message(notice, "preview")


class Slack:
    """The notifier of one incoming webhook."""

    def __init__(self, url: str, name: str, fetcher: Fetcher) -> None:
        self.name = name
        self._url = url
        self._service = Service(f"slack:{name}", fetcher, (url,))

    def __repr__(self) -> str:
        return f"Slack({self._service.who})"

    async def send(self, notice: Notice, delivery_id: str) -> Receipt:
        """Post one message. Slack tells no id of it."""
        response = await self._service.call("POST", self._url, json=self.render(notice, delivery_id))
        if response.status == 200 and _words(response) == "ok":
            return Receipt(None, "200 ok")
        raise self._failure(response)

    def render(self, notice: Notice, delivery_id: str) -> dict[str, Any]:
        """Return the message as it would be posted."""
        return message(notice, delivery_id)

    async def check(self) -> str:
        """Tell whether the webhook is there."""
        response = await self._service.call("POST", self._url, json={"text": ""})
        if response.status == 400 and _words(response) not in DISABLED:
            return "the webhook is there: it refuses an empty message"
        if response.status == 200:
            raise Misconfigured(f"{self._service.who} took an empty message: this is no incoming webhook of Slack")
        raise self._failure(response)

    def _failure(self, response: Response) -> TidingsError:
        words = _words(response)
        if words in DISABLED:
            return self._service.disabled(f"answered {response.status}: {words}")
        return self._service.failure(response, words)


def message(notice: Notice, delivery_id: str) -> dict[str, Any]:
    """Draw a notice as blocks, with a plain line for notifications. Nobody is mentioned and no link unfolds."""
    title = one_line(notice.title, TITLE_MAX) or "Untitled"
    address = link_address(notice.url)
    heading = f"*{escape(title)}*"
    if address is not None and len(address) <= URL_MAX:
        # A bar would end the address, and a closing bracket the link.
        place = escape(address.replace("|", "%7C").replace("<", "%3C").replace(">", "%3E"))
        linked = f"*<{place}|{escape(title)}>*"
        heading = linked if units(linked) <= SECTION_MAX else heading
    blocks: list[dict[str, Any]] = [{"type": "section", "text": _markdown(heading)}]
    if text := cut_escaped(notice.text, SECTION_MAX):
        blocks.append({"type": "section", "text": _markdown(text)})
    fields = [_markdown(f"*{cut_escaped(name, 500)}*\n{cut_escaped(value, 1400)}") for name, value in facts(notice)]
    if fields:
        blocks.append({"type": "section", "fields": fields[:FIELDS_MAX]})
    blocks.append(
        {
            "type": "context",
            "elements": [_markdown(f"{cut_escaped(notice.footer, 300) or PRODUCT} • {escape(delivery_id)}")],
        }
    )
    return {"text": escape(title), "blocks": blocks, "unfurl_links": False, "unfurl_media": False}


def escape(text: str) -> str:
    """Escape the three characters by which Slack's markup begins; without them there is no mention and no link."""
    return text.translate(_ESCAPED)


def cut_escaped(text: str, limit: int) -> str:
    """Return plain text cut so that it fits once it is escaped."""
    plain = fit(text, limit, markdown=False)
    room = limit
    while units(escape(plain)) > limit:
        room = room * 3 // 4
        plain = fit(text, room, markdown=False)
    return escape(plain)


def _markdown(text: str) -> dict[str, Any]:
    # Verbatim: Slack looks for no names of people and channels in it.
    return {"type": "mrkdwn", "text": text, "verbatim": True}


def _words(response: Response) -> str:
    """Return the short text that Slack answers with."""
    return response.body[:200].decode(errors="replace").strip()
