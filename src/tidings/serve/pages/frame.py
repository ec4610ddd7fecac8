"""What all pages share: templates, the rail, who is signed in, and what may be done."""

from __future__ import annotations

import time
from collections.abc import Mapping
from functools import partial
from typing import Any
from urllib.parse import urlencode

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape

from tidings.model.clock import rfc3339
from tidings.model.views import StatusView
from tidings.serve.access import Access, Caller
from tidings.serve.operations import Call, Handler, Operation, Parameter
from tidings.serve.pages import wording
from tidings.serve.pages.needs import Glance, dead_command
from tidings.serve.pages.static import Static
from tidings.serve.parts import Parts
from tidings.serve.replies import HTML, Reply

_GLANCE_SECONDS = 0.5

TOLD = {
    "revived": "Revived {n}.",
    "transition": "Done. The item moves on.",
    "replayed": "Processing {n} again.",
    "checking": "The source is asked now.",
    "paused": "Paused. Nothing is lost; it goes on where it stopped.",
    "resumed": "Resumed.",
    "purged": "Purged {n} for good.",
    "welcome": "Signed in.",
    "goodbye": "Signed out.",
}
"""What a page may be told to say after an action; nothing else is ever taken from the address."""


class Frame:
    """Renders pages."""

    def __init__(self, parts: Parts, access: Access) -> None:
        self.parts = parts
        self.access = access
        self.static = Static()
        self._glance: tuple[float, Glance] | None = None
        self._environment = Environment(
            loader=PackageLoader("tidings.serve", "templates"),
            autoescape=select_autoescape(default=True, default_for_string=True),
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            auto_reload=False,
            finalize=wording.visible,
        )
        self._environment.filters |= {
            "tidy": wording.tidy,
            "exactly": wording.exactly,
            "clean_html": wording.clean_html,
            "lasting": wording.lasting,
            "number": wording.number,
            "shell": wording.shell,
            "segment": wording.segment,
            "lines": wording.lines,
            "coded": wording.coded,
            "marked": wording.marked_text,
            "safe_url": wording.safe_url,
            "host": wording.host_of,
            "day": wording.day,
            "exact": rfc3339,
            "command": wording.command,
            "answered": wording.answered,
            "run": wording.run_words,
            "paced": wording.paced,
        }
        self._environment.globals |= {"count": wording.count, "query": link_query, "dead_command": dead_command}

    async def glance(self) -> Glance:
        """Return how things are, shared by everything that asks within half a second."""
        now = time.monotonic()
        if self._glance is None or now - self._glance[0] > _GLANCE_SECONDS:
            self._glance = (now, await self.parts.executor.read(self._look))
        return self._glance[1]

    def _look(self) -> Glance:
        desk = self.parts.desk
        status = desk.status()
        # Every page looks: what would mean reading many rows is asked for only where there is something to tell.
        has_dead = any(view.dead_letters for view in status.pipelines.values())
        has_paused = any(part.startswith("channel:") for part in status.paused)
        return Glance(status, desk.dead_letters() if has_dead else [], desk.channels() if has_paused else [])

    async def status(self) -> StatusView:
        """Return the status alone."""
        return (await self.glance()).status

    def look_again(self) -> None:
        """Ask again: something was just changed."""
        self._glance = None

    async def page(self, call: Call, template: str, *, status: int = 200, **context: Any) -> Reply:
        """Render a page for a caller."""
        glance = await self.glance()
        needs = glance.asks(self.parts.pipelines)
        return self.render(call.request.scope, call.caller, template, status, needs=needs, glance=glance, **context)

    def render(
        self, scope: Mapping[str, Any], caller: Caller, template: str, status: int = 200, **context: Any
    ) -> Reply:
        """Render a template with what every page needs."""
        now_ms = self.parts.clock.now_ms()
        may_operate = self.access.is_allowed(caller, "operate")
        body = self._environment.get_template(template).render(
            root=self.parts.root_path,
            static=self.static.paths,
            pipelines=self.parts.pipelines,
            here=_path_of(scope, self.parts.root_path),
            back=_back(scope, self.parts.root_path),
            told=_told(scope),
            now_ms=now_ms,
            when=partial(wording.when, now_ms=now_ms),
            told_at=partial(wording.told, now_ms=now_ms),
            doing=partial(wording.doing, now_ms=now_ms),
            may_operate=may_operate,
            is_signed_in=caller.session is not None,
            is_demo=self.parts.is_demo,
            form_token=self.access.sessions.form_token(caller.session),
            version=self.parts.version,
            **context,
        )
        return Reply(body.encode(), status, HTML, tagged=False)


def page_at(path: str, handler: Handler, parameters: tuple[Parameter, ...] = ()) -> Operation:
    """Declare a page that whoever may read may look at."""
    return Operation("GET", path, "read", handler, "Page", parameters=parameters, is_page=True, any_query=True)


def _path_of(scope: Mapping[str, Any], root: str) -> str:
    path = str(scope["path"])
    return path[len(root) :] or "/" if root and path.startswith(root) else path


def _back(scope: Mapping[str, Any], root: str) -> str:
    """Return this page's own address, for forms to come back to."""
    query = scope["query_string"].decode("latin-1")
    kept = "&".join(pair for pair in query.split("&") if pair and not pair.startswith("told="))
    path = wording.segment(_path_of(scope, root))
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


def link_query(values: Mapping[str, Any], **changes: Any) -> str:
    """Return a query string of the values that are set, some of them changed."""
    chosen = {name: value for name, value in {**values, **changes}.items() if value not in (None, "")}
    return f"?{urlencode(chosen)}" if chosen else "?"
