"""What people do with the dashboard, done by a real browser."""

from __future__ import annotations

import re

import msgspec
import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, BrowserContext, Page, expect
from tests.browser.conftest import Watched
from tests.support.sample_server import Served

from tidings.model.item import Finding, fingerprint

pytestmark = pytest.mark.browser

PAGES = (
    "/",
    "/items",
    "/items?standing=dead",
    "/sources",
    "/dead-letters",
    "/deliveries",
    "/alerts",
    "/search",
    "/search?q=bitcoin",
    "/docs",
    "/login",
    "/workflows/hacker_news",
    "/workflows/first_issues",
    "/pipelines/bitcoin_news/articles",
    "/pipelines/hacker_news/items",
    "/pipelines/hacker_news/lists/top",
    "/pipelines/hacker_news/users",
    "/pipelines/eu_funding/opportunities",
    "/pipelines/first_issues/issues",
    "/pipelines/first_issues/repos",
    "/pipelines/feeds/entries",
)
SMALL = {"width": 360, "height": 740}
WIDE = {"width": 1280, "height": 860}
TABLET = {"width": 768, "height": 1024}


def first_of(served: Served, pipeline: str, collection: str) -> str:
    """Return the address of a collection's newest card."""
    singular = served.app.pipelines[pipeline].collection(collection).singular
    entry = served.app.store.shelf.newest(pipeline, collection, limit=1)[0]
    return f"/pipelines/{pipeline}/{collection}/{entry.key.removeprefix(singular + ':')}"


def longest_thread(served: Served) -> dict[str, object]:
    entries = served.app.store.shelf.newest("hacker_news", "items", limit=1000)
    cards = [msgspec.json.decode(entry.value) for entry in entries]
    return max(cards, key=lambda card: card.get("descendants") or 0)


def all_pages(served: Served) -> list[str]:
    cards = [
        first_of(served, *where)
        for where in (("bitcoin_news", "articles"), ("eu_funding", "opportunities"), ("first_issues", "issues"),
                      ("first_issues", "repos"), ("feeds", "entries"))
    ]  # fmt: skip
    thread = f"/pipelines/hacker_news/items/{longest_thread(served)['id']}"
    dead = served.app.store.item_views.dead_letters()[0]
    return [*PAGES, *cards, thread, f"/items/{dead.sample_id}"]


def test_no_page_complains_or_overflows_at_any_width_or_theme(served: Served, chromium: Browser) -> None:
    wrong: list[str] = []
    for size, scheme in ((WIDE, "light"), (TABLET, "light"), (SMALL, "dark"), (SMALL, "light")):
        context = chromium.new_context(viewport=size, color_scheme=scheme)  # type: ignore[arg-type]
        watched = Watched(context.new_page(), served.url)
        for path in all_pages(served):
            page = watched.open(path)
            width = page.evaluate("document.documentElement.scrollWidth")
            if width > size["width"]:
                wrong.append(f"{path} is {width} wide at {size['width']}")
            expect(page.locator("h1")).to_have_count(1)
        wrong += watched.complaints
        context.close()
    assert wrong == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_page_has_serious_accessibility_findings(served: Served, chromium: Browser, scheme: str) -> None:
    context = chromium.new_context(viewport={"width": 1280, "height": 860}, color_scheme=scheme, bypass_csp=True)  # type: ignore[arg-type]
    page = context.new_page()
    serious: list[str] = []
    for path in all_pages(served):
        page.goto(served.url + path, wait_until="domcontentloaded")
        found = Axe().run(page).response["violations"]
        serious += [
            f"{path}: {each['id']}: {each['nodes'][0]['html'][:150]} {each['nodes'][0].get('failureSummary', '')[:200]}"
            for each in found
            if each["impact"] in ("serious", "critical")
        ]
    context.close()
    assert serious == []


def test_reading_a_thread_and_folding_it(served: Served, browser: Watched) -> None:
    story = longest_thread(served)
    page = browser.open("/pipelines/hacker_news/items")
    page.get_by_role("link", name=re.compile(f"^{story['descendants']} comments$")).first.click()

    expect(page.locator("h1")).to_have_text(str(story["title"]))
    comments = page.locator(".comment")
    assert comments.count() >= 10
    first = comments.first
    words = first.locator("> details > .prose")
    expect(words).to_be_visible()
    first.locator("> details > summary").click()
    expect(words).to_be_hidden()


