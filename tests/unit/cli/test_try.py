"""`tidings try`, alone and in batches, without any configuration."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.routing import Route
from tests.support.commands import tidings

from tidings.sample.ai_endpoint import AiEndpoint, build
from tidings.sample.serving import StandIn

GLAD = "Bitcoin surges to a record high as investors celebrate strong gains and growing adoption."
PAGE = f"""<html lang="en"><head><title>A fine day</title></head><body><nav>Menu</nav><article><h1>A fine day</h1>
<p>{GLAD}</p><p>The harbour was full of ships, and every one of them carried good news to the people of the town.</p>
<p>Nobody could remember a better morning, said the harbour master, who has kept the log for thirty years.</p>
</article></body></html>"""


def test_a_page_is_extracted_from_a_file(home: Path) -> None:
    (home / "page.html").write_text(PAGE)
    ended = tidings("try", "extract", "page.html", "--json")
    answer = json.loads(ended.out)
    assert ended.code == 0
    assert answer["title"] == "A fine day"
    assert GLAD in answer["text"]
    assert "Menu" not in answer["text"]
    assert "canonical_url" not in answer
    assert answer["ms"] > 0


def test_a_mirror_in_the_configuration_is_no_hindrance(home: Path) -> None:
    (home / "tidings.toml").write_text(f"[pipelines.hacker_news]\n[mirrors.site]\nurl = 'file://{home}/copy'\n")

    ended = tidings("try", "sentiment", "-", "--json", given=GLAD.encode())

    assert ended.code == 0, ended.err


def test_texts_and_pages_are_judged_alike(home: Path) -> None:
    from_text = tidings("try", "sentiment", "-", "--json", given=GLAD.encode())
    from_page = tidings("try", "sentiment", "-", "--json", given=PAGE.encode())
    assert json.loads(from_text.out)["label"] == json.loads(from_page.out)["label"] == "positive"


def test_people_read_a_summary_and_who_gave_it(home: Path) -> None:
    ended = tidings("try", "summarize", "-", given=PAGE.encode())
    assert ended.code == 0
    assert "by local" in ended.out


def test_an_issue_is_analyzed_from_text_or_facts(home: Path) -> None:
    plain = tidings("try", "issue", "-", given=b"Fix a typo in the README\nThe word recieve is misspelled.")
    facts = {"title": "Fix a typo in the README", "body": "recieve", "labels": ["good first issue"]}
    known = tidings("try", "issue", "-", "--json", given=json.dumps(facts).encode())
    assert "difficulty:" in plain.out
    assert set(json.loads(known.out)) >= {"introduction", "difficulty", "reasons", "first_steps", "model", "ms"}


def test_a_batch_keeps_order_and_reports_bad_lines(home: Path) -> None:
    lines = [json.dumps({"id": n, "text": GLAD}) for n in range(20)]
    lines[3:3] = ["nonsense", "[1]", '{"id": "empty"}', ""]
    (home / "in.jsonl").write_text("\n".join(lines))
    ended = tidings("try", "sentiment", "--jsonl", "in.jsonl", "out.jsonl")
    answers = [json.loads(line) for line in (home / "out.jsonl").read_text().splitlines()]
    assert ended.code == 1
    assert "3 of the lines failed" in ended.err
    assert [a["id"] for a in answers if "error" not in a] == list(range(20))
    assert [a["error"].partition(":")[0] for a in answers if "error" in a] == [
        "line 4 is not JSON", "line 5", "line 6"
    ]  # fmt: skip
    assert all(set(a) >= {"id", "label", "score", "ms"} for a in answers if "error" not in a)


@pytest.mark.parametrize(("question", "field"), [("extract", "text"), ("summarize", "summary"), ("sentiment", "label")])
def test_a_batch_of_pages_answers_in_the_documented_shape(question: str, field: str, home: Path) -> None:
    given = json.dumps({"id": "p", "html": PAGE}).encode()
    ended = tidings("try", question, "--jsonl", "-", "-", given=given)
    (answer,) = [json.loads(line) for line in ended.out.splitlines()]
    assert (ended.code, answer["id"]) == (0, "p")
    assert answer[field]


async def test_an_address_is_fetched_and_read(home: Path) -> None:
    async def page(request: Request) -> Response:
        return HTMLResponse(PAGE)

    async def text(request: Request) -> Response:
        return PlainTextResponse(f"<not a page> {GLAD}")

    async with StandIn(Starlette(routes=[Route("/page", page), Route("/text", text)])) as server:
        (home / "tidings.toml").write_text(f"obey_robots = false\nloopback_allowed = ['127.0.0.1:{server.port}']\n")
        read = await asyncio.to_thread(tidings, "try", "extract", f"{server.url}/page", "--json")
        judged = await asyncio.to_thread(tidings, "try", "sentiment", f"{server.url}/text", "--json")
    assert json.loads(read.out)["title"] == "A fine day"
    assert json.loads(judged.out)["label"] == "positive"


async def test_a_configured_endpoint_answers_instead(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    endpoint = AiEndpoint()
    monkeypatch.setenv("TIDINGS_AI__API_KEY", "a-key-for-the-stand-in")
    async with StandIn(build(endpoint)) as server:
        (home / "tidings.toml").write_text(f"[ai]\nbase_url = '{server.url}/v1'\nmodel = 'm'\n[notifiers.discord.a]\n")
        ended = await asyncio.to_thread(tidings, "try", "summarize", "-", "--json", given=PAGE.encode())
    assert json.loads(ended.out)["model"] == "m"
    assert endpoint.keys == ["Bearer a-key-for-the-stand-in"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("judge", "x"), "use one of extract"),
        (("extract",), "--jsonl IN OUT"),
        (("extract", "a", "--jsonl", "b", "c"), "--jsonl IN OUT"),
        (("extract", "nowhere.html"), "nowhere.html cannot be read"),
        (("extract", "--jsonl", "nowhere.jsonl", "out.jsonl"), "nowhere.jsonl cannot be opened"),
        (("extract", "--jsonl", "tidings.toml", "no/where.jsonl"), "no/where.jsonl cannot be opened"),
        (("issue", "bad.json"), "the issue cannot be read"),
    ],
)
def test_bad_input_is_named(arguments: tuple[str, ...], says: str, home: Path) -> None:
    (home / "tidings.toml").write_text("")
    (home / "bad.json").write_text('{"title": 3}')
    ended = tidings("try", *arguments)
    assert ended.code == 2
    assert says in ended.err


def test_a_private_address_is_refused(home: Path) -> None:
    ended = tidings("try", "extract", "http://127.0.0.1:80/")
    assert ended.code == 1
    assert "refused" in ended.err
