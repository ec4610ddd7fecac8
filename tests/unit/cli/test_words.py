"""What commands say: in whole words, once, with what helps."""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer.main
from tests.support.commands import tidings

from tidings import __version__
from tidings.cli.main import app

STORY = {"id": 9_000_001, "type": "story", "by": "ada", "time": 1_700_000_000, "score": 7}
SLIPS = [
    ("--state", "complted", "completed"),
    ("--pipeline", "hackernews", "hacker_news"),
    ("--kind", "itme", "item"),
    ("--standing", "daed", "dead"),
]


def every_command(command: Any, words: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    yield words
    for name, below in getattr(command, "commands", {}).items():
        yield from every_command(below, (*words, name))


def test_every_command_explains_itself_in_whole_sentences() -> None:
    for words in every_command(typer.main.get_command(app)):
        ended = tidings(*words, "--help")
        assert ended.code == 0, words
        assert "..." not in ended.out.replace("[ARGS]...", ""), words
        assert not re.search(r"<(str|int|path|float|bool|list)", ended.out), words
        assert "{" not in ended.out.splitlines()[0], words
        for line in ended.out.splitlines():
            # A name alone on its line has nothing to say for itself, unless the text begins on the next.
            assert len(line) <= 80, (words, line)


def test_the_version_is_told() -> None:
    assert tidings("--version").out == f"tidings {__version__}\n"


def with_stories(home: Path, *stories: dict[str, object]) -> None:
    (home / "tidings.toml").write_text("[pipelines.hacker_news]\nbase_url = 'http://127.0.0.1:1/v0'\n")
    lines = "\n".join(json.dumps({**STORY, **story}) for story in stories)
    assert tidings("upload", "hacker_news", "-", given=lines.encode()).code == 0
    assert tidings("work", "--until-idle").code == 0


def test_no_items_yet_is_told_from_none_that_fit(home: Path) -> None:
    (home / "tidings.toml").write_text("[pipelines.hacker_news]\n")

    assert tidings("items").out.startswith("no items yet; `tidings discover PIPELINE` finds some")
    assert tidings("items", "--state", "failed").out == "no item fits; leave an option out to see more\n"
    for option, value, meant in SLIPS:
        ended = tidings("items", option, value)
        assert (ended.code, f"did you mean {meant}?" in ended.err) == (2, True)
    assert "did you mean hacker_news?" in tidings("dead", "revive", "--pipeline", "hackernews").err
    assert "hacker_news: no items yet" in tidings("status").out


def test_a_hit_says_its_title_once_and_its_text_on_one_line(home: Path) -> None:
    with_stories(home, {"title": "A lighthouse"}, {"id": 2, "title": "Lamps", "text": "In a lighthouse.<p>By the sea."})

    out = tidings("search", "lighthouse").out

    assert out.count("A lighthouse") == 1
    assert "  In a lighthouse. By the sea." in out
    assert [line for line in out.splitlines() if not line.strip()] == []
    assert out.endswith("2 found\n")
    assert tidings("search", "lighthouse", "--limit", "1").out.endswith("2 found; --limit 2 shows more\n")


def test_hits_for_programs_hold_no_raw_highlight_bytes(home: Path) -> None:
    with_stories(home, {"title": "A lighthouse"})

    ended = tidings("search", "lighthouse", "--json", "--explain")

    found = json.loads(ended.out)
    (hit,) = found["hits"]
    assert hit["snippet"] == "A <mark>lighthouse</mark>"
    assert hit["explanation"]
    assert "\\u0002" not in ended.out
    assert (found["total"], found["instead"], found["warnings"]) == (1, None, [])


def test_a_slip_in_a_query_is_told(home: Path) -> None:
    with_stories(home, {"title": "A lighthouse"})

    misspelled = tidings("search", "tpye:story lighthouse")
    unknown = tidings("search", "type:storie")
    replaced = tidings("search", "lighthuose")

    assert "did you mean `type:`?" in misspelled.err
    assert "known are story, comment" in unknown.err
    assert replaced.out.startswith("showing results for lighthouse\n")
    assert "there is no pipeline 'hackers'" in tidings("search", "a", "--pipeline", "hackers").err


def test_hits_can_be_ordered_and_explained(home: Path) -> None:
    with_stories(home, {"id": 1, "title": "lighthouse", "score": 3}, {"id": 2, "title": "lighthouse", "score": 9})

    ids = [
        line.split()[-1].rstrip("]")
        for line in tidings("search", "lighthouse", "--order", "score").out.splitlines()[:-1:2]
    ]

    assert ids == ["2", "1"]
    assert tidings("search", "lighthouse", "--order", "best").code == 2
    assert len(tidings("search", "lighthouse", "--explain").out) > len(tidings("search", "lighthouse").out)


def test_a_life_line_names_no_tokens_where_none_were_used(home: Path) -> None:
    with_stories(home, {"title": "A lighthouse"})

    out = tidings("explain", "hacker_news", "item", "9000001").out

    assert "completed, done." in out
    assert "0 tokens" not in out


def test_a_taken_port_is_told_with_the_next_one() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        ended = tidings("demo", "--port", str(port))

    assert ended.code == 2
    assert f"try --port {port + 1} (make run PORT={port + 1})" in ended.err


def test_a_server_whose_port_is_taken_says_what_to_set(home: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        (home / "tidings.toml").write_text(f"[pipelines.hacker_news]\n[server]\nport = {port}\n")
        ended = tidings("run", "--role", "serve")

    assert ended.code == 2
    assert f"cannot listen on 127.0.0.1:{port}: Address already in use; set another server.port" in ended.err
    assert f"TIDINGS_SERVER__PORT={port + 1}" in ended.err
