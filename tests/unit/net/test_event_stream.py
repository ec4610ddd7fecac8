from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route
from yarl import URL

from tidings.model.errors import Misconfigured, SlowDown, TidingsError, Transient
from tidings.model.web import ServerEvent
from tidings.net.client import Web
from tidings.net.event_stream import EVENT_BYTES_MAX, sibling
from tidings.sample.serving import StandIn

PIECES = (
    ": hello\r\n\r\n",
    "event: put\r\nda",
    'ta: {"a":\r\ndata: 1}\r\n',
    "\r\nevent: keep-alive\ndata: null\n\n",
    "data: é\n\n",
)


async def answer(request: Request) -> Response:
    name = request.path_params["name"]

    async def pieces() -> AsyncIterator[str]:
        for piece in PIECES:
            yield piece
        if name == "silent":
            await asyncio.sleep(3600)
        if name == "endless":
            for _ in range(100):
                yield "data: " + "x" * 65_536

    answers = {
        "moved": RedirectResponse("/whole", 307),
        "circle": RedirectResponse("/circle", 307),
        "elsewhere": RedirectResponse("http://192.0.2.1/whole", 307),
        "busy": Response("slow down", 429, headers={"retry-after": "7"}),
        "plain": JSONResponse(1),
    }
    return answers.get(name) or StreamingResponse(pieces(), media_type="text/event-stream; charset=utf-8")


async def heard(name: str) -> tuple[list[ServerEvent], TidingsError]:
    """Return the events of a stream, and what ended it."""
    events: list[ServerEvent] = []
    app = Starlette(routes=[Route("/{name}", answer)])
    async with StandIn(app) as server, Web(user_agent="t/1", endpoints=[server.url]) as web:
        try:
            async for event in web.events(f"{server.url}/{name}", silence_seconds=0.3):
                events += [event]
        except TidingsError as error:
            return events, error
    raise AssertionError("a stream never ends without an error")


WHOLE = [ServerEvent("put", '{"a":\n1}'), ServerEvent("keep-alive", "null"), ServerEvent("message", "é")]


@pytest.mark.parametrize(
    ("name", "events", "kind", "message"),
    [
        ("whole", WHOLE, Transient, "ended its stream"),
        ("moved", WHOLE, Transient, "ended its stream"),
        ("silent", WHOLE, Transient, "was silent for 0.3 s"),
        ("endless", WHOLE, Transient, f"sent an event above {EVENT_BYTES_MAX} bytes"),
        ("circle", [], Misconfigured, "redirects more than 5 times"),
        ("elsewhere", [], Misconfigured, "redirects to 192.0.2.1, which is not beside it"),
        ("busy", [], SlowDown, "asked us to slow down"),
        ("plain", [], Transient, "answers without streaming"),
    ],
)
async def test_a_stream_is_read_to_its_end(name: str, events: list[ServerEvent], kind: type, message: str) -> None:
    found, error = await heard(name)

    assert found == events
    assert type(error) is kind
    assert message in str(error)


async def test_only_configured_endpoints_are_listened_to() -> None:
    async with Web(user_agent="t/1", endpoints=["https://a.example"]) as web:
        with pytest.raises(Misconfigured):
            web.events("https://b.example/x")


@pytest.mark.parametrize(
    ("location", "is_followed"),
    [
        ("https://s-usc1c-nss-271.firebaseio.com/v0/maxitem.json?ns=hacker-news", True),
        ("/v0/elsewhere.json", True),
        ("http://hacker-news.firebaseio.com/v0/maxitem.json", False),
        ("https://firebaseio.com.evil.example/x", False),
        ("https://evilfirebaseio.com/x", False),
        ("https://user@hacker-news.firebaseio.com/x", False),
        ("https://127.0.0.1/x", False),
        ("ftp://hacker-news.firebaseio.com/x", False),
    ],
)
def test_a_stream_is_only_followed_to_machines_beside_it(location: str, is_followed: bool) -> None:
    current = URL("https://hacker-news.firebaseio.com/v0/maxitem.json")
    if is_followed:
        assert sibling(current, location) == current.join(URL(location))
        return
    with pytest.raises(Misconfigured):
        sibling(current, location)


def test_the_same_number_is_followed_to_another_port_and_no_other_number() -> None:
    current = URL("http://127.0.0.1:9000/x")

    assert sibling(current, "http://127.0.0.1:9001/y").port == 9001
    with pytest.raises(Misconfigured):
        sibling(current, "http://127.0.0.2:9000/y")
