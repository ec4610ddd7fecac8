"""Sources over the API and on the dashboard: tried, added, changed, removed."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from tests.support.engine import Engine
from tests.unit.pipelines.feeds.sites import NOW_MS, a_site
from tests.unit.serve.asgi import Answer, Client

from tidings.backends import backend_of
from tidings.config import Server
from tidings.pipelines import feeds
from tidings.sample.feeds import FeedSites
from tidings.sample.serving import StandIn
from tidings.serve.application import build

SOURCES = "/api/v1/sources"


@dataclass
class Desk:
    """A server over an engine, a website, and clients of it."""

    engine: Engine
    web: str
    client: Client
    reader: Client


@asynccontextmanager
async def desk(database_url: str, *listed: str) -> AsyncIterator[Desk]:
    async with StandIn(FeedSites([a_site(), a_site("two.example", 2)], now_ms=lambda: NOW_MS).app) as web:
        pipeline = feeds.build(feeds.Settings(feeds=[web.url + path for path in listed]))  # type: ignore[misc]
        async with Engine(database_url, [pipeline], loopback=[("127.0.0.1", web.port)]) as engine:
            tokens = engine.store.tokens
            application = build(backend_of(engine.app, Server().model_dump(), loopback=True, is_demo=False))
            yield Desk(
                engine,
                web.url,
                Client(application, token=tokens.create("operator", "operate")),
                Client(application, token=tokens.create("reader", "read")),
            )


async def patch(at: Desk, name: str, changes: dict[str, Any], seen: str) -> Answer:
    headers = {"content-type": "application/json", "if-match": seen}
    return await at.client.send("PATCH", f"{SOURCES}/{name}", headers=headers, content=json.dumps(changes).encode())


async def test_a_source_is_tried_added_changed_and_removed_over_http(database_url: str) -> None:
    async with desk(database_url) as at:
        said = {"address": at.web + "/lamp.example/"}
        tried = await at.client.post(f"{SOURCES}/test", said)
        assert tried.status == 200
        assert tried.json["preview"]["entries"][0]["title"] == "Entry number 3"
        assert tried.json["newest"]["card"]["summary"]
        assert at.engine.store.source_list.current() == {}

        added = await at.client.post(SOURCES, {**said, "interval": "30min", "labels": ["sea"]})
        assert added.status == 201, added.json
        name = added.json["name"]
        assert (added.json["origin"], added.json["definition"]["interval"]) == ("store", 1800)
        read = await at.client.get(f"{SOURCES}/{name}")
        assert read.headers["etag"] == added.headers["etag"]

        assert (await at.engine.discover())[0].new == 3
        stale = await patch(at, name, {"title": "x"}, '"old"')
        assert stale.status == 412
        changed = await patch(at, name, {"title": "The log"}, read.headers["etag"])
        assert (changed.status, changed.json["definition"]["title"]) == (200, "The log")
        assert changed.json["definition"]["labels"] == ["sea"]

        again = await at.client.post(SOURCES, said)
        assert (again.status, again.headers["content-type"]) == (409, "application/problem+json")
        wrong = await at.client.post(SOURCES, {**said, "intervall": 5})
        assert (wrong.status, "intervall" in wrong.json["detail"]) == (400, True)
        undecided = await at.client.send("DELETE", f"{SOURCES}/{name}")
        assert (undecided.status, "items" in undecided.json["detail"]) == (400, True)
        await at.engine.work_until_idle()
        removed = await at.client.send("DELETE", f"{SOURCES}/{name}?items=forget")
        assert (removed.status, removed.json) == (200, {"items": 3})
        assert at.engine.items("entry") == []
        assert (await at.client.get(f"{SOURCES}/{name}")).status == 404


async def test_changing_sources_needs_the_scope_operate_and_a_source_of_the_store(database_url: str) -> None:
    async with desk(database_url, "/lamp.example/feed") as at:
        (name,) = at.engine.store.source_list.current()
        assert (await at.reader.get(f"{SOURCES}/{name}")).json["origin"] == "file"
        assert (await at.reader.post(SOURCES, {"address": at.web})).status == 403
        assert (await at.reader.post(f"{SOURCES}/test", {"address": at.web})).status == 403
        refused = await patch(at, name, {"title": "x"}, "*")
        assert (refused.status, "configuration file" in refused.json["detail"]) == (409, True)
        assert (await at.client.send("DELETE", f"{SOURCES}/{name}?items=keep")).status == 409


async def test_labels_and_category_of_a_source_are_found(database_url: str) -> None:
    async with desk(database_url) as at:
        said = {"address": at.web + "/lamp.example/feed", "labels": ["sea", "night"], "category": "Harbor"}
        at.engine.store.source_edits.add("feeds", said)
        at.engine.store.source_edits.add("feeds", {"address": at.web + "/two.example/feed"})
        await at.engine.discover()
        await at.engine.work_until_idle()
        await at.engine.follow()
        assert len(at.engine.search("label:sea")) == 3
        found = await at.reader.get("/api/v1/feeds/entries", label="night")
        assert (found.json["total"], found.json["entries"][0]["category"]) == (3, "Harbor")


def token_of(page: bytes) -> str:
    found = re.search(rb'name="form_token" value="([^"]+)"', page)
    assert found
    return found[1].decode()


async def test_the_forms_show_what_is_there_before_it_is_added(database_url: str) -> None:
    async with desk(database_url) as at:
        empty = await at.client.get("/sources/add")
        form = {"form_token": token_of(empty.body), "address": at.web + "/lamp.example/", "pipeline": "feeds"}
        shown = await at.client.form("/sources/add", form)
        assert shown.status == 200
        assert b"Entry number 3" in shown.body
        assert b"What becomes of the newest" in shown.body
        wrong = await at.client.form("/sources/add", {**form, "interval": "1s"})
        assert (wrong.status, b"1 s is too often" in wrong.body) == (400, True)
        assert at.engine.store.source_list.current() == {}

        added = await at.client.form("/actions/source-add", {**form, "title": "Lamps"})
        assert added.status == 303
        (name,) = at.engine.store.source_list.current()
        page = await at.client.get(f"/sources/{name}")
        assert b"Lamps" in page.body
        assert b"Asked at once" in page.body
        token = token_of(page.body)
        one = {"form_token": token, "source": name}
        edited = {**one, "address": form["address"], "title": "The log", "interval": "", "full_text": "on"}
        assert (await at.client.form("/actions/source-edit", edited)).status == 303
        assert b"The log" in (await at.client.get("/sources")).body
        undecided = await at.client.form("/actions/source-remove", one)
        assert (undecided.status, b"what becomes of its entries" in undecided.body) == (400, True)
        removed = await at.client.form("/actions/source-remove", {**one, "items": "keep"})
        assert removed.status == 303
        assert at.engine.store.source_list.current() == {}
        forged = await at.client.form("/actions/source-add", {**form, "form_token": "x"})
        assert forged.status == 403
