"""`tidings mirror`: compare a mirror with the store, and repair what differs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from tidings.app import App
from tidings.cli.help import Command, Group
from tidings.cli.options import ConfigOption, JsonOption, wiring_of
from tidings.cli.output import fail, say, show_json, show_table
from tidings.cli.process import run_app
from tidings.follow.mirrors.check import Divergence, check, repair
from tidings.follow.mirrors.whole_shelf import whole_shelf
from tidings.mirroring import MirrorSpec, opened_mirror
from tidings.wiring import Wiring

SHOWN_MAX = 5
NameArgument = typer.Argument(metavar="NAME", help="The mirror's name, as in [mirrors.NAME].")

mirror = typer.Typer(
    name="mirror", cls=Group, help="Mirrors of what readers see: check one, or repair it.", no_args_is_help=True
)


@mirror.command("check", cls=Command)
def check_mirror(name: Annotated[str, NameArgument], config: ConfigOption = None, as_json: JsonOption = False) -> None:
    """Compare a mirror with the store.

    Keys, cards and id indexes are compared, and the lists and feeds of a static copy; exit code 1 where they differ.
    """
    wiring, spec = _spec(name, config)

    async def use(app: App) -> list[Divergence]:
        settled_at = app.clock.now_ms() - round(2 * (spec.pace.card_seconds + spec.pace.index_seconds) * 1000)
        async with opened_mirror(spec, app.pipelines, app.ledger, app.clock, app.web) as opened:
            return [
                await check(
                    opened,
                    plan,
                    await app.executor.read(whole_shelf, app.store.shelf, plan, newest=spec.pace.newest),
                    settled_at=settled_at,
                )
                for plan in spec.pipelines
            ]

    found = run_app(wiring, use)
    _show(found, as_json)
    if not all(each.is_none for each in found):
        raise typer.Exit(1)


@mirror.command("repair", cls=Command)
def repair_mirror(name: Annotated[str, NameArgument], config: ConfigOption = None, as_json: JsonOption = False) -> None:
    """Mend what differs, within the day's budget.

    What is missing or different is written, what is extra is removed, and all is listed.
    """
    wiring, spec = _spec(name, config)

    async def use(app: App) -> list[tuple[Divergence, int]]:
        async with opened_mirror(spec, app.pipelines, app.ledger, app.clock, app.web) as opened:
            return [
                await repair(
                    opened,
                    plan,
                    await app.executor.read(whole_shelf, app.store.shelf, plan, newest=spec.pace.newest),
                )
                for plan in spec.pipelines
            ]

    done = run_app(wiring, use)
    _show([found for found, _ in done], as_json)
    left = sum(waiting for _, waiting in done)
    if left:
        fail(f"{left} cards wait: today's writes are used up; a running tidings writes them tomorrow", 1)
    if not as_json:
        say("repaired" if any(not found.is_none for found, _ in done) else "nothing to repair")


def _spec(name: str, config: Path | None) -> tuple[Wiring, MirrorSpec]:
    wiring = wiring_of(config, takes_leases=False)
    chosen = next((spec for spec in wiring.mirrors if spec.name == name), None)
    if chosen is None:
        fail(f"there is no mirror {name!r}; there are {', '.join(spec.name for spec in wiring.mirrors) or 'none'}")
    return wiring, chosen


def _show(found: Sequence[Divergence], as_json: bool) -> None:
    if as_json:
        show_json(found)
        return
    columns = ("pipeline", "cards", "waiting", "missing", "extra", "different", "no card", "unlisted")
    rows = [
        (
            each.pipeline,
            each.cards,
            len(each.waiting),
            _some(each.missing),
            _some(each.extra),
            _some(each.different),
            _some(each.listed_without_card),
            _some(each.unlisted),
        )
        for each in found
    ]
    show_table(columns, rows, empty="nothing is mirrored")


def _some(keys: Sequence[str]) -> str:
    if not keys:
        return "0"
    more = ", …" if len(keys) > SHOWN_MAX else ""
    return f"{len(keys)}: {', '.join(keys[:SHOWN_MAX])}{more}"
