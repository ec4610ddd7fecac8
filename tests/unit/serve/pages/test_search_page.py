"""The search as a page."""

from __future__ import annotations

import html
import re
from urllib.parse import parse_qs, urlsplit

from tests.unit.serve.asgi import Client
from tests.unit.serve.world import Story, World

from tidings.model.vocabulary import Vocabulary
from tidings.serve.pages.search import narrow_links

BROWSER = {"accept": "text/html"}


async def page_of(client: Client, path: str) -> str:
    answer = await client.get(path, headers=BROWSER)
    assert answer.status == 200
    return html.unescape(re.sub(r"<[^>]+>", "", answer.text))


async def links_of(client: Client, path: str) -> list[str]:
    answer = await client.get(path, headers=BROWSER)
    return [html.unescape(link) for link in re.findall(r'href="([^"]+)"', answer.text)]


async def test_what_may_be_a_slip_is_told_beside_the_hits(client: Client):
    page = await page_of(client, "/search?q=type:storie&pipeline=hacker_news")

    assert "did you mean type:story? known are story, comment, job" in page
    assert "Nothing is found" in page


async def test_a_mistake_is_pointed_at(client: Client):
    page = await page_of(client, "/search?q=fees+(fell")

    assert "fees (fell\n     ^" in page


async def test_results_for_another_word_say_so(client: Client, world: World):
    world.add_story(Story(id=80, type="comment", by="a", text="a lighthouse in winter"))

    page = await page_of(client, "/search?q=lighthuose")

    assert "Showing results for lighthouse" in page
    assert "a lighthouse in winter" in page


async def test_counts_narrow_the_search(client: Client, world: World):
    world.add_story(Story(id=81, type="comment", by="a", text="needle"))
    world.add_story(Story(id=82, type="story", by="a", title="needle"))

    links = await links_of(client, "/search?q=needle")

    (narrow,) = [link for link in links if parse_qs(urlsplit(link).query).get("q") == ["needle type:comment"]]
    page = await page_of(client, f"/search{narrow}")
    assert "1 hit" in page


def test_a_narrowed_query_asks_for_exactly_that_value():
    facets = {"source": {"Some Post": 3, "x.example": 2}, "day": {"2026-01-31": 4, "2026-01-30": 1}}

    links = narrow_links("a OR b", facets, Vocabulary(frozenset({"source"})))
    sites = narrow_links("a", {"source": facets["source"]}, Vocabulary())

    assert [each.query for each in links["source"]] == [
        'a OR b source:"Some Post"',
        "a OR b (source:x.example OR site:x.example)",
    ]
    assert [each.query for each in links["day"]] == ["a OR b time:2026-01-31", "a OR b time:2026-01-30"]
    assert [each.query for each in sites["source"]][1] == "a site:x.example"
    assert narrow_links("a", {"type": {"story": 3, "": 1}}, Vocabulary()) == {}


async def test_pages_lead_on_in_the_chosen_order(client: Client, world: World):
    world.add_stories([Story(id=number, type="comment", by="a", text="needle") for number in range(300, 350)])
    path = "/search?q=needle+after:1d&order=newest"

    (more,) = [link for link in await links_of(client, path) if "cursor=" in link]
    second = await links_of(client, f"/search{more}")

    shown = [
        link for link in [*await links_of(client, path), *second] if link.startswith("/pipelines/hacker_news/items/")
    ]
    assert len(shown) == len(set(shown)) == 50


async def test_every_search_is_a_feed(client: Client):
    links = await links_of(client, "/search?q=fell")

    assert "/feeds/all.atom?q=fell" in links
    assert (await client.get("/feeds/all.atom", q="fell")).status == 200


async def test_the_field_is_told_how_a_query_may_go_on(client: Client, stranger: Client):
    answer = await client.get("/search/suggestions", q="headl", headers=BROWSER)

    assert "headline" in answer.json["suggestions"]
    assert (await stranger.get("/search/suggestions", q="headl")).status in (303, 401)
    assert (await client.get("/search/suggestions", q="sent", pipeline="elsewhere")).json["suggestions"] == [
        "sentiment:"
    ]


async def test_an_items_page_shows_more_like_it(client: Client, world: World):
    for number, text in enumerate(("the keeper of the lighthouse", "a lighthouse keeper", "nothing of the sort"), 80):
        world.add_story(Story(id=number, type="comment", by="eve", text=text))

    links = await links_of(client, "/pipelines/hacker_news/items/80")

    assert "/pipelines/hacker_news/items/81" in links
    assert "/pipelines/hacker_news/items/82" not in links
