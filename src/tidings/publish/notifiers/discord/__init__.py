"""Notices to a Discord channel, by its webhook."""

from __future__ import annotations

from typing import Any

from pydantic import Field, SecretStr

from tidings.model.contracts import Fetcher
from tidings.model.publication import Notice
from tidings.publish.notifiers import ChannelSettings
from tidings.publish.notifiers.discord.embeds import message
from tidings.publish.notifiers.discord.webhook import HOSTS, Discord, checked_username, parsed_webhook


class Settings(ChannelSettings):
    """A Discord channel, by its webhook."""

    webhook_url: SecretStr | None = Field(default=None, title="address")
    """Only by environment or file: TIDINGS_NOTIFIERS__DISCORD__<NAME>__WEBHOOK_URL."""
    username: str | None = None
    """The name shown as the sender."""


def endpoints(settings: Settings, name: str, loopback: frozenset[tuple[str, int]]) -> tuple[str, ...]:
    """Return Discord's origin; refuse an address that cannot be a webhook's, and a name Discord would refuse."""
    checked_username(settings.username, name)
    return (parsed_webhook(_address(settings), name, _hosts(loopback)).origin,)


def build(settings: Settings, name: str, fetcher: Fetcher, loopback: frozenset[tuple[str, int]]) -> Discord:
    """Return the notifier of one webhook."""
    return Discord(_address(settings), name, fetcher, hosts=_hosts(loopback), username=settings.username)


async def check(notifier: Discord) -> str:
    """Ask Discord about the webhook; nothing is posted."""
    return await notifier.check()


def preview(settings: Settings, notice: Notice) -> dict[str, Any]:
    """Return the body of the webhook call."""
    return message(notice, "preview", username=settings.username)


def _address(settings: Settings) -> str:
    return settings.webhook_url.get_secret_value() if settings.webhook_url else ""


def _hosts(loopback: frozenset[tuple[str, int]]) -> frozenset[str]:
    """Return the hosts a webhook may have: Discord's own, and stand-ins on this machine."""
    return HOSTS | {host for host, _ in loopback}