def test_searching_with_qualifiers_and_a_mistake(browser: Watched) -> None:
    page = browser.open("/")
    page.get_by_label("Search everything").fill("bitcoin -nothing")
    page.get_by_label("Search everything").press("Enter")

    expect(page.locator("mark").first).to_be_visible()
    page.get_by_label("Query").fill('bitcoin "open')
    page.get_by_role("button", name="Search").click()
    expect(page.get_by_role("alert")).to_contain_text("a quotation mark is opened and never closed")
    expect(page.get_by_role("alert")).to_contain_text("^")


def test_the_search_field_offers_how_a_query_may_go_on(browser: Watched) -> None:
    page = browser.open("/search")
    page.get_by_label("Query").press_sequentially("bitcoin sentim")

    expect(page.locator('datalist option[value="bitcoin sentiment:"]').first).to_be_attached()


def test_following_an_items_life_line_from_the_list(browser: Watched) -> None:
    page = browser.open("/items?pipeline=bitcoin_news&kind=article&standing=done")
    page.locator("td.wide a").first.click()

    life = page.get_by_role("complementary", name="Life line")
    expect(life).to_contain_text("published")
    expect(life.locator(".legs > li")).not_to_have_count(0)
    expect(life).to_contain_text("tidings explain bitcoin_news article")


def test_reviving_a_dead_letter(served: Served, browser: Watched) -> None:
    item_views = served.app.store.item_views
    group = next(group for group in item_views.dead_letters() if group.kind == "delivery")
    page = browser.open("/dead-letters")
    card = page.locator("li.dead", has_text=group.cause)
    expect(card).to_contain_text(f"tidings dead revive {group.sample_id}")

    card.get_by_role("button", name=re.compile("^Revive (it|all)")).click()

    expect(page.get_by_role("status")).to_have_text("Revived 1.")
    expect(page.locator("li.dead", has_text=group.cause)).to_have_count(0, timeout=15_000)


def test_purging_asks_once_more(served: Served, browser: Watched) -> None:
    page = browser.open("/dead-letters")
    card = page.locator("li.dead").first
    expect(card.get_by_role("button", name=re.compile("^Purge"))).to_be_hidden()

    card.get_by_text("Purge …").click()

    expect(card.get_by_role("button", name=re.compile("^Purge it for good"))).to_be_visible()


def test_running_a_manual_transition(served: Served, browser: Watched) -> None:
    row = served.app.store.item_views.items(pipeline="hacker_news", state="completed", limit=1)[0]
    page = browser.open(f"/items/{row.id}")

    page.get_by_role("button", name="Mark failed").click()

    expect(page.get_by_role("status")).to_have_text("Done. The item moves on.")
    life = page.get_by_role("complementary", name="Life line")
    expect(life).to_contain_text("by dashboard (demo)")


def test_pausing_and_resuming_a_source(browser: Watched) -> None:
    page = browser.open("/sources")
    source = page.locator("li.source").first
    source.get_by_role("button", name="Pause").click()
    expect(page.locator("li.source").first).to_contain_text("paused")

    page.locator("li.source").first.get_by_role("button", name="Resume").click()

    expect(page.get_by_role("status")).to_have_text("Resumed.")
    expect(page.locator("li.source").first.get_by_role("button", name="Pause")).to_be_visible()


def publish(served: Served, number: int, title: str, text: str = "") -> None:
    """Let a story come in while pages are open."""
    now = served.app.store.now_ms() // 1000
    item = {"id": number, "type": "story", "by": "ada", "time": now, "title": title, "score": 1, "text": text}
    finding = Finding("hacker_news", "item", str(number), fingerprint(item), msgspec.json.encode(item))

    async def append() -> None:
        await served.app.executor.write(served.app.store.intake.append, "hacker_news", [finding])
        served.app.waker.wake_all()

    served.call(append)


def test_numbers_change_live(served: Served, browser: Watched) -> None:
    page = browser.open("/pipelines/hacker_news/items")
    expect(page.get_by_text("News as it happens")).to_have_count(0)

    publish(served, 9_900_001, "News as it happens")

    expect(page.get_by_text("News as it happens")).to_be_visible(timeout=15_000)


