"""The tables of the configuration and everything that may stand in them; docstrings are the documentation."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, PrivateAttr, SecretStr

from tidings.config.routes import RouteSettings
from tidings.model.durations import duration_seconds

Seconds = Annotated[float, BeforeValidator(duration_seconds)]


def _database_address(url: str) -> str:
    """Refuse what names no database; an empty SQLite name would be one that vanishes with the process."""
    if re.match(r"sqlite:///[^:]|postgres(ql)?://", url):
        return url
    raise ValueError("write sqlite:///FILE or postgresql://HOST/NAME")


class SettingsTable(BaseModel):
    """A table of the configuration: unknown keys are errors."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True, allow_inf_nan=False)


class LaneSettings(SettingsTable):
    """How much of one kind of work a process does at once."""

    batch: int = Field(default=100, ge=1, le=2000)
    """The most items claimed at once."""
    rate_per_minute: float | None = Field(default=None, gt=0)
    """The most attempts started in a minute, in this process; unset means no limit."""


class WaitingLane(LaneSettings):
    """Steps that wait for others."""

    concurrency: int = Field(default=4, ge=1, le=512)
    """Attempts under way at once."""


class PureLane(LaneSettings):
    """Steps that only compute; `batch` items are carried through at once, one batch after the other."""

    batch: int = Field(default=1000, ge=1, le=5000)
    """The most items claimed at once; of what was found, twice as many are merged."""


class FetchLane(WaitingLane):
    """Steps that fetch from the web."""

    concurrency: int = Field(default=16, ge=1, le=512)
    """Attempts under way at once."""


class AiLane(WaitingLane):
    """Steps that ask for a summary or a judgment."""


class NotifyLane(WaitingLane):
    """Steps that send notices."""

    concurrency: int = Field(default=1, ge=1, le=512)
    """Attempts under way at once; a channel takes one at a time anyway."""


class Lanes(SettingsTable):
    """The lanes of the worker; a value that is not set keeps its lane's own default."""

    pure: PureLane = PureLane()
    """Steps that only compute."""
    fetch: FetchLane = FetchLane()
    """Steps that fetch from the web."""
    ai: AiLane = AiLane()
    """Steps that ask for a summary or a judgment."""
    notify: NotifyLane = NotifyLane()
    """Steps that send notices."""


class PipelineLane(SettingsTable):
    """What one pipeline may have of a lane (pure, fetch, ai or notify), within the bounds of `[lanes.<lane>]`."""

    batch: int | None = Field(default=None, ge=1, le=5000)
    """The most items of this pipeline claimed at once; unset: as the lane."""
    rate_per_minute: float | None = Field(default=None, gt=0, le=100_000)
    """The most attempts of this pipeline started in a minute, by all processes together; 0.2 is one in five minutes."""


class WaitingPipelineLane(PipelineLane):
    """What one pipeline may have of a lane whose steps wait for others."""

    concurrency: int | None = Field(default=None, ge=1, le=512)
    """Attempts of this pipeline under way at once in a process, not for `pure`; unset: as the lane."""


class PipelineLanes(SettingsTable):
    """What one pipeline may have of each lane."""

    pure: PipelineLane = PipelineLane()
    """Steps that only compute."""
    fetch: WaitingPipelineLane = WaitingPipelineLane()
    """Steps that fetch from the web."""
    ai: WaitingPipelineLane = WaitingPipelineLane()
    """Steps that ask for a summary or a judgment."""
    notify: WaitingPipelineLane = WaitingPipelineLane()
    """Steps that send notices."""


class Ai(SettingsTable):
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


class Server(SettingsTable):
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


class Alerts(SettingsTable):
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
    """How long a finding or item may wait for its next phase, whether due, parked, tried again or not merged."""
    absent: Seconds = Field(default=120, ge=20)
    """How long no worker, or no poller, may be seen. Raise it where `work --until-idle` is run by a timer."""
    api_errors: float = Field(default=0.01, ge=0, le=1)
    """Share of API requests that fail."""
    follower: Seconds = Field(default=300, gt=0)
    """How long a change may wait until the search index or a mirror has it."""


