"""The command line as real processes: a whole life, bad input of every kind, a full disk, a reader who leaves early."""

from __future__ import annotations

import asyncio
import json
import os
import pty
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

import pytest
from starlette.types import Receive, Scope, Send
from tests.support.commands import Ended
from tests.support.disks import small_disk
from tests.support.environment import clean_environment
from tests.support.processes import fleet, free_port
from tests.support.waiting import until

from tidings.sample.hacker_news import HackerNews
from tidings.sample.serving import StandIn
from tidings.sample.world import World

HN = "[pipelines.hacker_news]\nbase_url = 'http://127.0.0.1:1/v0'\n"


async def ran(folder: Path, *arguments: str, given: bytes = b"", environment: dict[str, str] | None = None) -> Ended:
    """Run one command to its end."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tidings", *arguments, cwd=folder, env=clean_environment(**environment or {}),
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    async with asyncio.timeout(90):
        out, err = await process.communicate(given)
    assert process.returncode is not None
    return Ended(process.returncode, out.decode(), err.decode())


def settings_of(world: World, port: int) -> dict[str, str]:
    """Return a world's configuration as environment."""
    settings: dict[str, Any] = world.settings("sqlite:///tidings.db")
    settings["loopback_allowed"] = [f"{host}:{place}" for host, place in sorted(world.loopback())]
    settings["server"] = {"port": port}
    return {f"TIDINGS_{n.upper()}": v if isinstance(v, str) else json.dumps(v) for n, v in settings.items()}


def asked(port: int, path: str, body: Any = None, token: str = "") -> tuple[int, Any]:
    """Ask the server; return status and JSON."""
    data = None if body is None else json.dumps(body).encode()
    headers = {"content-type": "application/json", **({"authorization": f"Bearer {token}"} if token else {})}
    try:
        with urlopen(Request(f"http://127.0.0.1:{port}{path}", data, headers), timeout=20) as answer:
            return answer.status, json.loads(answer.read() or b"null")
    except HTTPError as error:
        with error:
            return error.code, json.loads(error.read() or b"null")
    except URLError:
        return 0, None


@pytest.mark.slow
async def test_a_whole_life_with_everything_on(tmp_path: Path) -> None:
    """Run on the sample world, look at it by every command, back it up meanwhile, stop, and start again."""
    port = free_port()
    async with World() as world, fleet(tmp_path) as processes:
        environment = settings_of(world, port)

        async def say(*arguments: str) -> Any:
            ended = await ran(tmp_path, *arguments, environment=environment)
            assert ended.code == 0, (arguments, ended)
            return json.loads(ended.out) if "--json" in arguments else ended.out

        running = await processes.start("run", **environment)
        await until(lambda: asked(port, "/readyz")[0] == 200, watching=(running,))
        await until(
            lambda: (asked(port, "/api/v1/hacker_news/items")[1] or {}).get("total", 0) > 300, watching=(running,)
        )
        await until(lambda: len(world.discord.messages) > 3, watching=(running,), seconds=90)

        status = await say("status", "--json")
        assert set(status["pipelines"]) == {"bitcoin_news", "hacker_news", "eu_funding", "first_issues", "feeds"}
        items = await say("items", "--pipeline", "hacker_news", "--state", "completed", "--limit", "3", "--json")
        life = await say("explain", "hacker_news", items[0]["kind"], items[0]["key"], "--json")
        assert life["life"][0]["kind"] == "born"
        assert (await say("search", "type:story", "--json"))["total"] > 5
        assert "paused source" in await say("pause", "--source", "hacker_news.firebase")
        assert "source:hacker_news.firebase" in (await say("status", "--json"))["paused"]
        await say("resume", "--source", "hacker_news.firebase")
        assert len((await say("export", "hacker_news")).splitlines()) > 300
        backup = await say("backup", "kept.db", "--json")
        assert backup["items"] > 400
        assert (await say("doctor", "--json"))["ok"]

        assert await running.stop() == 0
        again = await processes.start("run", **environment)
        await until(lambda: again.has_started, watching=(again,))
        assert "checked in full" not in again.log.read_text()
        await again.kill()
        third = await processes.start("run", **environment)
        await until(lambda: third.has_started, watching=(third,))
        assert "checked in full and is sound" in third.log.read_text()
        assert await third.stop() == 0
        logs = "".join(process.log.read_text() for process in (running, again, third))
        assert "Traceback" not in logs
        for secret in (world.discord.webhook_url("").rpartition("/")[2], "sample-key"):
            assert secret not in logs


