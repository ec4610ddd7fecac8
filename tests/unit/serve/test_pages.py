from __future__ import annotations

import re
from html.parser import HTMLParser

import msgspec
import pytest
from tests.unit.serve.asgi import Answer, Client
from tests.unit.serve.memory import MemoryDesk, empty_pipeline_view
from tests.unit.serve.world import NOW_MS, Article, Story, World, fill_desk

from tidings.model.views import DeadGroup, DeliveryView, SourceView
from tidings.serve.reading import HELD_MAX
from tidings.serve.server import build

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
    world = World(desk=MemoryDesk())
    world.desk.pipelines = {name: empty_pipeline_view() for name in ("bitcoin_news", "hacker_news")}

    answer = await Client(build(world.parts())).get(path, headers=BROWSER)

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
    parts = world.parts()
    reader = await Client(build(parts)).get("/dead-letters", headers=BROWSER)
    demo = await Client(build(world.parts(is_demo=True))).get("/dead-letters", headers=BROWSER)

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
    client = Client(build(world.parts(is_demo=True)))
    page = await client.get("/dead-letters", headers=BROWSER)
    fields = {"pipeline": "hacker_news", "cause": "is_valid: type", "back": "/dead-letters"}

    forged = await client.form("/actions/revive", fields)
    foreign = await client.form(
        "/actions/revive", {**fields, "form_token": token_of(page)}, headers={"sec-fetch-site": "cross-site"}
    )
    ours = await client.form("/actions/revive", {**fields, "form_token": token_of(page)})

    assert [forged.status, foreign.status, ours.status] == [403, 403, 303]
    assert ours.headers["location"] == "/dead-letters?told=revived.1"
    assert world.desk.acts == [("revive", None, "hacker_news", "is_valid: type", "dashboard (demo)")]
    told = await client.get(ours.headers["location"], headers=BROWSER)
    assert "Revived 1." in told.text


@pytest.mark.parametrize(
    ("action", "fields", "act"),
    [
        ("transition", {"item": "7", "name": "retry_processing"}, ("transition", 7, "retry_processing")),
        ("replay", {"item": "7", "pipeline": "hacker_news", "state": "found"}, ("replay", "hacker_news", "found")),
        ("purge", {"pipeline": "hacker_news", "cause": "x"}, ("purge", None, "hacker_news", "x")),
        ("pause", {"part": "source:bitcoin_news.rss"}, ("pause", "source:bitcoin_news.rss")),
        ("resume", {"part": "channel:discord:news"}, ("resume", "channel:discord:news")),
        ("check", {"source": "bitcoin_news.rss"}, ("check", "bitcoin_news.rss")),
    ],
)
async def test_every_button_reaches_the_desk(world: World, action: str, fields: dict[str, str], act: tuple[str, ...]):
    client = Client(build(world.parts(is_demo=True)))
    token = token_of(await client.get("/sources", headers=BROWSER))

    answer = await client.form(f"/actions/{action}", {**fields, "form_token": token})

    assert answer.status == 303
    assert world.desk.acts[0][: len(act)] == act


async def test_what_is_not_allowed_is_told_on_a_page(world: World):
    client = Client(build(world.parts(is_demo=True)))
    token = token_of(await client.get("/sources", headers=BROWSER))

    answer = await client.form("/actions/transition", {"item": "7", "name": "mark_failed", "form_token": token})

    assert answer.status == 409
    assert "mark_failed is not possible from failed." in answer.text
    check(answer)


@pytest.mark.parametrize(
    "back", ["https://evil.example", "//evil.example", "/\\evil.example", "javascript:x", "/a\r\nb"]
)
async def test_actions_lead_back_to_us_only(world: World, back: str):
    client = Client(build(world.parts(is_demo=True)))
    token = token_of(await client.get("/sources", headers=BROWSER))

    answer = await client.form("/actions/resume", {"part": "x", "form_token": token, "back": back})

    assert answer.headers["location"].startswith("/?told=")