def test_text_from_right_to_left_ends_on_the_left(served: Served, browser: Watched) -> None:
    words = "\u05e9\u05dc\u05d5\u05dd \u05e2\u05d5\u05dc\u05dd Bitcoin!"
    publish(served, 9_900_004, words, f"<p>{words}")
    page = browser.open("/pipelines/hacker_news/items?type=story")
    row = page.get_by_role("link", name=words)
    expect(row).to_be_visible(timeout=15_000)
    ends = """(node) => {
      const text = document.createTreeWalker(node, NodeFilter.SHOW_TEXT).nextNode();
      const all = text.data.trimEnd().length;
      const at = (i) => {
        const range = document.createRange();
        range.setStart(text, i);
        range.setEnd(text, i + 1);
        return range.getBoundingClientRect().x;
      };
      return [at(0), at(all - 1)];
    }"""

    places = [row.evaluate(ends)]
    browser.open("/pipelines/hacker_news/items/9900004")
    places += [page.locator("h1").evaluate(ends), page.locator(".prose").first.evaluate(ends)]

    for first, last in places:
        assert last < first


def test_a_filter_of_the_pipeline_is_kept(browser: Watched) -> None:
    page = browser.open("/pipelines/hacker_news?type=comment")
    assert page.url.endswith("/pipelines/hacker_news/items?type=comment")


def test_ten_tabs_share_one_stream(served: Served, context: BrowserContext) -> None:
    streams: list[Page] = []
    context.on("request", lambda asked: streams.append(asked.frame.page) if "/api/v1/events" in asked.url else None)
    tabs = [Watched(context.new_page(), served.url) for _ in range(10)]
    paths = ("/pipelines/hacker_news/items", "/search?q=unheard&order=newest")
    for number, tab in enumerate(tabs):
        tab.open(paths[number % 2])

    publish(served, 9_900_002, "Unheard of in ten tabs")
    for tab in tabs:
        expect(tab.page.get_by_role("link", name="Unheard of in ten tabs")).to_be_visible(timeout=20_000)

    assert len(streams) == 1, [page.url for page in streams]
    [leader] = streams
    leader.close()
    tabs = [tab for tab in tabs if tab.page is not leader]

    publish(served, 9_900_003, "Unheard of in nine tabs")
    for tab in tabs:
        expect(tab.page.get_by_role("link", name="Unheard of in nine tabs")).to_be_visible(timeout=20_000)
    assert len(streams) == 2
    assert [complaint for tab in tabs for complaint in tab.complaints] == []


def test_the_theme_can_be_chosen_and_stays(browser: Watched) -> None:
    page = browser.open("/")
    paper = "getComputedStyle(document.body).backgroundColor"
    assert page.evaluate(paper) == "rgb(251, 250, 247)"
    switch = page.get_by_role("button", name="Theme: system")
    switch.click()
    page.get_by_role("button", name="Theme: light").click()
    assert page.evaluate(paper) == "rgb(20, 22, 26)"

    page.reload()

    assert page.evaluate(paper) == "rgb(20, 22, 26)"
    expect(page.get_by_role("button", name="Theme: dark")).to_be_visible()


def test_everything_can_be_read_and_done_without_scripts(served: Served, chromium: Browser) -> None:
    context = chromium.new_context(java_script_enabled=False, viewport=SMALL)  # type: ignore[arg-type]
    page = context.new_page()
    page.goto(f"{served.url}/sources")
    page.get_by_role("button", name="Check now").last.click()
    expect(page.get_by_role("status")).to_have_text("The source is asked now.")
    page.goto(f"{served.url}/pipelines/bitcoin_news/articles")
    page.get_by_role("link", name=re.compile("^negative")).click()
    expect(page.locator(".row.news").first).to_be_visible()
    assert page.locator(".row.news .mood.negative").count() == page.locator(".row.news").count()
    context.close()


def test_the_keyboard_reaches_the_content_first(browser: Watched) -> None:
    page = browser.open("/")
    page.keyboard.press("Tab")
    expect(page.locator(":focus")).to_have_text("Skip to content")
    page.keyboard.press("Enter")
    assert page.url.endswith("#main")


def test_a_phone_shows_whole_rows_and_where_one_is(served: Served, chromium: Browser) -> None:
    context = chromium.new_context(viewport=SMALL)  # type: ignore[arg-type]
    watched = Watched(context.new_page(), served.url)
    for path in ("/items", "/deliveries"):
        page = watched.open(path)
        for cell in page.locator("table.data tbody tr").first.locator("td:visible").all():
            box = cell.bounding_box()
            assert box is not None
            assert box["x"] >= 0
            assert box["x"] + box["width"] <= SMALL["width"]
    here = page.locator(".rail a[aria-current]").bounding_box()
    assert here is not None
    assert here["x"] >= 0
    assert here["x"] + here["width"] <= SMALL["width"]
    assert watched.complaints == []
    context.close()
