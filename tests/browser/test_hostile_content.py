"""A real browser looks at hostile cards, and reads our feeds the way a web reader does: nothing runs."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from typing import Any
from xml.etree import ElementTree

import msgspec
import pytest
from playwright.sync_api import BrowserContext, Page
from tests.browser.conftest import Watched
from tests.support.hostile_text import HOSTILE, card_of, document_of, pipelines
from tests.unit.serve.asgi import Client
from tests.unit.serve.world import World, showcase

from tidings.sample.serving import StandIn
from tidings.serve.application import build

pytestmark = pytest.mark.browser
ALARM = "window.ran = []; window.alert = (what) => window.ran.push(String(what));"
LIVE = """texts => texts.map(text => {
    const page = new DOMParser().parseFromString(text, 'text/html');
    const live = page.querySelectorAll('script, iframe, object, embed, img, svg, math, base, style, form, meta, link');
    const found = [...live].map(each => each.outerHTML);
    for (const each of page.querySelectorAll('*')) {
        for (const attribute of each.attributes) {
            const value = attribute.value.trim().toLowerCase();
            const runs = attribute.name.startsWith('on') || /^(javascript|data|vbscript):/.test(value);
            if (runs) found.push(each.outerHTML);
        }
    }
    return found;
}).flat()"""
"""What of some texts, taken for HTML by a browser, could run."""


class Site:
    """The hostile world over real HTTP, from a thread of its own."""

    def __init__(self) -> None:
        self.paths: list[str] = ["/", "/search?q=needle"]
        self.app = self._build()
        self._ready, self._loop = threading.Event(), asyncio.new_event_loop()
        self._stop = asyncio.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def _build(self) -> Any:
        declared = pipelines()
        self.world = World(*map(showcase, declared.values()))
        for name, pipeline in declared.items():
            for collection in pipeline.collections:
                self.paths.append(f"/pipelines/{name}/{collection.name}")
                for number, evil in enumerate(HOSTILE.values()):
                    key = f"evil{number}"
                    self.world.show(name, collection, {key: card_of(collection, evil)}, document_of(evil))
                    self.paths.append(f"/pipelines/{name}/{collection.name}/{key}")
        self.feeds = [f"/feeds/{name}" for name in declared]
        return build(self.world.backend(is_demo=True))

    def __enter__(self) -> Site:
        self._thread.start()
        assert self._ready.wait(30)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(30)
        self.world.close()

    def _run(self) -> None:
        self._loop.run_until_complete(self._serve())
        self._loop.close()

    async def _serve(self) -> None:
        async with StandIn(self.app) as served:
            self.url = served.url
            self._ready.set()
            await self._stop.wait()
            await self.app.close()

    def read(self, path: str) -> bytes:
        async def get() -> bytes:
            answer = await Client(self.app).get(path, limit=200)
            assert answer.status == 200, path
            return answer.body

        return asyncio.run_coroutine_threadsafe(get(), self._loop).result(30)


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    with Site() as site:
        yield site


@pytest.fixture
def page(context: BrowserContext, site: Site) -> Iterator[Page]:
    context.add_init_script(ALARM)
    watched = Watched(context.new_page(), site.url)
    watched.page.on("dialog", lambda dialog: watched.complaints.append(dialog.message))
    yield watched.page
    # Whatever the policy of our pages had to stop would have run in a reader that has none.
    assert watched.complaints == []


def test_nothing_runs_on_any_page(page: Page, site: Site) -> None:
    assert len(site.paths) > 100
    for path in site.paths:
        answer = page.goto(site.url + path, wait_until="domcontentloaded")
        assert answer is not None
        assert answer.status == 200, path
        assert page.evaluate("window.ran") == [], path
        assert page.locator("main script, main iframe, main img, main object").count() == 0, path


@pytest.mark.parametrize("form", ["rss", "atom"])
def test_nothing_could_run_in_a_reader_that_takes_every_text_for_html(page: Page, site: Site, form: str) -> None:
    page.goto(site.url + "/", wait_until="domcontentloaded")
    for feed in site.feeds:
        root = ElementTree.fromstring(site.read(f"{feed}.{form}"))
        texts = [text for each in root.iter() for text in (each.text or "", *each.attrib.values()) if text.strip()]
        assert len(texts) > len(HOSTILE)
        assert page.evaluate(LIVE, texts) == [], feed


def test_nothing_could_run_in_a_reader_of_json_feeds(page: Page, site: Site) -> None:
    page.goto(site.url + "/", wait_until="domcontentloaded")
    for feed in site.feeds:
        items = msgspec.json.decode(site.read(f"{feed}.json"))["items"]
        texts = [item["content_html"] for item in items]
        assert len(texts) >= len(HOSTILE)
        assert page.evaluate(LIVE, texts) == [], feed
