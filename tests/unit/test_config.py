"""Every mistake in the configuration ends with exit code 2, names its key, shows no secret and writes nothing."""

from __future__ import annotations

import stat
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from tests.support.commands import tidings

from tidings.config import load
from tidings.model.errors import Misconfigured
from tidings.process.shares import Share
from tidings.wiring import wiring_from

SECRET = "canary-5f1d0c9b7e"
HN = "[pipelines.hacker_news]\n"


@dataclass(frozen=True)
class Bad:
    """One bad configuration: the file, what the environment adds, and what the message must name."""

    file: str | bytes
    names: str
    environment: dict[str, str] = field(default_factory=dict)


def webhook(address: str) -> dict[str, str]:
    return {"TIDINGS_NOTIFIERS__DISCORD__ROOM__WEBHOOK_URL": address}


BAD: dict[str, Bad] = {
    # The file itself.
    "empty file": Bad("", "no pipeline is on"),
    "only comments": Bad("# nothing\n", "no pipeline is on"),
    "byte order mark": Bad(b"\xef\xbb\xbf" + HN.encode(), "byte order mark"),
    "not UTF-8": Bad("user_agent = 'caf\xe9'".encode("latin-1"), "not UTF-8"),
    "UTF-16": Bad(HN.encode("utf-16"), "not UTF-8"),
    "NUL byte": Bad(b"database_url = 'a\x00b'", "database_url"),
    "not TOML": Bad("{}", "not valid TOML"),
    "JSON": Bad('{"pipelines": {"hacker_news": {}}}', "not valid TOML"),
    "YAML": Bad("pipelines:\n  hacker_news:\n", "near pipelines"),
    "value missing": Bad(f"{HN}every =\n", "near every"),
    "quote never closed": Bad(f'user_agent = "{SECRET}\n{HN}', "near user_agent"),
    "table never closed": Bad("[pipelines.hacker_news\n", "near [pipelines.hacker_news"),
    "duplicate key": Bad("lease_seconds = 900\nlease_seconds = 901", "near lease_seconds"),
    "duplicate key in a table": Bad(f"{HN}every = 60\nevery = 61\n", "near every"),
    "redefined table": Bad("[ai]\nmodel = 'a'\n[ai]\nmodel = 'b'\n", "'ai'"),
    "dotted key redefines": Bad("server.port = 1\n[server]\nhost = 'x'\n", "server"),
    "thousand brackets": Bad("a = " + "[" * 5000, "not valid TOML"),
    # Types.
    "text for a number": Bad("dead_letter_days = 'many'", "dead_letter_days"),
    "number for a text": Bad("database_url = 3", "database_url"),
    "number for a table": Bad("lanes = 3", "lanes"),
    "text for a table": Bad("server = 'here'", "server"),
    "table for a number": Bad("[server.port]\nnumber = 8000\n", "server.port"),
    "list for a text": Bad("user_agent = ['a']", "user_agent"),
    "date for a number": Bad("intake_days = 2026-01-01", "intake_days"),
    "text for a switch": Bad("obey_robots = 'perhaps'", "obey_robots"),
    "fraction for a whole number": Bad("[lanes.fetch]\nconcurrency = 1.5\n", "lanes.fetch.concurrency"),
    "table for the list of routes": Bad("[routes]\npipeline = 'x'\n", "routes"),
    "pipelines as a number": Bad("pipelines = 3", "pipelines"),
    "pipeline as a switch": Bad("[pipelines]\nhacker_news = true\n", "pipelines.hacker_news"),
    "channel as a text": Bad("[notifiers.discord]\nroom = 'x'\n", "notifiers.discord.room"),
    # Numbers.
    "nan": Bad("per_host_delay_seconds = nan", "per_host_delay_seconds"),
    "inf": Bad("journal_days = inf", "journal_days"),
    "minus inf in a list": Bad(f"{HN}[pipelines.feeds]\nfeeds = [-inf]\n", "pipelines.feeds.feeds.0"),
    "nan by environment": Bad(HN, "alerts.api_errors", {"TIDINGS_ALERTS__API_ERRORS": "nan"}),
    "negative days": Bad("dead_letter_days = -1", "dead_letter_days"),
    "negative delay": Bad("per_host_delay_seconds = -0.5", "per_host_delay_seconds"),
    "lease of no time": Bad("lease_seconds = 0", "lease_seconds"),
    "port too high": Bad("[server]\nport = 65536\n", "server.port"),
    "share above one": Bad("[alerts]\napi_errors = 2.0\n", "alerts.api_errors"),
    "no concurrency": Bad("[lanes.ai]\nconcurrency = 0\n", "lanes.ai.concurrency"),
    "no rate": Bad("[ai]\nrate_per_minute = 0\n", "ai.rate_per_minute"),
    "negative price": Bad("[ai]\nprice_in = -1\n", "ai.price_in"),
    "no pages": Bad("[pipelines.bitcoin_news]\nmax_pages = 0\n", "pipelines.bitcoin_news.max_pages"),
    # Times.
    "unknown unit": Bad(f"{HN}every = '3 fortnights'\n", "pipelines.hacker_news.every"),
    "cron where a length is asked": Bad(f"{HN}every = '61 * * * *'\n", "pipelines.hacker_news.every"),
    "negative length": Bad("lease_seconds = '-5 min'", "lease_seconds"),
    "window shorter than the first wait": Bad(
        f"{HN}retry_window_hours = 0.01\nretry_base_seconds = 60\n", "retry_base_seconds"
    ),
    "longest wait below the shortest": Bad(
        "[pipelines.feeds]\nmin_interval = '2 h'\nmax_interval = '1 h'\n", "max_interval"
    ),
    # Names.
    "unknown key": Bad("databse_url = 'sqlite:///a.db'", "did you mean database_url?"),
    "unknown table": Bad("[serverr]\nport = 1\n", "did you mean server?"),
    "unknown nested key": Bad("[server]\nprot = 1\n", "did you mean port?"),
    "unknown key of a lane": Bad("[lanes.pure]\nbatches = 1\n", "did you mean batch?"),
    "unknown lane": Bad("[lanes.fast]\nbatch = 1\n", "lanes.fast"),
    "unknown lane of a pipeline": Bad("[pipelines.feeds.lanes.fast]\nbatch = 1\n", "pipelines.feeds.lanes.fast"),
    "no rate of a pipeline": Bad("[pipelines.feeds.lanes.ai]\nrate_per_minute = 0\n", "feeds.lanes.ai.rate_per_minute"),
    "places of all pure steps": Bad("[lanes.pure]\nconcurrency = 2\n", "there is no such setting"),
    "places of pure steps": Bad("[pipelines.feeds.lanes.pure]\nconcurrency = 1\n", "there is no such setting"),
    "unknown key of a channel": Bad("[notifiers.discord.room]\nalert = true\n", "did you mean alerts?"),
    "unknown notifier": Bad("[notifiers.pager.room]\n", "notifiers.pager"),
    "unknown pipeline": Bad("[pipelines.hackernews]\n", "did you mean hacker_news?"),
    "unknown key of a pipeline": Bad(f"{HN}max_retry = 3\n", "did you mean max_retries?"),
    "unknown environment name": Bad(HN, "TIDINGS_DATABASE", {"TIDINGS_DATABASE": "sqlite:///a.db"}),
    "unknown nested environment name": Bad(HN, "did you mean port?", {"TIDINGS_SERVER__PROT": "1"}),
    "unknown pipeline by environment": Bad(HN, "pipelines.nope", {"TIDINGS_PIPELINES__NOPE__EVERY": "1"}),
    "environment through a value": Bad(
        "user_agent = 'x'\n" + HN, "TIDINGS_USER_AGENT__NAME", {"TIDINGS_USER_AGENT__NAME": "1"}
    ),
    "unknown choice": Bad("durability = 'quite-safe'", "durability"),
    "unknown policy": Bad("[notifiers.discord.room]\npolicy = 'maybe'\n", "notifiers.discord.room.policy"),
    # Secrets.
    "key of the AI in the file": Bad(f"[ai]\napi_key = '{SECRET}'\n", "TIDINGS_AI__API_KEY"),
    "webhook in the file": Bad(
        f"[notifiers.discord.room]\nwebhook_url = 'https://discord.com/api/webhooks/1/{SECRET}'\n",
        "TIDINGS_NOTIFIERS__DISCORD__ROOM__WEBHOOK_URL",
    ),
    "address of Apprise in the file": Bad(
        f"[notifiers.apprise.mail]\nurl = 'mailtos://me:{SECRET}@example.org'\n",
        "TIDINGS_NOTIFIERS__APPRISE__MAIL__URL",
    ),
    "token of a pipeline in the file": Bad(
        f"[pipelines.first_issues]\ntoken = '{SECRET}'\n", "TIDINGS_PIPELINES__FIRST_ISSUES__TOKEN"
    ),
    "password of the database in the file": Bad(
        f"database_url = 'postgresql://me:{SECRET}@host/name'\n", "TIDINGS_DATABASE_URL"
    ),
    "secret of the wrong type": Bad(f"[ai]\napi_key = ['{SECRET}']\n", "ai.api_key"),
    "secret file missing": Bad(HN, "TIDINGS_AI__API_KEY_FILE", {"TIDINGS_AI__API_KEY_FILE": "/nowhere/at/all"}),
    "secret file for all to read": Bad(HN, "chmod 600", {"TIDINGS_AI__API_KEY_FILE": "open.secret"}),
    "secret file not text": Bad(HN, "TIDINGS_AI__API_KEY_FILE", {"TIDINGS_AI__API_KEY_FILE": "binary.secret"}),
    # What does not fit together.
    "webhook missing": Bad(f"{HN}[notifiers.discord.room]\n", "TIDINGS_NOTIFIERS__DISCORD__ROOM__WEBHOOK_URL"),
    "webhook elsewhere": Bad(HN, "notifiers.discord.room", webhook(f"https://evil.example/api/webhooks/1/{SECRET}")),
    "webhook on a host that looks alike": Bad(
        HN, "notifiers.discord.room", webhook(f"https://discord.com.evil.example/api/webhooks/1/{SECRET}")
    ),
    "webhook without encryption": Bad(
        HN, "notifiers.discord.room", webhook(f"http://discord.com/api/webhooks/1/{SECRET}")
    ),
    "webhook that is none": Bad(HN, "notifiers.discord.room", webhook(SECRET)),
    "sender called Discord": Bad(
        f"{HN}[notifiers.discord.room]\nusername = 'Discord'\n",
        "username",
        webhook("https://discord.com/api/webhooks/1/abc"),
    ),
    "route from nowhere": Bad(
        f"{HN}[[routes]]\npipeline = 'eu_funding'\nchannel = 'room'\n",
        "routes",
        webhook("https://discord.com/api/webhooks/1/abc"),
    ),
    "route to nowhere": Bad(f"{HN}[[routes]]\npipeline = 'hacker_news'\nchannel = 'room'\n", "routes"),
    "route that cannot be read": Bad(
        f"{HN}[[routes]]\npipeline = 'hacker_news'\nchannel = 'room'\nquery = 'type:\"story'\n",
        "never closed",
        webhook("https://discord.com/api/webhooks/1/abc"),
    ),
    "route with a misspelled qualifier": Bad(
        f"{HN}[[routes]]\npipeline = 'hacker_news'\nchannel = 'room'\nquery = 'scroe:>100'\n",
        "did you mean `score:`",
        webhook("https://discord.com/api/webhooks/1/abc"),
    ),
    "route for a type that is none": Bad(
        f"{HN}[[routes]]\npipeline = 'hacker_news'\nchannel = 'room'\nquery = 'type:storie'\n",
        "known are story, comment",
        webhook("https://discord.com/api/webhooks/1/abc"),
    ),
    "route within a thread": Bad(
        f"{HN}[[routes]]\npipeline = 'hacker_news'\nchannel = 'room'\nquery = 'a OR -story:1'\n",
        "a notice stands alone",
        webhook("https://discord.com/api/webhooks/1/abc"),
    ),
    "route without a channel": Bad(f"{HN}[[routes]]\npipeline = 'hacker_news'\n", "routes.0.channel"),
    "endpoint without a model": Bad(f"{HN}[ai]\nbase_url = 'http://127.0.0.1:1/v1'\n", "ai.model"),
    "endpoint that is no address": Bad(f"{HN}[ai]\nbase_url = 'api'\nmodel = 'm'\n", "ai.base_url"),
    "endpoint with credentials": Bad(
        f"{HN}[ai]\nbase_url = 'https://me:{SECRET}@api.example/v1'\nmodel = 'm'\n", "ai.base_url"
    ),
    "source that is no address": Bad(f"{HN}base_url = 'firebase'\n", "pipelines.hacker_news"),
    "feed that is no address": Bad("[pipelines.feeds]\nfeeds = ['ftp://a.example/feed']\n", "pipelines.feeds.feeds.0"),
    "feed named twice": Bad(
        "[pipelines.feeds]\nfeeds = ['https://a.example/f', 'https://a.example/f']\n", "named twice"
    ),
    "repository without an owner": Bad(
        "[pipelines.first_issues]\nrepositories = ['tidings']\n", "pipelines.first_issues.repositories.0"
    ),
    "unknown kind of database": Bad(f"database_url = 'mysql://host/name'\n{HN}", "database_url"),
    "SQLite without a file": Bad(f"database_url = 'sqlite:///'\n{HN}", "database_url"),
    "SQLite in memory": Bad(f"database_url = 'sqlite:///:memory:'\n{HN}", "database_url"),
    "loopback that is none": Bad(f"loopback_allowed = ['10.0.0.1:80']\n{HN}", "loopback_allowed"),
    "root path with a dot": Bad(f"{HN}[server]\nroot_path = '../up'\n", "server.root_path"),
    "open bind without a token": Bad(f"{HN}[server]\nhost = '0.0.0.0'\n", "server.host"),
    "open bind by environment": Bad(HN, "server.host", {"TIDINGS_SERVER__HOST": "::"}),
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, no_settings: None) -> Path:
    """A folder to start in, with secret files that are wrong in two ways, and an environment without settings."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "open.secret").write_text(SECRET)
    (tmp_path / "open.secret").chmod(0o644)
    (tmp_path / "binary.secret").write_bytes(b"\xff\xfe\x00" + SECRET.encode())
    (tmp_path / "binary.secret").chmod(0o600)
    return tmp_path


@pytest.mark.parametrize("name", BAD)
def test_a_bad_configuration_is_refused(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bad = BAD[name]
    for variable, value in bad.environment.items():
        monkeypatch.setenv(variable, value)
    content = bad.file if isinstance(bad.file, bytes) else bad.file.encode()
    (folder / "tidings.toml").write_bytes(content)
    before = sorted(p.name for p in folder.iterdir())

    ended = tidings("run")

    assert ended.code == 2, ended
    assert bad.names in ended.err
    assert ended.err.startswith("tidings: ")
    assert "Traceback" not in ended.err
    assert SECRET not in ended.err + ended.out
    assert sorted(p.name for p in folder.iterdir()) == before


def test_there_are_at_least_sixty() -> None:
    assert len(BAD) >= 60


def test_all_mistakes_are_told_at_once(folder: Path) -> None:
    (folder / "tidings.toml").write_text(
        "databse_url = 'x'\n[server]\nport = 70000\n[pipelines.hackernews]\n[pipelines.feeds]\nfeeds = 3\n"
    )

    ended = tidings("status")

    assert ended.code == 2
    assert ended.err.splitlines() == [
        "tidings: 4 settings are wrong:",
        "  server.port: write 65535 or less",
        "  databse_url: there is no such setting; did you mean database_url?",
        "  pipelines.hackernews: there is no such pipeline; did you mean hacker_news?",
        "  pipelines.feeds.feeds: write a list",
    ]


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("TIDINGS_SERVER__PORT", "80x", "TIDINGS_SERVER__PORT (server.port): write a whole number"),
        ("TIDINGS_SERVR__PORT", "80", "TIDINGS_SERVR__PORT (servr): there is no such setting; did you mean server?"),
        ("TIDINGS_LANES__AI__BATCH", "0", "TIDINGS_LANES__AI__BATCH (lanes.ai.batch): write 1 or more"),
        (
            "TIDINGS_PIPELINES__FEEDS__EVRY",
            "1",
            "TIDINGS_PIPELINES__FEEDS__EVRY (pipelines.feeds.evry): there is no such",
        ),
        ("TIDINGS_DURABILITY", "quite", "TIDINGS_DURABILITY (durability): write 'power-safe' or 'crash-safe'"),
    ],
)
def test_a_mistake_of_the_environment_is_told_by_its_variable(name: str, value: str, message: str) -> None:
    with pytest.raises(Misconfigured) as told:
        load(environment={name: value})
    assert str(told.value).startswith(message)


def test_a_missing_file_says_what_writes_one(folder: Path) -> None:
    ended = tidings("run", "--config", "nowhere.toml")
    assert ended.code == 2
    assert "tidings init" in ended.err


def test_a_folder_in_place_of_the_file_is_named(folder: Path) -> None:
    (folder / "tidings.toml").mkdir()
    ended = tidings("run")
    assert ended.code == 2
    assert "cannot be read" in ended.err


def test_the_environment_overrides_and_secrets_come_from_it(folder: Path) -> None:
    (folder / "tidings.toml").write_text(f"{HN}every = '5 min'\n[notifiers.discord.my-room]\nalerts = true\n")
    (folder / "kept.secret").write_text(f"https://discord.com/api/webhooks/1/{SECRET}\n")
    (folder / "kept.secret").chmod(stat.S_IRUSR)
    settings = load(
        environment={
            "TIDINGS_PIPELINES__HACKER_NEWS__EVERY": "30 s",
            "TIDINGS_NOTIFIERS__DISCORD__MY_ROOM__WEBHOOK_URL_FILE": "kept.secret",
            "TIDINGS_SERVER__HOSTS": '["news.example"]',
            "TIDINGS_CLOCK_OFFSET_MS": "0",
        }
    )
    wiring = wiring_from(settings)
    assert settings.pipelines["hacker_news"].every == 30
    assert settings.server.hosts == ["news.example"]
    assert [spec.name for spec in wiring.channels] == ["my-room"]
    assert SECRET not in repr(settings) + repr(wiring)


def test_a_secret_file_that_everybody_may_read_is_refused(folder: Path) -> None:
    (folder / "tidings.toml").write_text(HN)
    with pytest.raises(Misconfigured, match="chmod 600"):
        load(environment={"TIDINGS_AI__API_KEY_FILE": "open.secret"})


def test_what_is_acknowledged_survives_a_power_cut_unless_one_gives_that_up(folder: Path) -> None:
    (folder / "tidings.toml").write_text(HN)
    assert wiring_from(load()).durability == "power-safe"
    assert wiring_from(load(environment={"TIDINGS_DURABILITY": "crash-safe"})).durability == "crash-safe"


def test_a_pipeline_can_be_switched_off_and_stay_written(folder: Path) -> None:
    (folder / "tidings.toml").write_text(f"{HN}enabled = false\n[pipelines.feeds]\n")
    assert list(load().pipelines) == ["feeds"]


ROUTED = f"""{HN}enabled = false
[pipelines.feeds]
[notifiers.discord.room]
[[routes]]
pipeline = "hacker_news"
channel = "room"
[[routes]]
pipeline = "feeds"
channel = "room"
"""


def test_routes_of_a_disabled_pipeline_rest(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "tidings.toml").write_text(ROUTED)
    for name, value in webhook("https://discord.com/api/webhooks/1/abc").items():
        monkeypatch.setenv(name, value)

    wiring = wiring_from(load())
    work, status, doctor = tidings("work", "--until-idle"), tidings("status"), tidings("doctor", "--offline")

    line = "hacker_news → room rests: pipelines.hacker_news.enabled is false"
    assert [route.pipeline for route in wiring.routes] == ["feeds"]
    assert (work.code, status.code, doctor.code) == (0, 0, 0), doctor.out
    assert work.err.count("route rests") == 1
    assert "pipeline=hacker_news" in work.err
    assert f"route {line}" in status.out.splitlines()
    assert f"advice   routes: {line}" in doctor.out.splitlines()


def test_routes_of_a_pipeline_that_the_environment_switches_off_rest(folder: Path) -> None:
    (folder / "tidings.toml").write_text(ROUTED)
    settings = load(
        environment={
            **webhook("https://discord.com/api/webhooks/1/abc"),
            "TIDINGS_PIPELINES__FEEDS__ENABLED": "false",
            "TIDINGS_PIPELINES__HACKER_NEWS__ENABLED": "true",
        }
    )

    assert [route.pipeline for route in wiring_from(settings).routes] == ["hacker_news"]


@pytest.mark.parametrize(
    ("name", "value"),
    [("FIRST_ISSUES__TOKEN", SECRET), ("FIRST_ISSUES__ENABLED", "true"), ("EU_FUNDING__EVERY", "1 h")],
)
def test_a_variable_alone_turns_no_pipeline_on(
    name: str, value: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "tidings.toml").write_text(HN)
    monkeypatch.setenv(f"TIDINGS_PIPELINES__{name}", value)

    doctor, work = tidings("doctor", "--offline"), tidings("work", "--until-idle")

    pipeline = name.partition("__")[0].lower()
    assert list(load().pipelines) == ["hacker_news"]
    line = f"off: TIDINGS_PIPELINES__{name} is set, but [pipelines.{pipeline}] is missing; write it to turn it on"
    assert f"advice   {pipeline}: {line}" in doctor.out.splitlines()
    assert f"[pipelines.{pipeline}] is missing" in work.err
    assert (doctor.code, work.code) == (0, 0)
    assert SECRET not in doctor.out + doctor.err + work.err


def test_a_table_that_the_environment_writes_is_a_table() -> None:
    assert list(load(environment={"TIDINGS_PIPELINES__FEEDS": '{"keep_days": 3}'}).pipelines) == ["feeds"]
    assert list(load(environment={"TIDINGS_PIPELINES": '{"feeds": {}}'}).pipelines) == ["feeds"]


def test_a_route_of_a_pipeline_without_a_table_is_told_what_is_missing(folder: Path) -> None:
    (folder / "tidings.toml").write_text(ROUTED.replace("[pipelines.feeds]\n", ""))
    variables = {**webhook("https://discord.com/api/webhooks/1/abc"), "TIDINGS_PIPELINES__FEEDS__KEEP_DAYS": "3"}

    with pytest.raises(Misconfigured, match=r"'feeds'.*\[pipelines\.feeds\] is missing"):
        wiring_from(load(environment=variables))


def test_two_channels_of_one_name_are_refused(folder: Path) -> None:
    settings = load(
        environment={
            **webhook("https://discord.com/api/webhooks/1/abc"),
            "TIDINGS_NOTIFIERS__APPRISE__ROOM__URL": "json://localhost",
        }
    )
    with pytest.raises(Misconfigured, match="two channels"):
        wiring_from(settings)


def test_a_lane_keeps_its_own_defaults_where_nothing_is_said(folder: Path) -> None:
    (folder / "tidings.toml").write_text("[lanes.fetch]\nbatch = 50\n[lanes.pure]\nrate_per_minute = 60\n")
    lanes = wiring_from(load()).lanes
    assert (lanes["fetch"].concurrency, lanes["fetch"].batch) == (16, 50)
    assert (lanes["pure"].concurrency, lanes["pure"].batch) == (1, 1000)
    assert lanes["notify"].concurrency == 1
    assert lanes["notify"].in_order


def test_a_pipeline_may_have_its_own_bounds_in_a_lane(folder: Path) -> None:
    (folder / "tidings.toml").write_text(
        "[pipelines.feeds]\n[pipelines.bitcoin_news.lanes.ai]\nrate_per_minute = 5\nbatch = 5\n"
    )
    wiring = wiring_from(load(environment={"TIDINGS_PIPELINES__FEEDS__LANES__FETCH__CONCURRENCY": "3"}))
    assert wiring.shares == {
        "feeds": {"fetch": Share(concurrency=3)},
        "bitcoin_news": {"ai": Share(batch=5, rate_per_minute=5)},
    }


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (
            "[pipelines.hacker_news.lanes.ai]\nbatch = 5\n",
            "pipelines.hacker_news.lanes.ai: hacker_news has no step in this lane; its lanes are pure",
        ),
        (
            "[pipelines.feeds.lanes.fetch]\nconcurrency = 17\n",
            "pipelines.feeds.lanes.fetch.concurrency: 17 is more than the 16 of the whole lane; raise lanes.fetch.c",
        ),
    ],
)
def test_what_a_lane_cannot_give_to_a_pipeline_is_refused(folder: Path, table: str, message: str) -> None:
    (folder / "tidings.toml").write_text(table)
    with pytest.raises(Misconfigured) as told:
        wiring_from(load(environment={}))
    assert str(told.value).startswith(message)


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("colour:red", "feeds has no field `colour:`"),
        ("sentiment:negative", "feeds has no field `sentiment:`"),  # of a pipeline that is off
        ("pipeline:bitcoin_news", "no"),
    ],
)
def test_a_route_that_asks_for_what_is_not_there_is_refused(folder: Path, query: str, message: str) -> None:
    (folder / "tidings.toml").write_text(f"{ROUTED}query = '{query}'\n")
    variables = webhook("https://discord.com/api/webhooks/1/abc")

    with pytest.raises(Misconfigured, match="routes: the query of") as told:
        wiring_from(load(environment=variables))
    assert message in str(told.value)


def test_a_route_may_ask_for_text_with_a_colon(folder: Path) -> None:
    (folder / "tidings.toml").write_text(f"{ROUTED}query = '\"colour:red\"'\n")
    assert wiring_from(load(environment=webhook("https://discord.com/api/webhooks/1/abc"))).routes
