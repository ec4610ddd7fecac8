"""`tidings doctor`: looks at everything a run depends on, changes nothing, and says what to fix."""

from __future__ import annotations

import asyncio
import os
import shutil
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from email.utils import parsedate_to_datetime
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any, Literal, cast

import msgspec
import typer
from pydantic import SecretStr

from tidings.cli.options import ConfigOption, JsonOption, settings_from
from tidings.cli.output import say, show_json
from tidings.cli.server import is_loopback
from tidings.config import Settings, notifier_modules, pipeline_modules, variable
from tidings.model.clock import SystemClock
from tidings.model.contracts import Kit, Probe
from tidings.model.errors import SlowDown, TidingsError
from tidings.model.web import Response
from tidings.net.client import FetchLimits, Web
from tidings.process.extract.extractor import ChildExtractor
from tidings.process.memory_ledger import MemoryLedger
from tidings.store.db.database import connect, read_clock
from tidings.store.upkeep.migrate import check_schema
from tidings.store.upkeep.preflight import has_token, is_write_locked, vet
from tidings.wiring import (
    USER_AGENT,
    ChannelSpec,
    channel_specs,
    loopback_places,
    missing_secrets,
    why_off,
    why_resting,
    wiring_from,
)

WAIT_SECONDS = 5.0
TURN_SECONDS_MAX = 600.0
"""A host with many feeds is asked as politely as a run asks it: each question waits its turn."""
SKEW_SECONDS_MAX = 30.0
LOCK_WAIT_MS = 3_000
"""A write of our own takes some hundredths of a second; a large backlog's merge may take one."""
FREE_SHARE_MIN = 0.05


@dataclass(frozen=True, slots=True)
class Check:
    """One thing looked at. `advice` could be better, `broken` must be mended, `untested` is left to you."""

    what: str
    standing: Literal["ok", "advice", "broken", "untested"]
    message: str


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
        checks += asyncio.run(_check_others(settings))
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


async def _check_others(settings: Settings) -> list[Check]:
    """Ask every service outside at the same time, with short limits."""
    allowed = loopback_places(settings)
    limits = FetchLimits(
        first_byte_seconds=WAIT_SECONDS, total_seconds=2 * WAIT_SECONDS, host_wait_seconds=TURN_SECONDS_MAX
    )
    async with Web(
        user_agent=settings.user_agent or USER_AGENT,
        obey_robots=False,
        loopback_allowed=allowed,
        limits=limits,
        per_host_delay_seconds=settings.per_host_delay_seconds,
    ) as web:
        # A probe calls a service with its key and reads the answer: it needs no page parser and no model.
        kit = Kit(web, cast("Any", None), cast("Any", None), MemoryLedger(), SystemClock())
        questions = [*_ask_sources(settings, web, kit), *_ask_channels(settings, web, allowed)]
        if settings.ai.base_url:
            questions.append(_ask_ai(settings, web))
        found = [check for each in await asyncio.gather(*questions) for check in each]
    # One clock is asked once, however many servers told the time.
    clocks = [check for check in found if check.what == "clock"]
    return [check for check in found if check.what != "clock"] + clocks[:1]


def _ask_sources(settings: Settings, web: Web, kit: Kit) -> Iterator[Any]:
    modules = pipeline_modules()
    for name, chosen in settings.pipelines.items():
        addresses = modules[name].endpoints(chosen) if hasattr(modules[name], "endpoints") else ()
        if hasattr(modules[name], "probes"):
            for address in addresses:
                web.allow_endpoint(address)
            yield from (_try_probe(what, probe, kit) for what, probe in modules[name].probes(chosen).items())
        else:
            yield from (_ask_endpoint(name, address, web) for address in addresses)
        try:
            sources = modules[name].build(chosen).sources
        except TidingsError:
            continue  # The check of the configuration has told of it.
        yield from (_ask_page(s.name, s.url, web) for s in sources if hasattr(s, "url"))


async def _try_probe(what: str, probe: Probe, kit: Kit) -> list[Check]:
    """Make the cheapest real call, with the key: that an address answers says nothing about the key."""
    try:
        return [Check(what, "ok", await probe(kit))]
    except SlowDown as slow:
        return [Check(what, "advice", f"{slow}; the rest is not tested")]
    except TidingsError as error:
        return [Check(what, "broken", str(error))]


async def _ask_endpoint(name: str, address: str, web: Web) -> list[Check]:
    try:
        web.allow_endpoint(address)
        answer = await web.call("GET", address, timeout_seconds=WAIT_SECONDS, follow_redirects=False)
    except TidingsError as error:
        return [Check(name, "broken", str(error))]
    host = address.split("/")[2]
    if answer.status >= 500:
        return [Check(name, "broken", f"{host} answers {answer.status}; look again later"), *_clock(answer)]
    told = f"{host} answers {answer.status} at its bare address"
    return [Check(name, "ok", told), Check(name, "untested", "what it lists, and any key"), *_clock(answer)]


