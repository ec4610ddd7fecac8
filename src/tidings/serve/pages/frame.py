"""What all pages share: templates, the rail, who is signed in, and what may be done."""

from __future__ import annotations

import time
from collections.abc import Mapping
from functools import partial
from typing import Any
from urllib.parse import urlsplit

from tidings.serve import markup
from tidings.serve.backend import Backend
from tidings.serve.http.access import Access, Caller
from tidings.serve.http.operations import Call, Handler, Operation, Parameter
from tidings.serve.http.problems import Problem
from tidings.serve.http.replies import HTML, Reply
from tidings.serve.pages import phrases
from tidings.serve.pages.environment import PageEnvironment
from tidings.serve.pages.needs import Situation
from tidings.serve.pages.static_files import StaticFiles

_SITUATION_SECONDS = 0.5

TOLD = {
    "revived": "Revived {n}.",
    "transition": "Done. The item moves on.",
    "replayed": "Processing {n} again.",
    "checking": "The source is asked now.",
    "paused": "Paused. Nothing is lost; it goes on where it stopped.",
    "resumed": "Resumed.",
    "split": "Split. They tell a story of their own now.",
    "joined": "Joined {n}.",
    "purged": "Purged {n} for good.",
    "added": "Added. It is asked within seconds.",
    "changed": "Changed. It is asked once more within seconds.",
    "removed": "Removed.",
    "welcome": "Signed in.",
    "goodbye": "Signed out.",
    "marked": "Marked {n}.",
    "noted": "Noted.",
    "all_read": "Everything in this list is read.",
    "saved": "The search is kept.",
    "forgotten": "The search is forgotten.",
}
"""What a page may be told to say after an action; nothing else is ever taken from the address."""


class Frame:
    """Renders pages."""

    def __init__(self, backend: Backend, access: Access) -> None:
        self.backend = backend
        self.access = access
        self.static = StaticFiles()
        self._situation: tuple[float, Situation] | None = None
        self.environment = PageEnvironment(
            collection for pipeline in backend.pipelines.values() for collection in pipeline.collections
        )

    async def situation(self) -> Situation:
        """Return how things are, shared by everything that asks within half a second."""
        now = time.monotonic()
        if self._situation is None or now - self._situation[0] > _SITUATION_SECONDS:
            self._situation = (now, await self.backend.executor.read(self._look))
        return self._situation[1]

    def _look(self) -> Situation:
        status = self.backend.status_views.status()
        # Every page looks: what would mean reading many rows is asked for only where there is something to tell.
        has_dead = any(view.dead_letters for view in status.pipelines.values())
        has_paused = any(part.startswith("channel:") for part in status.paused)
        dead = self.backend.item_views.dead_letters() if has_dead else []
        return Situation(status, dead, self.backend.status_views.channels() if has_paused else [])

    def look_again(self) -> None:
        """Ask again: something was just changed."""
        self._situation = None

    async def page(self, call: Call, template: str, *, status: int = 200, **context: Any) -> Reply:
        """Render a page for a caller."""
        situation = await self.situation()
        needs = situation.asks(self.backend.pipelines)
        return self.render(
            call.request.scope, call.caller, template, status, needs=needs, situation=situation, **context
        )

    def render(
        self, scope: Mapping[str, Any], caller: Caller, template: str, status: int = 200, **context: Any
    ) -> Reply:
        """Render a template with what every page needs."""
        now_ms = self.backend.clock.now_ms()
        may_operate = self.access.is_allowed(caller, "operate")
        body = self.environment.get_template(template).render(
            root=self.backend.root_path,
            static=self.static.paths,
            pipelines=self.backend.pipelines,
            has_stories=self.backend.stories is not None,
            here=_path_of(scope, self.backend.root_path),
            back=_back(scope, self.backend.root_path),
            told=_told(scope),
            now_ms=now_ms,
            when=partial(phrases.when, now_ms=now_ms),
            told_at=partial(phrases.told, now_ms=now_ms),
            doing=partial(phrases.doing, now_ms=now_ms),
            may_operate=may_operate,
            is_signed_in=caller.session is not None,
            is_demo=self.backend.is_demo,
            form_token=self.access.sessions.form_token(caller.session),
            version=self.backend.version,
            **context,
        )
        return Reply(body.encode(), status, HTML, tagged=False)

    def show_problem(self, scope: Mapping[str, Any], problem: Problem, caller: Caller) -> Reply:
        """Show a problem as a page; where signing in would help, lead there."""
        root = self.backend.root_path
        if problem.status == 401 and scope["method"] in ("GET", "HEAD"):
            path = str(scope["path"]).removeprefix(root) or "/"
            back = path if urlsplit(path).netloc == "" else "/"
            return Reply(b"", 303, None, {"Location": f"{root}/login?next={markup.segment(back)}"})
        reply = self.render(scope, caller, "problem.html", problem.status, needs=0, situation=None, problem=problem)
        reply.headers |= problem.headers
        return reply


def page_at(path: str, handler: Handler, parameters: tuple[Parameter, ...] = ()) -> Operation:
    """Declare a page; it needs the scope `read`."""
    return Operation("GET", path, "read", handler, "Page", parameters=parameters, is_page=True, any_query=True)


def _path_of(scope: Mapping[str, Any], root: str) -> str:
    path = str(scope["path"])
    return path[len(root) :] or "/" if root and path.startswith(root) else path


def _back(scope: Mapping[str, Any], root: str) -> str:
    """Return this page's own address, for forms to come back to."""
    query = scope["query_string"].decode("latin-1")
    kept = "&".join(pair for pair in query.split("&") if pair and not pair.startswith("told="))
    path = markup.segment(_path_of(scope, root))
    return f"{path}?{kept}" if kept else path


def _told(scope: Mapping[str, Any]) -> str | None:
    """Return what an action before this page has to say: one of our sentences, with a number at most."""
    for pair in scope["query_string"].decode("latin-1").split("&"):
        name, _, value = pair.partition("=")
        if name == "told":
            word, _, number = value.partition(".")
            if word in TOLD:
                return TOLD[word].format(
                    n=int(number) if number.isascii() and number.isdigit() and len(number) < 9 else "it"
                )
    return None
