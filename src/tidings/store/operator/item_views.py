"""Items as people see them: lists, and one item whole with its life line."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from html import unescape
from typing import NamedTuple

import msgspec

from tidings.model.changes import StoredCopy
from tidings.model.clock import rfc3339
from tidings.model.item import NOT_HERE_YET, Item, Step, ref, split_ref
from tidings.model.item_views import DeadGroup, DeliveryView, Event, ItemRow, ItemView, MoveView, StepView
from tidings.model.pipeline import Pipeline
from tidings.model.publication import DELIVERY
from tidings.store.db.database import Database
from tidings.store.items.claims import ItemStore
from tidings.store.links import LinkStore

COPIES_PAGE = 500
STUCK = ("dead", "parked", "rejected")
_TAG = re.compile("<[^>]*>")


class ListedItem(NamedTuple):
    """An item of a list, with the body its title is made of."""

    id: int
    pipeline: str
    kind: str
    key: str
    state: str
    standing: str
    attempts: int
    due_at: int | None
    lease_until: int | None
    last_error: str | None
    cause: str | None
    revision: int
    created_at: int
    changed_at: int
    body: bytes | None


class ItemReader:
    """Items, their bodies, relatives and journals; reads only."""

    def __init__(
        self, database: Database, pipelines: Mapping[str, Pipeline], *, items: ItemStore, links: LinkStore
    ) -> None:
        self._database = database
        self._pipelines = pipelines
        self._items = items
        self._links = links
        # Where a kind's texts are HTML, so are its titles.
        self._html_kinds = {
            (pipeline.name, collection.kind)
            for pipeline in pipelines.values()
            for collection in pipeline.collections
            if collection.summary_field in collection.html_fields
        }

    def _item_row(self, item: ListedItem | Item, body: bytes | None = None) -> ItemRow:
        return _item_row(item, body, is_html=(item.pipeline, item.kind) in self._html_kinds)

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
        is_rare = standing in STUCK
        with self._database.reading() as tx:
            rows = tx.rows(
                ListedItem,
                "list_stuck_items" if is_rare else "list_items",
                before=before if before is not None else 1 << 62,
                pipeline=pipeline,
                kind=kind,
                state=state,
                standing=standing,
                limit=limit,
            )
        return [self._item_row(row) for row in rows]

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
        missing = self._links.missing_parents(item.pipeline, item.ref)
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
                steps=[_move(step, has_parent=not missing) for step in r.steps],
                token=r.token,
            )
            for r in self._items.life(item.id)
        ]
        children = [child for _, child, parent in relatives if parent == item.ref]
        return ItemView(
            item=self._item_row(item, body),
            body=msgspec.json.decode(body),
            accepted=msgspec.json.decode(accepted) if accepted is not None else None,
            accepted_revision=item.accepted_revision,
            waiting_revision=item.waiting_revision,
            life=life,
            deliveries=[
                d for c in children if c.startswith(f"{DELIVERY}:") and (d := self._delivery(item.pipeline, c))
            ],
            parents=[parent for _, child, parent in relatives if child == item.ref],
            children=[child for child in children if not child.startswith(f"{DELIVERY}:")],
            transitions=[t.name for t in workflow.by_hand_from(item.state)] if workflow else [],
            waits_for=" ".join([self._waits_for(item), *(f"Its parent {each} {NOT_HERE_YET}." for each in missing)]),
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
        if item.due_at is not None and (words := self._rests_for(item)):
            return f"It waits for {words}. Next: {names}, due {rfc3339(item.due_at)}."
        if item.due_at is not None:
            parked = "It is parked; next try" if item.standing == "parked" else "Next:"
            return f"{parked} {names}, due {rfc3339(item.due_at)}."
        if item.state in workflow.terminal:
            return "Nothing: it is finished."
        if item.standing == "parked":
            return f"A person: it is parked ({item.cause}). `tidings dead revive {item.id}` lets it go on."
        return "A person: " + (", ".join(t.name for t in workflow.by_hand_from(item.state)) or "nothing is possible")

    def _rests_for(self, item: Item) -> str:
        """Say in words what a delivery rests for; empty where it does not rest."""
        if item.kind != DELIVERY or item.standing != "open":
            return ""
        body = msgspec.json.decode(self._items.body(item.id, item.revision) or b"{}")
        return str(body.get("waits_for") or "")

    def deliveries(self, *, limit: int = 50, channel: str | None = None) -> list[DeliveryView]:
        """List notices, newest first."""
        # The channel stands in the body. Four times as many are read as are asked for, which is enough unless one
        # channel gets nearly all.
        rows = self.items(kind=DELIVERY, limit=limit if channel is None else limit * 4)
        found = [d for row in rows if (d := self._delivery(row.pipeline, ref(DELIVERY, row.key)))]
        return [d for d in found if channel in (None, d.channel)][:limit]

    def _delivery(self, pipeline: str, name: str) -> DeliveryView | None:
        kind, key = split_ref(name)
        item = self._items.find(pipeline, DELIVERY, key) if kind == DELIVERY else None
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
            state="expired" if item.standing == "rejected" else item.state,
            standing=item.standing,
            attempts=item.attempts,
            ambiguous=ambiguous,
            due_at=item.due_at,
            sent_at=body.get("sent_at"),
            message_id=body.get("message_id"),
            answer=body.get("answer"),
            last_error=item.last_error,
            waits_for=str(body.get("waits_for") or "") if item.standing == "open" else "",
            created_at=item.created_at,
        )

    def dead_letters(self) -> list[DeadGroup]:
        """Return dead letters grouped by cause."""
        with self._database.reading() as tx:
            return tx.rows(DeadGroup, "dead_letters")

    def stored_copies(self, pipeline: str, *, since_ms: int) -> Iterator[StoredCopy]:
        """Read the accepted bodies of a pipeline's items found since a time, oldest first, a page at a time."""
        after = 0
        while True:
            with self._database.reading() as tx:
                values = {"pipeline": pipeline, "since": since_ms, "after": after, "limit": COPIES_PAGE}
                rows = tx.rows(StoredCopy, "stored_copies", **values)
            yield from (row._replace(body=bytes(row.body)) for row in rows)
            if len(rows) < COPIES_PAGE:
                return
            after = rows[-1].id

    def events(self, *, after: int, limit: int = 200) -> list[Event]:
        """Return what happened after an event id, oldest first; `after` -1 returns only the newest event."""
        with self._database.reading() as tx:
            if after < 0:
                return tx.rows(Event, "last_event")
            return tx.rows(Event, "events_after", after=after, limit=limit)


