"""TOML and environment become checked settings. Every mistake is named with its key and with what helps."""

from tidings.config.environment import NOT_SETTINGS, PREFIX, overlay, variable
from tidings.config.loading import (
    DEFAULT_FILE,
    check,
    load,
    parse_toml,
    read_toml,
    refuse_secrets,
)
from tidings.config.plugins import notifier_modules, pipeline_modules
from tidings.config.routes import RouteSettings
from tidings.config.tables import (
    Ai,
    AiLane,
    Alerts,
    FetchLane,
    Lanes,
    LaneSettings,
    MirrorSettings,
    NotifyLane,
    PureLane,
    Seconds,
    Server,
    Settings,
    SettingsTable,
)

__all__ = [
    "DEFAULT_FILE",
    "NOT_SETTINGS",
    "PREFIX",
    "Ai",
    "AiLane",
    "Alerts",
    "FetchLane",
    "LaneSettings",
    "Lanes",
    "MirrorSettings",
    "NotifyLane",
    "PureLane",
    "RouteSettings",
    "Seconds",
    "Server",
    "Settings",
    "SettingsTable",
    "check",
    "load",
    "notifier_modules",
    "overlay",
    "parse_toml",
    "pipeline_modules",
    "read_toml",
    "refuse_secrets",
    "variable",
]
