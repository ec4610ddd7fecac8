from __future__ import annotations

import re
from collections.abc import Callable
from html.parser import HTMLParser
from itertools import pairwise

import msgspec
import pytest
from tests.unit.serve.asgi import Answer, Client
from tests.unit.serve.world import (
    CHANNEL,
    SOURCE,
    Article,
    QuietSource,
    Story,
    World,
    fill_operations,
    news_pipeline,
    threaded_pipeline,
)

from tidings.model.item import Finding
from tidings.model.pipeline import Schedule
from tidings.serve.api.listings import HELD_MAX
from tidings.serve.application import build

BROWSER = {"accept": "text/html", "sec-fetch-site": "same-origin"}
PAGES = (
    "/",
    "/items",
    "/items/7",
    "/items/5",
    "/sources",
    "/workflows/bitcoin_news",
    "/workflows/hacker_news?span=month",
    "/dead-letters",
    "/deliveries",
    "/alerts",
    "/search",
    "/search?q=fell",
    "/docs",
    "/login",
    "/pipelines/bitcoin_news/articles",
    "/pipelines/bitcoin_news/articles/a0",
    "/pipelines/bitcoin_news/articles/a3",
    "/pipelines/hacker_news/items",
    "/pipelines/hacker_news/items?type=comment",
    "/pipelines/hacker_news/items/1",
)


