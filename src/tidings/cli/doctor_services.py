"""What `tidings doctor` asks outside: sources with their keys, the AI endpoint, channels, and the clocks of servers."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from types import ModuleType
from typing import Any, Literal, cast

import msgspec

from tidings.config import Settings, notifier_modules, pipeline_modules
from tidings.model.clock import SystemClock
from tidings.model.contracts import Kit, Probe
from tidings.model.errors import SlowDown, TidingsError
from tidings.model.web import Response
from tidings.net.client import FetchLimits, Web
from tidings.process.memory_ledger import MemoryLedger
from tidings.wiring import (
    USER_AGENT,
    ChannelSpec,
    channel_specs,
    loopback_places,
    missing_secrets,
)

WAIT_SECONDS = 5.0
TURN_SECONDS_MAX = 600.0
"""A host with many feeds is asked as politely as a run asks it: each question waits its turn."""
SKEW_SECONDS_MAX = 30.0


@dataclass(frozen=True, slots=True)
class Check:
    """One thing looked at. `advice` could be better, `broken` must be mended, `untested` is left to you."""

    what: str
    standing: Literal["ok", "advice", "broken", "untested"]
    message: str


async def check_services(settings: Settings) -> list[Check]:
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
