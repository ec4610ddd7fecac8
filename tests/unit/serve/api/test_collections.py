from __future__ import annotations

import asyncio

from tests.support.waiting import until
from tests.unit.serve.asgi import Client
from tests.unit.serve.world import NOW_MS, Article, Story, World

from tidings.serve.application import build

ARTICLES = "/api/v1/bitcoin_news/articles"
ITEMS = "/api/v1/hacker_news/items"


async def test_a_collection_lists_its_cards_newest_first(client: Client):
    answer = await client.get(ARTICLES)

    assert answer.status == 200
    assert [card["id"] for card in answer.json["articles"]] == [f"a{n}" for n in range(8)]
    assert answer.json["total"] == 8
    assert answer.json["sentiment_counts"] == {"positive": 2, "negative": 2, "neutral": 2, "unknown": 2}
    assert answer.json["updated_at"].endswith("Z")
    assert answer.json["warnings"] == []
    assert answer.json["next_cursor"] is None


async def test_a_filter_narrows_the_list_and_not_the_counts(client: Client):
    answer = await client.get(ARTICLES, sentiment="positive")

    assert [card["id"] for card in answer.json["articles"]] == ["a0", "a4"]
    assert answer.json["total"] == 2
    assert answer.json["sentiment_counts"]["negative"] == 2


async def test_a_card_without_the_field_is_found_as_unknown(client: Client):
    answer = await client.get(ARTICLES, sentiment="unknown")

    assert [card["id"] for card in answer.json["articles"]] == ["a3", "a7"]


async def test_an_unknown_value_is_refused_and_named(client: Client):
    answer = await client.get(ARTICLES, sentiment="gloomy")

    assert answer.status == 400
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json["where"] == "query parameter sentiment"
    assert "positive" in answer.json["detail"]


async def test_an_unknown_parameter_suggests_the_nearest(client: Client):
    answer = await client.get(ARTICLES, sentimnt="positive")

    assert answer.status == 400
    assert answer.json["help"] == "Did you mean sentiment?"


async def test_cursors_walk_the_whole_list(client: Client):
    seen: list[str] = []
    cursor: str | None = None
    while True:
        path = f"{ARTICLES}?limit=3" + (f"&cursor={cursor}" if cursor else "")
        answer = await client.get(path)
        seen += [card["id"] for card in answer.json["articles"]]
        cursor = answer.json["next_cursor"]
        if cursor is None:
            break

    assert seen == [f"a{n}" for n in range(8)]


async def test_a_walk_goes_on_when_the_card_at_the_cursor_is_gone(client: Client, world: World):
    first = await client.get(ITEMS, limit=2)
    last = first.json["items"][-1]["id"]
    world.withdraw(str(last))

    second = await client.get(ITEMS, limit=10, cursor=first.json["next_cursor"])

    ids = [card["id"] for card in first.json["items"] + second.json["items"]]
    assert sorted(ids) == [1, 2, 3, 4, 10]


async def test_a_forged_cursor_is_refused(client: Client):
    for cursor in ("???", "bm9wZQ", "WzEsIFwiYlwiXQ", "W10"):
        assert (await client.get(ARTICLES, cursor=cursor)).status == 400


async def test_limits_are_kept(client: Client):
    for limit in ("0", "501", "-1", "ten", "1e2", ""):
        assert (await client.get(ARTICLES, limit=limit)).status == 400


async def test_a_missing_card_is_skipped_and_named(client: Client, world: World):
    world.list_ghost()

    answer = await client.get(ARTICLES)

    assert answer.status == 200
    assert answer.json["total"] == 8
    assert answer.json["warnings"] == ["article ghost is listed and not on the shelf"]


async def test_a_shelf_that_does_not_answer_is_a_503(client: Client, world: World):
    world.executor.is_down = True

    answer = await client.get(ARTICLES)

    assert answer.status == 503
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.headers["retry-after"] == "5"
    assert answer.json["type"] == "urn:tidings:problem:unavailable"


