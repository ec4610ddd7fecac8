"""Signing in with a token, for a strict session cookie; and out again."""

from __future__ import annotations

from tidings.serve.http.operations import Call, Operation, Parameter
from tidings.serve.http.problems import Problem
from tidings.serve.http.rates import Rate
from tidings.serve.http.replies import Reply
from tidings.serve.http.request_bodies import read_form
from tidings.serve.http.sessions import COOKIE, Session
from tidings.serve.pages.buttons import check_form, go
from tidings.serve.pages.frame import Frame

USED_UP = "This link was used already, or its time is over. Start `tidings run` again for another, or use a token."


class Login:
    """The way in for people, where a token is configured."""

    def __init__(self, frame: Frame) -> None:
        self._frame = frame
        self._backend = frame.backend
        self._rate = Rate(frame.backend.rates.logins_per_minute)

    def operations(self) -> list[Operation]:
        """Declare the routes."""
        back = Parameter("next", "Where to go on")
        key = Parameter("key", "The key of an invitation", length_max=100)
        return [
            Operation(
                "GET", "/login", "public", self._ask, "Sign in", parameters=(back, key), is_page=True, any_query=True
            ),
            Operation("POST", "/login", "public", self._enter, "Sign in", is_page=True),
            Operation("POST", "/login/invited", "public", self._accept, "Sign in by a link", is_page=True),
            Operation("POST", "/logout", "public", self._leave, "Sign out", is_page=True),
        ]

    async def _ask(self, call: Call) -> Reply:
        key = call["key"]
        if key is None:
            return await self._form(call, call["next"] or "/")
        if not self._is_invited(call, key):
            return await self._form(call, "/", USED_UP, 401)
        # Looking at the link changes nothing: a program that fetches it ahead must not use it up.
        return await self._form(call, "/", invited=key)

    def _is_invited(self, call: Call, key: str) -> bool:
        invitation = self._backend.invitation
        return invitation is not None and call.caller.is_local and invitation.is_open(key)

    async def _form(
        self, call: Call, back: str, trouble: str | None = None, status: int = 200, invited: str | None = None
    ) -> Reply:
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
            invited=invited,
            is_inviting=self._backend.invitation is not None and call.caller.is_local,
        )

    async def _enter(self, call: Call) -> Reply:
        form = await read_form(call.request)
        check_form(self._frame, call, form)
        self._check_rate(call)
        token = form.get("token", "").strip()
        scope = await self._frame.access.scope_of(token) if 0 < len(token) <= 256 else None
        if scope is None:
            return await self._form(call, form.get("back", "/"), "No live token is written like this.", 401)
        return self._welcome(call, self._frame.access.sessions.begin(token), form.get("back", "/"))

    async def _accept(self, call: Call) -> Reply:
        """Sign in the browser that opened the link of the terminal; it works once."""
        form = await read_form(call.request)
        check_form(self._frame, call, form)
        self._check_rate(call)
        invitation, key = self._backend.invitation, form.get("key", "")
        if invitation is None or not call.caller.is_local or not invitation.take(key):
            return await self._form(call, "/", USED_UP, 401)
        return self._welcome(call, self._frame.access.sessions.begin("", "operate"), "/")

    def _check_rate(self, call: Call) -> None:
        client = call.request.client.host if call.request.client else "unknown"
        wait = self._rate.wait_seconds(client)
        if wait:
            seconds = str(max(1, round(wait + 0.5)))
            raise Problem(429, "Too many tries.", helps=f"Try again in {seconds} s.", headers={"Retry-After": seconds})

    def _welcome(self, call: Call, session: Session, back: str) -> Reply:
        reply = go(self._backend.root_path, back, "welcome")
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
