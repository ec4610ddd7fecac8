"""TOML and environment become checked settings. Every mistake is named with its key and with what helps."""

from __future__ import annotations

import difflib
import json
import math
import os
import re
import stat
import tomllib
from collections.abc import Iterator, Mapping
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any, Literal, get_args

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, SecretStr, ValidationError

from tidings.model.durations import duration_seconds
from tidings.model.errors import Misconfigured

PREFIX = "TIDINGS_"
NOT_SETTINGS = {"TIDINGS_CONFIG", "TIDINGS_CLOCK_OFFSET_MS", "TIDINGS_STORM", "TIDINGS_LOG_FORMAT", "TIDINGS_DEBUG"}
DEFAULT_FILE = "tidings.toml"
Seconds = Annotated[float, BeforeValidator(duration_seconds)]


def _database_address(url: str) -> str:
    """Refuse what names no database; an empty SQLite name would be one that vanishes with the process."""
    if re.match(r"sqlite:///[^:]|postgres(ql)?://", url):
        return url
    raise ValueError("write sqlite:///FILE or postgresql://HOST/NAME")


class Part(BaseModel):
    """A table of the configuration: unknown keys are errors, docstrings are the documentation."""

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
    batch: int = Field(default=500, ge=1, le=2000)
    """The most items claimed at once."""


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


class Alerts(Part):
    """When alerts fire: above these values."""

    waiting_to_summarize: int = Field(default=100, ge=0)
    """Items waiting to be summarized."""
    waiting_to_announce: int = Field(default=50, ge=0)
    """Notices waiting to be sent."""
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
    """How long a worker may hold an item before others may take it."""
    dead_letter_days: float = Field(default=30, gt=0)
    """How long dead letters are kept, counted from burial."""
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


def load(file: Path | None = None, environment: Mapping[str, str] | None = None) -> Settings:
    """Read and check the configuration; raise Misconfigured naming every mistake."""
    environment = os.environ if environment is None else environment
    if file is None and environment.get("TIDINGS_CONFIG"):
        file = Path(environment["TIDINGS_CONFIG"])
    raw = read_toml(file)
    _refuse_odd_numbers(raw)
    refuse_secrets(raw)
    overlay(raw, environment)
    return check(raw)


def read_toml(file: Path | None) -> dict[str, Any]:
    """Read a TOML file; without a name, `tidings.toml` here, if there is one."""
    asked = file is not None
    file = file or Path(DEFAULT_FILE)
    try:
        return parse_toml(file.read_bytes().decode("utf-8"), str(file))
    except FileNotFoundError:
        if not asked:
            return {}
        raise Misconfigured(f"{file} does not exist; `tidings init` writes one") from None
    except OSError as error:
        raise Misconfigured(f"{file} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise Misconfigured(f"{file} is not UTF-8 text; save it as UTF-8") from None


def parse_toml(text: str, name: str) -> dict[str, Any]:
    """Parse TOML; a mistake is named with its line and the key there, never with a value: it may be a secret."""
    if text.startswith("\ufeff"):
        raise Misconfigured(f"{name} begins with a byte order mark; save it as UTF-8 without one")
    try:
        # The last line needs an end too, or a mistake in it is reported without its number.
        return tomllib.loads(f"{text}\n")
    except tomllib.TOMLDecodeError as error:
        line = re.search(r"at line (\d+)", str(error))
        key = text.split("\n")[int(line[1]) - 1].partition("=")[0].strip() if line else ""
        raise Misconfigured(f"{name} is not valid TOML: {error}{f', near {key[:60]}' if key else ''}") from None
    except RecursionError:
        raise Misconfigured(f"{name} is not valid TOML: it is nested too deeply") from None


def check(raw: dict[str, Any]) -> Settings:
    """Check raw values; pipelines are checked by their own settings."""
    pipelines = raw.get("pipelines", {})
    if not isinstance(pipelines, dict):
        raise Misconfigured("pipelines: must hold one table per pipeline, such as [pipelines.hacker_news]")
    settings: Settings = _checked(Settings, {**raw, "pipelines": {}}, "")
    known = pipeline_modules()
    chosen: dict[str, Any] = {}
    for name, values in pipelines.items():
        if name not in known:
            raise Misconfigured(f"pipelines.{name}: there is no such pipeline{_nearest(name, known)}")
        if not isinstance(values, dict):
            raise Misconfigured(f"pipelines.{name}: must be a table")
        values = dict(values)
        enabled = values.pop("enabled", True)
        checked = _checked(known[name].Settings, values, f"pipelines.{name}.")
        if str(enabled).lower() not in ("false", "0", "no"):
            chosen[name] = checked
    return Settings.model_copy(settings, update={"pipelines": chosen})


def pipeline_modules() -> dict[str, ModuleType]:
    """Return every installed pipeline: our own and those other packages bring as entry points."""
    from tidings import pipelines

    found: dict[str, ModuleType] = {}
    for name in pipelines.BUILT_IN:
        found[name] = pipelines.load(name)
    for point in entry_points(group="tidings.pipelines"):
        if point.name not in found:
            found[point.name] = point.load()
    return found


def overlay(raw: dict[str, Any], environment: Mapping[str, str]) -> None:
    """Let the environment override: TIDINGS_A__B=value sets a.b; TIDINGS_A__B_FILE=path reads it from a file."""
    for name in sorted(environment):
        if not name.startswith(PREFIX) or name in NOT_SETTINGS:
            continue
        path = name.removeprefix(PREFIX).lower().split("__")
        value: Any = environment[name]
        if path[-1].endswith("_file") and not _is_field(path):
            path[-1] = path[-1].removesuffix("_file")
            value = _read_secret_file(name, value)
        table = raw
        for part in path[:-1]:
            table = table.setdefault(_as_written(table, part), {})
            if not isinstance(table, dict):
                raise Misconfigured(f"{name}: {part} is not a table")
        if len(path) == 1 and path[0] not in Settings.model_fields:
            raise Misconfigured(f"{name}: there is no such setting{_nearest(path[0], Settings.model_fields)}")
        table[_as_written(table, path[-1])] = _from_text(value)


def _as_written(table: dict[str, Any], name: str) -> str:
    """Environment names have no case and no dashes: find the key they mean."""
    for key in table:
        if key.lower().replace("-", "_") == name:
            return key
    return name


def _is_field(path: list[str]) -> bool:
    return len(path) == 1 and path[0] in Settings.model_fields


def _from_text(value: str) -> Any:
    text = value.strip()
    if text[:1] in "[{" and text:
        try:
            return json.loads(text)
        except ValueError:
            return value
    return value


def _read_secret_file(name: str, path: str) -> str:
    try:
        mode = os.stat(path).st_mode
        if mode & stat.S_IROTH:
            raise Misconfigured(f"{name}: everybody on this machine may read that file; chmod 600 it")
        return Path(path).read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError):
        raise Misconfigured(f"{name}: the file it names cannot be read as text") from None


