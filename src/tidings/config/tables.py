"""The tables of the configuration and everything that may stand in them; docstrings are the documentation."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, SecretStr

from tidings.model.durations import duration_seconds

Seconds = Annotated[float, BeforeValidator(duration_seconds)]


def _database_address(url: str) -> str:
    """Refuse what names no database; an empty SQLite name would be one that vanishes with the process."""
    if re.match(r"sqlite:///[^:]|postgres(ql)?://", url):
        return url
    raise ValueError("write sqlite:///FILE or postgresql://HOST/NAME")


class Part(BaseModel):
    """A table of the configuration: unknown keys are errors."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True, allow_inf_nan=False)


class LaneSettings(Part):
    """How much of one kind of work a process does at once."""

    concurrency: int = Field(default=4, ge=1, le=512)
    """Attempts under way at once."""
    batch: int = Field(default=100, ge=1, le=2000)
    """The most items claimed at once."""
    rate_per_minute: float | None = Field(default=None, gt=0)
    """The most attempts started in a minute, in this process; unset means no limit."""


class PureLane(LaneSettings):
    """Steps that only compute; `batch` items are carried through at once."""

    concurrency: int = Field(default=1, ge=1, le=512)
    """Batches under way at once."""
    batch: int = Field(default=1000, ge=1, le=5000)
    """The most items claimed at once; of what was found, twice as many are merged."""


class FetchLane(LaneSettings):
    """Steps that fetch from the web."""

    concurrency: int = Field(default=16, ge=1, le=512)
    """Attempts under way at once."""


class AiLane(LaneSettings):
    """Steps that ask for a summary or a judgment."""


class NotifyLane(LaneSettings):
    """Steps that send notices."""

    concurrency: int = Field(default=1, ge=1, le=512)
    """Attempts under way at once; a channel takes one at a time anyway."""


class Lanes(Part):
    """The lanes of the worker; a value that is not set keeps its lane's own default."""

    pure: PureLane = PureLane()
    """Steps that only compute."""
    fetch: FetchLane = FetchLane()
    """Steps that fetch from the web."""
    ai: AiLane = AiLane()
    """Steps that ask for a summary or a judgment."""
    notify: NotifyLane = NotifyLane()
    """Steps that send notices."""


class Ai(Part):
    """An OpenAI-compatible endpoint; empty means the local default answers."""

    base_url: str = ""
    """For example https://api.openai.com/v1, or http://127.0.0.1:11434/v1 for a local server."""
    model: str = ""
    """The model's name at that endpoint."""
    api_key: SecretStr | None = None
    """Only by environment or file."""
    price_in: float = Field(default=0.0, ge=0)
    """Price of a million tokens sent, for the cost count."""
    price_out: float = Field(default=0.0, ge=0)
    """Price of a million tokens received."""
    daily_tokens_max: int = Field(default=0, ge=0)
    """The most tokens a day (UTC); 0 means only counted. What is over waits for the next day."""
    concurrency: int = Field(default=4, ge=1, le=64)
    """Questions under way at once."""
    rate_per_minute: float = Field(default=60, gt=0)
    """Questions a minute."""
    falls_back: bool = True
    """The local default answers, marked as such, where the endpoint gives no usable answer."""


class DiscordChannel(Part):
    """A Discord channel, by its webhook."""

    webhook_url: SecretStr | None = None
    """Only by environment or file: TIDINGS_NOTIFIERS__DISCORD__<NAME>__WEBHOOK_URL."""
    policy: Literal["at-least-once", "at-most-once"] = "at-least-once"
    """When nobody knows whether a message was posted: send it again, or leave it to a person."""
    username: str | None = None
    """The name shown as the sender."""
    alerts: bool = False
    """Send alerts about tidings' own health here too."""


class AppriseChannel(Part):
    """Any service Apprise knows (extra `notifiers`)."""

    url: SecretStr | None = None
    """Only by environment or file: TIDINGS_NOTIFIERS__APPRISE__<NAME>__URL."""
    policy: Literal["at-least-once", "at-most-once"] = "at-least-once"
    """As for Discord."""
    alerts: bool = False
    """Send alerts here too."""


