"""How the numbers and ranks of a card went, as data."""

from __future__ import annotations

from functools import partial
from typing import Any

import msgspec

from tidings.model.clock import rfc3339
from tidings.model.publication import Collection
from tidings.model.tracks import POINTS_MAX, TrackPoint
from tidings.serve.api.collections import Collections, missing
from tidings.serve.api.listings import Reader
from tidings.serve.backend import Backend
from tidings.serve.http.operations import Call, Operation, Parameter
from tidings.serve.http.replies import Encoded, Reply


class Histories:
    """The histories of all collections that track something."""

    def __init__(self, backend: Backend, collections: Collections) -> None:
        self._backend = backend
        self._collections = collections

    def operations(self) -> list[Operation]:
        """Declare the routes."""
        readers = self._collections.readers.values()
        return [self._declare(reader) for reader in readers if reader.collection.tracked]

    def _declare(self, reader: Reader) -> Operation:
        collection = reader.collection
        names = " and ".join(f"`{name}`" for name in collection.tracked)
        return Operation(
            "GET",
            f"/api/v1/{reader.pipeline}/{collection.name}/{{id}}/history",
            "read",
            partial(self._show, reader),
            f"Read how one {collection.singular} went",
            help=f"{names} and the rank in each list, oldest first, noted when they changed while it stood in a list. "
            f"At most {POINTS_MAX} points: the older, the sparser. What never was in a list has none.",
            tag=reader.pipeline,
            parameters=(Parameter("id", f"The {collection.singular}'s id.", place="path", example="9000001"),),
            answer=_schema(self._backend, reader.pipeline, collection),
            problems=(404,),
        )

    async def _show(self, reader: Reader, call: Call) -> Reply:
        if await reader.one(call["id"]) is None:
            raise missing(reader.collection)
        points = await self.read(reader, call["id"])
        told = [{"at": rfc3339(each.at), **each.values, "ranks": each.ranks} for each in points]
        return Reply(encoded=Encoded(msgspec.json.encode({"id": call["id"], "points": told})))

    async def read(self, reader: Reader, card_id: str) -> list[TrackPoint]:
        """Return the points of a card."""
        if not reader.collection.tracked:
            return []
        return await self._backend.executor.read(self._backend.tracks.points, reader.pipeline, reader.key_of(card_id))


def _schema(backend: Backend, pipeline: str, collection: Collection) -> dict[str, Any]:
    lists = [each.name for each in backend.pipelines[pipeline].lists if each.collection == collection.name]
    point = {
        "at": {"type": "string", "format": "date-time"},
        **{name: {"type": "integer"} for name in collection.tracked},
        "ranks": {"type": "object", "properties": {name: {"type": "integer", "minimum": 1} for name in lists}},
    }
    points = {"type": "array", "items": {"type": "object", "properties": point, "required": ["at", "ranks"]}}
    return {"type": "object", "properties": {"id": {"type": "string"}, "points": points}, "required": ["id", "points"]}