def _checked(model: type[Any], values: dict[str, Any], place: str) -> Any:
    try:
        return model.model_validate(values)
    except ValidationError as error:
        lines = [f"{place}{_where(e['loc'])}: {_what(e, model)}" for e in error.errors(include_input=False)]
        raise Misconfigured("; ".join(lines[:10])) from None


def _where(location: tuple[int | str, ...]) -> str:
    return ".".join(str(part) for part in location)


_WORDS = {
    "missing": "it is missing",
    "bool_parsing": "write true or false",
    "bool_type": "write true or false",
    "dict_type": "write a table",
    "float_parsing": "write a number",
    "float_type": "write a number",
    "int_from_float": "write a whole number",
    "int_parsing": "write a whole number",
    "int_type": "write a whole number",
    "list_type": "write a list",
    "model_attributes_type": "write a table",
    "model_type": "write a table",
    "string_type": "write a text",
    "tuple_type": "write a list",
}
"""What pydantic says of wrong types, for people who write TOML."""


def _what(error: Any, model: type[Any]) -> str:
    if error["type"] != "extra_forbidden":
        return _WORDS.get(error["type"]) or str(error["msg"]).removeprefix("Value error, ")
    for part in error["loc"][:-1]:
        field = model.model_fields.get(part)
        inner = field.annotation if field is not None else None
        candidates = [inner, *get_args(inner)]
        nested = next((c for c in candidates if isinstance(c, type) and issubclass(c, BaseModel)), None)
        model = nested or model
    return f"there is no such setting{_nearest(str(error['loc'][-1]), model.model_fields)}"


def _nearest(name: str, known: Any) -> str:
    close = difflib.get_close_matches(name, list(known), n=1, cutoff=0.6)
    return f"; did you mean {close[0]}?" if close else f"; known: {', '.join(sorted(known))}"


def _refuse_odd_numbers(value: Any, place: str = "") -> None:
    if isinstance(value, float) and not math.isfinite(value):
        raise Misconfigured(f"{place}: {value} is no usable number")
    for name, inner in (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    ):
        _refuse_odd_numbers(inner, f"{place}.{name}" if place else str(name))


def refuse_secrets(raw: dict[str, Any]) -> None:
    """Refuse a secret in the file: it would be committed, copied and shown."""
    address = raw.get("database_url")
    if isinstance(address, str) and re.match(r"\w+://[^/@]*:[^/@]+@", address):
        raise Misconfigured(
            "database_url: a password does not belong in the file; set TIDINGS_DATABASE_URL or "
            "TIDINGS_DATABASE_URL_FILE instead"
        )
    models: dict[str, type[BaseModel]] = {"": Settings}
    models |= {f"pipelines.{name}": module.Settings for name, module in pipeline_modules().items()}
    for place, model in models.items():
        table: Any = raw
        for part in place.split(".") if place else []:
            table = table.get(part, {}) if isinstance(table, dict) else {}
        for path in _secret_paths(model, table, place):
            name = PREFIX + path.replace(".", "__").replace("-", "_").upper()
            raise Misconfigured(f"{path}: a secret does not belong in the file; set {name} or {name}_FILE instead")


def _secret_paths(model: type[BaseModel], table: Any, place: str) -> Iterator[str]:
    if not isinstance(table, dict):
        return
    for name, field in model.model_fields.items():
        if name not in table:
            continue
        here = f"{place}.{name}" if place else name
        types: list[Any] = [field.annotation, *get_args(field.annotation)]
        if SecretStr in types:
            yield here
        for inner in types:
            if not (isinstance(inner, type) and issubclass(inner, BaseModel)):
                continue
            values = table[name]
            if len(types) == 1:
                yield from _secret_paths(inner, values, here)
            elif isinstance(values, dict):
                for key, value in values.items():
                    yield from _secret_paths(inner, value, f"{here}.{key}")
