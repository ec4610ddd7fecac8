"""The API's own description, taken at its word: every example is sent, every limit tried, every slip told."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest
from tests.support.engine import Engine
from tests.unit.serve.asgi import Client

from tidings.backends import backend_of
from tidings.config import Server
from tidings.pipelines import bitcoin_news, feeds, hacker_news
from tidings.serve.application import build

ITEMS = "/api/v1/hacker_news/items"


def engine(database_url: str) -> Engine:
    stories = hacker_news.build(hacker_news.Settings())
    news = bitcoin_news.build(bitcoin_news.Settings(feeds=()))
    return Engine(database_url, [stories, news, feeds.build(feeds.Settings())])


def client_of(running: Engine) -> Client:
    backend = backend_of(running.app, Server().model_dump(), loopback=True)
    return Client(build(backend), token=running.store.tokens.create("test", "operate"))


def bodies(document: dict[str, Any]) -> Iterator[tuple[str, str, str, dict[str, Any]]]:
    """Yield method, address, media type and description of every body, with the examples of its parameters put in."""
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            for each in operation.get("parameters", ()):
                if each["in"] == "path":
                    path = path.replace(f"{{{each['name']}}}", str(each["example"]))
            for media_type, described in operation.get("requestBody", {}).get("content", {}).items():
                yield method.upper(), path, media_type, described


async def test_every_example_of_a_body_fits_its_schema_and_is_accepted(database_url: str) -> None:
    async with engine(database_url) as running:
        client = client_of(running)
        document = (await client.get("/openapi.json")).json
        statuses: dict[str, int] = {}
        for method, path, media_type, described in bodies(document):
            example = described["example"]
            form = {**described["schema"], "components": document["components"]}
            jsonschema.Draft202012Validator(form).validate(example)
            for coding in ("identity", "gzip") if path.startswith(ITEMS) else ("identity",):
                content = (example if isinstance(example, str) else json.dumps(example)).encode()
                content = gzip.compress(content) if coding == "gzip" else content
                headers = {"content-type": media_type, "content-encoding": coding}
                answer = await client.send(method, path, headers=headers, content=content)
                statuses[f"{path} {media_type} {coding}"] = answer.status
                if path.startswith(ITEMS):
                    assert answer.json["accepted"] + answer.json["duplicate"] == 1, answer.json
                    assert answer.json["rejected"] == []
        await client.post("/api/v1/pipelines/hacker_news/resume")  # One of the examples paused it.
        await running.work_until_idle()
        shown = await client.get(f"{ITEMS}/9000001")

    uploads = {name: status for name, status in statuses.items() if name.startswith(ITEMS)}
    assert len(uploads) == 2 * (1 + 5)
    assert set(uploads.values()) == {202}
    # What operators do needs an item, a channel or a state that may not be there; no body is at fault.
    assert set(statuses.values()) <= {200, 201, 202, 404, 409}, statuses
    assert shown.json["title"].startswith("We replaced our message broker")


async def test_the_body_of_a_post_is_described_field_by_field(database_url: str) -> None:
    async with engine(database_url) as running:
        document = (await client_of(running).get("/openapi.json")).json
    one = document["paths"][ITEMS]["post"]["requestBody"]["content"]["application/json"]["schema"]
    many = document["paths"][f"{ITEMS}/bulk"]["post"]["requestBody"]["content"]
    posted = document["components"]["schemas"]["PostedItem"]

    assert one == {"$ref": "#/components/schemas/PostedItem"}
    assert many["application/json"]["schema"] == {"type": "array", "items": one, "maxItems": 5_000}
    assert many["application/x-ndjson"]["schema"]["contentSchema"] == one
    assert posted["required"] == ["id"]
    assert posted["properties"]["id"]["minimum"] == 1
    assert posted["properties"]["type"]["anyOf"][0]["enum"] == ["story", "comment", "job", "poll", "pollopt"]
    assert {"by", "time", "title", "url", "text", "kids", "parent", "deleted"} <= set(posted["properties"])


@pytest.mark.parametrize(
    ("path", "name", "schema"),
    [
        ("/api/v1/history", "series", {"maxLength": 2_000}),
        (f"{ITEMS}", "since", {"maxLength": 2_000}),
        (f"{ITEMS}/bulk", "Idempotency-Key", {"minLength": 1, "maxLength": 255}),
        ("/api/v1/changes", "pipeline", {"enum": ["hacker_news", "bitcoin_news", "feeds"]}),
    ],
)
async def test_limits_of_parameters_stand_in_the_document(
    database_url: str, path: str, name: str, schema: dict[str, Any]
) -> None:
    async with engine(database_url) as running:
        operations = (await client_of(running).get("/openapi.json")).json["paths"][path]
    (found,) = [p for each in operations.values() for p in each.get("parameters", ()) if p["name"] == name]

    assert schema.items() <= found["schema"].items()
    assert found["required"] == (name in ("series", "pipeline"))
    if name in ("series", "since"):
        assert found["schema"]["pattern"]


@pytest.mark.parametrize(
    ("address", "says"),
    [
        ("/api/v1/history", "series is needed."),
        ("/api/v1/history?series=deu:hacker_news", "series must be one of due, dead"),
        ("/api/v1/history?series=due:hackernews", "series must be one of due, dead"),
        ("/api/v1/changes", "pipeline is needed."),
        ("/api/v1/items?state=complted", "did you mean completed?"),
        ("/api/v1/items?pipeline=hackernews", "did you mean hacker_news?"),
        ("/api/v1/items?kind=itme", "did you mean item?"),
        ("/api/v1/items?pipeline=hacker_news&kind=item&key=1&state=faild", "did you mean failed?"),
        ("/api/v1/deliveries?channel=nope", "No channel is called nope"),
        (f"{ITEMS}?type=storie", "type must be one of story, comment, job, poll, pollopt."),
        (f"{ITEMS}?since=0000-01-01", "since must be a date"),
        (f"{ITEMS}?since=2026-02-30", "since must be a date"),
        (f"{ITEMS}?since=20260101", "since must be a date"),
        (f"{ITEMS}?since=99999-01-01", "since must be a date"),
        (f"/api/v1/hacker_news/search?since={'2' * 3000}", "since must have 0 to 2,000 characters."),
        (f"{ITEMS}?sicne=2026-01-01", "not known here"),
    ],
)
async def test_bad_values_are_told_with_their_place(database_url: str, address: str, says: str) -> None:
    async with engine(database_url) as running:
        answer = await client_of(running).get(address)

    assert answer.status == 400
    assert says in answer.json["detail"]
    assert answer.json["where"].startswith("query")


async def test_misspelled_values_are_told_wherever_one_searches(database_url: str) -> None:
    async with engine(database_url) as running:
        client = client_of(running)
        for path in ("/api/v1/search", "/api/v1/hacker_news/search"):
            for query in ("q=type:storie", "type=storie"):
                assert "did you mean `type:story`?" in (await client.get(f"{path}?{query}")).json["warnings"][0]
        for form in ("json", "atom", "rss"):
            assert "did you mean" in (await client.get(f"/feeds/hacker_news.{form}", q="type:storie")).text
        assert "did you mean" in (await client.get("/search", q="type:storie")).text
        assert "did you mean completed?" in (await client.get("/items", state="complted")).text
        assert "must be one of story" in (await client.get("/pipelines/hacker_news/items", type="storie")).text
        assert "No channel" in (await client.get("/deliveries", channel="nope")).text.replace(
            "no channel", "No channel"
        )


@pytest.mark.parametrize("key", ["", "k" * 256])
async def test_a_key_beyond_its_limits_is_refused_before_the_body_is_read(database_url: str, key: str) -> None:
    async with engine(database_url) as running:
        answer = await client_of(running).post(f"{ITEMS}/bulk", [{"id": 1}], headers={"idempotency-key": key})

    assert answer.status == 400
    assert answer.json["detail"] == "Idempotency-Key must have 1 to 255 characters."
    assert answer.json["where"] == "header Idempotency-Key"


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ({"all": "yes"}, "Expected `bool`, got `str`"),
        ({"item": 5}, "Expected `str | null`, got `int`"),
        ({"item": "5x"}, "This is no item's id."),
        ({"item": ""}, "Say which"),
        ({"pipeline": ["hacker_news"]}, "Expected `str | null`, got `array`"),
        ({"pipeline": "hackernews"}, "did you mean hacker_news?"),
        ({"all": False}, "Say which"),
        ({"al": True}, "unknown field `al`"),
        ([], "Expected `object`, got `array`"),
        (None, "Say which"),
    ],
)
async def test_revive_refuses_what_has_the_wrong_type(database_url: str, body: Any, says: str) -> None:
    async with engine(database_url) as running:
        answer = await client_of(running).post("/api/v1/dead-letters/revive", body)

    assert answer.status == 400
    assert says in answer.json["detail"]
    assert answer.json["where"].startswith("body")