async def _ask_page(name: str, address: str, web: Web) -> list[Check]:
    try:
        answer = await web.page(address, robots=False)
    except TidingsError as error:
        return [Check(name, "broken", str(error))]
    return [Check(name, "ok", f"the feed answers, {len(answer.body):,} bytes"), *_clock(answer)]


def _clock(answer: Response) -> list[Check]:
    """Compare our clock with what a server says."""
    try:
        server_time = parsedate_to_datetime(answer.headers.get("date", "")).timestamp()
    except (ValueError, TypeError):
        return []
    skew = time.time() - server_time
    if abs(skew) > SKEW_SECONDS_MAX:
        return [Check("clock", "broken", f"this machine's clock is off by {skew:.0f} s; set it by NTP")]
    return [Check("clock", "ok", "it agrees with other machines")]


async def _ask_ai(settings: Settings, web: Web) -> list[Check]:
    ai = settings.ai
    headers = {"authorization": f"Bearer {ai.api_key.get_secret_value()}"} if ai.api_key else {}
    try:
        web.allow_endpoint(ai.base_url)
        address = f"{ai.base_url.rstrip('/')}/models"
        answer = await web.call("GET", address, headers=headers, timeout_seconds=WAIT_SECONDS)
    except TidingsError as error:
        return [Check("ai", "broken", str(error))]
    if answer.status in (401, 403):
        return [Check("ai", "broken", f"the key is refused ({answer.status}); set TIDINGS_AI__API_KEY")]
    if answer.status >= 500:
        return [Check("ai", "broken", f"the endpoint answers {answer.status}; look again later")]
    names = _models(answer.body)
    if names and ai.model not in names:
        return [Check("ai", "broken", f"it has no model {ai.model!r}; it has {', '.join(names[:10])}")]
    return [await _ask_model(settings, web, headers)]


async def _ask_model(settings: Settings, web: Web, headers: dict[str, str]) -> Check:
    """Ask for one word. Some endpoints list their models to anybody, whatever the key."""
    ai = settings.ai
    question = {"model": ai.model, "max_tokens": 1, "messages": [{"role": "user", "content": "Say yes."}]}
    try:
        answer = await web.call(
            "POST",
            f"{ai.base_url.rstrip('/')}/chat/completions",
            headers=headers,
            json=question,
            timeout_seconds=4 * WAIT_SECONDS,
        )
    except TidingsError as error:
        return Check("ai", "broken", str(error))
    if answer.status == 200:
        return Check("ai", "ok", f"{ai.model} answers; this used a few tokens")
    if answer.status in (401, 403):
        return Check("ai", "broken", f"the key is refused ({answer.status}); set TIDINGS_AI__API_KEY")
    if answer.status == 404:
        return Check("ai", "broken", f"it has no model {ai.model!r}, or ai.base_url is wrong (404)")
    if answer.status == 429:
        return Check("ai", "broken", "it answers 429: no money or no room left; look at your account")
    standing: Literal["broken", "untested"] = "broken" if answer.status >= 500 else "untested"
    return Check(
        "ai", standing, f"it answers {answer.status} to a short question: {answer.body[:200].decode(errors='replace')}"
    )


def _models(body: bytes) -> list[str]:
    try:
        return [str(model["id"]) for model in msgspec.json.decode(body)["data"]]
    except (msgspec.DecodeError, UnicodeDecodeError, KeyError, TypeError):
        return []  # Not every endpoint lists its models.


def _ask_channels(settings: Settings, web: Web, allowed: frozenset[tuple[str, int]]) -> Iterator[Any]:
    modules = notifier_modules()
    for spec in channel_specs(settings):
        # A missing secret is told by the check of the configuration.
        if not any(missing_secrets(spec.settings)):
            yield _ask_channel(spec, modules[spec.kind], web, allowed)


async def _ask_channel(
    spec: ChannelSpec, module: ModuleType, web: Web, allowed: frozenset[tuple[str, int]]
) -> list[Check]:
    what = f"{spec.kind}:{spec.name}"
    try:
        for address in module.endpoints(spec.settings, spec.name, allowed) if hasattr(module, "endpoints") else ():
            web.allow_endpoint(address)
        notifier = module.build(spec.settings, spec.name, web, allowed)
        async with asyncio.timeout(WAIT_SECONDS):
            return [Check(what, "ok", await module.check(notifier))]
    except TimeoutError:
        return [Check(what, "broken", f"it did not answer in {WAIT_SECONDS:g} s; look again later")]
    except TidingsError as error:
        return [Check(what, "broken", str(error).removeprefix(f"{what}: "))]
