"""The link that the terminal shows: one click signs one browser in, once, and only on this machine."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.unit.serve.asgi import Client
from tests.unit.serve.pages.test_pages import BROWSER, token_of
from tests.unit.serve.world import World, a_world

from tidings.serve.application import build
from tidings.serve.invitation import INVITED_SECONDS, Invitation


class Watch:
    seconds = 100.0

    def __call__(self) -> float:
        return self.seconds


@pytest.fixture
def watch() -> Watch:
    return Watch()


@pytest.fixture
def invitation(watch: Watch) -> Invitation:
    return Invitation(watch)


@pytest.fixture
def open_world() -> Iterator[World]:
    with a_world() as world:
        yield world


def visitor(world: World, invitation: Invitation, host: str = "127.0.0.1:8000") -> Client:
    hosts = frozenset({"tidings.example"})
    return Client(build(world.backend(invitation=invitation, hosts=hosts)), host=host)


async def enter(client: Client, invitation: Invitation, *, key: str | None = None):
    page = await client.get("/login", headers=BROWSER)
    fields = {"form_token": token_of(page), "key": key or invitation.key}
    return await client.form("/login/invited", fields, headers=BROWSER)


async def test_one_click_signs_in_and_the_link_then_is_used_up(open_world: World, invitation: Invitation):
    client = visitor(open_world, invitation)

    shown = await client.get(f"/login?key={invitation.key}", headers=BROWSER)
    assert "Sign this browser in" in shown.text
    entered = await enter(client, invitation)
    cookie = entered.headers["set-cookie"].partition(";")[0]
    signed_in = await client.get("/", headers={**BROWSER, "cookie": cookie})
    again = await enter(client, invitation)

    assert (entered.status, again.status) == (303, 401)
    assert "HttpOnly; SameSite=Strict" in entered.headers["set-cookie"]
    assert "Sign out" in signed_in.text
    assert "used already" in again.text
    assert "used already" in (await client.get(f"/login?key={invitation.key}", headers=BROWSER)).text


async def test_a_signed_in_browser_may_operate(open_world: World, invitation: Invitation):
    client = visitor(open_world, invitation)
    cookie = (await enter(client, invitation)).headers["set-cookie"].partition(";")[0]
    home = await client.get("/", headers={**BROWSER, "cookie": cookie})
    fields = {"form_token": token_of(home), "part": "pipeline:hacker_news", "back": "/"}

    paused = await client.form("/actions/pause", fields, headers={**BROWSER, "cookie": cookie})

    assert paused.status == 303
    assert "pipeline:hacker_news" in open_world.store.status_views.status().paused


async def test_looking_at_the_link_does_not_use_it_up(open_world: World, invitation: Invitation):
    client = visitor(open_world, invitation)
    for _ in range(3):
        assert (await client.get(f"/login?key={invitation.key}", headers=BROWSER)).status == 200
    assert (await enter(client, invitation)).status == 303


async def test_an_old_or_a_wrong_key_signs_nobody_in(open_world: World, invitation: Invitation, watch: Watch):
    client = visitor(open_world, invitation)
    wrong = await enter(client, invitation, key="guess")
    watch.seconds += INVITED_SECONDS
    late = await enter(client, invitation)

    assert (wrong.status, late.status) == (401, 401)
    assert "set-cookie" not in wrong.headers
    assert "set-cookie" not in late.headers


async def test_the_link_is_for_this_machine_only(open_world: World, invitation: Invitation):
    client = visitor(open_world, invitation, host="tidings.example")
    page = await client.get(f"/login?key={invitation.key}", headers=BROWSER)
    entered = await client.form(
        "/login/invited", {"form_token": token_of(page), "key": invitation.key}, headers=BROWSER
    )

    assert (page.status, entered.status) == (401, 401)
    assert invitation.is_open(invitation.key)


async def test_a_foreign_page_cannot_use_the_link(open_world: World, invitation: Invitation):
    client = visitor(open_world, invitation)
    fields = {"form_token": "00" * 32, "key": invitation.key}

    forged = await client.form("/login/invited", fields, headers=BROWSER)
    foreign = await client.form("/login/invited", fields, headers={**BROWSER, "sec-fetch-site": "cross-site"})

    assert forged.status == foreign.status == 403
    assert invitation.is_open(invitation.key)


async def test_without_an_invitation_no_key_is_good(client: Client):
    page = await client.get("/login", headers=BROWSER)
    entered = await client.form("/login/invited", {"form_token": token_of(page), "key": "x"}, headers=BROWSER)
    assert entered.status == 401
