"""Every value the parts are built from, checked to fit together before anything is opened."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_args
from urllib.parse import urlsplit

from pydantic import BaseModel, SecretStr

from tidings import __version__
from tidings.config import Settings, notifier_modules, pipeline_modules, variable
from tidings.discover.poller import TURN_SECONDS
from tidings.follow.replica.litestream import ReplicaPlace
from tidings.lane_settings import lanes_of, shares_of
from tidings.mirroring import MirrorSpec, mirror_specs
from tidings.model.errors import Misconfigured
from tidings.model.pipeline import Pipeline
from tidings.model.publication import Calm, Route
from tidings.model.texts import merged
from tidings.model.vocabulary import vocabulary_of
from tidings.net.client import FetchLimits
from tidings.net.endpoints import endpoint_url
from tidings.process.enrich.enricher import Terms
from tidings.process.holder import GRANT_SECONDS
from tidings.process.lanes import LANES, Lane
from tidings.process.shares import Share
from tidings.publish.notifiers import ChannelSettings
from tidings.publish.texts import NO_TEXTS, texts_of
from tidings.route_checks import check_texts, parse_route
from tidings.store.db.database import Durability
from tidings.watch.logs import hide
from tidings.watch.rules import Thresholds

USER_AGENT = f"tidings/{__version__} (self-hosted watcher)"


@dataclass(frozen=True, slots=True)
class ChannelSpec:
    """A channel as configured: which notifier carries its notices, and that notifier's own settings."""

    name: str
    kind: str
    settings: ChannelSettings = field(repr=False)

    @property
    def place(self) -> str:
        """Where the channel stands in the configuration."""
        return f"notifiers.{self.kind}.{self.name}"


@dataclass(frozen=True, slots=True)
class AiSpec:
    """An AI endpoint as configured."""

    base_url: str
    model: str
    api_key: str | None = field(default=None, repr=False)
    terms: Terms = Terms()


