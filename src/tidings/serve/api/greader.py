"""The Google Reader API, as FreshRSS and Miniflux serve it: NetNewsWire, Reeder, Newsboat and others read here.

The password is a token with the scope `reader`. Only the header counts, never a cookie, so that no web page can write.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from hashlib import sha256
from typing import Any, NamedTuple
from urllib.parse import parse_qsl
from xml.etree import ElementTree

import msgspec
from starlette.requests import Request

from tidings.model.clock import rfc3339
from tidings.model.errors import BadInput
from tidings.model.harmless import visible
from tidings.model.marks import DEFAULT_READER
from tidings.serve.api.collections import Collections
from tidings.serve.api.filters import read_position, write_cursor
from tidings.serve.api.greader_streams import (
    LABEL,
    STATE,
    ItemStream,
    Subscription,
    Subscriptions,
    item_of,
    item_values,
    states_of,
    stream_of,
)
from tidings.serve.api.reading import ReadingEntry, ReadingList, ReadingView, Show
from tidings.serve.backend import Backend
from tidings.serve.http.access import RANKS, Access
from tidings.serve.http.operations import Call, Operation
from tidings.serve.http.problems import Problem
from tidings.serve.http.rates import Rate
from tidings.serve.http.replies import Reply, answer
from tidings.serve.http.request_bodies import FORM_TYPE, media_type, read_body

PREFIXES = ("/api/greader.php", "")
IDS_MAX, CONTENTS_MAX, MARKED_MAX = 10_000, 200, 10_000
_BODY_BYTES_MAX = 2 << 20
_ATOM = "http://www.w3.org/2005/Atom"
_MICROSECONDS = 10**15
"""Times this large are microseconds, smaller ones seconds."""
_REALM = "GoogleLogin"


class Asked(NamedTuple):
    """One call of a client that is signed in."""

    person: str
    scope: str
    fields: list[tuple[str, str]]
    base: str

    def one(self, name: str, default: str = "") -> str:
        """Return the last value of a field."""
        return next((value for key, value in reversed(self.fields) if key == name), default)

    def all(self, name: str) -> list[str]:
        """Return all values of a field."""
        return [value for key, value in self.fields if key == name]

    def number(self, name: str, default: int, most: int) -> int:
        """Return a whole number within limits."""
        text = self.one(name)
        return min(int(text), most) if text.isascii() and text.isdigit() and 0 < len(text) < 19 else default


Act = Callable[[Asked], Awaitable[Reply]]


class GoogleReader:
    """The calls, by their path behind `/reader/api/0/`."""

    def __init__(self, backend: Backend, access: Access, reading: ReadingList, collections: Collections) -> None:
        self._backend, self._access, self._reading = backend, access, reading
        self._subscriptions = Subscriptions(reading, collections)
        self._logins = Rate(backend.rates.logins_per_minute)
        self._reads: dict[str, Act] = {
            "token": self._token,
            "user-info": self._user,
            "tag/list": self._tags,
            "subscription/list": self._list,
            "unread-count": self._unread,
            "stream/items/ids": self._ids,
            "stream/items/contents": self._contents,
        }
        self._writes: dict[str, Act] = {
            "edit-tag": self._edit_tag,
            "mark-all-as-read": self._mark_all,
            "subscription/edit": self._edit,
            "subscription/quickadd": self._quick_add,
            "disable-tag": self._ignore,
            "rename-tag": self._ignore,
        }

    def operations(self) -> list[Operation]:
        """Declare the routes; who asks is checked here, by the header of this protocol."""
        found = []
        for prefix in PREFIXES:
            for method in ("GET", "POST"):
                for path, handler in (
                    ("/accounts/ClientLogin", self._login),
                    ("/reader/api/0/{call:path}", self._call),
                    ("/reader/atom/{call:path}", self._atom),
                ):
                    if method == "GET" or "atom" not in path:
                        summary = "Google Reader"
                        found.append(
                            Operation(method, prefix + path, "public", handler, summary, is_page=True, any_query=True)
                        )
        return found

    async def _login(self, call: Call) -> Reply:
        client = call.request.client.host if call.request.client else "unknown"
        wait = self._logins.wait_seconds(client)
        if wait:
            return Reply(b"Error=TooManyTries\n", 429, "text/plain", {"Retry-After": str(max(1, round(wait + 0.5)))})
        fields = dict(await _fields(call.request))
        token = fields.get("Passwd", "").strip()
        scope = await self._scope(token)
        if scope is None:
            return Reply(b"Error=BadAuthentication\n", 401, "text/plain")
        if fields.get("output") == "json":
            return answer({"SID": token, "LSID": token, "Auth": token})
        return _text(f"SID={token}\nLSID={token}\nAuth={token}\n")

    async def _scope(self, token: str) -> str | None:
        """Return the scope of a token that may use this, or None."""
        scope = await self._access.scope_of(token) if token else None
        return scope if scope is not None and RANKS[scope] >= RANKS["reader"] else None

    async def _call(self, call: Call) -> Reply:
        name = str(call.request.path_params["call"]).strip("/")
        asked = await self._asked(call)
        if asked is None:
            return _refused()
        try:
            if name.startswith("stream/contents"):
                return await self._stream_contents(asked, name.removeprefix("stream/contents").strip("/"))
            act = self._writes.get(name) if call.request.method == "POST" else None
            act = act or self._reads.get(name)
            # Clients probe for what only Google had.
            return await act(asked) if act is not None else answer({})
        except BadInput as error:
            return Reply(f"Error={error}\n".encode(), 400, "text/plain")

    async def _atom(self, call: Call) -> Reply:
        """Serve a stream as Atom: Newsboat reads its items so."""
        asked = await self._asked(call)
        if asked is None:
            return _refused()
        entries, following = await self._entries(asked, str(call.request.path_params["call"]), CONTENTS_MAX)
        values = await self._values(asked, entries)
        return Reply(_write_atom(entries, values, asked.base, following), media_type="application/atom+xml")

    async def _asked(self, call: Call) -> Asked | None:
        request = call.request
        kind, _, rest = request.headers.get("authorization", "").partition(" ")
        token = rest.strip().removeprefix("auth=") if kind == _REALM else ""
        scope = await self._scope(token)
        if scope is None:
            return None
        named = await self._backend.executor.read(self._backend.tokens.reader_of, token)
        base = f"{request.url.scheme}://{request.headers['host']}{self._backend.root_path}"
        return Asked(named or DEFAULT_READER, scope, await _fields(request), base)

    async def _of(self, asked: Asked) -> list[Subscription]:
        return await self._subscriptions.all(await self._reading.searches(asked.person))

    async def _token(self, asked: Asked) -> Reply:
        # What it protects elsewhere, a cookie that is sent along, does not count here.
        return _text(sha256(f"{asked.person} {asked.base}".encode()).hexdigest()[:57])

    async def _user(self, asked: Asked) -> Reply:
        return answer({"userId": "1", "userName": asked.person, "userProfileId": "1", "userEmail": ""})

    async def _tags(self, asked: Asked) -> Reply:
        folders = dict.fromkeys(each.folder for each in await self._of(asked))
        labels = [{"id": LABEL + name, "label": name, "type": "folder"} for name in folders]
        return answer({"tags": [{"id": STATE + "starred"}, *labels]})

    async def _list(self, asked: Asked) -> Reply:
        return answer({"subscriptions": [each.values(asked.base) for each in await self._of(asked)]})

    async def _unread(self, asked: Asked) -> Reply:
        counts: dict[str, int] = {}
        newest: dict[str, int] = {}
        for each in await self._of(asked):
            page = await self._reading.page(asked.person, each.view, "unread", 1_000)
            latest = max((entry.shown.entry.written_at for entry in page.entries), default=0)
            for name in (each.id, LABEL + each.folder):
                counts[name] = counts.get(name, 0) + len(page.entries)
                newest[name] = max(newest.get(name, 0), latest)
        everything = await self._reading.page(asked.person, ReadingView("all", "Everything"), "unread", 1_000)
        counts[STATE + "reading-list"] = len(everything.entries)
        return answer(
            {
                "max": 1_000,
                "unreadcounts": [
                    {"id": name, "count": count, "newestItemTimestampUsec": str(newest.get(name, 0) * 1000)}
                    for name, count in counts.items()
                ],
            }
        )

    async def _ids(self, asked: Asked) -> Reply:
        entries, following = await self._entries(asked, asked.one("s"), IDS_MAX)
        rest = {"continuation": following} if following is not None else {}
        refs = [{"id": str(each.item), "timestampUsec": str(each.shown.entry.written_at * 1000)} for each in entries]
        return answer({"itemRefs": refs, **rest})

    async def _contents(self, asked: Asked) -> Reply:
        items = [item_of(each) for each in asked.all("i")[:IDS_MAX]]
        entries = await self._reading.items(asked.person, [item for item in items if 0 < item < 2**63])
        return await self._items(asked, STATE + "reading-list", entries, None)

    async def _stream_contents(self, asked: Asked, name: str) -> Reply:
        name = name or asked.one("s") or STATE + "reading-list"
        entries, following = await self._entries(asked, name, CONTENTS_MAX)
        return await self._items(asked, name, entries, following)

    async def _items(self, asked: Asked, name: str, entries: list[ReadingEntry], following: str | None) -> Reply:
        rest = {"continuation": following} if following is not None else {}
        return answer(
            {
                "direction": "ltr",
                "id": name,
                "updated": self._backend.clock.now_ms() // 1000,
                "items": await self._values(asked, entries),
                **rest,
            }
        )

    async def _values(self, asked: Asked, entries: list[ReadingEntry]) -> list[dict[str, Any]]:
        """Return items with their full texts. Readers on phones show images by themselves."""
        subscriptions, texts = await self._of(asked), await self._reading.texts(entries, images=True)
        return [item_values(each, asked.base, subscriptions, texts.get(each.item)) for each in entries]

    async def _entries(self, asked: Asked, name: str, most: int) -> tuple[list[ReadingEntry], str | None]:
        """Return one page of a stream as its parameters ask, and where the next begins."""
        stream = stream_of(name or STATE + "reading-list", await self._of(asked))
        if stream is None:
            return [], None
        limit = max(1, asked.number("n", 20, most))
        after = read_position(asked.one("c") or None)
        shows = _show_of(stream, asked)
        found: dict[int, ReadingEntry] = {}
        is_oldest = asked.one("r") == "o"
        for view in stream.views:
            position = None if is_oldest else after
            page = await self._reading.page(asked.person, view, shows, most if is_oldest else limit + 1, position)
            found |= {each.item: each for each in page.entries if _is_wanted(each, stream, asked)}
        entries = sorted(found.values(), key=lambda each: each.position, reverse=not is_oldest)
        if is_oldest and after is not None:
            entries = [each for each in entries if each.position > after]
        following = write_cursor(*entries[limit - 1].position) if len(entries) > limit else None
        return entries[:limit], following

    async def _edit_tag(self, asked: Asked) -> Reply:
        items = [item_of(each) for each in asked.all("i")[:MARKED_MAX]]
        items = [item for item in items if 0 < item < 2**63]
        added, removed = (
            {each.rpartition("/")[2] for each in asked.all(name) if "/state/com.google/" in each} for name in ("a", "r")
        )
        read = True if "read" in added or "kept-unread" in removed else None
        read = False if "read" in removed or "kept-unread" in added else read
        starred = True if "starred" in added else False if "starred" in removed else None
        await self._reading.mark(asked.person, items, read=read, starred=starred)
        return _text("OK")

    async def _mark_all(self, asked: Asked) -> Reply:
        stream = stream_of(asked.one("s"), await self._of(asked))
        at = asked.number("ts", 0, 10**19)
        at_ms = at // 1000 if at >= _MICROSECONDS else at * 1000
        for view in stream.views if stream is not None else ():
            await self._reading.read_everything(asked.person, view, at_ms or None)
        return _text("OK")

    async def _edit(self, asked: Asked) -> Reply:
        """Rename or remove saved searches; pipelines and feeds are declared in the configuration."""
        if RANKS[asked.scope] < RANKS["operate"]:
            return Reply(b"Error=a token with the scope operate is needed\n", 403, "text/plain")
        searches = {f"feed/search:{each.name}": each for each in await self._reading.searches(asked.person)}
        chosen = [searches[name] for name in asked.all("s") if name in searches]
        if len(chosen) < len(asked.all("s")) or asked.one("ac") not in ("edit", "unsubscribe"):
            raise BadInput("only saved searches can be changed here; `tidings source` adds and removes feeds")
        write = self._backend.executor.write
        for each in chosen:
            if asked.one("ac") == "unsubscribe":
                await write(self._backend.marks.delete_search, asked.person, each.name)
            elif title := asked.one("t").strip()[:120]:
                await write(self._backend.marks.put_search, asked.person, msgspec.structs.replace(each, title=title))
        return _text("OK")

    async def _quick_add(self, asked: Asked) -> Reply:
        return answer({"numResults": 0, "query": asked.one("quickadd")[:500]})

    async def _ignore(self, _asked: Asked) -> Reply:
        return _text("OK")


def _show_of(stream: ItemStream, asked: Asked) -> Show:
    excluded = {each.rpartition("/")[2] for each in asked.all("xt")}
    included = {each.rpartition("/")[2] for each in asked.all("it")}
    if stream.state == "starred" or "starred" in included:
        return "starred"
    return "unread" if "read" in excluded or stream.state == "unread" or "unread" in included else "all"


def _is_wanted(entry: ReadingEntry, stream: ItemStream, asked: Asked) -> bool:
    """Apply what the list itself does not: states, and the times between which an item came."""
    excluded = {each.rpartition("/")[2] for each in asked.all("xt")}
    wants_read = stream.state == "read" or any(each.endswith("/read") for each in asked.all("it"))
    seconds = entry.shown.entry.written_at // 1000
    return (
        (not wants_read or entry.is_read)
        and not ("read" in excluded and entry.is_read)
        and not ("starred" in excluded and entry.starred_at is not None)
        and asked.number("ot", 0, 10**18) <= seconds <= asked.number("nt", 10**18, 10**18)
    )


def _write_atom(entries: list[ReadingEntry], told: list[dict[str, Any]], base: str, following: str | None) -> bytes:
    ElementTree.register_namespace("", _ATOM)
    ElementTree.register_namespace("gr", "http://www.google.com/schemas/reader/atom/")
    feed = ElementTree.Element(f"{{{_ATOM}}}feed")
    _child(feed, "id", f"{base}/reader")
    _child(feed, "title", "tidings")
    if following is not None:
        ElementTree.SubElement(feed, "{http://www.google.com/schemas/reader/atom/}continuation").text = following
    newest = max((each.shown.entry.written_at for each in entries), default=0)
    _child(feed, "updated", rfc3339(newest))
    for each, values in zip(entries, told, strict=True):
        entry = ElementTree.SubElement(feed, f"{{{_ATOM}}}entry")
        _child(entry, "id", values["id"])
        _child(entry, "title", values["title"])
        _child(entry, "published", rfc3339(values["published"] * 1000))
        _child(entry, "updated", rfc3339(values["updated"] * 1000))
        _child(entry, "link", "", rel="alternate", type="text/html", href=values["canonical"][0]["href"])
        _child(entry, "content", values["content"]["content"], type="html")
        if values["author"]:
            _child(ElementTree.SubElement(entry, f"{{{_ATOM}}}author"), "name", values["author"])
        for state in [*states_of(each), *([] if each.is_read else [STATE + "fresh"])]:
            label = state.rpartition("/")[2]
            _child(entry, "category", "", term=state, scheme="http://www.google.com/reader/", label=label)
    written: bytes = ElementTree.tostring(feed, encoding="utf-8", xml_declaration=True)
    return written


def _child(parent: ElementTree.Element, name: str, text: str | None, **attributes: str) -> None:
    element = ElementTree.SubElement(parent, f"{{{_ATOM}}}{name}", attributes)
    if text:
        element.text = visible(text)


async def _fields(request: Request) -> list[tuple[str, str]]:
    """Return the fields of the address and of the form, in their order; names may be repeated."""
    pairs = list(request.query_params.multi_items())
    if request.method == "POST" and media_type(request) == FORM_TYPE:
        body = await read_body(request, (FORM_TYPE,), _BODY_BYTES_MAX, 20)
        try:
            pairs += parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=20_000, errors="strict")
        except ValueError:
            raise Problem(400, "The form cannot be read.", where="body") from None
    return pairs


def _text(text: str) -> Reply:
    return Reply(text.encode(), media_type="text/plain; charset=utf-8", tagged=False)


def _refused() -> Reply:
    headers = {"X-Reader-Google-Bad-Token": "true", "WWW-Authenticate": "GoogleLogin"}
    return Reply(b"Unauthorized\n", 401, "text/plain", headers)
