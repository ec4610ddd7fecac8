"""Notifiers: each is a module that knows one service, found by its entry point in the group `tidings.notifiers`.

Such a module has:

- `Settings`, a `ChannelSettings`: what may stand in `[notifiers.<kind>.<name>]`. A field `SecretStr | None` comes from
  the environment and must be set before the channel can be used; a secret that may be missing defaults to "".
- `build(settings, name, fetcher, loopback)`: the `Notifier` of one channel. A notifier whose channels share a rate at
  the service names that rate in its attribute `limiter`; one that may send less than 30 in a minute says so in
  `per_minute`.
- `async check(notifier)`: what the service says of the channel without a message being sent, or a raised error.
- `preview(settings, notice)`: the message as it would be sent; the secrets may be missing.
- `endpoints(settings, name, loopback)`, if `fetcher` is used: the addresses it may call. It runs before anything is
  opened and raises `Misconfigured` for settings that cannot work.

`loopback` holds the addresses on this machine that the operator allowed, as (host, port); for stand-ins and tests.
"""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict

from tidings.publish.texts import TextSettings


class ChannelSettings(BaseModel):
    """What every channel can be told, whatever carries its notices."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True, allow_inf_nan=False)

    policy: Literal["at-least-once", "at-most-once"] = "at-least-once"
    """When nobody knows whether a message was posted: send it again, or leave it to a person."""
    alerts: bool = False
    """Send alerts about tidings' own health here too."""
    texts: TextSettings = TextSettings()
    """The words of the notices that are sent here."""