BAD = [
    (2, ("nonsense",)),
    (2, ("run", "--role", "king")),
    (2, ("run", "--pipeline", "nope")),
    (2, ("run", "--log-format", "xml")),
    (2, ("run", "--config", "nowhere.toml")),
    (2, ("work", "--lane", "fast")),
    (2, ("work", "--pipeline", "nope")),
    (2, ("discover", "nope")),
    (2, ("discover", "hacker_news", "--source", "nope")),
    (2, ("discover", "hacker_news", "--from", "1")),
    (2, ("discover", "hacker_news", "--from", "5", "--to", "1")),
    (2, ("discover", "hacker_news", "--from", "0", "--to", "1")),
    (2, ("discover", "feeds", "--from", "1", "--to", "5")),
    (1, ("discover", "hacker_news")),
    (2, ("items", "--limit", "0")),
    (1, ("explain", "hacker_news", "item", "1")),
    (2, ("search", 'a "b')),
    (2, ("workflow", "nope")),
    (2, ("workflow", "hacker_news", "--format", "png")),
    (1, ("transition", "hacker_news", "item", "1", "mark_failed")),
    (2, ("replay", "nope")),
    (2, ("replay", "hacker_news", "--from", "nowhere")),
    (2, ("replay", "hacker_news", "--where", 'a "b')),
    (2, ("dead", "revive")),
    (1, ("dead", "revive", "77")),
    (2, ("pause",)),
    (2, ("pause", "--pipeline", "nope")),
    (2, ("upload", "feeds", "-")),
    (2, ("upload", "hacker_news", "nowhere.json")),
    (2, ("try", "nope", "-")),
    (2, ("export", "nope")),
    (2, ("backup", "no/where/kept.db")),
    (2, ("restore", "nowhere.db")),
    (2, ("db", "rebuild", "nothing")),
    (2, ("token", "create", "--scope", "admin")),
    (1, ("token", "revoke", "nope")),
    (2, ("notify", "test", "nope")),
    (2, ("notify", "preview", "--channel", "nope")),
    (2, ("init", "no/where/tidings.toml")),
]


@pytest.mark.slow
async def test_bad_input_ends_with_its_code_and_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "tidings.toml").write_text(f"{HN}[pipelines.feeds]\n")
    assert (await ran(tmp_path, "db", "migrate")).code == 0
    turns = asyncio.Semaphore(2)

    async def one(code: int, arguments: tuple[str, ...]) -> list[str]:
        async with turns:
            ended = await ran(tmp_path, *arguments)
        told = ended.err + (ended.out if arguments[0] == "discover" else "")
        problems = [] if ended.code == code else [f"code {ended.code} instead of {code}"]
        problems += ["no message"] if not told.strip() else []
        problems += ["a traceback"] if "Traceback" in told or "mistake in tidings itself" in told else []
        return [f"{arguments}: {', '.join(problems)}: {told}"] if problems else []

    assert [line for lines in await asyncio.gather(*(one(*case) for case in BAD)) for line in lines] == []


@pytest.fixture
def disk_folder(tmp_path: Path) -> Iterator[Any]:
    with small_disk(tmp_path / "disk", megabytes=16) as disk:
        yield disk


