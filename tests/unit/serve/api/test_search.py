from __future__ import annotations

from typing import Any

import pytest
from tests.unit.serve.asgi import Client
from tests.unit.serve.world import Article, Story, World

from tidings.serve.api.search import marked

HN = "/api/v1/hacker_news/search"


async def test_search_finds_across_pipelines(client: Client):
    answer = await client.get("/api/v1/search", q="fell")

    assert answer.json["total"] == 6
    assert {hit["pipeline"] for hit in answer.json["hits"]} == {"bitcoin_news"}
    assert "<mark>fell</mark>" in answer.json["hits"][0]["snippet"]


async def test_search_within_a_pipeline_takes_shorthands(client: Client):
    assert [hit["id"] for hit in (await client.get(HN, type="story")).json["hits"]] == ["1"]
    assert [hit["id"] for hit in (await client.get(HN, by="bob")).json["hits"]] == ["3"]
    assert [hit["id"] for hit in (await client.get(HN, min_score=100)).json["hits"]] == ["1"]
    assert [hit["id"] for hit in (await client.get(HN, q="type:job score:<5")).json["hits"]] == ["10"]
    assert (await client.get(HN, since="2030-01-01")).json["total"] == 0
    assert (await client.get(HN, q="type:story OR type:job", by="nobody")).json["total"] == 0


async def test_search_pages_by_cursor(client: Client):
    first = await client.get("/api/v1/search", q="fell", limit=4)
    second = await client.get("/api/v1/search", q="fell", limit=4, cursor=first.json["next_cursor"])

    assert len(first.json["hits"]) == 4
    assert len(second.json["hits"]) == 2
    assert second.json["next_cursor"] is None


async def test_pages_of_a_search_back_from_now_show_each_hit_once(client: Client, world: World):
    for number in range(200, 205):
        world.add_story(Story(id=number, type="comment", by="eve", text="needle"), age_hours=(number - 199) / 10)
    shown: list[str] = []
    cursor: dict[str, Any] = {}
    while True:
        answer = await client.get(HN, q="needle after:1d", limit=2, **cursor)
        shown += [hit["id"] for hit in answer.json["hits"]]
        if answer.json["next_cursor"] is None:
            break
        cursor = {"cursor": answer.json["next_cursor"]}
        world.clock.advance(seconds=1)

    assert sorted(shown) == ["200", "201", "202", "203", "204"]


@pytest.mark.parametrize("cursor", ["x", "1.", "zz.abc", "19fa.bm9uc2Vuc2U"])
async def test_a_cursor_of_another_search_is_refused(client: Client, cursor: str):
    assert (await client.get("/api/v1/search", q="fell", cursor=cursor)).status == 400


async def test_a_bad_query_points_at_the_character(client: Client):
    answer = await client.get("/api/v1/search", q='bitcoin "open')

    assert answer.status == 400
    assert answer.json["position"] == 8
    assert answer.json["pointer"].splitlines()[1] == " " * 8 + "^"


@pytest.mark.parametrize(
    ("query", "warning"),
    [
        ({"q": "tpye:story"}, "did you mean `type:`?"),
        ({"q": "type:storie"}, "did you mean `type:story`? known are story, comment, job"),
        ({"type": "storie"}, "did you mean `type:story`?"),
        ({"q": "sentiment:positive"}, "hacker_news does not have it"),
    ],
)
async def test_what_may_be_a_slip_is_told(client: Client, query: dict[str, Any], warning: str):
    answer = await client.get(HN, **query)

    assert answer.status == 200
    assert warning in answer.json["warnings"][0]


async def test_a_headline_is_no_qualifier(client: Client, world: World):
    world.add_story(Story(id=70, type="story", by="ada", title="Ask HN: Who is hiring?"))

    answer = await client.get("/api/v1/search", q="Ask HN: who is hiring")

    assert [hit["id"] for hit in answer.json["hits"]] == ["70"]
    assert answer.json["warnings"] == []


async def test_hits_can_be_ordered(client: Client, world: World):
    world.add_story(Story(id=71, type="comment", by="a", text="needle", score=5), age_hours=3)
    world.add_story(Story(id=72, type="comment", by="b", text="needle needle haystack", score=50), age_hours=2)
    world.add_story(Story(id=73, type="comment", by="c", text="needle", score=1), age_hours=1)

    async def ids(order: str) -> list[str]:
        return [hit["id"] for hit in (await client.get("/api/v1/search", q="needle", order=order)).json["hits"]]

    assert await ids("newest") == ["73", "72", "71"]
    assert await ids("score") == ["72", "71", "73"]
    assert sorted(await ids("relevance")) == ["71", "72", "73"]
    assert (await client.get("/api/v1/search", q="needle", order="best")).status == 400


