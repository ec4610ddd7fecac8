"""`tidings route test` and `notify preview` in this process."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.support.commands import tidings

CONFIG = """
[pipelines.eu_funding]
[notifiers.discord.eu.texts]
username = "EU funds"
[[routes]]
pipeline = "eu_funding"
channel = "eu"
[routes.texts]
title = "{title|upper}"
footer = "EU Fund Tracker • Powered by Cloudflare Workers"
"""


@pytest.fixture(autouse=True)
def configured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tidings.toml").write_text(CONFIG)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TIDINGS_NOTIFIERS__DISCORD__EU__WEBHOOK_URL", "https://discord.com/api/webhooks/1/abc")


def test_a_route_is_tried_on_an_empty_store() -> None:
    ended = tidings(
        "route", "test", "programme:HORIZON status:open", "--pipeline", "eu_funding", "--since", "7d", "--json"
    )

    assert ended.code == 0, ended.err
    told = json.loads(ended.out)
    assert (told["sent"], told["considered"], told["days"]) == (0, 0, {})


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["statos:open", "--pipeline", "eu_funding"], "status"),
        (["", "--pipeline", "eu_found"], "there is no pipeline 'eu_found'; on are eu_funding"),
        (["", "--pipeline", "eu_funding", "--since", "soon"], "write a length of time"),
        (["", "--pipeline", "eu_funding", "--channel", "no"], "no route leads from eu_funding to 'no'"),
    ],
)
def test_a_mistake_in_a_trial_is_told(arguments: list[str], problem: str) -> None:
    ended = tidings("route", "test", *arguments)

    assert ended.code == 2
    assert problem in ended.err


def test_a_preview_shows_the_words_of_the_route() -> None:
    told = json.loads(tidings("notify", "preview", "--channel", "eu").out)

    assert told["username"] == "EU funds"
    assert told["embeds"][0]["title"] == "QUIET HARBOURS: A SAMPLE NOTICE FROM TIDINGS"
    assert told["embeds"][0]["footer"]["text"].startswith("EU Fund Tracker • Powered by Cloudflare Workers • ")


def test_a_preview_can_be_drawn() -> None:
    drawn = tidings("notify", "preview", "--channel", "eu", "--draw").out

    assert "| QUIET HARBOURS: A SAMPLE NOTICE FROM TIDINGS" in drawn
    assert "| Budget: EUR 20 million" in drawn
