"""Items as people see them: lists, and one item whole with its life line."""

from __future__ import annotations

import re
from collections.abc import Mapping
from html import unescape
from typing import Any

import msgspec

from tidings.model.clock import rfc3339
from tidings.model.item import Item, ref
from tidings.model.pipeline import Pipeline
from tidings.model.views import DeliveryView, ItemRow, ItemView, StepView
from tidings.store.database import Database, Row
from tidings.store.items import ItemStore
from tidings.store.links import LinkStore

_LIST_FIELDS = (
    "i.id, i.pipeline, i.kind, i.key, i.state, i.standing, i.attempts, i.due_at, i.lease_until, i.last_error, i.cause, "
    "i.revision, i.created_at, i.changed_at, b.body"
)
_TAG = re.compile("<[^>]*>")


class Lifelines:
    """Items, their bodies, relatives and journals; reads only."""

    def __init__(
        self, database: Database, pipelines: Mapping[str, Pipeline], *, items: ItemStore, links: LinkStore
    ) -> None:
        self._database = database
        self._pipelines = pipelines
        self._items = items
        self._links = links

    def items(
        self,
        *,
        pipeline: str | None = None,
        kind: str | None = None,
        state: str | None = None,
        standing: str | None = None,
        limit: int = 50,
        before: int | None = None,
    ) -> list[ItemRow]:
        """List items, newest first, with ids below `before`."""
        where = ["i.id < :before"]
        values: dict[str, Any] = {"before": before if before is not None else 1 << 62, "limit": limit}
        for name, value in (("pipeline", pipeline), ("kind", kind), ("state", state), ("standing", standing)):
            if value is not None:
                where.append(f"i.{name} = :{name}")
                values[name] = value
        # From the newest down until enough are found; SQLite would rather gather a whole pipeline and sort it.
        is_rare = standing in ("dead", "parked", "rejected")
        hint = "NOT INDEXED" if self._database.dialect == "sqlite" and not is_rare else ""
        sql = (
            f"SELECT {_LIST_FIELDS} FROM items i {hint} LEFT JOIN bodies b "  # noqa: S608  # names of our own
            "ON b.item = i.id AND b.revision = i.revision "
            f"WHERE {' AND '.join(where)} ORDER BY i.id DESC LIMIT :limit"
        )
        with self._database.reading() as tx:
            return [_item_row(row) for row in tx.sql(sql, values)]

    def item(self, item: int) -> ItemView | None:
        """Return one item, whole."""
        found = self._items.get(item)
        return self._whole(found) if found else None

    def find(self, pipeline: str, kind: str, key: str) -> ItemView | None:
        """Return one item, whole, by its name."""
        found = self._items.find(pipeline, kind, key)
        return self._whole(found) if found else None

    def _whole(self, item: Item) -> ItemView:
        body = self._items.body(item.id, item.revision) or b"null"
        accepted = self._items.body(item.id, item.accepted_revision) if item.accepted_revision is not None else None
        relatives = self._links.relatives(item.pipeline, item.ref)
        declared = self._pipelines.get(item.pipeline)
        workflow = declared.workflows.get(item.kind) if declared else None
        rows = [
            (
                item.id, item.pipeline, item.kind, item.key, item.state, item.standing, item.attempts, item.due_at,
                item.lease_until, item.last_error, item.cause, item.revision, item.created_at, item.changed_at, body,
            )
        ]  # fmt: skip
        life = [
            StepView(
                at=r.at,
                kind=r.kind,
                attempt=r.attempt,
                from_state=r.from_state,
                to_state=r.to_state,
                ended=r.ended,
                error=r.error,
                actor=r.actor,
                steps=r.steps,
                token=r.token,
            )
            for r in self._items.life(item.id)
        ]
        children = [child for _, child, parent in relatives if parent == item.ref]
        return ItemView(
            item=_item_row(rows[0]),
            body=msgspec.json.decode(body),
            accepted=msgspec.json.decode(accepted) if accepted is not None else None,
            accepted_revision=item.accepted_revision,
            waiting_revision=item.waiting_revision,
            life=life,
            deliveries=[d for c in children if c.startswith("delivery:") and (d := self._delivery(item.pipeline, c))],
            parents=[parent for _, child, parent in relatives if child == item.ref],
            children=[child for child in children if not child.startswith("delivery:")],
            transitions=[t.name for t in workflow.by_hand_from(item.state)] if workflow else [],
            waits_for=self._waits_for(item),
        )

    def _waits_for(self, item: Item) -> str:
        declared = self._pipelines.get(item.pipeline)
        workflow = declared.workflows.get(item.kind) if declared else None
        if workflow is None or item.state not in workflow.states:
            return "Nobody here knows its kind or state; deploy the same version everywhere."
        if item.lease_until is not None:
            return f"A worker holds it until {rfc3339(item.lease_until)}."
        if item.standing == "dead":
            cause = (item.cause or "no cause noted").rstrip(".")
            return f"It is a dead letter: {cause}. `tidings dead revive {item.id}` brings it back."
        if item.standing == "rejected":
            return f"It was rejected on purpose: {(item.cause or 'no cause noted').rstrip('.')}."
        names = " or ".join(t.name for t in workflow.next_from(item.state))
        if item.due_at is not None:
            parked = "It is parked; next try" if item.standing == "parked" else "Next:"
            return f"{parked} {names}, due {rfc3339(item.due_at)}."
        if item.state in workflow.terminal:
            return "Nothing: it is finished."
        if item.standing == "parked":
            return f"A person: it is parked ({item.cause}). `tidings dead revive {item.id}` lets it go on."
        return "A person: " + (", ".join(t.name for t in workflow.by_hand_from(item.state)) or "nothing is possible")

    def deliveries(self, *, limit: int = 50, channel: str | None = None) -> list[DeliveryView]:
        """List notices, newest first."""
        rows = self.items(kind="delivery", limit=limit if channel is None else limit * 4)
        found = [d for row in rows if (d := self._delivery(row.pipeline, ref("delivery", row.key)))]
        return [d for d in found if channel in (None, d.channel)][:limit]

    def _delivery(self, pipeline: str, name: str) -> DeliveryView | None:
        item = self._items.find(pipeline, "delivery", name.partition(":")[2])
        if item is None:
            return None
        body = msgspec.json.decode(self._items.body(item.id, item.revision) or b"{}")
        life = self._items.life(item.id)
        ambiguous = sum(1 for r in life if r.ended == "lost" or (r.error or "").startswith("ambiguous"))
        return DeliveryView(
            id=item.id,
            pipeline=pipeline,
            key=item.key,
            channel=str(body.get("channel", "?")),
            title=str((body.get("notice") or {}).get("title", item.key)),
            parent=str(body.get("parent", "")),
            state=item.state,
            standing=item.standing,
            attempts=item.attempts,
            ambiguous=ambiguous,
            due_at=item.due_at,
            sent_at=body.get("sent_at"),
            message_id=body.get("message_id"),
            answer=body.get("answer"),
            last_error=item.last_error,
            created_at=item.created_at,
        )


def _item_row(row: Row) -> ItemRow:
    names = (
        "id", "pipeline", "kind", "key", "state", "standing", "attempts", "due_at", "lease_until", "last_error",
        "cause", "revision", "created_at", "changed_at",
    )  # fmt: skip
    return ItemRow(**dict(zip(names, row[:14], strict=True)), title=_title(row[14], row[3]))


def _title(body: bytes | None, key: str) -> str:
    try:
        decoded = msgspec.json.decode(bytes(body)) if body else {}
    except msgspec.DecodeError:
        return key
    if not isinstance(decoded, dict):
        return key
    notice = decoded.get("notice")
    found = decoded.get("title") or decoded.get("full_name") or (notice or {}).get("title")
    if not found and (text := decoded.get("text")):
        found = " ".join(unescape(_TAG.sub(" ", str(text)[:2_000])).split())
    return str(found)[:200] if found else key
