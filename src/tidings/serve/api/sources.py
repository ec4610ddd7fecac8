"""Sources over HTTP: added, changed, removed and tried while everything runs."""

from __future__ import annotations

from typing import Any

import msgspec

from tidings.model.errors import BadInput
from tidings.model.previews import Trial
from tidings.model.source_definition import NamedDefinition, SourceDefinition
from tidings.serve.backend import Backend
from tidings.serve.http.operations import Call, Operation, Parameter, RequestBody
from tidings.serve.http.problems import Problem
from tidings.serve.http.replies import Encoded, Reply, answer
from tidings.serve.http.request_bodies import read_object
from tidings.serve.http.wire import plain

_MATCH = Parameter("if-match", "The ETag of the source as it was read; another one is refused.", place="header")
_ITEMS = Parameter("items", "What becomes of its items.", values=("keep", "forget"), is_required=True, example="keep")
_PROBLEMS = (404, 408, 409, 412, 413, 415, 507)
_ADDRESS = "https://127.0.0.1/"


class SourceRoutes:
    """The routes of sources that people add."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._changes = backend.source_changes

    def operations(self) -> list[Operation]:
        """Declare the routes."""
        pipelines = self._backend.pipelines.values()
        sources = (source.name for each in pipelines for source in each.sources)
        name = Parameter("source", "The source's name.", place="path", example=next(sources, "p.source"))
        open_to = next((each.name for each in pipelines if each.source_kinds), "feeds")
        said = {"pipeline": open_to, "address": _ADDRESS}
        new = RequestBody(_schema(), {**said, "title": "The Beacon", "interval": 1800})
        changes = RequestBody({"type": "object", "additionalProperties": True}, {"title": "The Beacon"})
        trial = RequestBody(_schema(), said)
        one = "/api/v1/sources/{source}"
        return [
            Operation(
                "GET", one, "read", self._one, "One source as it was asked for", parameters=(name,),
                answer=NamedDefinition, problems=(404,),
            ),
            Operation(
                "POST", "/api/v1/sources", "operate", self._add, "Add a source", body=new, answer=NamedDefinition,
                status=201, help="It is asked within seconds, by whichever process asks sources.", problems=_PROBLEMS,
            ),
            Operation(
                "PATCH", one, "operate", self._edit, "Change a source", parameters=(name, _MATCH), body=changes,
                answer=NamedDefinition, help="Only the fields that are named; null: as by default.", problems=_PROBLEMS,
            ),
            Operation(
                "DELETE", one, "operate", self._remove, "Remove a source", parameters=(name, _ITEMS, _MATCH),
                answer={"type": "object", "properties": {"items": {"type": "integer"}}, "required": ["items"]},
                problems=_PROBLEMS,
            ),
            Operation(
                "POST", "/api/v1/sources/test", "operate", self._test, "Try an address", body=trial, answer=Trial,
                help="What would be found, and what would become of the newest entry. Nothing is kept.",
                problems=_PROBLEMS,
            ),
        ]  # fmt: skip

    async def _one(self, call: Call) -> Reply:
        return answer(plain(await self._named(call["source"])))

    async def _add(self, call: Call) -> Reply:
        said = await read_object(call.request, dict[str, Any])
        pipeline = _pipeline(said)
        name = await self._do(self._changes.add, pipeline, said)
        named = await self._named(name)
        location = f"{self._backend.root_path}/api/v1/sources/{name}"
        return answer(plain(named), 201, {"Location": location, "ETag": _tag(named)})

    async def _edit(self, call: Call) -> Reply:
        changes = await read_object(call.request, dict[str, Any])
        await self._guarded(call)
        await self._do(self._changes.edit, call["source"], changes)
        named = await self._named(call["source"])
        return answer(plain(named), headers={"ETag": _tag(named)})

    async def _remove(self, call: Call) -> Reply:
        await self._guarded(call)
        return answer({"items": await self._do(self._changes.remove, call["source"], items=call["items"])})

    async def _test(self, call: Call) -> Reply:
        said = await read_object(call.request, dict[str, Any])
        pipeline = _pipeline(said)
        try:
            return answer(plain(await self._backend.previews.look(pipeline, said)))
        except BadInput as error:
            raise Problem(400, f"{error}.", where="body") from error

    async def _guarded(self, call: Call) -> None:
        """Refuse to change a source of the file, and one that is no longer as it was read."""
        named = await self._named(call["source"])
        if named.origin == "file":
            raise Problem(
                409,
                f"{named.name} stands in the configuration file.",
                helps="Change it there, then run `tidings reload`.",
            )
        wanted = call["if-match"]
        if wanted is not None and wanted.strip() != "*" and _tag(named).removeprefix("W/") not in wanted:
            raise Problem(412, "The source has changed since it was read.", helps="Read it again.")

    async def _named(self, name: str) -> NamedDefinition:
        named: NamedDefinition | None = await self._backend.executor.read(self._changes.named, name)
        if named is None:
            raise Problem(404, f"There is no source {name[:200]!r}.", helps="GET /api/v1/sources lists them.")
        return named

    async def _do(self, act: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return await self._backend.executor.write(act, *args, **kwargs)
        except BadInput as error:
            status = 409 if "watched already" in str(error) else 400
            raise Problem(status, f"{error}.", where="body") from error


def _pipeline(said: dict[str, Any]) -> str:
    pipeline = said.pop("pipeline", "feeds")
    if not isinstance(pipeline, str):
        raise Problem(400, "pipeline: must be text.", where="body, pipeline")
    return pipeline


def _tag(named: NamedDefinition) -> str:
    """Return the entity tag that a GET of it has."""
    return Encoded(msgspec.json.encode(plain(named))).etag.decode()


def _schema() -> dict[str, Any]:
    """Return the schema of what can be said of a source."""
    fields = msgspec.json.schema(SourceDefinition)["$defs"][SourceDefinition.__name__]["properties"]
    return {
        "type": "object",
        "properties": {"pipeline": {"type": "string"}, **fields, "interval": {"type": ["number", "string", "null"]}},
        "required": ["address"],
    }