def _move(step: Step, *, has_parent: bool) -> MoveView:
    note = step.note
    if note is not None and has_parent:
        note = note.replace(NOT_HERE_YET, "was not here yet; it is by now")
    return MoveView(
        transition=step.transition,
        from_state=step.from_state,
        to_state=step.to_state,
        ms=step.ms,
        criterion=step.criterion,
        verdict=step.verdict,
        note=note,
        cost_micros=step.cost_micros,
        tokens=step.tokens,
        model=step.model,
    )


def _item_row(item: ListedItem | Item, body: bytes | None, *, is_html: bool) -> ItemRow:
    content = item.body if isinstance(item, ListedItem) else body
    return ItemRow(
        id=item.id,
        pipeline=item.pipeline,
        kind=item.kind,
        key=item.key,
        title=_title(content, item.key, is_html=is_html),
        state=item.state,
        standing=item.standing,
        attempts=item.attempts,
        due_at=item.due_at,
        lease_until=item.lease_until,
        last_error=item.last_error,
        cause=item.cause,
        revision=item.revision,
        created_at=item.created_at,
        changed_at=item.changed_at,
    )


def _gap(tag: re.Match[str]) -> str:
    """Return what a tag leaves between the words around it."""
    return " " if tag[0].lower().startswith(("<p", "<br")) else ""


def _title(body: bytes | None, key: str, *, is_html: bool) -> str:
    """Return what an item is called, as plain text: its title, or else its first words."""
    try:
        decoded = msgspec.json.decode(bytes(body)) if body else {}
    except msgspec.DecodeError:
        return key
    if not isinstance(decoded, dict):
        return key
    notice = decoded.get("notice")
    found = decoded.get("title") or decoded.get("full_name") or (notice or {}).get("title")
    if found and is_html:
        found = " ".join(unescape(_TAG.sub(_gap, str(found)[:2_000])).split())
    if not found and (text := decoded.get("text")):
        found = " ".join(unescape(_TAG.sub(" ", str(text)[:2_000])).split())
    return str(found)[:200] if found else key
