"""A second stand-in for the Hacker News API, written from its description alone, that misbehaves by a plan.

The sample world's stand-in is well behaved. This one answers single ids wrongly: always, or for their first requests.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

Fault = Literal["500", "401", "429", "torn", "slow", "null", "misshapen"]
StreamFault = Literal["500", "moved", "cut", "silent", "torn", "cancel", "auth_revoked", "answer", "patch", "parts"]
LISTS = ("topstories", "newstories", "beststories", "askstories", "showstories", "jobstories")
UPDATES_SIZE = 50
KEEP_ALIVE_SECONDS = 0.2


@dataclass(frozen=True, slots=True)
class Trouble:
    """What is wrong with one id, for its first `requests` requests; None means for good."""

    fault: Fault
    requests: int | None = None


def seeded_plan(
    seed: int, ids: Iterable[int], share: float, requests: int | None, faults: Iterable[Fault] = get_args(Fault)
) -> dict[int, Trouble]:
    """Draw that share of the ids, and a fault for each."""
    rng, kinds = random.Random(seed), list(faults)
    return {number: Trouble(rng.choice(kinds), requests) for number in ids if rng.random() < share}


class FirebaseApi:
    """Serves items by id under `/v0`; answers come out of order, because each takes a different time."""

    def __init__(
        self, *, seed: int = 0, plan: Mapping[int, Trouble] | None = None, updates_size: int = UPDATES_SIZE
    ) -> None:
        self.items: dict[int, dict[str, Any]] = {}
        self.plan = dict(plan or {})
        self.updates: list[int] = []
        self._updates_size = updates_size
        self.users: dict[str, Any] = {}
        """What the API says of users; an exception to that is a status."""
        self.profiles: list[str] = []
        self.lists: dict[str, Any] = {}
        """What the lists say, where a test says it."""
        self.requests: Counter[str] = Counter()
        """How often each path was asked for."""
        self.is_out = False
        """No item is answered, whatever its id."""
        self.is_away = False
        """Nothing is answered, and streams cannot be opened."""
        self.moved_to = ""
        """Where the machine stands that streams are sent to by a 307."""
        self.stream_faults: list[StreamFault] = []
        """What goes wrong with the next streams that are opened, one each."""
        self.streams = 0
        """How many streams are open."""
        self._listeners: set[asyncio.Event] = set()
        self.most_at_once = self._at_once = 0
        self._rng = random.Random(seed)
        self.app = Starlette(routes=[Route("/v0/{path:path}", self._answer)])

    def add(self, *ids: int, **fields: Any) -> None:
        """Put stories into the world, or other items where the fields say so."""
        for number in ids:
            story = {"type": "story", "by": "a", "title": f"Story {number}", "score": 1}
            self.items[number] = {"id": number, "time": 1_700_000_000 + number, **story, **fields}
        self._announce()

    def change(self, number: int, **fields: Any) -> None:
        """Change an item, and tell it in `updates`."""
        self.items[number] |= fields
        self.updates = list(dict.fromkeys([number, *self.updates]))[: self._updates_size]
        self._announce()

    def requests_for(self, number: int) -> int:
        """Return how often an item was asked for."""
        return self.requests[f"item/{number}.json"]

    def _announce(self) -> None:
        for listener in self._listeners:
            listener.set()

    async def _answer(self, request: Request) -> Response:
        path = request.path_params["path"]
        if self.is_away:
            return Response("bad gateway", 502)
        if request.headers.get("accept") == "text/event-stream":
            return self._stream(path.removesuffix(".json"), request)
        self.requests[path] += 1
        self._at_once += 1
        self.most_at_once = max(self.most_at_once, self._at_once)
        try:
            await asyncio.sleep(self._rng.uniform(0, 0.005))
            return await self._respond(path, request)
        finally:
            self._at_once -= 1

    def _stream(self, name: str, request: Request) -> Response:
        self.requests[f"stream {name}"] += 1
        fault = self.stream_faults.pop(0) if self.stream_faults else None
        if fault == "500":
            return Response("internal error", 500)
        if fault == "answer":
            return _json(self._value(name))
        if fault == "moved" and "moved" not in request.query_params:
            return Response(status_code=307, headers={"location": f"{self.moved_to}/v0/{name}.json?moved=1"})
        return StreamingResponse(self._events(name, fault), media_type="text/event-stream")

    async def _events(self, name: str, fault: StreamFault | None) -> AsyncIterator[str]:
        """Send the value now and whenever it changes; a faulty stream goes wrong after the first time."""
        listener = asyncio.Event()
        self._listeners.add(listener)
        self.streams += 1
        told = None
        try:
            while True:
                if told != (value := self._value(name)):
                    event = _told_in_part(fault, value) if told is not None else None
                    told = value
                    yield event or f"event: put\ndata: {json.dumps({'path': '/', 'data': value})}\n\n"
                if fault == "cut":
                    return
                if fault in ("torn", "cancel", "auth_revoked"):
                    yield f'event: {"put" if fault == "torn" else fault}\ndata: {{"path": \n\n'
                if fault == "silent":
                    await asyncio.sleep(3600)
                listener.clear()
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(KEEP_ALIVE_SECONDS):
                        await listener.wait()
                        continue
                yield "event: keep-alive\ndata: null\n\n"
        finally:
            self._listeners.discard(listener)
            self.streams -= 1

    def _value(self, name: str) -> Any:
        return max(self.items) if name == "maxitem" else {"items": self.updates, "profiles": self.profiles}

    async def _respond(self, path: str, request: Request) -> Response:
        name, _, rest = path.removesuffix(".json").partition("/")
        if name == "item" and rest.isdigit():
            return await self._item(int(rest), request)
        if name == "user":
            said = self.users.get(rest)
            return Response("trouble", said) if isinstance(said, int) else _json(said)
        if name in ("maxitem", "updates"):
            return _json(self._value(name))
        if name in LISTS:
            newest = sorted(self.items, reverse=True)
            return _json(self.lists.get(name, newest[:200] if name == "newstories" else []))
        return _json({"error": "Permission denied"}, 401)

    async def _item(self, number: int, request: Request) -> Response:
        trouble = self.plan.get(number)
        if self.is_out:
            return Response("out of order", 503)
        if trouble is None or (trouble.requests is not None and self.requests_for(number) > trouble.requests):
            return _json(self.items.get(number))
        if trouble.fault == "slow":
            while (await request.receive())["type"] != "http.disconnect":
                pass
        whole = json.dumps(self.items.get(number))
        answers = {
            "slow": Response("nobody waits for this any more", 504),
            "500": Response("internal error", 500),
            "401": _json({"error": "Permission denied"}, 401),
            "429": Response("slow down", 429, headers={"retry-after": "5"}),
            "torn": Response(whole[: len(whole) // 2], media_type="application/json"),
            "null": _json(None),
            "misshapen": _json({"error": "try again"}),
        }
        return answers[trouble.fault]


def _told_in_part(fault: StreamFault | None, value: Any) -> str | None:
    """Tell what is new in a window by its changed children only, or by one place of it, as Firebase may."""
    if not isinstance(value, dict) or fault not in ("patch", "parts"):
        return None
    if fault == "patch":
        return f"event: patch\ndata: {json.dumps({'path': '/', 'data': {'items': value['items']}})}\n\n"
    return f"event: put\ndata: {json.dumps({'path': '/items/0', 'data': value['items'][0]})}\n\n"


def _json(value: Any, status: int = 200) -> Response:
    return Response(json.dumps(value), status, media_type="application/json; charset=utf-8")
