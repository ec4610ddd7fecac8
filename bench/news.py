"""Twenty new articles behind a backlog of 480: the time from their discovery to their publication.

Real store, real loops, real HTTP to the stand-ins on loopback. The floor is the same twenty pages fetched, read,
summarized and judged by the same parts with nothing remembered and nothing waiting.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Iterable
from datetime import datetime
from typing import Any

import msgspec

from tidings.app import App
from tidings.model.contracts import Kit
from tidings.pipelines.bitcoin_news import Settings, build, endpoints
from tidings.sample.news import News
from tidings.sample.serving import StandIn
from tidings.wiring import Wiring

OLD, NEW, QUICK_OLD = 480, 20, 120
HOUR_MS = 3_600_000
CONCURRENCY = 16
SENTENCE = "The exchange paid withdrawal {n} of {k}, and miners in the north saw the price of power fall that week. "
OUTLET = {"id": "post", "name": "The Post", "host": "post.example", "rss_path": "/rss", "menu": ["Home", "Markets"]}


def run(quick: bool) -> list[dict[str, Any]]:
    """Measure one pass on SQLite."""
    return asyncio.run(_measure(QUICK_OLD if quick else OLD))


async def _measure(old: int) -> list[dict[str, Any]]:
    world = News([OUTLET])
    world.newsdata.plan = "professional"
    now = world.now_ms()
    for n in range(old):
        _publish(world, f"old{n:03}", now - 3 * HOUR_MS - n * 1000)
    with tempfile.TemporaryDirectory(prefix="tidings-bench-") as folder:
        async with StandIn(world.app) as server:
            settings = Settings.model_validate(
                world.settings(server.url) | {"feeds": [], "apitube_key": None, "newsdata_page_size": 50}
            )
            wiring = Wiring(
                database_url=f"sqlite:///{folder}/tidings.db",
                pipelines=(build(settings),),
                endpoints=endpoints(settings),
                loopback_allowed=frozenset({("127.0.0.1", server.port)}),
                obey_robots=False,
                per_host_delay_seconds=0.0,
            )
            async with App(wiring) as app:
                return await _pass(app, world, server.url, old)


async def _pass(app: App, world: News, url: str, old: int) -> list[dict[str, Any]]:
    await app.poller.declare()
    await app.poller.ask("bitcoin_news.newsdata", force=True)
    await app.executor.write(app.store.intake.merge, "bitcoin_news")
    new = {_publish(world, f"new{n:02}", world.now_ms() - 60_000) for n in range(NEW)}
    floor = await _bare([f"{url}/post.example/n/{name}" for name in sorted(new)], app.kit)
    started = time.time()
    await app.poller.ask("bitcoin_news.newsdata", force=True)
    await app.worker().until_idle()
    all_done = time.time() - started
    cards = [msgspec.json.decode(e.value) for e in app.store.shelf.newest("bitcoin_news", "articles", limit=1000)]
    finished = sorted(cards, key=lambda card: card["processed_at"] or "9")
    last = max(n for n, card in enumerate(finished) if card["title"] in new)
    new_done = _seconds(finished[last]["processed_at"]) - started
    passed = last + 1 - NEW
    return [
        _row(f"{NEW} new articles behind {old} old: published after", new_done, "s", floor),
        _row(f"old articles published before the last of {NEW} new", passed, f"of {old}", None),
        _row(f"all {old + NEW} articles published after", all_done, "s", floor * (old + NEW) / NEW),
    ]


async def _bare(links: Iterable[str], kit: Kit) -> float:
    """Do the unavoidable work on each page, as many at once as the fetch lane would."""
    places = asyncio.Semaphore(CONCURRENCY)

    async def one(link: str) -> None:
        async with places:
            page = await kit.fetcher.page(link)
            text = (await kit.extractor.extract(page.body, page.url)).text
            await kit.enricher.summarize(text, title=f"floor {link}")
            await kit.enricher.judge_sentiment(text, title=f"floor {link}")

    first, *rest = links
    await one(first)  # Starts the child process and loads what it and the enricher load once.
    started = time.perf_counter()
    await asyncio.gather(*(one(link) for link in [first, *rest]))
    return time.perf_counter() - started


def _publish(world: News, name: str, published_ms: int) -> str:
    paragraphs = ["".join(SENTENCE.format(n=f"{name}-{n}", k=k) for n in range(4)) for k in range(8)]
    world.add(
        id=name,
        outlet="post",
        path=f"/n/{name}",
        title=name,
        description=f"What happened in {name}.",
        paragraphs=paragraphs,
        published_ms=published_ms,
    )
    return name


def _seconds(moment: str) -> float:
    return datetime.fromisoformat(moment).timestamp()


def _row(what: str, value: float, unit: str, floor: float | None) -> dict[str, Any]:
    ratio = floor / value if floor is not None and value else None
    return {"what": what, "value": value, "unit": unit, "floor": floor, "ratio": ratio}


if __name__ == "__main__":
    for found in run(quick=False):
        told = "" if found["floor"] is None else f"   floor {found['floor']:.2f}   {found['ratio']:.2f}"
        print(f"{found['what']:<56}{found['value']:>8.2f} {found['unit']}{told}")
