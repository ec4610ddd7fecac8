"""token: what it prints, keeps and refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.support.commands import tidings

HOOK = "TIDINGS_NOTIFIERS__DISCORD__{}__WEBHOOK_URL"


def test_a_token_is_shown_once_and_kept_as_a_hash(home: Path) -> None:
    made = tidings("token", "create", "--scope", "read", "--name", "phone")
    token = made.out.strip()
    assert made.code == 0
    assert token.startswith("tid_")
    assert token not in made.err
    assert token.encode() not in b"".join(p.read_bytes() for p in home.glob("tidings.db*"))
    (listed,) = json.loads(tidings("token", "list", "--json").out)
    assert (listed["name"], listed["scope"], listed["revoked_at"]) == ("phone", "read", None)
    assert "phone" in tidings("token", "list").out
    again = tidings("token", "create", "--scope", "read", "--name", "phone")
    assert (again.code, "already" in again.err) == (2, True)
    assert tidings("token", "revoke", "phone").code == 0
    assert tidings("token", "revoke", "phone").code == 1
    assert json.loads(tidings("token", "create", "--scope", "operate", "--name", "phone", "--json").out)["token"]


def test_an_unknown_scope_is_refused(home: Path) -> None:
    ended = tidings("token", "create", "--scope", "admin")
    assert ended.code == 2
    assert "read, reader, ingest, operate" in ended.err
    assert list(home.iterdir()) == []


def test_an_open_bind_is_allowed_once_there_is_a_token(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (home / "tidings.toml").write_text("[server]\nhost = '0.0.0.0'\n[pipelines.feeds]\n")
    assert json.loads(tidings("doctor", "--offline", "--json").out)["ok"] is False
    assert tidings("token", "create", "--scope", "read").code == 0
    assert json.loads(tidings("doctor", "--offline", "--json").out)["ok"] is True