class MirrorSettings(SettingsTable):
    """A copy of cards and id indexes in another store, for readers that have no database."""

    url: str
    """redis://HOST/NUMBER, cloudflare-kv://ACCOUNT/NAMESPACE, file:///FOLDER or s3://BUCKET/PREFIX."""
    pipelines: list[str] = []
    """The pipelines that are copied; none named means all that are on."""
    collections: list[str] = []
    """Only these collections of them, such as articles; `deliveries` must be named to be copied."""
    index_names: dict[str, str] = {}
    """What the id index of a collection is called, such as `articles = "BTC_ID_INDEX"`; else index:COLLECTION."""
    card_seconds: Seconds = Field(default=300, ge=0, le=86_400)
    """A card is written so long after its first change, with all changes since: at most once in this time."""
    index_seconds: Seconds = Field(default=600, ge=0, le=86_400)
    """The least time between two writes of an id index."""
    writes_per_day: int | None = Field(default=None, ge=0)
    """The most writes a day (UTC), with an alert at 90 %; 0 means only counted. Unset: 1,000 at Cloudflare, else 0."""
    newest: int = Field(default=2_000, ge=1, le=50_000)
    """How many cards of a collection are copied, the newest ones."""
    secret: SecretStr | None = None
    """Redis's password, Cloudflare's API token or S3's secret key; only by environment or file."""
    access_key: str = ""
    """S3's access key id."""
    region: str = ""
    """S3's region; empty means us-east-1, or whatever the endpoint takes."""
    endpoint: str = ""
    """The address of another S3-compatible store, or of Cloudflare's API; empty means the usual one."""
    public_url: str = ""
    """Where a static copy can be read, such as https://news.example; feeds name themselves by it."""


class Stories(SettingsTable):
    """Items of all pipelines that tell the same event."""

    enabled: bool = True
    """Group what tells the same event."""
    also: list[str] = []
    """Pipelines that are grouped only on request: eu_funding, first_issues (its repositories)."""


class ReplicateSettings(SettingsTable):
    """A copy of the SQLite file elsewhere, kept by Litestream (the extra `tidings[replicate]`)."""

    url: str = ""
    """file:///FOLDER, s3://BUCKET/PREFIX or sftp://USER@HOST/FOLDER; empty means no copy."""
    every: Seconds = Field(default=1, ge=0.1, le=3600)
    """How often changes are copied: what a dead machine may lose at most."""
    keep_days: float = Field(default=7, gt=0, le=3650)
    """For how long past states can be restored."""
    secret: SecretStr | None = None
    """The secret key of an S3-compatible store, or the password of an SFTP server."""
    access_key: str = ""
    """The access key of an S3-compatible store."""
    region: str = ""
    """The region of an S3-compatible store."""
    endpoint: str = ""
    """The address of an S3-compatible store that is not Amazon's, such as https://minio.example:9000."""
    key_file: str = ""
    """The private key for an SFTP server."""


class Settings(SettingsTable):
    """Everything that can be set."""

    database_url: Annotated[str, AfterValidator(_database_address)] = "sqlite:///tidings.db"
    """sqlite:///FILE, or postgresql://USER@HOST/NAME for many machines."""
    durability: Literal["power-safe", "crash-safe"] = "power-safe"
    """power-safe: what was accepted survives a power cut. crash-safe: faster, survives only a crash of the process."""
    index_dir: str = ""
    """The folder of the search index, which each machine has for itself. Empty: beside the database file, or for
    PostgreSQL in the folder tidings is started in."""
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
    notifiers: dict[str, dict[str, Any]] = {}
    """Where notices can go: the channels by notifier and name, such as `[notifiers.discord.news]`."""
    routes: list[RouteSettings] = []
    """Which notices go where."""
    mirrors: dict[str, MirrorSettings] = {}
    """Copies of what readers see in other stores, by name, such as `[mirrors.edge]`."""
    stories: Stories = Stories()
    """One story once: what is grouped."""
    replicate: ReplicateSettings = ReplicateSettings()
    """A copy of the SQLite file elsewhere, kept while everything runs."""
    server: Server = Server()
    """The HTTP server."""
    alerts: Alerts = Alerts()
    """When alerts fire."""
    pipelines: dict[str, Any] = {}
    """The pipelines that are on, each with its own settings; `enabled = false` keeps the table but turns it off.

    The routes of a pipeline that is off so rest. A variable for a pipeline that has no table does not turn it on.
    """
    _pipeline_lanes: Mapping[str, PipelineLanes] = PrivateAttr(default_factory=dict)
    _disabled: frozenset[str] = PrivateAttr(default=frozenset())
    _without_table: Mapping[str, str] = PrivateAttr(default_factory=dict)

    def completed(
        self,
        *,
        pipelines: dict[str, Any],
        pipeline_lanes: Mapping[str, PipelineLanes],
        notifiers: dict[str, dict[str, Any]],
        disabled: frozenset[str],
        without_table: Mapping[str, str],
    ) -> Settings:
        """Return these settings with what was checked elsewhere: the tables of pipelines and channels."""
        complete = self.model_copy(update={"pipelines": pipelines, "notifiers": notifiers})
        complete._disabled, complete._without_table = disabled, without_table
        complete._pipeline_lanes = pipeline_lanes
        return complete

    @property
    def pipeline_lanes(self) -> Mapping[str, PipelineLanes]:
        """What the pipelines that are on may have of each lane: their tables `lanes`."""
        return self._pipeline_lanes

    @property
    def disabled(self) -> frozenset[str]:
        """The pipelines whose table says `enabled = false`."""
        return self._disabled

    @property
    def without_table(self) -> Mapping[str, str]:
        """The pipelines that are off because only the environment speaks of them, each with the variable that does."""
        return self._without_table