class Checked(HTMLParser):
    """Notes what must not be on a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.handlers: list[str] = []
        self.styles: list[str] = []
        self.scripts: list[str | None] = []
        self.tags: set[str] = set()
        self.links: list[str] = []
        self.tokens = 0
        self.posts = 0
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        self.tags.add(tag)
        self.handlers += [name for name, _ in attrs if name.startswith("on")]
        self.styles += [name for name, _ in attrs if name == "style"]
        if tag == "script":
            self.scripts.append(values.get("src"))
        if tag == "a" and values.get("href"):
            self.links.append(values["href"] or "")
        if tag == "form" and values.get("method") == "post":
            self.posts += 1
        if tag == "input" and values.get("name") == "form_token":
            self.tokens += 1


def check(answer: Answer) -> Checked:
    found = Checked(answer.text)
    assert found.handlers == []
    assert found.styles == []
    assert found.scripts
    assert all(src and src.startswith(("/static/", "/tidings/static/")) for src in found.scripts)
    assert not {"iframe", "object", "embed", "base", "style", "img"} & found.tags
    assert not [link for link in found.links if link.lower().strip().startswith(("javascript:", "data:", "vbscript:"))]
    assert found.tokens == found.posts
    return found


@pytest.mark.parametrize("path", PAGES)
async def test_every_page_is_rendered_without_inline_code(client: Client, path: str):
    answer = await client.get(path, headers=BROWSER)

    assert answer.status == 200
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert answer.text.count("<h1") == 1
    check(answer)


@pytest.mark.parametrize("path", [path for path in PAGES if not re.search(r"/(a0|a3|1|5|7)$", path)])
async def test_every_list_says_what_fills_it(path: str):
    with World(tokens={}) as world:
        answer = await Client(build(world.backend())).get(path, headers=BROWSER)

    assert answer.status == 200
    check(answer)
    assert "tidings " in answer.text


async def test_the_first_page_answers_how_we_are(client: Client):
    page = (await client.get("/", headers=BROWSER)).text

    assert "15 steps in the last hour" in page
    assert "oldest waiting 4 s" in page
    assert "1 dead letter" in page
    assert "tidings dead revive 7" in page
    assert "1 needs you." in page
    assert "<title>1 needs you · Now · tidings</title>" in page


async def test_buttons_are_for_those_who_may(world: World):
    backend = world.backend()
    reader = await Client(build(backend)).get("/dead-letters", headers=BROWSER)
    demo = await Client(build(world.backend(is_demo=True))).get("/dead-letters", headers=BROWSER)

    assert "<button" in demo.text
    assert 'action="/actions/revive"' not in reader.text
    assert 'action="/actions/revive"' in demo.text
    assert "tidings dead revive" in reader.text
    assert "Sign in" in reader.text


def token_of(page: Answer) -> str:
    found = re.search(r'name="form_token" value="([0-9a-f]+)"', page.text)
    assert found is not None
    return found[1]


async def test_a_button_acts_once_its_form_is_ours(world: World):
    client = Client(build(world.backend(is_demo=True)))
    page = await client.get("/dead-letters", headers=BROWSER)
    fields = {"pipeline": "hacker_news", "cause": "is_valid: type", "back": "/dead-letters"}

    forged = await client.form("/actions/revive", fields)
    foreign = await client.form(
        "/actions/revive", {**fields, "form_token": token_of(page)}, headers={"sec-fetch-site": "cross-site"}
    )
    ours = await client.form("/actions/revive", {**fields, "form_token": token_of(page)})

    assert [forged.status, foreign.status, ours.status] == [403, 403, 303]
    assert ours.headers["location"] == "/dead-letters?told=revived.1"
    assert world.deeds() == [("99", "revived", "dashboard (demo)")]
    told = await client.get(ours.headers["location"], headers=BROWSER)
    assert "Revived 1." in told.text


@pytest.mark.parametrize(
    ("action", "fields", "has_acted"),
    [
        ("transition", {"item": "7", "name": "retry_processing"}, lambda world: did(world, "manual")),
        ("replay", {"item": "7", "pipeline": "hacker_news", "state": "found"}, lambda world: did(world, "replayed")),
        ("purge", {"pipeline": "hacker_news", "cause": "is_valid: type"}, lambda world: not world.store.items.get(7)),
        ("pause", {"part": f"source:{SOURCE}"}, lambda world: f"source:{SOURCE}" in world.store.pauses.reasons()),
        (
            "resume",
            {"part": f"channel:{CHANNEL}"},
            lambda world: f"channel:{CHANNEL}" not in world.store.pauses.reasons(),
        ),
        ("check", {"source": SOURCE}, lambda world: world.store.schedules.next_in_ms() == 0),
    ],
)
async def test_every_button_acts(world: World, action: str, fields: dict[str, str], has_acted: Callable[[World], bool]):
    world.store.pauses.pause(f"channel:{CHANNEL}", "a test")
    assert not has_acted(world)
    client = Client(build(world.backend(is_demo=True)))
    token = token_of(await client.get("/sources", headers=BROWSER))

    answer = await client.form(f"/actions/{action}", {**fields, "form_token": token})

    assert answer.status == 303
    assert has_acted(world)


def did(world: World, what: str) -> bool:
    return world.deeds() == [("99", what, "dashboard (demo)")]


async def test_what_is_not_allowed_is_told_on_a_page(world: World):
    client = Client(build(world.backend(is_demo=True)))
    token = token_of(await client.get("/sources", headers=BROWSER))

    answer = await client.form("/actions/transition", {"item": "7", "name": "mark_failed", "form_token": token})

    assert answer.status == 409
    assert "&#39;mark_failed&#39; does not start in state &#39;failed&#39;" in answer.text
    check(answer)


@pytest.mark.parametrize(
    "back", ["https://evil.example", "//evil.example", "/\\evil.example", "javascript:x", "/a\r\nb"]
)
async def test_actions_lead_back_to_us_only(world: World, back: str):
    client = Client(build(world.backend(is_demo=True)))
    token = token_of(await client.get("/sources", headers=BROWSER))

    answer = await client.form("/actions/resume", {"part": f"source:{SOURCE}", "form_token": token, "back": back})

    assert answer.headers["location"].startswith("/?told=")


async def test_signing_in_gives_a_strict_cookie_and_the_buttons(world: World):
    backend = world.backend(loopback=False, hosts=frozenset({"tidings.example"}))
    client = Client(build(backend), host="tidings.example", peer="203.0.113.9")
    sent_away = await client.get("/dead-letters", headers=BROWSER)
    login = await client.get(sent_away.headers["location"], headers=BROWSER)

    wrong = await client.form("/login", {"token": "guess", "form_token": token_of(login)})
    right = await client.form("/login", {"token": "operator", "form_token": token_of(login), "back": "/dead-letters"})
    cookie = right.headers["set-cookie"]
    signed_in = {**BROWSER, "cookie": cookie.partition(";")[0]}
    page = await client.get("/dead-letters", headers=signed_in)
    acted = await client.form(
        "/actions/revive",
        {"pipeline": "hacker_news", "form_token": token_of(page)},
        headers={"cookie": signed_in["cookie"]},
    )

    assert sent_away.status == 303
    assert sent_away.headers["location"] == "/login?next=/dead-letters"
    assert wrong.status == 401
    assert right.status == 303
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    assert "operator" not in cookie
    assert 'action="/actions/revive"' in page.text
    assert acted.status == 303
    assert world.deeds() == [("99", "revived", "dashboard (operate)")]


async def test_a_session_ends_with_its_token_and_by_signing_out(world: World):
    app = build(world.backend())
    client = Client(app)
    login = await client.get("/login", headers=BROWSER)
    entered = await client.form("/login", {"token": "operator", "form_token": token_of(login)})
    cookie = {"cookie": entered.headers["set-cookie"].partition(";")[0]}
    page = await client.get("/dead-letters", headers={**BROWSER, **cookie})

    left = await client.form("/logout", {"form_token": token_of(page)}, headers=cookie)
    after = await client.form("/actions/revive", {"form_token": token_of(page)}, headers=cookie)

    assert left.status == 303
    assert "Max-Age=0" in left.headers["set-cookie"]
    assert after.status == 401


async def test_a_session_whose_token_was_revoked_goes_on_reading_and_is_told_to_sign_in_again(world: World):
    now = 0.0
    client = Client(build(world.backend(monotonic=lambda: now)))
    login = await client.get("/login", headers=BROWSER)
    entered = await client.form("/login", {"token": "operator", "form_token": token_of(login)})
    cookie = {**BROWSER, "cookie": entered.headers["set-cookie"].partition(";")[0]}
    signed_in = await client.get("/dead-letters", headers=cookie)
    world.revoke("operator")
    now = 60.0

    page = await client.get("/dead-letters", headers=cookie)
    acted = await client.form("/actions/revive", {"form_token": token_of(signed_in)}, headers=cookie)

    assert 'action="/actions/revive"' in signed_in.text
    assert page.status == 200
    assert 'action="/actions/revive"' not in page.text
    assert acted.status == 401
    assert "no longer signed in" in acted.text
    assert "/login" in acted.text
    assert world.deeds() == []


async def test_a_cookie_alone_writes_nothing_through_the_api(world: World):
    client = Client(build(world.backend()))
    login = await client.get("/login", headers=BROWSER)
    entered = await client.form("/login", {"token": "operator", "form_token": token_of(login)})
    cookie = {"cookie": entered.headers["set-cookie"].partition(";")[0]}

    assert (await client.post("/api/v1/dead-letters/revive", {"all": True}, headers=cookie)).status == 401


async def test_guessing_tokens_is_slowed_down(world: World):
    client = Client(build(world.backend()))
    token = token_of(await client.get("/login", headers=BROWSER))

    answers = [await client.form("/login", {"token": f"guess{n}", "form_token": token}) for n in range(11)]

    assert [answer.status for answer in answers[:10]] == [401] * 10
    assert answers[10].status == 429
    assert int(answers[10].headers["retry-after"]) >= 1


async def test_a_missing_page_is_told_as_a_page(client: Client):
    answer = await client.get("/pipelines/bitcoin_news/articles/none", headers=BROWSER)
    nowhere = await client.get("/nowhere/<script>", headers=BROWSER)

    assert answer.status == 404
    assert nowhere.status == 404
    assert "&lt;script" not in nowhere.text.split("<main")[1]
    check(answer)
    check(nowhere)


async def test_a_collection_too_large_to_count_what_fits_says_nothing_of_it(client: Client, world: World):
    numbers = range(1_000, 1_000 + HELD_MAX)
    world.add_stories(Story(id=number, type="comment", text="one of many", parent=1) for number in numbers)

    page = (await client.get("/pipelines/hacker_news/items")).text

    said = page.split('id="live-total" data-live>')[1].split("</p>")[0]
    assert said.startswith("changed ")


async def test_a_place_without_a_card_has_no_age(client: Client, world: World):
    world.link("item:3", "item:50")

    page = (await client.get("/pipelines/hacker_news/items/1")).text

    assert "[missing]" in page
    assert "never" not in page


async def test_a_thread_is_read_on_one_page(client: Client):
    page = (await client.get("/pipelines/hacker_news/items/1", headers=BROWSER)).text

    assert page.index("bob") < page.index("cyd")
    assert "[deleted]" in page
    assert "First <i>thought</i>" in page
    assert page.count("<details open") == 3


async def test_a_long_thread_is_read_in_parts_and_no_comment_is_missing(client: Client, world: World):
    """A chain hangs below the first of many replies: the parts name what is above them again."""
    wide, deep = range(1_000, 3_000), range(5_000, 5_400)
    world.link("item:1", *(f"item:{number}" for number in wide))
    for parent, child in pairwise((1_000, *deep)):
        world.link(f"item:{parent}", f"item:{child}")
    pages = []
    for part in (1, 2, 3):
        address = f"/pipelines/hacker_news/items/1?part={part}"
        pages.append((await client.get(address, headers=BROWSER)).text)

    drawn = [set(re.findall(r'id="c(\d+)"', page)) for page in pages]
    assert {str(number) for number in (*wide, *deep)} <= drawn[0] | drawn[1]
    assert not drawn[2]
    assert "Comments 1 to 1500 of 2403" in pages[0]
    assert "items/1?part=2" in pages[0]
    assert "Comments 1501 to 2403 of 2403" in pages[1]
    assert "items/1?part=3" not in pages[1]
    assert pages[0].count("<details") == pages[0].count("</details>")


async def test_the_life_line_stands_beside_the_item(client: Client):
    page = (await client.get("/items/7", headers=BROWSER)).text

    assert "Life line" in page
    assert "is_valid: type banana" in page
    assert "tidings explain hacker_news item 99" in page
    assert "tidings transition hacker_news item 99 retry_processing" in page


async def test_sentiment_over_time_is_drawn_with_a_table(client: Client):
    page = (await client.get("/pipelines/bitcoin_news/articles", headers=BROWSER)).text

    assert 'class="part positive"' in page
    assert "<caption>Sentiment over time</caption>" in page


async def test_the_workflow_is_drawn_with_live_counts(client: Client):
    page = (await client.get("/workflows/hacker_news", headers=BROWSER)).text

    assert 'aria-label="completed: 5 items"' in page
    assert "/items?pipeline=hacker_news&amp;kind=item&amp;state=failed" in page
    assert "any state" in page


async def test_static_files_are_cached_for_ever(client: Client):
    page = (await client.get("/", headers=BROWSER)).text
    paths = re.findall(r'(?:href|src)="(/static/[^"]+)"', page)

    assert len(paths) == 3
    for path in paths:
        answer = await client.get(path)
        assert answer.status == 200
        assert "immutable" in answer.headers["cache-control"]
    assert (await client.get("/static/x/../../server.py")).status == 404
    assert (await client.get("/static/x/secrets.txt")).status == 404


async def test_pages_live_below_a_path(world: World):
    client = Client(build(world.backend(root_path="/tidings", is_demo=True)))

    answer = await client.get("/tidings/", headers=BROWSER)

    found = check(answer)
    assert all(link.startswith(("/tidings/", "#", "http")) for link in found.links)
    assert 'data-root="/tidings"' in answer.text


HOSTILE = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "'; DROP TABLE items; --",
    "{{ 7 * 7 }}{% raw %}",
    "javascript:alert(1)",
    "\u202egnp.exe\u2066",
    "a\u0300" * 200,
    "W" * 5_000,
    "\ud7ff\uffff\U0001f4a9\x01\x7f",
    "<svg/onload=alert(1)>",
    "</title></textarea><script>alert(1)</script>",
)


@pytest.mark.parametrize("evil", HOSTILE, ids=range(len(HOSTILE)))
async def test_hostile_content_is_inert_on_every_page(evil: str):
    source = QuietSource(f"bitcoin_news.{evil}", Schedule(cron=evil))
    with World(news_pipeline(source), threaded_pipeline()) as world:
        dead = fill_with(world, evil)
        client = Client(build(world.backend(is_demo=True)))
        paths = [
            *(path for path in PAGES if not re.search(r"/(a0|a3|1|5|7)$", path)),
            "/pipelines/bitcoin_news/articles/evil",
            "/pipelines/hacker_news/items/666",
            f"/items/{dead}",
            f"/search?q={'alert'}",
        ]
        for path in paths:
            answer = await client.get(path, headers=BROWSER)
            assert answer.status == 200, path
            check(answer)
            assert "alert(1)</script>" not in answer.text
            assert "\u202e" not in answer.text
            assert "49" not in re.findall(r"<h1[^>]*>(.*?)</h1>", answer.text, re.S)[0]


def fill_with(world: World, evil: str) -> int:
    """Put a text into every field of everything that is shown; return the number of a dead letter."""
    world.add_article(
        Article(id="evil", title=evil, link=evil, source=evil, published_at=evil, sentiment=evil, summary=evil)
    )
    world.add_story(Story(id=666, type=evil, by=evil, title=evil, url=evil, text=evil, score=1))
    world.add_story(Story(id=667, type="comment", by=evil, text=evil, parent=666))
    world.add_story(Story(id=99, type="story", by=evil, title=evil, text=evil), fate=evil)
    world.link(evil, f"item:{evil}")
    fill_operations(world)
    world.store.alerts.fire("evil", evil, evil, evil, 1, 0)
    body = {"channel": evil, "parent": evil, "notice": {"title": evil}, "answer": evil, "message_id": evil}
    world.find([Finding("bitcoin_news", "delivery", evil, "1", msgspec.json.encode(body))])
    dead = world.item("99").item.id
    world.ground.write(
        "UPDATE items SET key = :evil, last_error = :evil, cause = :evil WHERE id = :id", evil=evil, id=dead
    )
    world.ground.write("UPDATE items SET last_error = :evil WHERE kind = 'delivery'", evil=evil)
    world.ground.write("UPDATE journal SET error = :evil, actor = :evil", evil=evil)
    world.ground.write(
        "UPDATE schedules SET source = :source, last_error = :evil", source=f"bitcoin_news.{evil}", evil=evil
    )
    return dead
