"""Every command the dashboard shows beside a button is one that the command line takes."""

from __future__ import annotations

import html
import re
import shlex
from typing import Any

import typer.main
from tests.unit.serve.asgi import Client
from tests.unit.serve.memory import MemoryDesk, empty_pipeline_view
from tests.unit.serve.world import World, a_world

from tidings.cli.main import app
from tidings.serve.server import build

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


def empty_world() -> World:
    world = World(desk=MemoryDesk())
    world.desk.pipelines = {name: empty_pipeline_view() for name in ("bitcoin_news", "hacker_news")}
    return world


async def commands_of(world: World) -> set[str]:
    client = Client(build(world.parts(is_demo=True)))
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
    shown = await commands_of(a_world()) | await commands_of(empty_world())

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
