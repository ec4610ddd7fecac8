"""What the buttons do: forms with a token of ours, answered by a redirect to where one came from."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import urlsplit

from tidings.model.errors import BadInput
from tidings.serve.http.operations import Call, Operation
from tidings.serve.http.problems import Problem
from tidings.serve.http.replies import Reply
from tidings.serve.http.request_bodies import read_form
from tidings.serve.pages.frame import Frame

Act = Callable[[Call, dict[str, str]], Awaitable[str]]
"""Does something and returns what the next page tells, such as `revived.3`."""


class Buttons:
    """Every button of the dashboard."""

    def __init__(self, frame: Frame) -> None:
        self._frame = frame
        self._backend = frame.backend
        self._items, self._switches = frame.backend.item_actions, frame.backend.switches

    def operations(self) -> list[Operation]:
        """Declare the routes."""
        acts: dict[str, Act] = {
            "transition": self._transition,
            "replay": self._replay,
            "revive": self._revive,
            "purge": self._purge,
            "pause": self._pause,
            "resume": self._resume,
            "check": self._check,
        }
        if self._backend.stories is not None:
            acts |= {"split": self._split, "join": self._join}
        return [
            Operation("POST", f"/actions/{name}", "operate", self._guarded(act), "Action", is_page=True)
            for name, act in acts.items()
        ]

    def _guarded(self, act: Act) -> Callable[[Call], Awaitable[Reply]]:
        async def perform(call: Call) -> Reply:
            form = await read_form(call.request)
            check_form(self._frame, call, form)
            try:
                outcome = await act(call, form)
            except BadInput as error:
                raise Problem(409, f"{error}".rstrip(".") + ".", helps="Go back and look again.") from error
            self._frame.look_again()
            self._backend.wake()
            return go(self._backend.root_path, form.get("back", "/"), outcome)

        return perform

    async def _transition(self, call: Call, form: dict[str, str]) -> str:
        reason = form.get("reason", "")[:500]
        await self._write(self._items.transition, _item(form), form.get("name", ""), actor=_actor(call), reason=reason)
        return "transition"

    async def _replay(self, call: Call, form: dict[str, str]) -> str:
        done = await self._write(
            self._items.replay,
            form.get("pipeline", ""),
            state=form.get("state") or None,
            query=None,
            actor=_actor(call),
            dry_run=False,
            item=_item(form),
        )
        return f"replayed.{done.items}"

    async def _revive(self, call: Call, form: dict[str, str]) -> str:
        item = _item(form) if form.get("item") else None
        done = await self._write(
            self._items.revive,
            item=item,
            pipeline=form.get("pipeline") or None,
            cause=form.get("cause"),
            actor=_actor(call),
        )
        return f"revived.{done}"

    async def _purge(self, _call: Call, form: dict[str, str]) -> str:
        if not form.get("pipeline") or "cause" not in form:
            raise Problem(400, "Say which dead letters to purge.")
        done = await self._write(self._backend.burials.purge, item=None, pipeline=form["pipeline"], cause=form["cause"])
        return f"purged.{done}"

    async def _pause(self, call: Call, form: dict[str, str]) -> str:
        await self._write(self._switches.pause, form.get("part", ""), reason=f"by {_actor(call)}")
        return "paused"

    async def _resume(self, _call: Call, form: dict[str, str]) -> str:
        await self._write(self._switches.resume, form.get("part", ""))
        return "resumed"

    async def _check(self, _call: Call, form: dict[str, str]) -> str:
        await self._write(self._switches.check_now, form.get("source", ""))
        return "checking"

    async def _split(self, call: Call, form: dict[str, str]) -> str:
        marked = [_number(name.removeprefix("item.")) for name in form if name.startswith("item.")]
        if not marked or self._backend.stories is None:
            raise Problem(400, "Mark the items that tell something else.")
        await self._write(self._backend.stories.split, marked, actor=_actor(call))
        return "split"

    async def _join(self, call: Call, form: dict[str, str]) -> str:
        if self._backend.stories is None:
            raise Problem(404, "Nothing is grouped here.")
        story, other = _number(form.get("story", "")), _number(form.get("other", "").strip())
        return f"joined.{await self._write(self._backend.stories.join, story, [other], actor=_actor(call))}"

    async def _write(self, act: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        return await self._backend.executor.write(act, *args, **kwargs)


def check_form(frame: Frame, call: Call, form: dict[str, str]) -> None:
    """Refuse a form that did not come from one of our pages."""
    if not frame.access.sessions.is_form_token(call.caller.session, form.get("form_token", "")):
        raise Problem(403, "This form is too old or not ours.", helps="Go back, reload the page and try again.")


def go(root: str, back: str, told: str) -> Reply:
    """Lead back to a page of ours, which tells what was done."""
    parts = urlsplit(back)
    is_ours = back.startswith("/") and not back.startswith(("//", "/\\")) and not parts.netloc and back.isprintable()
    path = parts.path if is_ours else "/"
    kept = "&".join(pair for pair in parts.query.split("&") if pair and not pair.startswith("told=")) if is_ours else ""
    query = f"{kept}&told={told}" if kept else f"told={told}"
    return Reply(b"", 303, None, {"Location": f"{root}{path}?{query}"})


def _actor(call: Call) -> str:
    scope = call.caller.scope or "demo"
    return f"dashboard ({scope})"


def _item(form: dict[str, str]) -> int:
    return _number(form.get("item", ""), "item")


def _number(text: str, what: str = "number") -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 19):
        raise Problem(400, f"This is no {what}.")
    return int(text)