async def test_signing_in_gives_a_strict_cookie_and_the_buttons(world: World):
    parts = world.parts(loopback=False, hosts=frozenset({"tidings.example"}))
    client = Client(build(parts), host="tidings.example", peer="203.0.113.9")
    sent_away = await client.get("/dead-letters", headers=BROWSER)
    login = await client.get(sent_away.headers["location"], headers=BROWSER)

    wrong = await client.form("/login", {"token": "guess", "form_token": token_of(login)})
    right = await client.form("/login", {"token": "operator", "form_token": token_of(login), "back": "/dead-letters"})
    cookie = right.headers["set-cookie"]
    signed_in = {**BROWSER, "cookie": cookie.partition(";")[0]}
    page = await client.get("/dead-letters", headers=signed_in)
    acted = await client.form(
        "/actions/revive", {"pipeline": "p", "form_token": token_of(page)}, headers={"cookie": signed_in["cookie"]}
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
    assert world.desk.acts[0][-1] == "dashboard (operate)"


async def test_a_session_ends_with_its_token_and_by_signing_out(world: World):
    app = build(world.parts())
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
    client = Client(build(world.parts(monotonic=lambda: now)))
    login = await client.get("/login", headers=BROWSER)
    entered = await client.form("/login", {"token": "operator", "form_token": token_of(login)})
    cookie = {**BROWSER, "cookie": entered.headers["set-cookie"].partition(";")[0]}
    signed_in = await client.get("/dead-letters", headers=cookie)
    del world.desk.tokens["operator"]
    now = 60.0

    page = await client.get("/dead-letters", headers=cookie)
    acted = await client.form("/actions/revive", {"form_token": token_of(signed_in)}, headers=cookie)

    assert 'action="/actions/revive"' in signed_in.text
    assert page.status == 200
    assert 'action="/actions/revive"' not in page.text
    assert acted.status == 401
    assert "no longer signed in" in acted.text
    assert "/login" in acted.text
    assert world.desk.acts == []


async def test_a_cookie_alone_writes_nothing_through_the_api(world: World):
    client = Client(build(world.parts()))
    login = await client.get("/login", headers=BROWSER)
    entered = await client.form("/login", {"token": "operator", "form_token": token_of(login)})
    cookie = {"cookie": entered.headers["set-cookie"].partition(";")[0]}

    assert (await client.post("/api/v1/dead-letters/revive", {"all": True}, headers=cookie)).status == 401


async def test_guessing_tokens_is_slowed_down(world: World):
    client = Client(build(world.parts()))
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
    for number in range(1_000, 1_000 + HELD_MAX):
        world.add_story(Story(id=number, type="comment", text="one of many", parent=1))

    page = (await client.get("/pipelines/hacker_news/items")).text

    said = page.split('id="live-total" data-live>')[1].split("</p>")[0]
    assert said.startswith("changed ")


async def test_a_place_without_a_card_has_no_age(client: Client, world: World):
    world.links.below["item:3"] = ["item:50"]

    page = (await client.get("/pipelines/hacker_news/items/1")).text

    assert "[missing]" in page
    assert "never" not in page


async def test_a_thread_is_read_on_one_page(client: Client):
    page = (await client.get("/pipelines/hacker_news/items/1", headers=BROWSER)).text

    assert page.index("bob") < page.index("cyd")
    assert "[deleted]" in page
    assert "First <i>thought</i>" in page
    assert page.count("<details open") == 3


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
    client = Client(build(world.parts(root_path="/tidings", is_demo=True)))

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
    world = World()
    world.desk.pipelines = {name: empty_pipeline_view() for name in ("bitcoin_news", "hacker_news")}
    fill_with(world, evil)
    client = Client(build(world.parts(is_demo=True)))
    paths = [
        *(path for path in PAGES if not re.search(r"/(a0|a3|1|5|7)$", path)),
        "/pipelines/bitcoin_news/articles/evil",
        "/pipelines/hacker_news/items/666",
        "/items/7",
        f"/search?q={'alert'}",
    ]
    for path in paths:
        answer = await client.get(path, headers=BROWSER)
        assert answer.status == 200, path
        check(answer)
        assert "alert(1)</script>" not in answer.text
        assert "\u202e" not in answer.text
        assert "49" not in re.findall(r"<h1[^>]*>(.*?)</h1>", answer.text, re.S)[0]


def fill_with(world: World, evil: str) -> None:
    """Put a text into every field of everything that is shown."""
    world.add_article(
        Article(id="evil", title=evil, link=evil, source=evil, published_at=evil, sentiment=evil, summary=evil)
    )
    world.add_story(Story(id=666, type=evil, by=evil, title=evil, url=evil, text=evil, score=1))
    world.add_story(Story(id=667, type="comment", by=evil, text=evil, parent=666))
    fill_desk(world.desk)
    view = world.desk.views[7]
    row = msgspec.structs.replace(view.item, title=evil, key=evil, last_error=evil, cause=evil)
    life = [msgspec.structs.replace(step, error=evil, actor=evil) for step in view.life]
    world.desk.views[7] = msgspec.structs.replace(
        view, item=row, life=life, body={"x": evil}, parents=[evil], waits_for=evil
    )
    world.desk.dead = [
        DeadGroup(
            pipeline="hacker_news", kind="item", state="failed", cause=evil, count=2, first_at=NOW_MS, last_at=NOW_MS,
            sample_id=7, sample_key=evil,
        )
    ]  # fmt: skip
    world.desk.source_views = [
        SourceView(name=evil, pipeline="bitcoin_news", health="failing", schedule=evil, error=evil)
    ]
    world.desk.delivery_views = [
        DeliveryView(
            id=1, pipeline="bitcoin_news", key=evil, channel=evil, title=evil, parent=evil, state="queued",
            standing="open", attempts=1, answer=evil, last_error=evil,
        )
    ]  # fmt: skip
    world.desk.firing = [msgspec.structs.replace(world.desk.firing[0], message=evil, subject=evil, help=evil)]
