"""Every value the parts are built from, checked to fit together before anything is opened."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal
from urllib.parse import urlsplit

from pydantic import BaseModel, SecretStr

from tidings import __version__
from tidings.config import Settings, pipeline_modules
from tidings.discover.poller import TURN_SECONDS
from tidings.model.errors import BadInput, Misconfigured
from tidings.model.pipeline import Pipeline
from tidings.model.publication import Route
from tidings.model.query import parse, point_at
from tidings.net.client import Limits
from tidings.net.endpoints import endpoint_url
from tidings.process.enrich import Terms
from tidings.process.holder import GRANT_SECONDS
from tidings.process.worker import LANES, Lane
from tidings.publish.discord import HOSTS, Discord
from tidings.publish.sending import Policy
from tidings.store.database import Durability
from tidings.watch.alerts import Thresholds
from tidings.watch.logs import hide

USER_AGENT = f"tidings/{__version__} (self-hosted watcher)"


@dataclass(frozen=True, slots=True)
class ChannelSpec:
    """A channel as configured; its address is a secret."""

    name: str
    address: str = field(repr=False)
    kind: Literal["discord", "apprise"] = "discord"
    policy: Policy = "at-least-once"
    username: str | None = None
    gets_alerts: bool = False


@dataclass(frozen=True, slots=True)
class AiSpec:
    """An AI endpoint as configured."""

    base_url: str
    model: str
    api_key: str | None = field(default=None, repr=False)
    terms: Terms = Terms()


@dataclass(frozen=True, slots=True, kw_only=True)
class Wiring:
    """Every value the parts are built from."""

    database_url: str
    pipelines: tuple[Pipeline, ...]
    durability: Durability = "power-safe"
    endpoints: tuple[str, ...] = ()
    channels: tuple[ChannelSpec, ...] = ()
    routes: tuple[Route, ...] = ()
    ai: AiSpec | None = None
    lanes: Mapping[str, Lane] = field(default_factory=lambda: dict(LANES))
    lease_seconds: float = 900.0
    grant_seconds: float = GRANT_SECONDS
    turn_seconds: float = TURN_SECONDS
    dead_letter_days: float = 30.0
    intake_days: float = 7.0
    journal_days: float = 90.0
    user_agent: str = USER_AGENT
    obey_robots: bool = True
    per_host_delay_seconds: float = 0.5
    loopback_allowed: frozenset[tuple[str, int]] = frozenset()
    """Exact loopback hosts and ports that pages may come from: the sample world and tests only."""
    limits: Limits | None = None
    sweep_seconds: float = 5.0
    thresholds: Thresholds = Thresholds()
    extractor_children: int = 1
    migrates: bool = True
    takes_leases: bool = True
    """Off for processes that only serve: they keep no other from knowing that it is alone."""


def wiring_from(settings: Settings, **changes: Any) -> Wiring:
    """Turn checked settings into values for the parts; raise Misconfigured where they do not fit together."""
    modules = pipeline_modules()
    pipelines: list[Pipeline] = []
    endpoints: list[str] = []
    for name, chosen in settings.pipelines.items():
        called = modules[name].endpoints(chosen) if hasattr(modules[name], "endpoints") else ()
        for address in called:
            _check_address(f"pipelines.{name}", address)
        pipelines.append(modules[name].build(chosen))
        endpoints += called
        _hide_secrets(chosen)
    values: dict[str, Any] = {
        "database_url": settings.database_url,
        "durability": settings.durability,
        "pipelines": tuple(pipelines),
        "endpoints": tuple(endpoints),
        "channels": tuple(_channel_specs(settings)),
        "routes": tuple(Route(r.pipeline, r.channel, r.query) for r in settings.routes),
        "ai": _ai_spec(settings),
        "lanes": _lanes(settings),
        "lease_seconds": settings.lease_seconds,
        "dead_letter_days": settings.dead_letter_days,
        "intake_days": settings.intake_days,
        "journal_days": settings.journal_days,
        "user_agent": settings.user_agent or USER_AGENT,
        "obey_robots": settings.obey_robots,
        "per_host_delay_seconds": settings.per_host_delay_seconds,
        "loopback_allowed": loopback_places(settings),
        "thresholds": Thresholds(
            waiting_to_summarize=settings.alerts.waiting_to_summarize,
            waiting_to_announce=settings.alerts.waiting_to_announce,
            dead_letters=settings.alerts.dead_letters,
            leases=settings.alerts.leases,
            lag_seconds=settings.alerts.lag,
            api_error_share=settings.alerts.api_errors,
        ),
    }
    wiring = Wiring(**(values | changes))
    hide(_password(wiring.database_url))
    _check_channels(wiring)
    check_routes(wiring)
    return wiring


def _check_channels(wiring: Wiring) -> None:
    """Refuse addresses that cannot be a webhook's, and two channels of one name."""
    names = [spec.name for spec in wiring.channels]
    for spec in wiring.channels:
        if names.count(spec.name) > 1:
            raise Misconfigured(f"notifiers: two channels are called {spec.name!r}; routes could not tell them apart")
        if spec.kind == "discord":
            try:
                Discord(
                    spec.address,
                    spec.name,
                    Nothing(),
                    hosts=discord_hosts(wiring.loopback_allowed),
                    username=spec.username,
                )
            except Misconfigured as error:
                said = str(error).removeprefix(f"discord:{spec.name}: ")
                raise Misconfigured(f"notifiers.discord.{spec.name}: {said}") from None


