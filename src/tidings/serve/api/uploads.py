"""The ways in over HTTP: one item, or many as a JSON array or JSON lines, into the intake log."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from hashlib import sha256
from operator import attrgetter
from typing import Any, Protocol

import msgspec

from tidings.model.errors import BadInput
from tidings.model.item import Appended, Finding, Rejected
from tidings.model.pipeline import Admit, Pipeline
from tidings.model.publication import Collection
from tidings.serve.backend import Backend
from tidings.serve.http.operations import Call, Operation, Parameter, RequestBody
from tidings.serve.http.problems import Problem
from tidings.serve.http.replies import Reply
from tidings.serve.http.request_bodies import JSON_TYPES, LINE_TYPES, UPLOAD_CODINGS, read_body

_REMEMBER_SECONDS = 24 * 3600
_REMEMBERED_MAX = 1_000

IDEMPOTENCY_KEY = Parameter(
    "Idempotency-Key",
    "Any text of your own. Sent again with the same key, the same body gets the same answer for a day.",
    place="header",
    length_min=1,
    length_max=255,
    example="import-of-monday",
)
RECEIPT: dict[str, Any] = {
    "type": "object",
    "properties": {
        "accepted": {"type": "integer", "description": "New or changed, durably in the intake log."},
        "duplicate": {"type": "integer", "description": "Already known, unchanged."},
        "rejected": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"line": {"type": "integer"}, "reason": {"type": "string"}},
                "required": ["line", "reason"],
            },
        },
        "new": {"type": "integer"},
        "changed": {"type": "integer"},
    },
    "required": ["accepted", "duplicate", "rejected"],
}


@dataclass(slots=True)
class ReadLines:
    """What a body held: findings with the lines they stood on, and the lines that made none."""

    findings: list[Finding] = field(default_factory=list)
    places: list[int] = field(default_factory=list)
    rejected: list[Rejected] = field(default_factory=list)
    lines: int = 0


class Answers(Protocol):
    """The part of the ledger that remembers answers."""

    async def get(self, name: str, key: str) -> bytes | None: ...  # noqa: D102
    async def put(self, name: str, key: str, value: bytes, ttl_seconds: int) -> None: ...  # noqa: D102


class Uploads:
    """POST of one item and of many."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._answers: Answers = backend.ledger if backend.ledger is not None else _Memory()
        self._busy: dict[str, asyncio.Lock] = {}

    def operations(self) -> list[Operation]:
        """Declare the routes of every collection that takes posts."""
        declared: list[Operation] = []
        for pipeline in self._backend.pipelines.values():
            for collection in pipeline.collections:
                if collection.accepts_posts and pipeline.admit is not None:
                    declared += self._declare(pipeline, collection, pipeline.admit)
        return declared

    def _declare(self, pipeline: Pipeline, collection: Collection, admit: Admit) -> list[Operation]:
        async def post_one(call: Call) -> Reply:
            return await self._once(call, pipeline, admit, is_bulk=False)

        async def post_many(call: Call) -> Reply:
            return await self._once(call, pipeline, admit, is_bulk=True)

        form: Any = collection.posted if collection.posted is not None else {"type": "object"}
        shown = collection.posted_example if collection.posted_example is not None else collection.example
        example: Any = shown if shown is not None else {}
        receipt = {"accepted": 1, "duplicate": 0, "rejected": [], "new": 1, "changed": 0}
        limits = self._backend.limits
        one = Operation(
            "POST",
            f"/api/v1/{pipeline.name}/{collection.name}",
            "ingest",
            post_one,
            f"Send one {collection.singular}",
            help="It is accepted once it is durable; the workflow takes it from there. The body may be sent with "
            "`Content-Encoding: gzip`; limits count what it decompresses to.",
            tag=pipeline.name,
            parameters=(IDEMPOTENCY_KEY,),
            body=RequestBody(form, example),
            answer=RECEIPT,
            status=202,
            example=receipt,
            problems=(408, 409, 413, 415, 422, 507),
        )
        many = Operation(
            "POST",
            f"/api/v1/{pipeline.name}/{collection.name}/bulk",
            "ingest",
            post_many,
            f"Send many {collection.name}",
            help=f"A JSON array, or JSON lines; at most {limits.bulk_lines_max:,} of them. A bad line is reported with "
            "its number and reason while the rest goes on. The body may be sent with `Content-Encoding: gzip`; limits "
            "count what it decompresses to.",
            tag=pipeline.name,
            parameters=(IDEMPOTENCY_KEY,),
            body=RequestBody(
                {"type": "array", "items": form, "maxItems": limits.bulk_lines_max},
                [example],
                (*JSON_TYPES, *LINE_TYPES),
            ),
            answer=RECEIPT,
            status=202,
            example=receipt,
            problems=(408, 409, 413, 415, 422, 507),
        )
        return [one, many]

    async def _once(self, call: Call, pipeline: Pipeline, admit: Admit, *, is_bulk: bool) -> Reply:
        """Answer a repeated request as before; otherwise take the body in."""
        limits = self._backend.limits
        media_types = (*JSON_TYPES, *LINE_TYPES) if is_bulk else JSON_TYPES
        bytes_max = limits.bulk_bytes_max if is_bulk else limits.one_bytes_max
        body = await read_body(call.request, media_types, bytes_max, limits.body_seconds_max, codings=UPLOAD_CODINGS)
        key = call[IDEMPOTENCY_KEY.name]
        if key is None:
            return _receipt(await self._take(pipeline, admit, body, is_bulk))
        name = _name_of(call, key)
        lock = self._busy.setdefault(name, asyncio.Lock())
        if lock.locked():
            raise Problem(409, "A request with this key is under way.", where="header Idempotency-Key")
        try:
            async with lock:
                return await self._remembered(name, pipeline, admit, body, is_bulk)
        finally:
            self._busy.pop(name, None)

    async def _remembered(self, name: str, pipeline: Pipeline, admit: Admit, body: bytes, is_bulk: bool) -> Reply:
        digest = sha256(body).hexdigest()
        record = await self._answers.get("idempotency", name)
        if record is not None:
            before, _, receipt = record.partition(b"\n")
            if before != digest.encode():
                raise Problem(
                    422,
                    "This key was used with another body.",
                    where="header Idempotency-Key",
                    helps="Use a new key for a new body.",
                )
            return _receipt(receipt, {"Idempotency-Replayed": "true"})
        receipt = await self._take(pipeline, admit, body, is_bulk)
        await self._answers.put("idempotency", name, digest.encode() + b"\n" + receipt, _REMEMBER_SECONDS)
        return _receipt(receipt)

    async def _take(self, pipeline: Pipeline, admit: Admit, body: bytes, is_bulk: bool) -> bytes:
        # Thousands of lines take a good part of a second: not on the event loop.
        read = await asyncio.to_thread(self._read_many if is_bulk else self._read_one, body, admit)
        appended = Appended()
        if read.findings:
            appended = await self._backend.executor.write(self._backend.intake.append, pipeline.name, read.findings)
            self._backend.wake()
        buried = appended.refusals(read.findings, read.places)
        if buried and not is_bulk:
            raise Problem(409, f"This was not accepted: {buried[0].reason}.", where="body")
        receipt = {
            "accepted": appended.accepted,
            "duplicate": appended.unchanged,
            "rejected": sorted(read.rejected + buried, key=attrgetter("line")),
            "new": appended.new,
            "changed": appended.changed,
        }
        return msgspec.json.encode(receipt)

    def _read_one(self, body: bytes, admit: Admit) -> ReadLines:
        # Between brackets the strict reader sees an array of exactly one value, however it is laid out.
        values = list(self._backend.parse_lines(b"[" + body + b"]"))
        if len(values) != 1:
            raise Problem(400, "The body must hold exactly one JSON object.", where="body")
        value = values[0][1]
        if isinstance(value, BadInput):
            # The brackets are ours: it is the value between them that never ends.
            reason = str(value).replace("the array never ends", "it ends inside a value")
            raise Problem(400, f"The body cannot be read: {reason}.", where="body")
        try:
            return ReadLines([admit(value, way="POST")], [1], lines=1)
        except BadInput as error:
            raise Problem(422, f"This was not accepted: {error}.", where="body") from error

    def _read_many(self, body: bytes, admit: Admit) -> ReadLines:
        read = ReadLines()
        for line, value in self._backend.parse_lines(body):
            read.lines += 1
            if read.lines > self._backend.limits.bulk_lines_max:
                raise Problem(
                    413,
                    f"The body has more than {self._backend.limits.bulk_lines_max:,} lines.",
                    helps="Send it in parts, or use `tidings upload`, which has no such limit.",
                )
            try:
                if isinstance(value, BadInput):
                    raise value
                read.findings.append(admit(value, way="BULK"))
                read.places.append(line)
            except BadInput as error:
                read.rejected.append(Rejected(line, str(error)))
        return read


def _receipt(body: bytes, headers: dict[str, str] | None = None) -> Reply:
    return Reply(body, 202, headers=headers)


def _name_of(call: Call, key: str) -> str:
    """Keep callers' keys apart; what is stored is a digest, which holds no credential."""
    who = call.request.headers.get("authorization", "")
    return sha256("\n".join((who, call.request.scope["path"], key)).encode("utf-8", "surrogatepass")).hexdigest()


class _Memory:
    """Remembers answers in this process, where no ledger was given."""

    def __init__(self) -> None:
        self._kept: dict[str, bytes] = {}

    async def get(self, name: str, key: str) -> bytes | None:
        """Return what was kept."""
        return self._kept.get(f"{name}/{key}")

    async def put(self, name: str, key: str, value: bytes, ttl_seconds: int) -> None:  # noqa: ARG002  # bounded by number
        """Keep it, dropping the oldest where there are too many."""
        while len(self._kept) >= _REMEMBERED_MAX:
            del self._kept[next(iter(self._kept))]
        self._kept[f"{name}/{key}"] = value
