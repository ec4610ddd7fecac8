"""Hostile text in every field is inert in every output: pages, RSS, Atom, JSON Feed, Discord, tables.

Every output is read the way its readers do: feeds by a feed parser that cleans nothing and by an XML parser, their
fields taken for HTML, whatever they were meant to be.
"""

from __future__ import annotations

import csv
import io
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import feedparser
import msgspec
import pytest
from tests.support.commands import tidings
from tests.support.hostile_text import HOSTILE, card_of, document_of, pipelines
from tests.unit.serve.asgi import Client
from tests.unit.serve.world import World, showcase

from tidings.model.publication import Notice, NoticeField
from tidings.publish.notifiers.discord.embeds import message
from tidings.serve.application import build

BROWSER = {"accept": "text/html"}


class Page(HTMLParser):
    """Notes whatever could run or reach out."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in ("iframe", "object", "embed", "base", "style", "img", "image", "math", "foreignobject"):
            self.found.append(tag)
        if tag == "script" and not re.fullmatch(r"/static/[0-9a-f]+/tidings\.js", dict(attrs).get("src") or ""):
            self.found.append(f"script {attrs}")
        for name, value in attrs:
            if name.startswith("on") or name in ("style", "srcdoc", "formaction", "autofocus", "xlink:href"):
                self.found.append(f"{tag} {name}")
            if name in ("href", "src", "action") and not re.match(r"(/|\?|#|https?://)", value or ""):
                self.found.append(f"{tag} {name}={value}")


@pytest.mark.parametrize("evil", HOSTILE.values(), ids=HOSTILE.keys())
async def test_hostile_text_is_inert_everywhere(evil: str) -> None:
    declared = pipelines()
    with World(*map(showcase, declared.values())) as world:
        for name, pipeline in declared.items():
            for collection in pipeline.collections:
                world.show(name, collection, {"evil": card_of(collection, evil)}, document_of(evil))
        client = Client(build(world.backend(is_demo=True)))

        for name, pipeline in declared.items():
            for collection in pipeline.collections:
                for path in ("", "/evil"):
                    await _is_inert(client, f"/pipelines/{name}/{collection.name}{path}")
        for path in ("/", "/search?q=needle", "/search?q=needle&pipeline=feeds"):
            await _is_inert(client, path)
        for name in (*declared, "all"):
            await _feeds_are_inert(client, name)


async def _is_inert(client: Client, path: str) -> None:
    answer = await client.get(path, headers=BROWSER)
    assert answer.status == 200, path
    assert Page(answer.text).found == [], path
    visible = re.sub(r"<[^>]*>", "", answer.text)
    assert not re.search("[\u202a-\u202e\u2066-\u2069\x00-\x08\x0b\x1b]", visible), path
    assert "1337" not in visible, path


async def _feeds_are_inert(client: Client, name: str) -> None:
    for form in ("rss", "atom"):
        answer = await client.get(f"/feeds/{name}.{form}")
        feed = feedparser.parse(answer.body, sanitize_html=False)
        assert not feed.bozo, feed.get("bozo_exception")
        assert feed.entries
        for entry in feed.entries:
            assert entry.link.startswith("http")
            assert entry.content[0].value
        _is_inert_for_any_reader(feed)
        _is_inert_as_xml(answer.body)
    await _full_texts_are_inert(client, name)
    items = msgspec.json.decode((await client.get(f"/feeds/{name}.json")).body)["items"]
    assert all(Page(item["content_html"]).found == [] for item in items)
    assert all(item["url"].startswith("http") for item in items)


async def _full_texts_are_inert(client: Client, name: str) -> None:
    """Read full texts with images: those may be shown, and still nothing runs."""
    collection = {"bitcoin_news": "articles", "feeds": "entries"}.get(name)
    if collection is None:
        return
    card = (await client.get(f"/api/v1/{name}/{collection}/evil", images="true")).json
    assert _active(card["content_html"]) == []
    assert _active((await client.get(f"/pipelines/{name}/{collection}/evil?images=true", headers=BROWSER)).text) == []
    for form in ("rss", "atom"):
        answer = await client.get(f"/feeds/{name}.{form}", images="true")
        for entry in feedparser.parse(answer.body, sanitize_html=False).entries:
            assert _active(entry.content[0].value) == []


def _active(html: str) -> list[str]:
    """Return what could run or reach out, but images at web addresses."""
    return [each for each in Page(html).found if each != "img"]


def _is_inert_for_any_reader(found: Any) -> None:
    """Take every text that a feed parser gives for HTML."""
    if isinstance(found, str):
        assert Page(found).found == [], found[:500]
    elif isinstance(found, dict):
        for each in found.values():
            _is_inert_for_any_reader(each)
    elif isinstance(found, list):
        for each in found:
            _is_inert_for_any_reader(each)


def _is_inert_as_xml(body: bytes) -> None:
    """Take every text and attribute of the document for HTML."""
    for element in ElementTree.fromstring(body).iter():
        for text in (element.text or "", *element.attrib.values()):
            assert Page(text).found == [], (element.tag, text[:500])


@pytest.mark.parametrize("form", ["rss", "atom", "json"])
@pytest.mark.parametrize("evil", HOSTILE.values(), ids=HOSTILE.keys())
async def test_a_hostile_search_is_inert_in_its_own_feed(evil: str, form: str) -> None:
    """The address of a feed may be a stranger's, and its search stands in the feed's title."""
    query = re.sub("[\x00-\x1f]", "", evil).replace('"', "")[:200]
    with World() as world:
        answer = await Client(build(world.backend())).get(f"/feeds/hacker_news.{form}", q=f'"{query}"')

    if answer.status == 200 and form != "json":
        feed = feedparser.parse(answer.body, sanitize_html=False)
        assert not feed.bozo
        _is_inert_for_any_reader(feed)
        _is_inert_as_xml(answer.body)
    assert answer.status in (200, 400)


@pytest.mark.parametrize("evil", HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_text_is_only_text_in_a_chat(evil: str) -> None:
    fields = (NoticeField(evil, evil, inline=True), NoticeField("name", evil, inline=False))
    notice = Notice(title=evil, text=evil, url=evil, fields=fields, time=evil)

    body = message(notice, "d1")

    (embed,) = body["embeds"]
    assert body["allowed_mentions"] == {"parse": []}
    assert "url" not in embed
    shown = [embed["title"], embed.get("description", "")]
    shown += [text for field in embed.get("fields", []) for text in (field["name"], field["value"])]
    for text in shown:
        bare = re.sub(r"\\.", "", text)
        assert not re.search(r"[*_~|`\[\]<>#]", bare), text[:300]
        assert not re.search("@(?!\u200b)|[\u202a-\u202e\u2066-\u2069]", bare), text[:300]


FORMULAS = ("=1+1", "+1+1", "-1+cmd|' /C calc'!A0", "@SUM(1)", "\uff1d1+1", "\uff0b1", "\uff0d1", "\uff20SUM(1)")
BEFORE = ("", " ", "\t", "\r", "\n", "\ufeff", "\u200b", "'", '"')


def test_hostile_text_is_no_formula_in_a_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, no_settings: None
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tidings.toml").write_text("[pipelines.hacker_news]\nbase_url = 'http://127.0.0.1:1/v0'\n")
    texts = [*HOSTILE.values(), *(before + formula for before in BEFORE for formula in FORMULAS)]
    stories = [
        {"id": number, "type": "story", "by": text[:50], "time": 1_700_000_000 + number, "title": text, "text": text}
        for number, text in enumerate(texts, start=1)
    ]
    uploaded = tidings("upload", "hacker_news", "-", given=msgspec.json.encode(stories))
    assert uploaded.code == 0, uploaded
    assert tidings("work", "--until-idle").code == 0

    ended = tidings("export", "hacker_news", "--format", "csv")

    rows = list(csv.DictReader(io.StringIO(ended.out, newline="")))
    refused = {number for number, text in enumerate(texts, start=1) if "\0" in text}  # the databases cannot hold NUL
    assert {int(row["id"]) for row in rows} == set(range(1, len(texts) + 1)) - refused
    for row in rows:
        for cell in row.values():
            assert not re.match("[\\s\x00\ufeff\u200b]*[=+@\uff0b\uff0d\uff1d\uff20-](?![0-9.]+$)", cell), cell[:200]
