"""The reading view as it works without a script: lists, an item with its text, marks and their undoing, searches."""

from __future__ import annotations

import re

from tests.unit.serve.asgi import Answer, Client
from tests.unit.serve.pages.test_pages import BROWSER, token_of
from tests.unit.serve.world import World

from tidings.serve.application import build


def listed(page: Answer) -> list[int]:
    return [int(each) for each in re.findall(r'<li class="entry[^>]*data-item="(\d+)"', page.text)]


async def read(client: Client, query: str = "") -> Answer:
    page = await client.get(f"/read{query}", headers=BROWSER)
    assert page.status == 200, page.text
    return page


async def post(client: Client, path: str, page: Answer, **fields: str) -> Answer:
    answer = await client.form(path, {"form_token": token_of(page), "back": "/read", **fields}, headers=BROWSER)
    assert answer.status == 303, answer.text
    return answer


async def test_the_item_stands_beside_the_list_with_text_and_discussion(client: Client):
    page = await read(client)
    story = next(item for item in listed(page) if f"item={item}" in page.text and item)
    opened = await read(client, f"?item={story}")
    assert opened.text.count("<h2") == 1
    assert "Mark as read" in opened.text
    assert listed(opened) == listed(page)


async def test_marking_what_is_above_can_be_undone(client: Client):
    page = await read(client)
    items = ",".join(str(item) for item in listed(page))

    marked = await post(client, "/read/marks", page, items=items, read="true", undoable="1")
    after = await read(client, marked.headers["location"].removeprefix("/read"))
    assert listed(after) == []
    assert "Everything here is read" in after.text
    assert ">Undo</button>" in after.text
    await post(client, "/read/marks", after, items=items, read="false")
    assert listed(await read(client)) == listed(page)


async def test_everything_is_read_up_to_what_was_seen(client: Client, world: World):
    page = await read(client)
    seen_at = re.search(r'name="at" value="(\d+)"', page.text)
    assert seen_at is not None
    await post(client, "/read/all", page, view="all", at=str(world.store.now_ms()))
    assert listed(await read(client)) == []
    assert len(listed(await read(client, "?show=all"))) == len(listed(page))


async def test_a_star_keeps_an_item(client: Client):
    page = await read(client)
    first = listed(page)[0]
    await post(client, "/read/marks", page, items=str(first), starred="true")
    assert listed(await read(client, "?show=starred")) == [first]


async def test_a_search_is_kept_counted_and_forgotten(client: Client):
    found = await read(client, "?q=headline")
    saved = await post(client, "/read/searches", found, query="headline", title="Heads up")
    assert saved.headers["location"].startswith("/read?view=search%3Aheads-up")
    kept = await read(client, "?view=search:heads-up")
    assert listed(kept) == listed(found)
    assert "/feeds/searches/heads-up.atom" in kept.text
    assert f'<span class="num">{len(listed(found))}</span>' in kept.text
    await post(client, "/read/forget", kept, name="heads-up")
    assert (await client.get("/read?view=search:heads-up", headers=BROWSER)).status == 404


async def test_a_stranger_reads_and_marks_nothing(stranger: Client):
    sent_away = await stranger.get("/read", headers=BROWSER)
    assert sent_away.headers["location"].startswith("/login")
    assert (await stranger.form("/read/marks", {"items": "1", "read": "true"})).status == 401


async def test_a_form_of_another_page_marks_nothing(client: Client):
    item = listed(await read(client))[0]
    forged = await client.form("/read/marks", {"items": str(item), "read": "true", "form_token": "00" * 32})
    assert forged.status == 403
    assert item in listed(await read(client))


async def test_a_token_for_reading_alone_shows_no_buttons(world: World):
    client = Client(build(world.backend()), token="reader")
    page = await read(client)
    assert listed(page)
    assert "/read/marks" not in page.text


async def test_bad_input_is_told(client: Client):
    assert "position" not in (await read(client, "?q=score:%3Ex")).text
    page = await read(client)
    bad = await client.form("/read/marks", {"form_token": token_of(page), "items": "1;2"}, headers=BROWSER)
    assert bad.status == 400
    assert (await client.get("/read?item=999999", headers=BROWSER)).status == 404
