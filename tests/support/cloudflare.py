"""A strict stand-in for Cloudflare's Workers KV API, with its limits and its eventual consistency.

Written from shared/sources/cloudflare_kv.md; what that page does not know is refused here.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from tests.support.clock import ManualClock

BASE = "/client/v4/accounts/acc/storage/kv/namespaces/space"
PAIRS_MAX, REQUEST_BYTES_MAX, VALUE_BYTES_MAX = 10_000, 100_000_000, 25 << 20
KEY_BYTES_MAX = 512
LAG_MS = 60_000
PAGE = 10


class Namespace:
    """What the stand-in holds: every value with the time since which it counts."""

    def __init__(self, clock: ManualClock) -> None:
        self.clock = clock
        self.token = "cf-token-123"
        self.history: dict[str, list[tuple[int, str | None]]] = {}
        self.writes = 0
        self.calls: list[str] = []
        self.daily_writes_max: int | None = None
        self.loses: set[str] = set()
        """Keys that the next bulk call does not take."""
        self.slow_downs = 0
        """How many calls are answered with 429 from now on."""
        self.is_stale = False
        """Readers see what was there a minute ago."""
        self.lock = threading.Lock()
        self.endpoint = ""

    def seen(self, key: str) -> str | None:
        at = self.clock.now_ms() - (LAG_MS if self.is_stale else 0)
        return next((value for since, value in reversed(self.history.get(key, [])) if since <= at), None)

    @property
    def values(self) -> dict[str, str]:
        """What is there in the end, for tests."""
        return {key: states[-1][1] for key, states in self.history.items() if states[-1][1] is not None}

    def write(self, key: str, value: str | None) -> None:
        self.history.setdefault(key, []).append((self.clock.now_ms(), value))


@contextmanager
def a_namespace(clock: ManualClock) -> Iterator[Namespace]:
    namespace = Namespace(clock)

    class Handler(_Requests):
        held = namespace

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    namespace.endpoint = f"http://127.0.0.1:{server.server_address[1]}/client/v4"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield namespace
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class _Requests(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    held: Namespace

    def handle_one_request(self) -> None:
        try:
            super().handle_one_request()
        except ConnectionError:
            self.close_connection = True

    def do_PUT(self) -> None:
        self._serve({"/bulk": self._put})

    def do_POST(self) -> None:
        self._serve({"/bulk/get": self._get, "/bulk/delete": self._delete})

    def do_GET(self) -> None:
        self._serve({"/keys": self._list})

    def _serve(self, routes: dict[str, Any]) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        with self.held.lock:
            parts = urlsplit(self.path)
            self.held.calls.append(f"{self.command} {parts.path.removeprefix(BASE)}")
            route = routes.get(parts.path.removeprefix(BASE)) if parts.path.startswith(BASE) else None
            if self.headers.get("authorization") != f"Bearer {self.held.token}":
                self._fail(403, 10000, "Authentication error")
            elif route is None:
                self._fail(404, 10013, "namespace not found")
            elif self.held.slow_downs:
                self.held.slow_downs -= 1
                self._fail(429, 971, "Please wait and consider throttling your request speed", {"Retry-After": "7"})
            elif len(body) > REQUEST_BYTES_MAX:
                self._fail(413, 100, "request too large")
            elif body and self.headers.get("content-type") != "application/json":
                self._fail(400, 10012, "content type")
            else:
                route(json.loads(body) if body else None, dict(parse_qsl(parts.query)))

    def _put(self, pairs: Any, _query: dict[str, str]) -> None:
        known = {"key", "value", "expiration", "expiration_ttl", "metadata", "base64"}
        if not isinstance(pairs, list) or not 0 < len(pairs) <= PAIRS_MAX or any(each.keys() - known for each in pairs):
            self._fail(400, 10029, "invalid bulk request")
            return
        if (fault := self._fault_of(pairs)) is not None:
            self._fail(*fault)
            return
        lost = [pair["key"] for pair in pairs if pair["key"] in self.held.loses]
        self.held.loses.clear()
        for pair in pairs:
            if pair["key"] not in lost:
                self.held.write(pair["key"], pair["value"])
        self.held.writes += len(pairs)
        self._succeed({"successful_key_count": len(pairs) - len(lost), "unsuccessful_keys": lost})

    def _fault_of(self, pairs: list[dict[str, str]]) -> tuple[int, int, str, dict[str, str]] | None:
        now = self.held.clock.now_ms()
        for pair in pairs:
            states = self.held.history.get(pair["key"], [])
            if pair["key"] in ("", ".", "..") or len(pair["key"].encode()) > KEY_BYTES_MAX:
                return 400, 10014, "invalid key", {}
            if len(pair["value"].encode()) > VALUE_BYTES_MAX:
                return 413, 10048, "value too large", {}
            if states and states[-1][1] is not None and now - states[-1][0] < 1_000:
                return 429, 10050, "one write a second to a key", {"Retry-After": "1"}
        if self.held.daily_writes_max is not None and self.held.writes + len(pairs) > self.held.daily_writes_max:
            return 429, 10048, "daily limit of writes", {}
        return None

    def _get(self, body: Any, _query: dict[str, str]) -> None:
        if (
            not isinstance(body, dict)
            or body.keys() - {"keys", "type", "withMetadata"}
            or not 0 < len(body["keys"]) <= 100
        ):
            self._fail(400, 10029, "invalid bulk request")
            return
        self._succeed({"values": {key: self.held.seen(key) for key in body["keys"]}})

    def _delete(self, keys: Any, _query: dict[str, str]) -> None:
        if not isinstance(keys, list) or not 0 < len(keys) <= PAIRS_MAX:
            self._fail(400, 10029, "invalid bulk request")
            return
        for key in keys:
            if key in self.held.history:
                self.held.write(key, None)
        self._succeed({"successful_key_count": len(keys), "unsuccessful_keys": []})

    def _list(self, _body: Any, query: dict[str, str]) -> None:
        if query.keys() - {"prefix", "limit", "cursor"} or not 10 <= int(query.get("limit", "1000")) <= 1_000:
            self._fail(400, 10029, "invalid list")
            return
        names = sorted(key for key in self.held.history if self.held.seen(key) is not None)
        names = [name for name in names if name.startswith(query.get("prefix", "")) and name > query.get("cursor", "")]
        page = names[:PAGE]
        cursor = page[-1] if len(names) > PAGE else ""
        self._succeed([{"name": name} for name in page], {"count": len(page), "cursor": cursor})

    def _succeed(self, result: Any, info: Any = None) -> None:
        self._answer(200, {"success": True, "errors": [], "messages": [], "result": result, "result_info": info})

    def _fail(self, status: int, code: int, message: str, headers: dict[str, str] | None = None) -> None:
        errors = [{"code": code, "message": message}]
        self._answer(status, {"success": False, "errors": errors, "messages": [], "result": None}, headers or {})

    def _answer(self, status: int, document: Any, headers: dict[str, str] | None = None) -> None:
        body = json.dumps(document).encode()
        self.send_response(status)
        for name, value in {**(headers or {}), "Content-Type": "application/json"}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""
