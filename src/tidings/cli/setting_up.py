"""Commands that set things up: init, token, notify; see `doctor` for what checks them."""

from __future__ import annotations

import secrets
from importlib import resources
from pathlib import Path
from typing import Annotated

import typer

from tidings.app import App
from tidings.cli import checking
from tidings.cli.help import Command, Group
from tidings.cli.output import end, fail, moment, say, show_json, show_table
from tidings.cli.shared import ConfigOption, JsonOption, opened_store, run_app, settings_from, wiring_of
from tidings.config import DEFAULT_FILE, Settings, pipeline_modules
from tidings.model.contracts import Receipt
from tidings.model.errors import SlowDown, TidingsError
from tidings.model.publication import Notice, NoticeField
from tidings.publish.embeds import message
from tidings.wiring import Wiring

PANEL = "Set up"
SCOPES = ("read", "ingest", "operate")
GENERAL = Notice(
    title="A sample notice from tidings",
    url="https://example.org/",
    text="If you can read this, the channel works. Real notices tell of what was found.",
    fields=(NoticeField("Sample", "yes"),),
)
"""Sent for a pipeline that brings no sample of its own."""


def add_to(app: typer.Typer) -> None:
    """Add these commands."""
    app.command(rich_help_panel=PANEL, cls=Command)(init)
    app.command(rich_help_panel=PANEL, cls=Command)(checking.doctor)
    token = typer.Typer(cls=Group, help="Tokens for the server's API and dashboard.", no_args_is_help=True)
    token.command("create", cls=Command)(create_token)
    token.command("list", cls=Command)(list_tokens)
    token.command("revoke", cls=Command)(revoke_token)
    app.add_typer(token, name="token", rich_help_panel=PANEL)
    notify = typer.Typer(cls=Group, help="Try the channels.", no_args_is_help=True)
    notify.command("test", cls=Command)(send_sample)
    notify.command("preview", cls=Command)(preview)
    app.add_typer(notify, name="notify", rich_help_panel=PANEL)


def init(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Where to write it.")] = Path(DEFAULT_FILE),
    force: Annotated[bool, typer.Option("--force", help="Overwrite an existing file.")] = False,
) -> None:
    """Write a commented configuration. Everything that needs no key is on, the rest ready to fill in."""
    text = resources.files("tidings.cli").joinpath("template.toml").read_text("utf-8")
    try:
        with file.open("w" if force else "x", encoding="utf-8") as opened:
            opened.write(text)
    except FileExistsError:
        fail(f"{file} exists already; --force overwrites it")
    except OSError as error:
        fail(f"{file} cannot be written: {error.strerror}")
    say(f"wrote {file}. Next:\n  tidings doctor   checks it and says what keys would add")
    say("  tidings run      starts; the dashboard is on http://127.0.0.1:8000")


def create_token(
    scope: Annotated[
        str, typer.Option(metavar="read|ingest|operate", help="What it may: read, also upload, or everything.")
    ],
    name: Annotated[str | None, typer.Option(help="What it is for; default its scope and a number.")] = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Make a token and print it, once. Only its hash is stored."""
    if scope not in SCOPES:
        fail(f"--scope {scope!r}: use one of {', '.join(SCOPES)}")
    with opened_store(config) as (store, _):
        taken = {token.name for token in store.ledgers.tokens() if token.revoked_at is None}
        name = name or f"{scope}-{secrets.token_hex(3)}"
        if name in taken:
            fail(f"there is a token {name!r} already; revoke it first, or choose another name")
        token = store.ledgers.create_token(name, scope)
    if as_json:
        show_json({"name": name, "scope": scope, "token": token})
        return
    typer.echo(token)
    typer.echo(f"This is the token {name!r}; it is shown only now. Send it as `Authorization: Bearer ...`.", err=True)


def list_tokens(config: ConfigOption = None, as_json: JsonOption = False) -> None:
    """List tokens by name and scope, never the tokens themselves."""
    with opened_store(config) as (store, _):
        tokens = store.ledgers.tokens()
    if as_json:
        show_json(tokens)
        return
    show_table(
        ("name", "scope", "created", "last used", "revoked"),
        [(t.name, t.scope, moment(t.created_at), moment(t.last_used_at), moment(t.revoked_at)) for t in tokens],
        empty="no tokens; `tidings token create --scope read` makes one",
    )


def revoke_token(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The token's name.")], config: ConfigOption = None
) -> None:
    """End every live token of a name."""
    with opened_store(config) as (store, _):
        if not store.ledgers.revoke(name):
            fail(f"there is no live token {name!r}; `tidings token list` shows them", 1)
    say(f"revoked {name}")


def send_sample(
    channel: Annotated[str, typer.Argument(metavar="CHANNEL", help="A configured channel.")],
    pipeline: Annotated[str | None, typer.Option(help="Whose sample to send.")] = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Send a sample to a channel. Prints what the service really answered."""
    settings, wiring = settings_from(config), wiring_of(config)
    if channel not in {spec.name for spec in wiring.channels}:
        known = ", ".join(spec.name for spec in wiring.channels) or "none"
        fail(f"there is no channel {channel!r}; configured: {known}")
    notice = sample_of(settings, pipeline or _routed_to(wiring, channel))

    async def use(app: App) -> Receipt:
        target = app.channels[channel]
        permit = await app.ledger.enter(
            target.rate, limit=target.limit, per_seconds=target.per_seconds, hold_seconds=target.hold_seconds
        )
        if permit.wait_ms:
            raise SlowDown(f"{channel} is at its rate; try again in {permit.wait_ms / 1000:.0f} s")
        waits = 0
        try:
            receipt = await target.notifier.send(notice, f"test-{secrets.token_hex(3)}")
            waits = receipt.not_before_ms
        finally:
            await app.ledger.leave(target.rate, permit.token, not_before_ms=waits)
        return receipt

    receipt = run_app(wiring, use)
    if as_json:
        show_json({"channel": channel, "message_id": receipt.message_id, "answer": receipt.answer})
        return
    say(f"{channel}: {receipt.answer}")


def preview(
    pipeline: Annotated[str | None, typer.Option(help="Whose sample to show.")] = None,
    channel: Annotated[str | None, typer.Option(help="As it would be sent to this channel.")] = None,
    config: ConfigOption = None,
) -> None:
    """Show what would be sent to Discord, as JSON. Nothing is sent, and no webhook is needed."""
    settings = settings_from(config)
    if channel is not None and channel not in settings.notifiers.discord:
        known = ", ".join(settings.notifiers.discord) or "none"
        fail(f"there is no Discord channel {channel!r}; configured: {known}")
    if pipeline is None:
        pipeline = next((r.pipeline for r in settings.routes if r.channel == channel), None)
    username = settings.notifiers.discord[channel].username if channel else None
    show_json(message(sample_of(settings, pipeline), "preview", username=username))


def sample_of(settings: Settings, name: str | None) -> Notice:
    """Return a pipeline's sample notice; without a name, the first one's that has one."""
    modules = pipeline_modules()
    if name is not None and name not in modules:
        fail(f"there is no pipeline {name!r}; known: {', '.join(modules)}")
    for known in [name] if name is not None else [*settings.pipelines, *modules]:
        try:
            declared = modules[known].build(settings.pipelines.get(known) or modules[known].Settings())
        except TidingsError as error:
            end(error)
        if declared.sample_notice is not None:
            return declared.sample_notice  # type: ignore[no-any-return]
    return GENERAL


def _routed_to(wiring: Wiring, channel: str) -> str | None:
    return next((route.pipeline for route in wiring.routes if route.channel == channel), None)
