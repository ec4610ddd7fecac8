"""`tidings token`: the tokens of the server's API and dashboard."""

from __future__ import annotations

import re
import secrets
from typing import Annotated

import typer

from tidings.cli.help import Command, Group
from tidings.cli.options import ConfigOption, JsonOption
from tidings.cli.output import fail, moment, say, show_json, show_table
from tidings.cli.store import opened_store

SCOPES = ("read", "reader", "ingest", "operate")
READER = re.compile(r"[\w.-]{1,60}", re.ASCII)

token = typer.Typer(name="token", cls=Group, help="Tokens for the server's API and dashboard.", no_args_is_help=True)


@token.command("create", cls=Command)
def create_token(
    scope: Annotated[
        str,
        typer.Option(
            metavar="read|reader|ingest|operate",
            help="What it may: read; also mark as read and star; also upload; everything.",
        ),
    ],
    name: Annotated[str | None, typer.Option(help="What it is for; default its scope and a number.")] = None,
    reader: Annotated[
        str | None, typer.Option(help="Whose marks it gives: a person with read marks and stars of their own.")
    ] = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Make a token and print it, once. Only its hash is stored."""
    if scope not in SCOPES:
        fail(f"--scope {scope!r}: use one of {', '.join(SCOPES)}")
    if reader is not None and not READER.fullmatch(reader):
        fail(f"--reader {reader!r}: use up to 60 letters, digits, dots, dashes and underscores")
    with opened_store(config) as (store, _):
        taken = {each.name for each in store.tokens.list() if each.revoked_at is None}
        name = name or f"{scope}-{secrets.token_hex(3)}"
        if name in taken:
            fail(f"there is a token {name!r} already; revoke it first, or choose another name")
        secret = store.tokens.create(name, scope, reader)
    if as_json:
        show_json({"name": name, "scope": scope, "token": secret})
        return
    typer.echo(secret)
    typer.echo(f"This is the token {name!r}; it is shown only now. Send it as `Authorization: Bearer ...`.", err=True)


@token.command("list", cls=Command)
def list_tokens(config: ConfigOption = None, as_json: JsonOption = False) -> None:
    """List tokens by name and scope, never the tokens themselves."""
    with opened_store(config, reads=True) as (store, _):
        tokens = store.tokens.list()
    if as_json:
        show_json(tokens)
        return
    show_table(
        ("name", "scope", "created", "last used", "revoked"),
        [(t.name, t.scope, moment(t.created_at), moment(t.last_used_at), moment(t.revoked_at)) for t in tokens],
        empty="no tokens; `tidings token create --scope read` makes one",
    )


@token.command("revoke", cls=Command)
def revoke_token(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The token's name.")], config: ConfigOption = None
) -> None:
    """End every live token of a name."""
    with opened_store(config) as (store, _):
        if not store.tokens.revoke(name):
            fail(f"there is no live token {name!r}; `tidings token list` shows them", 1)
    say(f"revoked {name}")
