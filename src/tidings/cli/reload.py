"""`tidings reload`: lets running processes read their configuration again."""

from __future__ import annotations

from tidings.cli.options import ConfigOption
from tidings.cli.output import say
from tidings.cli.store import opened_store


def reload(config: ConfigOption = None) -> None:
    """Let running processes read their configuration again. A wrong one is refused here."""
    with opened_store(config) as (store, _):
        store.reloads.ask()
    say("asked: every running process reads its configuration within seconds, and goes on as it was if that is wrong")
