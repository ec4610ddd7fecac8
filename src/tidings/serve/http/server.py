"""The ASGI application: declared operations become routes behind the same checks; hot reads take a short cut."""

from __future__ import annotations

import contextlib
import logging
import time
import traceback
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.routing import Match, Route
from starlette.types import Message, Receive, Scope, Send

from tidings.model.errors import BadInput, StoreReadOnly, StoreUnavailable
from tidings.serve.backend import ReadBackend
from tidings.serve.http.access import Access, Caller
from tidings.serve.http.hot_answers import HotAnswers
from tidings.serve.http.operations import Call, Operation, bad_input
from tidings.serve.http.problems import Problem
from tidings.serve.http.rates import Rate
from tidings.serve.http.replies import Reply, refusal, secured
from tidings.serve.http.streams import LiveStream
from tidings.serve.http.unread_bodies import unread_body
from tidings.watch.logs import Seldom

ShowProblem = Callable[[Scope, Problem, Caller], Reply]


class Application(Starlette):
    """Starlette with our checks in front of its router."""

    def __init__(
        self,
        backend: ReadBackend,
        access: Access,
        hot: HotAnswers,
        streams: Sequence[LiveStream],
        operations: Iterable[Operation],
        show_problem: ShowProblem,
    ) -> None:
        self.operations = tuple(operations)
        self._backend, self._access, self._hot, self._streams = backend, access, hot, streams
        self._show_problem = show_problem
        self._seldom = Seldom()
        self._routed = self._for_origins(backend.cors_origins) if backend.cors_origins else self._route_to_operation
        self._reads, self._writes = Rate(backend.rates.reads_per_minute), Rate(backend.rates.writes_per_minute)
        super().__init__(
            routes=[self._route(each) for each in self.operations],
            exception_handlers={Problem: self._refuse, HTTPException: self._refuse_http, Exception: self._fail},
            lifespan=self._live,
        )
        self.router.redirect_slashes = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a hot read at once; send everything else through the checks."""
        if scope["type"] != "http":
            await super().__call__(scope, receive, send)
            return
        started = time.perf_counter()
        if scope["method"] == "GET":
            kept = self._hot.now((scope["path"], scope["query_string"]))
            if kept is not None:
                conditions = self._at_once(scope)
                if conditions is not None:
                    status = await kept.encoded.send(send, conditions[0], conditions[1])
                    self._backend.observe(kept.route, status, time.perf_counter() - started)
                    return
        body = unread_body(scope, receive, send)
        if body is not None:
            receive, send = body.receive, body.send
        await self._observed(scope, receive, secured(send), started)

    def _at_once(self, scope: Scope) -> tuple[bytes, bytes] | None:
        """Return Accept-Encoding and If-None-Match of a read that needs no further question, or None."""
        host = accept_encoding = if_none_match = authorization = b""
        for name, value in scope["headers"]:
            if name == b"host":
                if host:
                    return None
                host = value
            elif name == b"accept-encoding":
                accept_encoding = value
            elif name == b"if-none-match":
                if_none_match = value
            elif name == b"authorization":
                authorization = value
            elif name == b"origin":
                return None
        verdict = self._access.judge_host(host)
        if not verdict or not self._access.may_read_at_once(verdict == "local", authorization):
            return None
        if verdict != "local" and self._reads.wait_seconds(client_of(scope)):
            return None
        return accept_encoding, if_none_match

    async def _observed(self, scope: Scope, receive: Receive, send: Send, started: float) -> None:
        status = 500

        async def sending(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        if root := self._backend.root_path:
            scope["root_path"] = root
            # A proxy may pass our prefix on or take it off, and the HTTP server may have put it back.
            if scope["path"].startswith(f"{root}{root}/"):
                scope["path"] = scope["path"][len(root) :]
        try:
            await self._routed(scope, receive, sending)
        finally:
            route = scope.get("route")
            self._backend.observe(route.path if route is not None else "none", status, time.perf_counter() - started)

    async def _route_to_operation(self, scope: Scope, receive: Receive, send: Send) -> None:
        await super().__call__(scope, receive, send)

    def _for_origins(self, origins: frozenset[str]) -> CORSMiddleware:
        """Let pages of the named origins read, and write with a token; cookies never travel across origins."""

        async def route(scope: Scope, receive: Receive, send: Send) -> None:
            async def send_copy(message: Message) -> None:
                # The middleware writes its headers into the message, and a hot answer sends one message to everyone.
                await send({**message})

            await self._route_to_operation(scope, receive, send_copy)

        return CORSMiddleware(
            route,
            # An asterisk would mean every website there is, and reads on loopback need no token.
            allow_origins=origins - {"*"},
            allow_methods=("GET", "HEAD", "POST"),
            allow_headers=("Authorization", "Content-Type", "Idempotency-Key", "Last-Event-ID"),
            expose_headers=("ETag", "Retry-After"),
        )

    def _route(self, operation: Operation) -> Route:
        async def endpoint(request: Request) -> Any:
            caller = Caller()
            try:
                caller = await self._admit(operation, request)
                values = operation.read(request)
                return await operation.handler(Call(request, caller, values))
            except Problem as problem:
                return await self._told(operation, request, problem, caller)
            except BadInput as error:
                return await self._told(operation, request, bad_input(error), caller)
            except StoreUnavailable as error:
                self._seldom.event("the store does not answer", error=str(error))
                return await self._told(operation, request, unavailable(error, operation.writes), caller)
            except Exception as error:  # noqa: BLE001  # the caller is told, and so is the operator
                failed = f"{operation.method} {operation.path} failed"
                self._seldom.event(failed, level=logging.ERROR, error=type(error).__name__, at=_place(error))
                return await self._told(operation, request, _broken(), caller)

        return Route(operation.path, endpoint, methods=[operation.method], name=f"{operation.method} {operation.path}")

    async def _admit(self, operation: Operation, request: Request) -> Caller:
        """Check, in this order: the host, the rate, where a write comes from, and the caller's scope."""
        is_local = self._access.check_host(request.scope)
        rate = self._writes if operation.writes else self._reads
        if operation.writes or not (is_local and self._backend.loopback):
            wait = rate.wait_seconds(client_of(request.scope))
            if wait:
                raise too_many(rate.per_minute, wait)
        if operation.writes:
            self._access.check_origin(request)
        with_cookie = operation.is_page or not operation.writes
        caller = await self._access.caller(request, is_local=is_local, with_cookie=with_cookie)
        self._access.require(caller, operation.scope)
        return caller

    async def _told(self, operation: Operation, request: Request, problem: Problem, caller: Caller) -> Reply:
        if operation.is_page:
            return self._show_problem(request.scope, problem, caller)
        return refusal(problem)

    async def _refuse(self, _request: Request, error: Exception) -> Any:
        assert isinstance(error, Problem)
        return refusal(error)

    async def _refuse_http(self, request: Request, error: Exception) -> Any:
        """Answer where no operation was found; a foreign host learns nothing of our routes."""
        assert isinstance(error, HTTPException)
        try:
            is_local = self._access.check_host(request.scope)
        except Problem as foreign:
            return refusal(foreign)
        allowed = self._allowed(request.scope)
        # A preflight is a question of another website, and it is refused where none is named.
        is_preflight = "access-control-request-method" in request.headers
        if request.method == "OPTIONS" and error.status_code == 405 and not is_preflight:
            return Reply(b"", 204, None, {"Allow": allowed})
        problem = _no_route(error, allowed)
        if not wants_page(request):
            return refusal(problem)
        caller = await self._access.caller(request, is_local=is_local, with_cookie=True)
        return self._show_problem(request.scope, problem, caller)

    def _allowed(self, scope: Scope) -> str:
        """Return the methods an address takes; several operations may share it."""
        found = [each for each in self.routes if isinstance(each, Route) and each.matches(scope)[0] is not Match.NONE]
        return ", ".join(sorted({"OPTIONS", *(method for each in found for method in each.methods or ())}))

    async def _fail(self, _request: Request, _error: Exception) -> Any:
        return refusal(_broken())

    @contextlib.asynccontextmanager
    async def _live(self, _app: Any) -> AsyncIterator[None]:
        try:
            yield
        finally:
            await self.close()

    async def close(self) -> None:
        """End the live streams; to be called when the server begins to stop, or they would hold it up."""
        for stream in self._streams:
            await stream.close()