def check_routes(wiring: Wiring) -> None:
    """Refuse routes that lead from or to nowhere."""
    pipelines, channels = [p.name for p in wiring.pipelines], [spec.name for spec in wiring.channels]
    for route in wiring.routes:
        if route.pipeline not in pipelines:
            raise Misconfigured(
                f"routes: one names the pipeline {route.pipeline!r}; on are {', '.join(pipelines) or 'none'}"
            )
        if route.channel not in channels:
            raise Misconfigured(
                f"routes: one names the channel {route.channel!r}; configured are {', '.join(channels) or 'none'}"
            )
        parse_route(route)


def _check_address(key: str, address: str) -> None:
    try:
        endpoint_url(address)
    except Misconfigured as error:
        raise Misconfigured(f"{key}: {error}") from None


def loopback_places(settings: Settings) -> frozenset[tuple[str, int]]:
    """Return the exact addresses on this machine that pages and webhooks may have."""
    parts = (address.rpartition(":") for address in settings.loopback_allowed)
    return frozenset((host.strip("[]"), int(port)) for host, _, port in parts)


def _password(url: str) -> str | None:
    try:
        return urlsplit(url).password
    except ValueError:
        return None


def parse_route(route: Route) -> None:
    """Refuse a route whose query cannot be read."""
    try:
        parse(route.query)
    except BadInput as error:
        raise Misconfigured(
            f"routes: the query of {route.channel} cannot be read: {point_at(route.query, error)}"
        ) from error


def _channel_specs(settings: Settings) -> Iterator[ChannelSpec]:
    for name, channel in settings.notifiers.discord.items():
        if channel.webhook_url is None:
            variable = f"TIDINGS_NOTIFIERS__DISCORD__{name.upper()}__WEBHOOK_URL"
            raise Misconfigured(f"notifiers.discord.{name}: its address is missing; set {variable}")
        address = channel.webhook_url.get_secret_value()
        yield ChannelSpec(name, address, "discord", channel.policy, channel.username, channel.alerts)
    for name, other in settings.notifiers.apprise.items():
        if other.url is None:
            variable = f"TIDINGS_NOTIFIERS__APPRISE__{name.upper()}__URL"
            raise Misconfigured(f"notifiers.apprise.{name}: its address is missing; set {variable}")
        yield ChannelSpec(name, other.url.get_secret_value(), "apprise", other.policy, None, other.alerts)


def _ai_spec(settings: Settings) -> AiSpec | None:
    ai = settings.ai
    if not ai.base_url:
        return None
    if not ai.model:
        raise Misconfigured("ai.model: name the model that ai.base_url should use")
    _check_address("ai.base_url", ai.base_url)
    terms = Terms(
        price_in=ai.price_in,
        price_out=ai.price_out,
        daily_tokens_max=ai.daily_tokens_max,
        concurrency=ai.concurrency,
        rate_per_minute=ai.rate_per_minute,
        falls_back=ai.falls_back,
    )
    return AiSpec(ai.base_url, ai.model, ai.api_key.get_secret_value() if ai.api_key else None, terms)


def _lanes(settings: Settings) -> dict[str, Lane]:
    return {
        name: dataclasses.replace(
            LANES[name], concurrency=lane.concurrency, batch=lane.batch, rate_per_minute=lane.rate_per_minute
        )
        for name in LANES
        for lane in [getattr(settings.lanes, name)]
    }


def _hide_secrets(chosen: BaseModel) -> None:
    for name in type(chosen).model_fields:
        value = getattr(chosen, name)
        if isinstance(value, SecretStr):
            hide(value.get_secret_value())


def discord_hosts(loopback_allowed: frozenset[tuple[str, int]]) -> frozenset[str]:
    """Return the hosts a webhook may have: Discord's own, and stand-ins on this machine."""
    return HOSTS | {f"{host}:{port}" for host, port in loopback_allowed} | {host for host, _ in loopback_allowed}


class Nothing:
    """A fetcher for parts that are only asked for their address."""

    async def page(self, url: str, **_: Any) -> Any:
        """Refuse."""
        raise Misconfigured(f"nothing is fetched here: {url}")

    async def call(self, method: str, url: str, **_: Any) -> Any:
        """Refuse."""
        raise Misconfigured(f"nothing is called here: {method} {url}")
