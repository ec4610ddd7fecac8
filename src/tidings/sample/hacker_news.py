"""A stand-in for the Hacker News API: items, lists, updates, and a world that goes on by itself."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from importlib import resources
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from tidings.model.clock import SystemClock

UPDATES_WINDOW_MS = 5 * 60_000
VOTES_EVERY_MS = 20_000
STREAM_LOOK_SECONDS = 0.25
KEEP_ALIVE_SECONDS = 30.0
ABOUT = 'Made of sample data.<p>Elsewhere: <a href="https:&#x2F;&#x2F;example.org&#x2F;" rel="nofollow">example.org</a>'
LIST_SIZES = {
    "topstories": 500,
    "newstories": 500,
    "beststories": 500,
    "askstories": 200,
    "showstories": 200,
    "jobstories": 200,
}


class HackerNews:
    """Holds items by id and serves them; `add`, `change` and `hide` move the world, and so does the clock."""

    def __init__(self, items: Iterable[Mapping[str, Any]] = (), *, now_ms: Callable[[], int] | None = None) -> None:
        self._now_ms = now_ms or SystemClock().now_ms
        self._items: dict[int, dict[str, Any]] = {}
        self._changed_at: dict[int, int] = {}
        self._plan: list[tuple[int, dict[str, Any]]] = []
        """What will happen: (when, fields of an item to add or change), in order of time."""
        self._votes_ms: int | None = None
        """Up to when votes were counted; None where nobody votes by themselves."""
        self._hidden: dict[int, int] = {}
        """Ids answered with `null` for so many requests."""
        self.maxitem: int | None = None
        """Said instead of the greatest id there is."""
        self.asked: list[str] = []
        """The paths of all requests."""
        self.answers_after_seconds = 0.0
        self.most_at_once = 0
        self._at_once = 0
        for item in items:
            self._items[int(item["id"])] = dict(item)
        self.app = Starlette(routes=[Route("/v0/{path:path}", self._answer)])

    @classmethod
    def from_package(cls, start_ms: int | None = None, *, now_ms: Callable[[], int] | None = None) -> HackerNews:
        """Load the sample world as it stands at `start_ms`; what arrives later arrives by `now_ms`, the clock."""
        clock = now_ms or SystemClock().now_ms
        start = clock() if start_ms is None else start_ms
        world = cls(now_ms=clock)
        for record in (*_records("items"), *_records("updates")):
            minutes, seconds = record.pop("minutes_ago", None), record.pop("arrives_after_seconds", None)
            if seconds is not None:
                world.plan(start + seconds * 1000, record)
            else:
                world._items[record["id"]] = {**record, "time": start // 1000 - minutes * 60}
        world._votes_ms = start
        return world

    def add(self, **item: Any) -> int:
        """Put a new item into the world, now; return its id."""
        number = int(item.setdefault("id", self.newest_id() + 1))
        item.setdefault("time", self._now_ms() // 1000)
        self._items[number] = item
        self._changed_at[number] = self._now_ms()
        if item.get("type") == "comment" and "parent" in item:
            parent = self._items.get(item["parent"])
            if parent is not None:
                self.change(item["parent"], kids=[*parent.get("kids", []), number])
        return number

    def change(self, number: int, **fields: Any) -> None:
        """Change fields of an item, now; None removes one."""
        item = {**self._items[number], **fields}
        self._items[number] = {name: value for name, value in item.items() if value is not None}
        self._changed_at[number] = self._now_ms()

    def delete(self, number: int) -> None:
        """Delete an item the way its author would: its words go, its place stays."""
        self.change(number, deleted=True, by=None, text=None, title=None, url=None, score=None, descendants=None)

    def hide(self, number: int, requests: int) -> None:
        """Answer the next so many requests for an id with `null`."""
        self._hidden[number] = requests

    def plan(self, at_ms: int, item: Mapping[str, Any]) -> None:
        """Let an item appear, or change, when the clock comes to it."""
        self._plan.append((at_ms, dict(item)))
        self._plan.sort(key=lambda event: (event[0], "type" not in event[1]))

    def items(self) -> dict[int, dict[str, Any]]:
        """Return everything there is now, by id."""
        self._go_on()
        return self._items

    def newest_id(self) -> int:
        """Return the greatest id."""
        return max(self.items(), default=0)

    def _go_on(self) -> None:
        while self._plan and self._plan[0][0] <= self._now_ms():
            at, item = self._plan.pop(0)
            before = self._items.get(item["id"], {"time": at // 1000})
            self._items[item["id"]] = {**before, **item}
            self._changed_at[item["id"]] = at

        while self._votes_ms is not None and self._votes_ms + VOTES_EVERY_MS <= self._now_ms():
            self._votes_ms += VOTES_EVERY_MS
            self._vote(self._votes_ms)

    def _vote(self, at: int) -> None:
        """Let people vote for some of the stories, each time for others."""
        turn = at // VOTES_EVERY_MS
        for number, item in self._items.items():
            is_alive = item.get("type") == "story" and not item.get("dead") and not item.get("deleted")
            if is_alive and item.get("score", 0) > 1 and (number * 7 + turn) % 5 == 0:
                item["score"] += 1 + (number + turn) % 4
                self._changed_at[number] = at

    async def _events(self, path: str) -> AsyncIterator[str]:
        """Send a value now and whenever it changes, as the API's streams do."""
        told, silent_seconds = None, 0.0
        while True:
            value = self._value(path)[1]
            if value != told:
                told, silent_seconds = value, 0.0
                yield f"event: put\ndata: {json.dumps({'path': '/', 'data': value})}\n\n"
            elif silent_seconds >= KEEP_ALIVE_SECONDS:
                silent_seconds = 0.0
                yield "event: keep-alive\ndata: null\n\n"
            await asyncio.sleep(STREAM_LOOK_SECONDS)
            silent_seconds += STREAM_LOOK_SECONDS

    async def _answer(self, request: Request) -> Response:
        path = request.path_params["path"]
        if request.headers.get("accept") == "text/event-stream" and self._value(path)[0] == 200:
            return StreamingResponse(self._events(path), media_type="text/event-stream")
        self.asked.append(path)
        self._at_once += 1
        self.most_at_once = max(self.most_at_once, self._at_once)
        try:
            await asyncio.sleep(self.answers_after_seconds)
            status, value = self._value(path)
        finally:
            self._at_once -= 1
        pretty = request.query_params.get("print") == "pretty"
        text = json.dumps(value, ensure_ascii=False, indent=2 if pretty else None)
        return Response(text, status, media_type="application/json; charset=utf-8")

    def _value(self, path: str) -> tuple[int, Any]:
        name, _, rest = path.removesuffix(".json").partition("/")
        if not path.endswith(".json"):
            return 404, {"error": "append .json to your request URI to use the REST API"}
        if name == "item" and rest.isdigit():
            return 200, self._item(int(rest))
        if name == "user" and rest:
            return 200, self._user(rest)
        if rest or name not in {*LIST_SIZES, "maxitem", "updates"}:
            return 401, {"error": "Permission denied"}
        if name == "maxitem":
            return 200, self.newest_id() if self.maxitem is None else self.maxitem
        return 200, self._updates() if name == "updates" else self._listed(name)

    def _item(self, number: int) -> dict[str, Any] | None:
        if self._hidden.get(number, 0) > 0:
            self._hidden[number] -= 1
            return None
        return self.items().get(number)

    def _user(self, name: str) -> dict[str, Any] | None:
        submitted = [number for number, item in self.items().items() if item.get("by") == name]
        if not submitted:
            return None
        karma = 1 + sum(self._items[number].get("score", 1) for number in submitted)
        created = min(self._items[number].get("time", 0) for number in submitted)
        return {"id": name, "created": created, "karma": karma, "about": ABOUT, "submitted": submitted[::-1]}

    def _updates(self) -> dict[str, Any]:
        self._go_on()
        since = self._now_ms() - UPDATES_WINDOW_MS
        changed = [number for number, at in self._changed_at.items() if at >= since]
        profiles = {self._items[number].get("by") for number in changed} - {None}
        return {"items": changed[::-1], "profiles": sorted(profiles)}

    def _listed(self, name: str) -> list[int]:
        """Rank roughly as the site does: by points and age for `top`, by points for `best`, else newest first."""
        alive = [item for item in self.items().values() if not item.get("dead") and not item.get("deleted")]
        chosen = sorted((item for item in alive if _belongs(item, name)), key=lambda item: -int(item["id"]))
        if name == "beststories":
            chosen.sort(key=lambda item: -item.get("score", 0))
        elif name == "topstories":
            now = self._now_ms() / 1000
            chosen.sort(
                key=lambda item: -item.get("score", 0) / (max(0.0, now - item.get("time", 0)) / 3600 + 2) ** 1.8
            )
        return [int(item["id"]) for item in chosen[: LIST_SIZES[name]]]


def _belongs(item: Mapping[str, Any], listing: str) -> bool:
    kind, title = item.get("type"), str(item.get("title", ""))
    if listing == "jobstories":
        return kind == "job"
    if listing == "askstories":
        return kind == "story" and title.startswith("Ask HN:")
    if listing == "showstories":
        return kind == "story" and title.startswith("Show HN:")
    if listing == "newstories":
        return kind not in ("comment", "pollopt", "job")
    return kind in ("story", "poll") or (kind == "job" and listing == "topstories")


def _records(name: str) -> list[dict[str, Any]]:
    text = resources.files("tidings.sample").joinpath("data", "hacker_news", f"{name}.jsonl").read_text("utf-8")
    return [json.loads(line) for line in text.splitlines() if line]
