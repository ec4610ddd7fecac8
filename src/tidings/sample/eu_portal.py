"""A stand-in for the EU Funding & Tenders portal: search service, facets, topic details and pages.

Like the real one it reads multipart forms only, and its replicas may order results differently from page to page, so
that walks repeat some results and lose others.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from email.parser import BytesParser
from html import escape
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from tidings.sample.eu_portal_data import API_VERSION, OPPORTUNITIES, SCREEN, PortalChange, Record, load
from tidings.sample.serving import Faults

ROWS_PER_PAGE_MAX = 100
WINDOW_ROWS = 10_000


@dataclass(slots=True)
class EuPortal:
    """The portal's world: search results by reference, changeable at any time."""

    results: dict[str, Record] = field(default_factory=dict)
    arrivals: dict[str, float] = field(default_factory=dict)
    """When a result appears; at once where nothing is said."""
    changes: list[PortalChange] = field(default_factory=list)
    disorder: float = 0.0
    """How far a result may stray from its place between two requests, in places."""
    names: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """What the facets call their codes."""
    now: Callable[[], float] = time.time
    rng: random.Random = field(default_factory=lambda: random.Random(5))
    faults: Faults = field(default_factory=Faults)
    searches: list[dict[str, Any]] = field(default_factory=list)
    """Every form received."""

    @classmethod
    def of(cls, results: Iterable[Record], **options: Any) -> EuPortal:
        """Return a portal that holds these search results."""
        return cls({row["reference"]: json.loads(json.dumps(row)) for row in results}, **options)

    @classmethod
    def from_package(cls, now: Callable[[], float] = time.time, **options: Any) -> EuPortal:
        """Return the sample world's portal; its days count from this moment."""
        results, arrivals, changes = load(now())
        portal = cls.of(results, now=now, **options)
        portal.arrivals, portal.changes = arrivals, changes
        return portal

    @property
    def app(self) -> Any:
        """The ASGI application, faults in front."""
        search = "/search-api/prod/rest"
        routes = [
            Route(f"{search}/search", self._search, methods=["POST"]),
            Route(f"{search}/facet", self._facet, methods=["POST"]),
            Route(f"{OPPORTUNITIES}/data/topicDetails/{{name}}", self._details),
            Route(f"{OPPORTUNITIES}/data/topic-list.html", self._topic_list),
            Route(f"{OPPORTUNITIES}/portal/screen/opportunities/calls-for-proposals", self._shell),
            Route(f"{OPPORTUNITIES}/portal/screen/opportunities/{{kind}}/{{name:path}}", self._page),
        ]
        return self.faults.wrap(Starlette(routes=routes))

    def put(self, result: Record) -> None:
        """Add a result, or replace it."""
        self.results[result["reference"]] = result

    def change(self, reference: str, **metadata: list[str]) -> None:
        """Give a result new metadata now."""
        self.results[reference]["metadata"].update(metadata)

    def remove(self, reference: str) -> None:
        """Take a result away."""
        self.results.pop(reference, None)

    def listed(self) -> list[Record]:
        """Return what exists now, changes applied."""
        now = self.now()
        for change in [each for each in self.changes if each.at <= now]:
            self.change(change.reference, **change.metadata)
            self.changes.remove(change)
        return [row for reference, row in self.results.items() if self.arrivals.get(reference, 0) <= now]

    async def _search(self, request: Request) -> Response:
        form, refusal = await self._asked(request)
        if refusal is not None:
            return refusal
        size = min(int(request.query_params.get("pageSize", "10")), ROWS_PER_PAGE_MAX)
        page = max(1, int(request.query_params.get("pageNumber", "1")))
        rows = self._ordered(self._matching(form), form.get("sort"))[:WINDOW_ROWS]
        return JSONResponse(
            {
                "apiVersion": API_VERSION,
                "terms": request.query_params.get("text", ""),
                "responseTime": 42,
                "totalResults": len(rows),
                "pageNumber": page,
                "pageSize": size,
                "sort": _sort_name(form.get("sort")),
                "results": rows[(page - 1) * size : page * size],
                "warnings": [],
            }
        )

    async def _facet(self, request: Request) -> Response:
        form, refusal = await self._asked(request)
        if refusal is not None:
            return refusal
        rows = self._matching(form)
        facets = []
        for name in ("frameworkProgramme", "status", "type"):
            counts: dict[str, int] = {}
            for row in rows:
                for code in row["metadata"].get(name, []):
                    counts[code] = counts.get(code, 0) + 1
            known = self.names.get(name, {})
            values = [
                {"apiVersion": API_VERSION, "rawValue": code, "value": known.get(code, code), "count": count}
                for code, count in sorted(counts.items(), key=lambda pair: -pair[1])
            ]
            facets.append({"apiVersion": API_VERSION, "name": name, "values": values})
        return JSONResponse({"apiVersion": API_VERSION, "facets": facets})

    async def _asked(self, request: Request) -> tuple[dict[str, Any], Response | None]:
        """Read the form; a body that is JSON as a whole counts as none, which asks for everything."""
        if request.query_params.get("apiKey") != "SEDIA":
            return {}, JSONResponse({"message": "Unauthorized"}, status_code=401)
        content_type = request.headers.get("content-type", "")
        form = _form(await request.body(), content_type) if content_type.startswith("multipart/form-data") else {}
        self.searches.append(form)
        wrong = any("prefix" in clause for clause in _clauses(form)) or form.get("query") == "unreadable"
        if wrong:
            body = {"apiVersion": API_VERSION, "status": 400, "message": "Invalid query"}
            return {}, JSONResponse(body, status_code=400)
        return form, None

    def _matching(self, form: dict[str, Any]) -> list[Record]:
        languages = form.get("languages")
        rows = [row for row in self.listed() if not languages or _language(row) in languages]
        for clause in _clauses(form):
            wanted = {**clause.get("terms", {}), **{name: [value] for name, value in clause.get("term", {}).items()}}
            for name, values in wanted.items():
                rows = [row for row in rows if set(row["metadata"].get(name, [])) & {str(value) for value in values}]
        return rows

    def _ordered(self, rows: list[Record], sort: Any) -> list[Record]:
        """Sort as asked, which drops what lacks the field, then let results stray as replicas do."""
        if isinstance(sort, dict):
            name = sort.get("field", "")
            rows = [row for row in rows if any(row["metadata"].get(name, []))]
            rows.sort(key=lambda row: (row["metadata"][name][0], row["reference"]), reverse=sort.get("order") == "DESC")
        if not self.disorder:
            return rows
        places = {row["reference"]: n + self.rng.uniform(-self.disorder, self.disorder) for n, row in enumerate(rows)}
        return sorted(rows, key=lambda row: places[row["reference"]])

    async def _details(self, request: Request) -> Response:
        name = request.path_params["name"].removesuffix(".json")
        found = [row for row in self.listed() if row["metadata"].get("identifier", [""])[0].lower() == name]
        if not found:
            return HTMLResponse("<html><head><title>404 Not Found</title></head></html>", status_code=404)
        known = found[0]["metadata"]
        markup = (known.get("descriptionByte") or known.get("description") or [""])[0]
        details = {"identifier": known["identifier"][0], "title": known.get("title", [""])[0], "description": markup}
        return JSONResponse({"TopicDetails": details})

    async def _topic_list(self, _request: Request) -> Response:
        names = sorted({row["metadata"].get("identifier", [""])[0] for row in self.listed()})
        lines = [f'<li><a href="{SCREEN}/topic-details/{escape(n.lower())}">{escape(n)}</a></li>' for n in names if n]
        return HTMLResponse(f"<!DOCTYPE html><html><body><ul>{''.join(lines)}</ul></body></html>")

    async def _shell(self, _request: Request) -> Response:
        return HTMLResponse("<!DOCTYPE html><html><body><app-root></app-root></body></html>")

    async def _page(self, request: Request) -> Response:
        """A page for people, so that links in the sample world lead somewhere."""
        name = request.path_params["name"].lower()
        for row in self.listed():
            known = row["metadata"]
            if name in (known.get("identifier", [""])[0].lower(), row["url"].rpartition("/")[2].lower()):
                markup = (known.get("descriptionByte") or known.get("description") or [""])[0]
                title = escape(row.get("summary") or "")
                policy = {"Content-Security-Policy": "default-src 'none'"}
                return HTMLResponse(f"<!DOCTYPE html><title>{title}</title><h1>{title}</h1>{markup}", headers=policy)
        return HTMLResponse("<!DOCTYPE html><title>Not found</title>", status_code=404)


def _clauses(form: dict[str, Any]) -> list[dict[str, Any]]:
    query = form.get("query")
    must = query.get("bool", {}).get("must", []) if isinstance(query, dict) else []
    return [clause for clause in must if isinstance(clause, dict)]


def _form(body: bytes, content_type: str) -> dict[str, Any]:
    """Read the parts that say they are JSON; others are ignored, as the service does."""
    message = BytesParser().parsebytes(b"Content-Type: " + content_type.encode("latin-1") + b"\r\n\r\n" + body)
    form: dict[str, Any] = {}
    for part in message.walk():
        name = part.get_param("name", header="content-disposition")
        content = part.get_payload(decode=True)
        if not isinstance(name, str) or part.get_content_type() != "application/json" or not isinstance(content, bytes):
            continue
        try:
            form[name] = json.loads(content)
        except ValueError:
            form[name] = "unreadable"
    return form


def _language(row: Record) -> str:
    return str((row["metadata"].get("language") or [row.get("language", "en")])[0])


def _sort_name(sort: Any) -> str | None:
    return f"{sort.get('field')}:{sort.get('order')}" if isinstance(sort, dict) else None
