"""Signing in with a token, for a strict session cookie; and out again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from tidings.serve.access import Caller
from tidings.serve.bodies import read_form
from tidings.serve.operations import Call, Operation, Parameter
from tidings.serve.pages.actions import check_form, go
from tidings.serve.pages.frame import Frame
from tidings.serve.pages.wording import segment
from tidings.serve.problems import Problem
from tidings.serve.rates import Rate
from tidings.serve.replies import Reply
from tidings.serve.sessions import COOKIE


class SigningIn:
    """The way in for people, where a token is configured."""

    def __init__(self, frame: Frame) -> None:
        self._frame = frame
        self._parts = frame.parts
        self._rate = Rate(frame.parts.rates.logins_per_minute)

    def operations(self) -> list[Operation]:
        """Declare the routes."""
        back = Parameter("next", "Where to go on")
        return [
            Operation(
                "GET", "/login", "public", self._ask, "Sign in", parameters=(back,), is_page=True, any_query=True
            ),
            Operation("POST", "/login", "public", self._enter, "Sign in", is_page=True),
            Operation("POST", "/logout", "public", self._leave, "Sign out", is_page=True),
        ]

    async def _ask(self, call: Call) -> Reply:
        return await self._form(call, call["next"] or "/")

    async def _form(self, call: Call, back: str, trouble: str | None = None, status: int = 200) -> Reply:
        has_tokens = await self._parts.executor.read(self._parts.desk.has_tokens)
        return self._frame.render(
            call.request.scope,
            call.caller,
            "login.html",
            status,
            needs=0,
            glance=None,
            go_on=back,
            trouble=trouble,
            has_tokens=has_tokens,
        )

    async def _enter(self, call: Call) -> Reply:
        form = await read_form(call.request)
        check_form(self._frame, call, form)
        client = call.request.client.host if call.request.client else "unknown"
        wait = self._rate.wait_seconds(client)
        if wait:
            seconds = str(max(1, round(wait + 0.5)))
            raise Problem(429, "Too many tries.", helps=f"Try again in {seconds} s.", headers={"Retry-After": seconds})
        token = form.get("token", "").strip()
        scope = await self._frame.access.scope_of(token) if 0 < len(token) <= 256 else None
        if scope is None:
            return await self._form(call, form.get("back", "/"), "No live token is written like this.", 401)
        session = self._frame.access.sessions.begin(token)
        reply = go(self._parts.root_path, form.get("back", "/"), "welcome")
        reply.headers["Set-Cookie"] = self._cookie(session.id, 12 * 3600, call.request.url.scheme == "https")
        return reply

    async def _leave(self, call: Call) -> Reply:
        form = await read_form(call.request)
        check_form(self._frame, call, form)
        self._frame.access.sessions.end(call.request.cookies.get(COOKIE))
        reply = go(self._parts.root_path, "/", "goodbye")
        reply.headers["Set-Cookie"] = self._cookie("", 0, call.request.url.scheme == "https")
        return reply

    def _cookie(self, value: str, seconds: int, is_secure: bool) -> str:
        path = self._parts.root_path or "/"
        rest = "; Secure" if is_secure else ""
        return f"{COOKIE}={value}; Path={path}; Max-Age={seconds}; HttpOnly; SameSite=Strict{rest}"


def show_problem(frame: Frame, scope: Mapping[str, Any], problem: Problem, caller: Caller) -> Reply:
    """Show a problem as a page; where signing in would help, lead there."""
    if problem.status == 401 and scope["method"] in ("GET", "HEAD"):
        path = str(scope["path"]).removeprefix(frame.parts.root_path) or "/"
        back = path if urlsplit(path).netloc == "" else "/"
        return Reply(b"", 303, None, {"Location": f"{frame.parts.root_path}/login?next={segment(back)}"})
    reply = frame.render(scope, caller, "problem.html", problem.status, needs=0, glance=None, problem=problem)
    reply.headers |= problem.headers
    return reply
