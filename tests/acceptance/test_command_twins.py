"""Every command the dashboard shows beside a button is one that the command line takes."""

from __future__ import annotations

import html
import re
import shlex
from typing import Any

import typer.main
from tests.unit.serve.asgi import Client
from tests.unit.serve.world import World, a_world

from tidings.cli.main import app
from tidings.serve.application import build

PAGES = (
    "/",
    "/items",
    "/items?pipeline=hacker_news&state=failed",
    "/items/7",
    "/items/5",
    "/sources",
    "/workflows/hacker_news",
    "/dead-letters",
    "/deliveries",
    "/alerts",
    "/search?q=fee",
    "/login",
    "/pipelines/bitcoin_news/articles",
    "/pipelines/hacker_news/items/1",
)


async def commands_of(world: World) -> set[str]:
    client = Client(build(world.backend(is_demo=True)))
    shown: set[str] = set()
    for path in PAGES:
        page = (await client.get(path, headers={"accept": "text/html"})).text
        twins = re.findall(r'<code class="twin"[^>]*>(.*?)</code>', page, re.DOTALL)
        commands = [html.unescape(re.sub("<[^>]*>", "", twin)) for twin in twins]
        shown |= {each.strip() for command in commands for each in command.split("&&")}
    return shown


def parse(arguments: list[str]) -> None:
    """Let the command line read the arguments, without doing anything."""
    command: Any = typer.main.get_command(app)
    context: Any = None
    while hasattr(command, "resolve_command") and arguments and not arguments[0].startswith("-"):
        context = command.context_class(command, parent=context)
        _, command, arguments = command.resolve_command(context, arguments)
    command.make_context("tidings", list(arguments), parent=context)


async def test_every_shown_command_is_understood() -> None:
    with a_world() as world, World(tokens={}) as empty:
        shown = await commands_of(world) | await commands_of(empty)

    wrong: dict[str, str] = {}
    for command in sorted(shown):
        words = shlex.split(command)
        assert words[0] == "tidings", command
        try:
            parse(words[1:])
        except Exception as error:
            wrong[command] = f"{type(error).__name__}: {error}"

    assert len(shown) > 20
    assert wrong == {}