@dataclass(frozen=True, slots=True)
class StorySpec:
    """How items are grouped into stories."""

    also: frozenset[str] = frozenset()
    """Pipelines that are grouped because that was asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wiring:
    """Every value the parts are built from."""

    database_url: str
    pipelines: tuple[Pipeline, ...]
    durability: Durability = "power-safe"
    index_dir: Path | None = None
    """The folder of the search index; without one it is in memory."""
    endpoints: tuple[str, ...] = ()
    channels: tuple[ChannelSpec, ...] = ()
    routes: tuple[Route, ...] = ()
    resting_routes: tuple[Route, ...] = ()
    """Routes of pipelines that are disabled: they say nothing until their pipeline is on again."""
    without_table: Mapping[str, str] = field(default_factory=dict)
    """Pipelines that are off because only an environment variable speaks of them, each with the variable."""
    ai: AiSpec | None = None
    mirrors: tuple[MirrorSpec, ...] = ()
    stories: StorySpec | None = StorySpec()
    """None: nothing is grouped."""

    replica: ReplicaPlace | None = None
    lanes: Mapping[str, Lane] = field(default_factory=lambda: dict(LANES))
    shares: Mapping[str, Mapping[str, Share]] = field(default_factory=dict)
    """What pipelines may have of the lanes, where they say so."""
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
    limits: FetchLimits | None = None
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
        hide_secrets(chosen)
    words = {spec.name: texts_of(spec.settings.texts) for spec in channel_specs(settings)}
    routes = [
        Route(
            r.pipeline,
            r.channel,
            r.query,
            r.queue_days,
            Calm(r.digest, r.quiet, r.max_per_hour),
            merged(texts_of(r.texts), words.get(r.channel, NO_TEXTS)),
            r.stories,
        )
        for r in settings.routes
    ]
    values: dict[str, Any] = {
        "database_url": settings.database_url,
        "durability": settings.durability,
        "index_dir": _index_dir(settings),
        "pipelines": tuple(pipelines),
        "endpoints": tuple(endpoints),
        "channels": tuple(channel_specs(settings)),
        "routes": tuple(route for route in routes if route.pipeline not in settings.disabled),
        "resting_routes": tuple(route for route in routes if route.pipeline in settings.disabled),
        "without_table": settings.without_table,
        "ai": _ai_spec(settings),
        "mirrors": mirror_specs(settings, pipelines),
        "stories": _story_spec(settings, pipelines),
        "lanes": lanes_of(settings),
        "shares": shares_of(settings, pipelines),
        "replica": replica_place(settings),
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
            follower_seconds=settings.alerts.follower,
            absent_seconds=settings.alerts.absent,
        ),
    }
    wiring = Wiring(**(values | changes))
    hide(_password(wiring.database_url))
    _check_channels(wiring)
    check_routes(wiring)
    return wiring


def replica_place(settings: Settings, url: str = "") -> ReplicaPlace | None:
    """Return where the database is copied to, if anywhere; PostgreSQL has ways of its own. A URL given here counts."""
    replicate = settings.replicate
    url = url or replicate.url
    if not url:
        return None
    if not settings.database_url.startswith("sqlite:///"):
        raise Misconfigured(
            "replicate.url: only a SQLite file is copied; PostgreSQL has standbys and backups of its own"
        )
    secret = replicate.secret.get_secret_value() if replicate.secret is not None else None
    hide(secret)
    return ReplicaPlace(
        url, replicate.every, replicate.keep_days, secret,
        replicate.access_key, replicate.region, replicate.endpoint, replicate.key_file,
    )  # fmt: skip


def _index_dir(settings: Settings) -> Path:
    if settings.index_dir:
        return Path(settings.index_dir)
    address = settings.database_url
    if address.startswith("sqlite:///"):
        return Path(f"{address.removeprefix('sqlite:///')}.search")
    return Path(f"{urlsplit(address).path.strip('/') or 'tidings'}.search")


def _check_channels(wiring: Wiring) -> None:
    """Refuse two channels of one name, a missing secret, and settings of which the notifier knows they cannot work."""
    names = [spec.name for spec in wiring.channels]
    for spec in wiring.channels:
        if names.count(spec.name) > 1:
            raise Misconfigured(f"notifiers: two channels are called {spec.name!r}; routes could not tell them apart")
        for secret, title in missing_secrets(spec.settings):
            raise Misconfigured(f"{spec.place}: its {title} is missing; set {variable(f'{spec.place}.{secret}')}")
    channel_endpoints(wiring)


def channel_endpoints(wiring: Wiring) -> list[str]:
    """Return the addresses that notifiers may call; raise Misconfigured where one cannot work as it is set up."""
    modules = notifier_modules()
    addresses: list[str] = []
    for spec in wiring.channels:
        if hasattr(modules[spec.kind], "endpoints"):
            try:
                addresses += modules[spec.kind].endpoints(spec.settings, spec.name, wiring.loopback_allowed)
            except Misconfigured as error:
                reason = str(error).removeprefix(f"{spec.kind}:{spec.name}: ")
                raise Misconfigured(f"{spec.place}: {reason}") from None
    return addresses


def missing_secrets(settings: BaseModel) -> Iterator[tuple[str, str]]:
    """Return the fields whose secret is not set, and what to call them. One that may be missing is "", not None."""
    for name, info in type(settings).model_fields.items():
        if SecretStr in get_args(info.annotation) and getattr(settings, name) is None:
            yield name, info.title or name


def check_routes(wiring: Wiring) -> None:
    """Refuse routes that lead from or to nowhere."""
    pipelines, channels = [p.name for p in wiring.pipelines], [spec.name for spec in wiring.channels]
    for route in wiring.routes:
        if route.pipeline not in pipelines:
            off = why_off(route.pipeline, wiring)
            raise Misconfigured(
                f"routes: one names the pipeline {route.pipeline!r}; on are {', '.join(pipelines) or 'none'}"
                + (f"; {off}" if off else "")
            )
        if route.channel not in channels:
            raise Misconfigured(
                f"routes: one names the channel {route.channel!r}; configured are {', '.join(channels) or 'none'}"
            )
        vocabulary = vocabulary_of(wiring.pipelines, within=route.pipeline)
        parse_route(route, vocabulary)
        check_texts(route, next(p for p in wiring.pipelines if p.name == route.pipeline), vocabulary)


def why_off(pipeline: str, wiring: Wiring) -> str | None:
    """Say why a pipeline that only an environment variable speaks of is off; None for others."""
    if pipeline not in wiring.without_table:
        return None
    variable_name = wiring.without_table[pipeline]
    return f"{variable_name} is set, but [pipelines.{pipeline}] is missing; write it to turn it on"


def why_resting(route: Route) -> str:
    """Say in one line that a route rests, and why."""
    return f"{route.pipeline} → {route.channel} rests: pipelines.{route.pipeline}.enabled is false"


def _story_spec(settings: Settings, pipelines: list[Pipeline]) -> StorySpec | None:
    able = {p.name for p in pipelines for c in p.collections if c.stories == "on request"}
    for name in settings.stories.also:
        if name not in able and name not in settings.disabled:
            known = ", ".join(sorted(able)) or "none of these pipelines"
            raise Misconfigured(f"stories.also: {name!r} cannot be asked for; {known} can")
    return StorySpec(frozenset(settings.stories.also)) if settings.stories.enabled else None


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


def channel_specs(settings: Settings) -> Iterator[ChannelSpec]:
    """Return the channels as configured, whether their secrets are set or not."""
    for kind, channels in settings.notifiers.items():
        yield from (ChannelSpec(name, kind, channel) for name, channel in channels.items())


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


def hide_secrets(settings: BaseModel) -> None:
    """Keep the secrets among some settings out of logs and messages from now on."""
    for name in type(settings).model_fields:
        value = getattr(settings, name)
        if isinstance(value, SecretStr):
            hide(value.get_secret_value())
