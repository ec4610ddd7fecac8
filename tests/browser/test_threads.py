"""A thread that grows while it is read, and what is new since the last look."""

from __future__ import annotations

import itertools
import re

import msgspec
import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect
from tests.browser.conftest import Watched
from tests.browser.test_dashboard import SMALL, longest_thread
from tests.support.sample_server import Served
from tests.support.waiting import until

from tidings.model.item import Finding, fingerprint

pytestmark = pytest.mark.browser
NUMBERS = itertools.count(9_950_001)


def say(served: Served, parent: int, text: str, number: int | None = None) -> int:
    """Let somebody reply; or change what a reply says."""
    number = number or next(NUMBERS)
    now = served.app.store.now_ms() // 1000
    item = {"id": number, "type": "comment", "by": "ada", "time": now, "parent": parent, "text": text}
    finding = Finding("hacker_news", "item", str(number), fingerprint(item), msgspec.json.encode(item))

    async def append() -> None:
        await served.app.executor.write(served.app.store.intake.append, "hacker_news", [finding])
        served.app.waker.wake_all()

    served.call(append)
    return number


def is_shown(served: Served, numbers: list[int]) -> bool:
    """Tell whether comments have cards."""
    return all(served.app.store.shelf.get("hacker_news", f"item:{number}") for number in numbers)


def first_comment(page: Page) -> int:
    return int(str(page.locator(".comment").first.get_attribute("id"))[1:])


def test_a_thread_grows_without_moving_what_is_read(served: Served, browser: Watched) -> None:
    page = browser.open(f"/pipelines/hacker_news/items/{longest_thread(served)['id']}")
    folded = page.locator(".comment").nth(1)
    folded.locator("> details > summary").first.click()
    last = page.locator(".comment").last
    last.evaluate("element => element.scrollIntoView({ block: 'center' })")
    top = "element => element.getBoundingClientRect().top"
    before = last.evaluate(top)

    number = say(served, first_comment(page), "<p>Far above</p>" + "<p>and long</p>" * 20)

    arrived = page.locator(f"#c{number}")
    expect(arrived.locator("> details > summary .tag.new")).to_have_text("new", timeout=15_000)
    assert abs(last.evaluate(top) - before) < 2
    assert folded.evaluate("element => element.querySelector('details').open") is False
    expect(page.locator(".news")).to_have_text("1 new comment since you opened this page. Go to the first")

    say(served, first_comment(page), "<p>Said differently</p>", number)
    expect(arrived).to_contain_text("Said differently", timeout=15_000)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_what_came_since_the_last_look_is_told_and_marked(served: Served, chromium: Browser, scheme: str) -> None:
    # The checker of accessibility is a script that our policy would refuse.
    context = chromium.new_context(viewport=SMALL, color_scheme=scheme, bypass_csp=True)  # type: ignore[arg-type]
    browser = Watched(context.new_page(), served.url)
    story = int(str(longest_thread(served)["id"]))
    page = browser.open(f"/pipelines/hacker_news/items/{story}")
    expect(page.locator(".comment.fresh")).to_have_count(0)
    browser.open("/sources")
    numbers = [say(served, story, f"News {n}") for n in range(2)]
    served.call(lambda: until(lambda: is_shown(served, numbers)))

    page = browser.open(f"/pipelines/hacker_news/items/{story}")

    expect(page.locator(".comment.fresh")).to_have_count(2)
    expect(page.locator(".news")).to_have_text(re.compile("^2 new comments since you last looked .* Go to the first$"))
    page.get_by_role("link", name="Go to the first").click()
    expect(page.locator(f"#c{numbers[0]}")).to_be_in_viewport()
    found = Axe().run(page).response["violations"]
    assert [each["id"] for each in found if each["impact"] in ("serious", "critical")] == []
    assert page.evaluate("document.documentElement.scrollWidth") <= SMALL["width"]
    page.reload()
    expect(page.locator(".comment.fresh")).to_have_count(0)
    context.close()