@pytest.mark.slow
async def test_a_full_disk_refuses_uploads_and_goes_on_by_itself(tmp_path: Path, disk_folder: Any) -> None:
    """507 and no acknowledgment while it is full; afterwards everything that was acknowledged is there."""
    if not disk_folder.mounted:
        return  # A process's own limits cannot be changed from here; the store's part is shown elsewhere.
    port, file = free_port(), disk_folder.folder / "tidings.db"
    (tmp_path / "tidings.toml").write_text(
        f'database_url = "sqlite:///{file}"\n[server]\nport = {port}\n{HN}every = 3600\n'
    )
    token = (await ran(tmp_path, "token", "create", "--scope", "ingest")).out.strip()

    def send(number: int) -> int:
        story = {"id": number, "type": "story", "by": "ada", "time": 1_700_000_000, "title": f"Story {number}"}
        return asked(port, "/api/v1/hacker_news/items", story, token)[0]

    async with fleet(tmp_path) as processes:
        running = await processes.start("run")
        await until(lambda: asked(port, "/readyz")[0] == 200, watching=(running,))
        accepted = [n for n in range(1, 11) if await asyncio.to_thread(send, n) == 202]
        assert len(accepted) == 10
        await until(lambda: asked(port, "/api/v1/hacker_news/items")[1]["total"] == 10, watching=(running,))
        with disk_folder.full(file):
            refused = [await asyncio.to_thread(send, n) for n in range(11, 16)]
            assert refused == [507] * 5
            assert (await asyncio.to_thread(asked, port, "/api/v1/hacker_news/items"))[1]["total"] == 10
            assert running.is_alive
        accepted += [n for n in range(21, 31) if await asyncio.to_thread(send, n) == 202]
        assert len(accepted) == 20
        await until(lambda: asked(port, "/api/v1/hacker_news/items")[1]["total"] == 20, watching=(running,))
        assert await running.stop() == 0


async def test_work_by_a_timer_opens_and_ends_alerts(tmp_path: Path) -> None:
    settings = HN + "max_retries = 1\n[alerts]\ndead_letters = 0\n"
    (tmp_path / "tidings.toml").write_text(settings)
    podcast = {"id": 5, "type": "podcast", "by": "ada", "time": 1_700_000_000, "title": "No item"}
    (tmp_path / "items.json").write_text(json.dumps([podcast]))
    assert (await ran(tmp_path, "upload", "hacker_news", "items.json")).code == 0
    assert "alert fired name=dead letters" in (await ran(tmp_path, "work", "--until-idle")).err
    assert "ALERT dead letters (hacker_news): 1 dead letters" in (await ran(tmp_path, "status")).out

    assert (await ran(tmp_path, "dead", "purge", "--all", "--yes")).code == 0
    ended = (await ran(tmp_path, "work", "--until-idle")).err
    assert "alert cleared name=dead letters" in ended
    assert "lost" not in ended, "what an operator removed is not lost"
    assert "ALERT" not in (await ran(tmp_path, "status")).out


async def test_a_reader_who_leaves_early_is_no_trouble(tmp_path: Path) -> None:
    (tmp_path / "tidings.toml").write_text(HN)
    story = {"type": "story", "by": "ada", "time": 1_700_000_000, "title": "Long", "text": "word " * 200}
    stories = [{**story, "id": number} for number in range(1, 401)]
    (tmp_path / "items.json").write_text(json.dumps(stories))
    assert (await ran(tmp_path, "upload", "hacker_news", "items.json")).code == 0
    assert (await ran(tmp_path, "work", "--until-idle")).code == 0
    for words in ("export hacker_news", "items --limit 400", "search long --limit 400"):
        command = f"{sys.executable} -m tidings {words} | head -n 1; echo ${{PIPESTATUS[0]}}"
        shell = await asyncio.create_subprocess_exec(
            "bash", "-c", command, cwd=tmp_path, env=clean_environment(),
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        )  # fmt: skip
        out, err = await shell.communicate()
        assert out.decode().splitlines()[1:] == ["0"], words
        assert err == b""


