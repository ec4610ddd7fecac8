"""First cards: what the merge shows of new items at once, and what it retires because the id index has no room."""

from __future__ import annotations

from collections.abc import Sequence

from tidings.model.item import Finding
from tidings.model.pipeline import Pipeline
from tidings.store.burials import Leaving, bury
from tidings.store.cards import EntryRow, NewCard, count_writes, put_new_cards
from tidings.store.db.database import Tx
from tidings.store.id_index import held_ids, that_fit, write_ids
from tidings.watch.logs import event

OUT_OF_LIST = "there is no room for it in the id index"


def put_first_cards(
    tx: Tx, pipeline: Pipeline, born: Sequence[tuple[int, Finding]], unseen: Sequence[tuple[int, Finding]]
) -> tuple[int, ...]:
    """Show new items, and enter them in the id index; return the items that it has no room for, to be retired.

    These are new ones, which get no card, and those that the new ones push out. Items that had a card and were not
    accepted yet (`unseen`) get the card of their newer copy in any case: a worker may hold them, and then they go
    later, by what their card says.
    """
    # Of two findings of one item in the same merge, the later one counts.
    cards = [
        card for item, each in {**dict(born), **dict(unseen)}.items() if (card := _first_card(pipeline, item, each))
    ]
    if pipeline.id_index is None:
        count_writes(tx, pipeline.name, put_new_cards(tx, pipeline, cards))
        return ()
    now_ms, held = int(tx.value("now")), held_ids(tx, pipeline)
    kept = that_fit(pipeline, held | {card.shown.id: card.shown.sort for card in cards}, now_ms)
    retires = any(rule.by_id_index for rule in pipeline.retention)
    unlisted = {card.item for card in cards if card.shown.id not in kept} if retires else set()
    without = unlisted & dict(born).keys()
    written = put_new_cards(tx, pipeline, [card for card in cards if card.item not in without])
    if list(kept.items()) != list(held.items()):
        written += write_ids(tx, pipeline, kept, now_ms)
    count_writes(tx, pipeline.name, written)
    unlisted |= _items_of(tx, pipeline, [each for each in held if each not in kept]) if retires else set()
    return tuple(sorted(unlisted))


def retire(tx: Tx, pipeline: Pipeline, unlisted: Sequence[int]) -> int:
    """Retire what the list has no room for; return how many went. What a worker holds goes when it is tidied."""
    kinds = {rule.kind for rule in pipeline.retention if rule.by_id_index}
    leaving = tx.returning(Leaving, "leaving_among", [(item,) for item in unlisted])
    chosen = [item for item in leaving if item.kind in kinds]
    return len(bury(tx, {pipeline.name: pipeline}, chosen, reason=OUT_OF_LIST))


def _items_of(tx: Tx, pipeline: Pipeline, ids: Sequence[str]) -> set[int]:
    assert pipeline.id_index is not None
    singular = pipeline.collection(pipeline.id_index.collection).singular
    return {e.id for e in tx.returning(EntryRow, "shelf_entries", [(pipeline.name, f"{singular}:{i}") for i in ids])}


def _first_card(pipeline: Pipeline, item: int, finding: Finding) -> NewCard | None:
    presenter = pipeline.first_cards.get(finding.kind)
    workflow = pipeline.workflows.get(finding.kind)
    if presenter is None or workflow is None:
        return None
    try:
        shown = pipeline.show(presenter(finding.key, workflow.decode(finding.payload)))
    except Exception as error:  # noqa: BLE001  # one finding must not stop the merge; its own attempt will tell
        event("no first card", pipeline=pipeline.name, key=finding.key, error=f"{type(error).__name__}: {error}")
        return None
    return None if shown is None else NewCard(item, shown)