async def test_one_card_is_returned_as_it_stands_on_the_shelf(client: Client, world: World):
    answer = await client.get(f"{ARTICLES}/a2")

    entry = world.store.shelf.get("bitcoin_news", "article:a2")
    assert entry is not None
    assert answer.body == entry.value


async def test_ids_may_hold_slashes(client: Client, world: World):
    world.add_article(Article(id="owner/name", title="T", link="https://news.example/x"))

    assert (await client.get(f"{ARTICLES}/owner/name")).json["title"] == "T"
    assert (await client.get(f"{ARTICLES}/owner%2Fname")).json["title"] == "T"


async def test_an_unknown_card_is_a_404(client: Client):
    answer = await client.get(f"{ARTICLES}/nothing")

    assert answer.status == 404
    assert "article" in answer.json["detail"]


async def test_an_unchanged_answer_is_not_sent_again(client: Client):
    first = await client.get(ARTICLES)

    second = await client.get(ARTICLES, headers={"if-none-match": first.headers["etag"]})

    assert second.status == 304
    assert second.raw == b""
    assert second.headers["etag"] == first.headers["etag"]


async def test_answers_are_compressed_where_that_is_wanted(client: Client):
    plain = await client.get(ARTICLES)
    packed = await client.get(ARTICLES, headers={"accept-encoding": "br, gzip;q=0.8"})
    refused = await client.get(ARTICLES, headers={"accept-encoding": "gzip;q=0"})

    assert packed.headers["content-encoding"] == "gzip"
    assert packed.body == plain.body
    assert len(packed.raw) < len(plain.raw)
    assert "content-encoding" not in refused.headers


async def test_hot_reads_ask_the_shelf_once_in_a_while(client: Client, world: World):
    await client.get(ARTICLES)
    reads = world.executor.reads

    for _ in range(50):
        assert (await client.get(ARTICLES)).status == 200

    assert world.executor.reads == reads


async def test_a_change_is_seen_within_a_moment(client: Client, world: World):
    await client.get(ARTICLES)
    world.add_article(Article(id="new", title="New", link="https://news.example/new"), age_hours=0)

    async def is_seen() -> bool:
        return bool((await client.get(ARTICLES)).json["total"] == 9)

    await until(is_seen)

    assert (await client.get(ARTICLES)).json["articles"][0]["id"] in ("new", "a0")


async def test_many_requests_at_once_make_one_answer(world: World):
    client = Client(build(world.backend()))

    answers = await asyncio.gather(*(client.get(ARTICLES) for _ in range(20)))

    assert {answer.status for answer in answers} == {200}
    assert world.executor.calls.count("version") == 1


async def test_number_and_date_filters_compare(client: Client):
    scored = await client.get(ITEMS, min_score=100)
    dated = await client.get(ITEMS, before="2026-09-21T12:30:00Z")

    assert [card["id"] for card in scored.json["items"]] == [1]
    assert all(card["time"] * 1000 < NOW_MS for card in dated.json["items"])
    assert len(dated.json["items"]) == 2


async def test_a_large_collection_is_read_page_by_page(world: World):
    kinds = {number: "story" if number % 50 == 0 else "comment" for number in range(100, 2_700)}
    world.add_stories(
        Story(id=number, type=kind, by="many", time=NOW_MS // 1000 - number) for number, kind in kinds.items()
    )
    client = Client(build(world.backend()))

    everything = await client.get(ITEMS, limit=10)
    stories = await client.get(ITEMS, type="story", limit=20)
    more = await client.get(ITEMS, type="story", limit=500, cursor=stories.json["next_cursor"])

    assert everything.json["total"] == 2_605
    assert everything.json["type_counts"]["story"] == 53
    assert len(stories.json["items"]) == 20
    assert stories.json["total"] is None
    assert len(more.json["items"]) == 33
    assert more.json["next_cursor"] is None


async def test_every_declared_collection_has_the_one_shape(client: Client):
    for path, name in ((ARTICLES, "articles"), (ITEMS, "items")):
        answer = await client.get(path)
        assert {name, "total", "updated_at", "warnings", "next_cursor"} <= set(answer.json)
