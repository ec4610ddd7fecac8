"""init: what it writes and refuses."""

from __future__ import annotations

import re
from pathlib import Path

from tests.support.commands import tidings

from tidings.config import load
from tidings.wiring import wiring_from

HOOK = "TIDINGS_NOTIFIERS__DISCORD__{}__WEBHOOK_URL"


def test_init_writes_what_runs_without_a_key(home: Path) -> None:
    assert tidings("init").code == 0
    settings = load()
    assert set(settings.pipelines) == {"hacker_news", "bitcoin_news", "eu_funding", "first_issues", "feeds"}
    wiring = wiring_from(settings)
    assert all(pipeline.sources for pipeline in wiring.pipelines)


def test_everything_init_offers_can_be_filled_in(home: Path) -> None:
    tidings("init")
    text = (home / "tidings.toml").read_text()
    (home / "tidings.toml").write_text(re.sub(r"(?m)^# (?=\[|[a-z_]+ = )", "", text))
    named = set(re.findall(r"TIDINGS_[A-Z_]+(?=[\s.,;]|$)", text)) - {
        "TIDINGS_DATABASE_URL",
        "TIDINGS_AI__API_KEY_FILE",
    }
    values = dict.fromkeys(named, "a-key-of-some-length") | {
        HOOK.format("FUNDING"): "https://discord.com/api/webhooks/1/abc"
    }
    settings = load(environment={name: value for name, value in values.items() if "__" in name})
    wiring = wiring_from(settings)
    assert wiring.ai is not None
    assert [(r.pipeline, r.channel) for r in wiring.routes] == [("eu_funding", "funding")]
    assert {"bitcoin_news.newsdata", "bitcoin_news.apitube"} <= {s.name for p in wiring.pipelines for s in p.sources}


def test_init_overwrites_only_when_told(home: Path) -> None:
    (home / "tidings.toml").write_text("# mine")
    refused = tidings("init")
    assert (refused.code, "--force" in refused.err) == (2, True)
    assert (home / "tidings.toml").read_text() == "# mine"
    assert tidings("init", "--force").code == 0
    assert tidings("init", "no/where.toml").code == 2
