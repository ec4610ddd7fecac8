"""A stand-in for GitHub's REST API and the beginners' list: pages, ETags, renames, limits and refusals as there."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any
from urllib.parse import urlencode

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from tidings.sample.github_world import Repository, from_record, moment

LIST_PATH = "/MunGell/awesome-for-beginners/main/data.json"
HOUR_MS = 3_600_000
DOCUMENTATION = "https://docs.github.com/rest"


@dataclass(frozen=True, slots=True)
class GitHubCall:
    """One request as it was received and answered."""

    path: str
    status: int
    conditional: bool


@dataclass(frozen=True, slots=True)
class PathAnswer:
    """What a path answers, before ETags and limits."""

    status: int
    body: Any
    headers: Mapping[str, str] = field(default_factory=dict)


class GitHub:
    """The world, and the application that serves it."""

    def __init__(
        self, repositories: Iterable[Repository] = (), *, listing: Any = None, now_ms: Callable[[], int]
    ) -> None:
        self._now_ms = now_ms
        self.repositories: dict[int, Repository] = {}
        self.names: dict[str, int] = {}
        """Every name a repository answers to, in lower case; old ones redirect."""
        self.listing = listing if listing is not None else {"sponsors": [], "technologies": {}, "repositories": []}
        self.tokens: set[str] = set()
        self.calls_an_hour, self.calls_an_hour_with_token = 60, 5_000
        self.secondary_calls_a_minute: int | None = None
        self.faults: dict[str, list[PathAnswer]] = {}
        """Answers given instead of the real ones to the next requests for a path."""
        self.calls: list[GitHubCall] = []
        self._window_ms = now_ms()
        self._used: dict[str, int] = {}
        self._minute: list[int] = []
        for repository in repositories:
            self.add(repository)
        self.app = Starlette(
            routes=[
                Route(LIST_PATH, self._list),
                Route("/{path:path}", self._serve),
            ]
        )

    @classmethod
    def from_package(cls, now_ms: Callable[[], int]) -> GitHub:
        """Serve the sample world that ships; ages count from now."""
        folder = files("tidings.sample") / "data" / "github"
        records = [json.loads(line) for line in (folder / "repos.jsonl").read_text("utf-8").splitlines()]
        issues = [json.loads(line) for line in (folder / "issues.jsonl").read_text("utf-8").splitlines()]
        world = cls(listing=json.loads((folder / "awesome.json").read_text("utf-8")), now_ms=now_ms)
        for record in records:
            full_name = f"{record['owner']}/{record['name']}"
            mine = [issue for issue in issues if issue["repo"] == full_name]
            world.add(from_record(record, mine, now_ms()), former_name=record["former_full_name"])
        world.calls_an_hour = world.calls_an_hour_with_token
        return world

    def add(self, repository: Repository, *, former_name: str | None = None) -> Repository:
        """Take a repository into the world."""
        self.repositories[repository.id] = repository
        self.names[repository.full_name.lower()] = repository.id
        if former_name:
            self.names[former_name.lower()] = repository.id
        return repository

    def repo(self, full_name: str) -> Repository:
        """Return a repository by any name it has or had."""
        return self.repositories[self.names[full_name.lower()]]

    def rename(self, old: str, new: str) -> None:
        """Give a repository a new name; the old one redirects from now on."""
        repository = self.repo(old)
        owner, _, name = new.partition("/")
        repository.data |= {"full_name": new, "name": name, "owner": {**repository.data["owner"], "login": owner}}
        self.names[new.lower()] = repository.id

    def fail(self, path: str, *answers: PathAnswer) -> None:
        """Answer the next requests for a path (without query) so."""
        self.faults.setdefault(path.lower(), []).extend(answers)

    async def _list(self, request: Request) -> Response:
        return self._finish(request, PathAnswer(200, self.listing), {})

    async def _serve(self, request: Request) -> Response:
        if not request.headers.get("user-agent"):
            return self._finish(request, PathAnswer(403, {"message": "Request forbidden by administrative rules."}), {})
        token = request.headers.get("authorization", "").removeprefix("Bearer ").removeprefix("token ")
        if token and token not in self.tokens:
            return self._finish(request, refusal(401, "Bad credentials"), {})
        answer = self._secondary() or self._scripted(request) or self._answer(request)
        is_free = bool(token) and answer.status == 200 and etag_of(answer) == request.headers.get("if-none-match")
        limits, is_over = self._count(token, is_free=is_free)
        if is_over:
            answer = refusal(403, "API rate limit exceeded for 203.0.113.7. (But here's the good news: ...)")
        return self._finish(request, answer, limits)

    def _count(self, token: str, *, is_free: bool) -> tuple[dict[str, str], bool]:
        now = self._now_ms()
        if now >= self._window_ms + HOUR_MS:
            self._window_ms, self._used = now, {}
        limit = self.calls_an_hour_with_token if token else self.calls_an_hour
        used = self._used.get(token, 0)
        is_over = used >= limit and not is_free
        if not is_free and not is_over:
            used += 1
            self._used[token] = used
        headers = {
            "x-ratelimit-limit": str(limit),
            "x-ratelimit-remaining": str(limit - used),
            "x-ratelimit-used": str(used),
            "x-ratelimit-reset": str((self._window_ms + HOUR_MS) // 1000),
            "x-ratelimit-resource": "core",
        }
        return headers, is_over

    def _secondary(self) -> PathAnswer | None:
        if self.secondary_calls_a_minute is None:
            return None
        now = self._now_ms()
        self._minute = [at for at in self._minute if at > now - 60_000]
        if len(self._minute) >= self.secondary_calls_a_minute:
            return secondary_limit(retry_after=60)
        self._minute.append(now)
        return None

    def _scripted(self, request: Request) -> PathAnswer | None:
        waiting = self.faults.get(request.url.path.lower())
        return waiting.pop(0) if waiting else None

    def _answer(self, request: Request) -> PathAnswer:
        parts = request.url.path.strip("/").split("/")
        if parts == ["rate_limit"]:
            return PathAnswer(200, {"resources": {}, "rate": {}})
        if parts[0] == "repositories" and len(parts) >= 2 and parts[1].isdigit():
            repository, rest, asked_as = self.repositories.get(int(parts[1])), parts[2:], None
        elif parts[0] == "repos" and len(parts) >= 3:
            asked_as = f"{parts[1]}/{parts[2]}".lower()
            repository, rest = self.repositories.get(self.names.get(asked_as, 0)), parts[3:]
        else:
            return refusal(404, "Not Found")
        if repository is None or repository.status == 404:
            return refusal(404, "Not Found")
        if asked_as is not None and asked_as != repository.full_name.lower():
            return moved(f"{_base(request)}/repositories/{repository.id}{''.join('/' + part for part in rest)}")
        if repository.status == 451:
            return blocked(self._now_ms())
        if repository.status != 200:
            return refusal(repository.status, "We couldn't respond to your request in time. Sorry about that.")
        return self._part(repository, rest, request)

    def _part(self, repository: Repository, rest: list[str], request: Request) -> PathAnswer:
        now = self._now_ms()
        match rest:
            case []:
                return PathAnswer(200, repository.shown(now))
            case ["languages"]:
                return PathAnswer(200, repository.languages)
            case ["readme"]:
                return readme(repository.readme)
            case ["labels"]:
                return paged(repository.labels, repository, "labels", request)
            case ["issues", *_] if repository.issues_status != 200:
                return refusal(repository.issues_status, "Issues are disabled for this repo")
            case ["issues"]:
                return paged(filtered(repository.listed(now), request), repository, "issues", request)
            case ["issues", number, *more] if number.isdigit():
                return self._issue(repository, int(number), more, request)
        return refusal(404, "Not Found")

    def _issue(self, repository: Repository, number: int, more: list[str], request: Request) -> PathAnswer:
        status = repository.issue_statuses.get(number)
        if status is not None:
            return refusal(status, "This issue was deleted" if status == 410 else "Not Found")
        issue = repository.issues.get(number)
        if issue is None or repository.appears_ms.get(number, 0) > self._now_ms():
            return refusal(404, "Not Found")
        if more == ["comments"]:
            return paged(repository.comments.get(number, []), repository, f"issues/{number}/comments", request)
        return PathAnswer(200, issue) if not more else refusal(404, "Not Found")

    def _finish(self, request: Request, answer: PathAnswer, limits: Mapping[str, str]) -> Response:
        headers = {"x-github-media-type": "github.v3; format=json", **limits, **answer.headers}
        status, body = answer.status, encoded(answer)
        if status == 200:
            headers["etag"] = etag_of(answer)
            if request.headers.get("if-none-match") == headers["etag"]:
                status, body = 304, b""
        query = f"?{request.url.query}" if request.url.query else ""
        is_conditional = "if-none-match" in request.headers or "if-modified-since" in request.headers
        self.calls.append(GitHubCall(request.url.path + query, status, is_conditional))
        media_type = "text/html" if isinstance(answer.body, str) else "application/json; charset=utf-8"
        return Response(body, status, headers=headers, media_type=media_type)


def refusal(status: int, message: str, **headers: str) -> PathAnswer:
    """Say no as GitHub does."""
    return PathAnswer(status, {"message": message, "documentation_url": DOCUMENTATION, "status": str(status)}, headers)


def moved(location: str) -> PathAnswer:
    """Redirect by number, as after a rename."""
    return PathAnswer(301, {"message": "Moved Permanently", "url": location}, {"location": location})


def blocked(now_ms: int) -> PathAnswer:
    """Refuse for legal reasons."""
    block = {"reason": "dmca", "created_at": moment(now_ms), "html_url": "https://github.com/github/dmca"}
    return PathAnswer(451, {"message": "Repository access blocked", "block": block})


def secondary_limit(retry_after: int | None = None, status: int = 403) -> PathAnswer:
    """Ask to slow down, with or without saying for how long."""
    headers = {} if retry_after is None else {"retry-after": str(retry_after)}
    message = "You have exceeded a secondary rate limit. Please wait a few minutes before you try again."
    return PathAnswer(status, {"message": message, "documentation_url": DOCUMENTATION}, headers)


def readme(text: str) -> PathAnswer:
    """Wrap a README as the API does; a repository without one answers 404."""
    if not text:
        return refusal(404, "Not Found")
    content = base64.encodebytes(text.encode()).decode()
    return PathAnswer(200, {"name": "README.md", "path": "README.md", "encoding": "base64", "content": content})


def filtered(issues: list[dict[str, Any]], request: Request) -> list[dict[str, Any]]:
    """Choose and order issues by the query; `label` is ignored, `labels` must all be there."""
    state = request.query_params.get("state", "open")
    wanted = {name.strip().lower() for name in request.query_params.get("labels", "").split(",") if name.strip()}
    since = request.query_params.get("since", "")
    chosen = [
        issue
        for issue in issues
        if state in ("all", issue["state"])
        and wanted <= {label["name"].lower() for label in issue["labels"]}
        and issue["updated_at"] >= since
    ]
    order = "updated_at" if request.query_params.get("sort") == "updated" else "created_at"
    is_rising = request.query_params.get("direction") == "asc"
    return sorted(chosen, key=lambda issue: (issue[order], issue["number"]), reverse=not is_rising)


def paged(entries: list[dict[str, Any]], repository: Repository, part: str, request: Request) -> PathAnswer:
    """Cut a list into pages, with links that name the repository by number."""
    size = min(100, max(1, int(request.query_params.get("per_page", "30"))))
    page = max(1, int(request.query_params.get("page", "1")))
    last = max(1, -(-len(entries) // size))
    kept = {name: value for name, value in request.query_params.items() if name != "page"}
    base = f"{_base(request)}/repositories/{repository.id}/{part}"
    relations = {"prev": page - 1, "first": 1} if page > 1 else {}
    relations |= {"next": page + 1, "last": last} if page < last else {}
    links = [f'<{base}?{urlencode(kept | {"page": str(n)})}>; rel="{name}"' for name, n in relations.items()]
    return PathAnswer(200, entries[(page - 1) * size : page * size], {"link": ", ".join(links)} if links else {})


def encoded(answer: PathAnswer) -> bytes:
    """Write an answer's body; text stands for a page of HTML."""
    return answer.body.encode() if isinstance(answer.body, str) else json.dumps(answer.body).encode()


def etag_of(answer: PathAnswer) -> str:
    """Name an answer's content; weak, as most of the real ones are."""
    return f'W/"{hashlib.sha256(encoded(answer)).hexdigest()}"'


def _base(request: Request) -> str:
    return str(request.base_url).rstrip("/")
