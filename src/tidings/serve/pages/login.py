"""Signing in with a token, for a strict session cookie; and out again."""

from __future__ import annotations

from tidings.serve.http.operations import Call, Operation, Parameter
from tidings.serve.http.problems import Problem
from tidings.serve.http.rates import Rate
from tidings.serve.http.replies import Reply
from tidings.serve.http.request_bodies import read_form
from tidings.serve.http.sessions import COOKIE
from tidings.serve.pages.buttons import check_form, go
from tidings.serve.pages.frame import Frame


class Login:
    """The way in for people, where a token is configured."""

    def __init__(self, frame: Frame) -> None:
        self._frame = frame
        self._backend = frame.backend
        self._rate = Rate(frame.backend.rates.logins_per_minute)

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
        has_tokens = await self._backend.executor.read(self._backend.tokens.are_there)
        return self._frame.render(
            call.request.scope,
            call.caller,
            "login.html",
            status,
            needs=0,
            situation=None,
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
        reply = go(self._backend.root_path, form.get("back", "/"), "welcome")
        reply.headers["Set-Cookie"] = self._cookie(session.id, 12 * 3600, call.request.url.scheme == "https")
        return reply

    async def _leave(self, call: Call) -> Reply:
        form = await read_form(call.request)
        check_form(self._frame, call, form)
        self._frame.access.sessions.end(call.request.cookies.get(COOKIE))
        reply = go(self._backend.root_path, "/", "goodbye")
        reply.headers["Set-Cookie"] = self._cookie("", 0, call.request.url.scheme == "https")
        return reply

    def _cookie(self, value: str, seconds: int, is_secure: bool) -> str:
        path = self._backend.root_path or "/"
        rest = "; Secure" if is_secure else ""
        return f"{COOKIE}={value}; Path={path}; Max-Age={seconds}; HttpOnly; SameSite=Strict{rest}"