class Notifiers(Part):
    """The channels, by name."""

    discord: dict[str, DiscordChannel] = {}
    """Discord channels."""
    apprise: dict[str, AppriseChannel] = {}
    """Channels through Apprise."""


class RouteSettings(Part):
    """Which notices go where."""

    pipeline: str
    """The pipeline whose notices are meant."""
    channel: str
    """The channel they go to."""
    query: str = ""
    """Only those that match, such as `programme:HORIZON status:open`; empty means all."""


class Server(Part):
    """The HTTP server."""

    host: str = "127.0.0.1"
    """The address to listen on; anything but loopback needs a token (tidings token create)."""
    port: int = Field(default=8000, ge=0, le=65535)
    """The port to listen on."""
    hosts: list[str] = []
    """Names under which the server may be called, besides the loopback ones."""
    root_path: str = Field(default="", pattern=r"^(/[A-Za-z0-9._~-]+)*$")
    """Where tidings lives below a proxy, such as /tidings."""
    cors_origins: list[str] = []
    """Origins whose pages may read the API; none by default."""
    connections_max: int = Field(default=1000, ge=10, le=100_000)
    """The most connections open at once; the system's limit on open files counts too."""
    connections_per_client: int = Field(default=250, ge=1, le=100_000)
    """The most of them from one address; this machine's own are not counted, because a proxy asks for many."""
    header_seconds: Seconds = Field(default=10, ge=0.1, le=600)
    """How long a client may take until the headers of its request have arrived."""


class Alerts(Part):
    """When alerts fire: above these values."""

    waiting_to_summarize: int = Field(default=100, ge=0)
    """Items of a pipeline waiting for a summary or a judgment (lane `ai`)."""
    waiting_to_announce: int = Field(default=50, ge=0)
    """Notices of a pipeline waiting to be sent (lane `notify`)."""
    dead_letters: int = Field(default=20, ge=0)
    """Dead letters in a pipeline."""
    leases: int = Field(default=10, ge=0)
    """Leases held at once in a pipeline."""
    lag: Seconds = Field(default=7200, gt=0)
    """How long the oldest due item may wait."""
    api_errors: float = Field(default=0.01, ge=0, le=1)
    """Share of API requests that fail."""


class Settings(Part):
    """Everything that can be set."""

    database_url: Annotated[str, AfterValidator(_database_address)] = "sqlite:///tidings.db"
    """sqlite:///FILE, or postgresql://USER@HOST/NAME for many machines."""
    durability: Literal["power-safe", "crash-safe"] = "power-safe"
    """power-safe: what was accepted survives a power cut. crash-safe: faster, survives only a crash of the process."""
    lease_seconds: Seconds = Field(default=900, ge=5)
    """The most one attempt may take. Leases are shorter (60 s) and renewed while a worker lives."""
    dead_letter_days: float = Field(default=30, gt=0)
    """How long dead letters are kept, counted from when they became such."""
    intake_days: float = Field(default=7, ge=0)
    """How long merged findings stay in the intake log."""
    journal_days: float = Field(default=90, gt=0)
    """How long the journal is kept; an item's last row always stays."""
    user_agent: str = ""
    """How tidings names itself to others; name a contact here. Empty means tidings and its version."""
    obey_robots: bool = True
    """Leave pages alone whose robots.txt asks for it."""
    per_host_delay_seconds: float = Field(default=0.5, ge=0, le=60)
    """The least time between two requests to the same host for pages."""
    loopback_allowed: list[Annotated[str, Field(pattern=r"^(127(\.\d{1,3}){3}|localhost|\[::1\]):\d{1,5}$")]] = []
    """Exact addresses on this machine (127.0.0.1:8080) that pages and webhooks may have; for tests and stand-ins."""
    lanes: Lanes = Lanes()
    """How much of each kind of work a process does at once."""
    ai: Ai = Ai()
    """An AI endpoint, instead of the local default."""
    notifiers: Notifiers = Notifiers()
    """Where notices can go."""
    routes: list[RouteSettings] = []
    """Which notices go where."""
    server: Server = Server()
    """The HTTP server."""
    alerts: Alerts = Alerts()
    """When alerts fire."""
    pipelines: dict[str, Any] = {}
    """The pipelines that are on, each with its own settings; `enabled = false` keeps the table but turns it off."""