def client_of(scope: Scope) -> str:
    """Return the address a request came from."""
    client = scope.get("client")
    return client[0] if client else "unknown"


def wants_page(request: Request) -> bool:
    """Tell whether a browser asks for something to look at."""
    path = request.scope["path"]
    return "text/html" in request.headers.get("accept", "") and "/api/" not in path and "/feeds/" not in path


def too_many(per_minute: int, wait_seconds: float) -> Problem:
    """Say that a client asks too much."""
    seconds = max(1, round(wait_seconds + 0.5))
    detail = f"At most {per_minute:,} requests a minute; try again in {seconds} seconds."
    return Problem(429, detail, headers={"Retry-After": str(seconds)})


def unavailable(error: StoreUnavailable, writes: bool) -> Problem:
    """Say that the store does not answer; nothing was acknowledged."""
    if writes and any(word in str(error) for word in ("full", "no room")):
        return Problem(507, "The disk is full; nothing was taken in.", helps="Free some space and send it again.")
    if isinstance(error, StoreReadOnly):
        return Problem(
            503,
            "This server may only read: its database is a standby, or its user may not write. Nothing was changed.",
            helps="Send it to a server on the primary; `/readyz` tells which this one is.",
        )
    return Problem(
        503,
        "The store cannot be reached now; nothing was changed." if writes else "The shelf cannot be read now.",
        helps="Try again shortly; `tidings doctor` tells the operator what is wrong.",
        headers={"Retry-After": "5"},
    )


def _place(error: BaseException) -> str:
    """Return where an error was raised; what it says may hold parts of a request, which belong in no log."""
    frames = traceback.extract_tb(error.__traceback__)
    return f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else "unknown"


def _broken() -> Problem:
    return Problem(500, "The request failed inside tidings.", helps="The log tells the operator why.")


def _no_route(error: HTTPException, allowed: str) -> Problem:
    helps = "`/docs` tells what there is."
    if error.status_code == 405:
        return Problem(405, "This method is not allowed here.", helps=helps, headers={"Allow": allowed})
    return Problem(error.status_code, "Nothing lives at this address.", helps=helps)