async def test_facets_and_explanations_come_when_asked_for(client: Client):
    plain = (await client.get(HN)).json
    asked = (await client.get(HN, q="", facets="true", explain="true", limit=1)).json

    assert "facets" not in plain
    assert "explanation" not in plain["hits"][0]
    assert asked["facets"]["type"]["story"] == 1
    assert sum(asked["facets"]["pipeline"].values()) == asked["total"]
    explained = (await client.get("/api/v1/search", q="fell", explain="true")).json
    assert explained["hits"][0]["explanation"]


async def test_a_word_that_nothing_has_is_replaced_by_the_nearest(client: Client, world: World):
    world.add_story(Story(id=74, type="comment", by="a", text="a lighthouse in winter"))

    answer = (await client.get("/api/v1/search", q="lighthuose")).json

    assert answer["instead"] == "lighthouse"
    assert [hit["id"] for hit in answer["hits"]] == ["74"]


async def test_a_thread_can_be_searched(client: Client):
    below = (await client.get(HN, q="story:1 type:comment")).json
    comments = (await client.get(HN, q="type:comment")).json

    assert 0 < below["total"] <= comments["total"]
    assert (await client.get(HN, q="thread:10 type:comment")).json["total"] == 0


async def test_what_was_withdrawn_is_not_shown_though_the_index_lags(client: Client, world: World):
    world.add_story(Story(id=75, type="comment", by="eve", text="needle one"))
    world.add_story(Story(id=76, type="comment", by="eve", text="needle two"))
    world.add_story(Story(id=77, type="comment", by="eve", text="needle three"))
    world.search.catch_up()
    world.search.is_stalled = True
    world.withdraw("75")
    world.add_story(Story(id=76, type="comment", deleted=True))

    answer = (await client.get("/api/v1/search", q="needle")).json

    assert [hit["id"] for hit in answer["hits"]] == ["77"]
    assert (await client.get("/feeds/all.json", q="needle")).json["items"][0]["content_html"] == "<p>needle three</p>"


async def suggested(client: Client, **asked: Any) -> list[str]:
    return (await client.get("/api/v1/suggest", **asked)).json["suggestions"]


async def test_suggestions_complete_words_names_and_values(client: Client, world: World):
    world.add_story(Story(id=78, type="comment", by="eve", text="a lighthouse in winter"))

    assert "winter lighthouse" in await suggested(client, q="winter light")
    assert "winter sentiment:" in await suggested(client, q="winter sent")
    assert await suggested(client, q="-type:st", pipeline="hacker_news") == ["-type:story"]
    assert await suggested(client, q="sentiment:", pipeline="bitcoin_news") == [
        f"sentiment:{mood}" for mood in ("positive", "negative", "neutral", "unknown")
    ]
    assert await suggested(client, q='by:eve "a ligh') == ['by:eve "a lighthouse"']
    assert await suggested(client, q='title:"sent') == await suggested(client, q='"a lighthouse"') == []
    assert await suggested(client, q='type:"sto', pipeline="hacker_news") == ['type:"story"']
    assert await suggested(client, q="by:eve text:ligh") == ["by:eve text:lighthouse"]
    assert await suggested(client, q="") == []
    assert len(await suggested(client, q="t", limit=1)) <= 1


async def test_similar_items_are_found_by_rare_words(client: Client, world: World):
    for number, text in enumerate(("the keeper of the lighthouse", "a lighthouse keeper", "nothing of the sort"), 80):
        world.add_story(Story(id=number, type="comment", by="eve", text=text))

    answer = await client.get("/api/v1/hacker_news/items/80/similar", limit=1)

    assert [hit["id"] for hit in answer.json["hits"]] == ["81"]
    assert (await client.get("/api/v1/hacker_news/items/999/similar")).status == 404


async def test_a_card_may_be_called_similar(client: Client, world: World):
    world.add_article(Article(id="owner/similar", title="Alike", link="https://news.example/alike"))

    answer = await client.get("/api/v1/bitcoin_news/articles/owner/similar")

    assert answer.json["id"] == "owner/similar"


async def test_snippets_are_escaped_before_they_are_marked(client: Client, world: World):
    world.add_story(Story(id=66, type="comment", by="eve", text="<script>alert(1)</script> needle <mark>x</mark>"))

    hit = (await client.get("/api/v1/search", q="needle")).json["hits"][0]

    for shown in (hit["snippet"], hit["passages"]["text"]):
        assert "<script" not in shown
        assert "<mark>needle</mark>" in shown
        assert shown.count("<mark>") == 1


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
