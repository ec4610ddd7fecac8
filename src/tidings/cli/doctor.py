"""`tidings doctor`: looks at everything a run depends on, changes nothing, and says what to fix."""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from pydantic import SecretStr

from tidings.cli.doctor_services import SKEW_SECONDS_MAX, Check, check_services
from tidings.cli.options import ConfigOption, JsonOption, settings_from
from tidings.cli.output import say, show_json
from tidings.cli.server import is_loopback
from tidings.config import Settings, pipeline_modules, variable
from tidings.follow.replica.litestream import NAME as REPLICA
from tidings.follow.replica.litestream import newest_copy, shown
from tidings.model.errors import TidingsError
from tidings.process.extract.extractor import ChildExtractor
from tidings.store.db.database import connect, read_clock
from tidings.store.upkeep.migrate import check_schema
from tidings.store.upkeep.preflight import has_token, is_write_locked, vet
from tidings.wiring import (
    replica_place,
    why_off,
    why_resting,
    wiring_from,
)

LOCK_WAIT_MS = 3_000
"""A write of our own takes some hundredths of a second; a large backlog's merge may take one."""
FREE_SHARE_MIN = 0.05


def doctor(
    config: ConfigOption = None,
    offline: Annotated[bool, typer.Option("--offline", help="Leave out what needs the network.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Check everything and say what to fix. Configuration, database, page parser, clock, sources, AI, channels."""
    settings = settings_from(config)
    checks = [*_check_configuration(settings), *_check_database(settings), *_missing_secrets(settings)]
    checks.append(asyncio.run(_try_extractor()))
    if not offline:
        checks += asyncio.run(check_services(settings))
        checks += _look_at_copies(settings)
    checks += _untested(settings, offline=offline)
    broken = [check for check in checks if check.standing == "broken"]
    if as_json:
        show_json({"ok": not broken, "checks": [asdict(check) for check in checks]})
    else:
        for check in checks:
            say(f"{check.standing:<8} {check.what}: {check.message}")
        say(f"\n{len(broken)} to fix" if broken else "\nnothing is broken")
    if broken:
        raise SystemExit(1)


def _untested(settings: Settings, *, offline: bool) -> Iterator[Check]:
    """Say what was not looked at, and how to."""
    if offline:
        yield Check("network", "untested", "sources, the AI endpoint and channels: leave out --offline")
    elif settings.notifiers:
        yield Check("notifiers", "untested", "that a message arrives: tidings notify test --channel NAME")
    yield from (Check(f"mirror:{name}", "untested", f"tidings mirror check {name}") for name in settings.mirrors)


def _check_configuration(settings: Settings) -> Iterator[Check]:
    names = ", ".join(settings.pipelines)
    if not names:
        yield Check("configuration", "advice", "no pipeline is on; `tidings init` writes a tidings.toml with five on")
    try:
        wiring = wiring_from(settings)
    except TidingsError as error:
        yield Check("configuration", "broken", str(error))
    else:
        yield Check("configuration", "ok", f"on are {names}" if names else "it can be read")
        yield from (Check("routes", "advice", why_resting(route)) for route in wiring.resting_routes)
        yield from (Check(name, "advice", f"off: {why_off(name, wiring)}") for name in wiring.without_table)


def _check_database(settings: Settings) -> Iterator[Check]:
    url, host = settings.database_url, settings.server.host
    try:
        yield from _look_inside(url)
        if not is_loopback(host) and not has_token(url):
            yield Check(
                "server",
                "broken",
                f"server.host {host} is open to others and no token exists: tidings token create --scope read",
            )
    except TidingsError as error:
        yield Check("database", "broken", str(error))


def _look_inside(url: str) -> Iterator[Check]:
    if url.startswith("sqlite:///"):
        yield from _look_around(Path(url.removeprefix("sqlite:///")).absolute())
    notes = vet(url)
    if url.startswith("sqlite:///") and not Path(url.removeprefix("sqlite:///")).exists():
        yield Check("database", "ok", "it does not exist yet; the first start makes it")
        return
    if url.startswith("sqlite:///") and is_write_locked(Path(url.removeprefix("sqlite:///")), LOCK_WAIT_MS):
        yield Check(
            "database",
            "broken",
            f"another process held the write lock for all of {LOCK_WAIT_MS // 1000} s; end it "
            "(`fuser -v FILE` names who has it open): nothing can be written until then",
        )
        return
    database = connect(url)
    try:
        problem = check_schema(database)
        if problem is not None:
            yield Check("database", "advice", f"{database.describe()}: {problem}; a start does it too")
            return
        yield Check("database", "ok", "; ".join([database.describe(), *notes]))
        skew = read_clock(database) / 1000 - time.time()
        if abs(skew) > SKEW_SECONDS_MAX:
            yield Check("clock", "broken", f"the database's clock differs by {skew:.0f} s; set both by NTP")
    finally:
        database.close()


def _look_around(file: Path) -> Iterator[Check]:
    """Look at the place of a SQLite file: its folder must be writable, since the log lies beside it."""
    if not os.access(file.parent, os.W_OK) or (file.exists() and not os.access(file, os.W_OK)):
        yield Check("disk", "broken", f"{file.name} or its folder is missing or not writable for this user")
        return
    usage = shutil.disk_usage(file.parent)
    free = f"{usage.free / 1e9:.1f} GB free"
    if usage.free < FREE_SHARE_MIN * usage.total:
        yield Check("disk", "advice", f"{free}, less than {FREE_SHARE_MIN:.0%}; make room before it is full")
    else:
        yield Check("disk", "ok", free)


def _look_at_copies(settings: Settings) -> Iterator[Check]:
    """Ask the place of the copies what its newest one is."""
    try:
        place = replica_place(settings)
        if place is None:
            return
        with tempfile.TemporaryDirectory(prefix="tidings-") as folder:
            file = Path(settings.database_url.removeprefix("sqlite:///")).absolute()
            newest = newest_copy(file, Path(folder), place)
    except TidingsError as error:
        yield Check(REPLICA, "broken", str(error))
    else:
        held = f"its newest change is of {newest}" if newest else "it is empty; `tidings run` begins it"
        yield Check(REPLICA, "ok" if newest else "advice", f"{shown(place)} answers; {held}")


async def _try_extractor() -> Check:
    """Read a small page as the pipelines do, in a child process with its limits."""
    try:
        async with ChildExtractor() as extractor:
            await extractor.check()
    except TidingsError as error:
        return Check("page parser", "broken", str(error))
    return Check("page parser", "ok", "it reads a small page")


def _missing_secrets(settings: Settings) -> Iterator[Check]:
    """Say which keys are not there and what each would add."""
    modules = pipeline_modules()
    for name, chosen in settings.pipelines.items():
        module = modules[name]
        if hasattr(module, "advice"):
            yield from (Check(name, "advice", text) for text in module.advice(chosen))
            continue
        for field, info in type(chosen).model_fields.items():
            if SecretStr in (info.annotation, *getattr(info.annotation, "__args__", ())) and not getattr(chosen, field):
                text = f"{variable(f'pipelines.{name}.{field}')} is not set. {info.description or ''}"
                yield Check(name, "advice", text.strip())
    if not settings.ai.base_url:
        yield Check("ai", "ok", "the local default answers; ai.base_url, ai.model and TIDINGS_AI__API_KEY add a model")
    if not settings.notifiers:
        yield Check("notifiers", "advice", "no channel is configured: nobody is told; see [notifiers] in tidings.toml")
