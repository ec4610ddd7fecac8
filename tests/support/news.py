"""Two small pipelines that tell news: the text of a thing is `title | address | minutes after noon | text`."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace

from tests.support import example
from tests.support.store import Ground
from tidings.follow.stories.follower import StoryFollower, StoryLoop
from tidings.model.item import Finding
from tidings.model.pipeline import Pipeline
from tidings.model.publication import Collection, Document, Presentation
from tidings.store.db.executor import StoreExecutor
from tidings.store.store import Store

NOON = 1_700_000_000_000
NAMES = ("example", "wire")
TOLD = (
    "Sbarro files for bankruptcy",
    "Harbor tunnel opens to the public",
    "Lunar probe loses contact with Earth",
    "Museum of Riverside closes after fire",
    "Quantum startup Qubix raises money",
    "Coffee prices hit a record",
)


def present(key: str, body: example.Thing) -> Presentation:
    title, url, minutes, text = (part.strip() for part in f"{body.text} | | | ".split("|")[:4])
    at = NOON + int(minutes or 0) * 60_000
    return Presentation(
        "things",
        key,
        example.ThingCard(key, title),
        sort=at,
        document=lambda: Document(title, text, time_ms=at, url=url),
    )


def pipelines() -> dict[str, Pipeline]:
    """Return them by name."""
    things = Collection("things", "thing", "thing", example.ThingCard, "Things", stories="always", title_field="text")
    return {
        name: replace(
            example.pipeline(), name=name, title=name.title(), collections=(things,), presenters={"thing": present}
        )
        for name in NAMES
    }


def telling(
    key: str, title: str, url: str = "", minutes: int = 0, text: str = "", *, pipeline: str = "example"
) -> Finding:
    """Make a finding."""
    found = example.thing(key, f"{title} | {url} | {minutes} | {text}")
    return Finding(pipeline, found.kind, found.key, found.fingerprint, found.payload)


def told(ground: Ground, *findings: Finding) -> None:
    """Let things be found, processed and shown, in this order."""
    for finding in findings:
        ground.name = finding.pipeline
        ground.record(finding)
        ground.work()
    ground.name = NAMES[0]


def group(store: Store, named: Mapping[str, Pipeline], *, owner: str = "test") -> None:
    """Follow to the end and group all there is."""
    with ThreadPoolExecutor(1) as pool:
        pool.submit(asyncio.run, _group(store, named, owner)).result()


async def _group(store: Store, named: Mapping[str, Pipeline], owner: str) -> None:
    with closing(StoreExecutor(store.database)) as executor:
        await story_loop(store, named, executor, owner).catch_up()


def story_loop(store: Store, named: Mapping[str, Pipeline], executor: StoreExecutor, owner: str) -> StoryLoop:
    follower = StoryFollower(store.stories, store.changes, named, executor, owner)
    return StoryLoop(follower, store.changes, executor, tuple(named), owner, store.now_ms)