def all_of(controller: int) -> str:
    """Read what is drawn on a terminal until nobody holds it any more."""
    drawn = b""
    while True:
        try:
            drawn += os.read(controller, 1 << 16)
        except OSError:
            return drawn.decode()


async def on_terminal(folder: Path, *arguments: str, columns: int = 200) -> tuple[int, str]:
    """Run one command on a terminal; return its exit code and what it drew."""
    controller, terminal = pty.openpty()
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tidings", *arguments, cwd=folder, stdout=terminal, stderr=terminal,
        env=clean_environment(TERM="xterm", COLUMNS=str(columns)),
    )  # fmt: skip
    os.close(terminal)
    async with asyncio.timeout(90):
        drawn = await asyncio.to_thread(all_of, controller)
        code = await process.wait()
    os.close(controller)
    return code, drawn


async def test_bars_are_drawn_on_terminals_only(tmp_path: Path) -> None:
    (tmp_path / "tidings.toml").write_text(HN)
    assert (
        await ran(tmp_path, "upload", "hacker_news", "-", given=b'{"id": 1, "type": "story", "title": "One"}')
    ).code == 0
    plain = await ran(tmp_path, "backup", "one.db")
    assert "\x1b" not in plain.out + plain.err
    code, drawn = await on_terminal(tmp_path, "backup", "two.db")
    assert code == 0
    assert "backing up" in drawn
    assert "\x1b" in drawn


async def test_a_narrow_terminal_gets_words_in_one_piece(tmp_path: Path) -> None:
    (tmp_path / "tidings.toml").write_text(f"{HN}[pipelines.first_issues]\n[pipelines.bitcoin_news]\n")
    title = "Why I deleted my dashboard and kept the three numbers"
    story = {"id": 9_000_001, "type": "story", "by": "ada", "time": 1_700_000_000, "title": title}
    assert (await ran(tmp_path, "upload", "hacker_news", "-", given=json.dumps(story).encode())).code == 0
    assert (await ran(tmp_path, "work", "--until-idle")).code == 0

    _, status = await on_terminal(tmp_path, "status", columns=80)
    _, items = await on_terminal(tmp_path, "items", columns=80)

    assert "first_issues" in status.splitlines()[2]
    assert "rejected" in status.splitlines()[0]
    assert title in items
    assert "[hacker_news item 9000001]" in items


async def test_a_range_of_ids_is_read_with_a_bar_and_goes_on_where_it_was_stopped(tmp_path: Path) -> None:
    world = HackerNews({"id": n, "type": "story", "title": f"Story {n}", "time": 1_700_000_000} for n in range(1, 601))
    waiting, gate = asyncio.Event(), asyncio.Event()

    async def gated(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"] == "/v0/item/250.json":
            waiting.set()
            await gate.wait()
        await world.app(scope, receive, send)

    async with StandIn(gated) as server:
        (tmp_path / "tidings.toml").write_text(f"[pipelines.hacker_news]\nbase_url = '{server.url}/v0'\n")
        stopped = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "tidings", "discover", "hacker_news", "--from", "1", "--to", "590",
            cwd=tmp_path, env=clean_environment(), stderr=asyncio.subprocess.PIPE,
        )  # fmt: skip
        async with asyncio.timeout(60):
            await waiting.wait()
            stopped.send_signal(signal.SIGINT)
            _, said = await stopped.communicate()
        gate.set()
        assert stopped.returncode == 130
        assert said.decode() == "tidings: stopped; the same command goes on from there\n"

        asked = len(world.asked)
        code, drawn = await on_terminal(tmp_path, "discover", "hacker_news", "--from", "1", "--to", "590")
        assert code == 0
        assert "100%" in drawn
        assert "read from 1 to 590" in drawn
        assert "item/200.json" not in world.asked[asked:]
        assert "item/201.json" in world.asked[asked:]

        refused = await ran(tmp_path, "discover", "hacker_news", "--from", "601", "--to", "602")
        assert (refused.code, refused.out) == (2, "")
        assert "the newest item is 600" in refused.err
