from __future__ import annotations

import pytest
from tests.unit.serve.asgi import Client
from tests.unit.serve.world import Story, World

from tidings.serve.searching import marked


async def test_search_finds_across_pipelines(client: Client):
    answer = await client.get("/api/v1/search", q="fell")

    assert answer.json["total"] == 6
    assert {hit["pipeline"] for hit in answer.json["hits"]} == {"bitcoin_news"}
    assert "<mark>fell</mark>" in answer.json["hits"][0]["snippet"]


async def test_search_within_a_pipeline_takes_shorthands(client: Client):
    path = "/api/v1/hacker_news/search"

    assert [hit["id"] for hit in (await client.get(path, type="story")).json["hits"]] == ["1"]
    assert [hit["id"] for hit in (await client.get(path, by="bob")).json["hits"]] == ["3"]
    assert [hit["id"] for hit in (await client.get(path, min_score=100)).json["hits"]] == ["1"]
    assert [hit["id"] for hit in (await client.get(path, q="type:job score:<5")).json["hits"]] == ["10"]
    assert (await client.get(path, since="2030-01-01")).json["total"] == 0


async def test_search_pages_by_cursor(client: Client):
    first = await client.get("/api/v1/search", q="fell", limit=4)
    second = await client.get("/api/v1/search", q="fell", limit=4, cursor=first.json["next_cursor"])

    assert len(first.json["hits"]) == 4
    assert len(second.json["hits"]) == 2
    assert second.json["next_cursor"] is None


async def test_a_bad_query_points_at_the_character(client: Client):
    answer = await client.get("/api/v1/search", q='bitcoin "open')

    assert answer.status == 400
    assert answer.json["position"] == 8
    assert answer.json["pointer"].splitlines()[1] == " " * 8 + "^"


async def test_snippets_are_escaped_before_they_are_marked(client: Client, world: World):
    world.add_story(Story(id=66, type="comment", by="eve", text="<script>alert(1)</script> needle <mark>x</mark>"))

    answer = await client.get("/api/v1/search", q="needle")

    snippet = answer.json["hits"][0]["snippet"]
    assert "<script" not in snippet
    assert "<mark>needle</mark>" in snippet
    assert snippet.count("<mark>") == 1


@pytest.mark.parametrize(
    ("snippet", "shown"),
    [
        ("plain \x02word\x03", "plain <mark>word</mark>"),
        ("&lt;b&gt; \x02x\x03", "&amp;lt;b&amp;gt; <mark>x</mark>"),
        ("<b> \x02x\x03", "&lt;b&gt; <mark>x</mark>"),
        ("\x02 never closed <i>", " never closed &lt;i&gt;"),
        ("\x02<img src=x onerror=alert(1)>\x03", "<mark>&lt;img src=x onerror=alert(1)&gt;</mark>"),
    ],
)
def test_marked_snippets_are_inert(snippet: str, shown: str):
    assert marked(snippet) == shown
