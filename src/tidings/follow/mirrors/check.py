"""Compares what a mirror should hold with what it holds, set by set, and repairs the difference."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from tidings.follow.mirrors.catalog import Catalog, digest, readable
from tidings.follow.mirrors.mirror import Mirror
from tidings.follow.mirrors.names import MirroredCollection, MirroredPipeline, Names
from tidings.follow.mirrors.pipeline_copy import INDEX, IdList
from tidings.follow.mirrors.target import Target
from tidings.model.changes import Change


class Divergence(msgspec.Struct, frozen=True, kw_only=True):
    """How a mirror of one pipeline differs; a healthy one differs in nothing but what still waits to be written."""

    pipeline: str
    cards: int
    """How many cards the store shows."""
    waiting: list[str]
    """Keys of cards that changed a moment ago: they are not written yet, and need not be."""
    missing: list[str]
    """Keys that the store has and the mirror has not; its catalog too, where none can be read."""
    extra: list[str]
    """Keys that the mirror has and the store has not."""
    different: list[str]
    """Keys whose card is another one, and lists and feeds of a static copy that say something else."""
    listed_without_card: list[str]
    """Ids that an id index names and that have no card in the mirror."""
    unlisted: list[str]
    """Ids whose card is in the mirror, and which the store lists and the mirror's id index does not."""

    @property
    def is_none(self) -> bool:
        """Tell whether the mirror is as it should be."""
        return not (self.missing or self.extra or self.different or self.listed_without_card or self.unlisted)


async def check(
    mirror: Mirror, plan: MirroredPipeline, wanted: Sequence[Change], *, settled_at: int | None = None
) -> Divergence:
    """Compare keys, values and id indexes with what the store shows; changes since `settled_at` may still wait.

    Of a static copy, the lists and feeds are compared too, with what its own cards and catalog make of them.
    """
    target, names = mirror.target, mirror.names
    held = await _held(target, names, plan)
    catalog = names.catalog(plan.name)
    cards = {names.card(plan.name, *named): each for each in wanted if (named := _card_of(plan, each)) is not None}
    is_waiting = {key for key, card in cards.items() if settled_at is not None and card.written_at > settled_at}
    written = readable(plan.name, (await target.get_many([catalog])).get(catalog))
    is_listed = not cards or written is not None
    # By value, not by the catalog: a check that believed the catalog could not find what someone changed in the target.
    wrong = {key for key, card in cards.items() if held.get(key) != card.value}
    without_card: list[str] = []
    unlisted: list[str] = []
    for collection in plan.collections.values():
        listed, store_ids = await _listed(target, names.index(collection)), _store_ids(collection, wanted)
        key_of = {each: names.card(plan.name, collection, each) for each in {*listed, *store_ids}}
        without_card += [each for each in listed if key_of[each] not in held]
        unlisted += [
            each for each in store_ids if key_of[each] in held and key_of[each] not in is_waiting and each not in listed
        ]
    lost, other = await _answers(mirror, plan, written, held) if written is not None else ([], [])
    return Divergence(
        pipeline=plan.name,
        cards=len(cards),
        waiting=sorted(wrong & is_waiting),
        missing=[*sorted(wrong - held.keys() - is_waiting), *lost, *([] if is_listed else [catalog])],
        extra=sorted(held.keys() - cards.keys()),
        different=[*sorted((wrong & held.keys()) - is_waiting), *other],
        listed_without_card=without_card,
        unlisted=unlisted,
    )


async def repair(mirror: Mirror, plan: MirroredPipeline, wanted: Sequence[Change]) -> tuple[Divergence, int]:
    """Make a mirror right; return what was wrong, and how many cards must wait for the next day's budget."""
    found = await check(mirror, plan, wanted)
    left = 0 if found.is_none else await mirror.make_right(plan.name, wanted, wrong={*found.missing, *found.different})
    return found, left


async def _answers(
    mirror: Mirror, plan: MirroredPipeline, catalog: Catalog, held: Mapping[str, bytes]
) -> tuple[list[str], list[str]]:
    """Return the lists and feeds of a static copy that are missing, and those that say something else.

    Where a card was written since the catalog was, its lists follow with the next one: they are not compared then.
    """
    if mirror.answers is None:
        return [], []
    notes = {
        mirror.names.card(plan.name, collection, each): note.digest
        for collection in plan.collections.values()
        for each, note in catalog.cards.get(collection.name, {}).items()
    }
    is_as_written = notes == {key: digest(value) for key, value in held.items()}
    rendered = await mirror.answers(catalog, mirror.target)
    stored = await mirror.target.get_many(sorted(rendered))
    different = [key for key in stored if stored[key] != rendered[key]] if is_as_written else []
    return sorted(rendered.keys() - stored.keys()), sorted(different)


async def _listed(target: Target, key: str) -> list[str]:
    value = (await target.get_many([key])).get(key)
    try:
        return msgspec.json.decode(value, type=list[str]) if value is not None else []
    except (msgspec.DecodeError, msgspec.ValidationError):
        return []


async def _held(target: Target, names: Names, plan: MirroredPipeline) -> dict[str, bytes]:
    keys: set[str] = set()
    for collection in plan.collections.values():
        keys |= await target.keys(names.cards(plan.name, collection))
    return await target.get_many(sorted(keys))


def _card_of(plan: MirroredPipeline, change: Change) -> tuple[MirroredCollection, str] | None:
    return plan.collection_of(change.key) if change.collection else None


def _store_ids(collection: MirroredCollection, wanted: Sequence[Change]) -> list[str]:
    """Return the ids that a collection should list."""
    for change in wanted:
        if collection.has_ids and change.key == f"{INDEX}{collection.name}" and change.value is not None:
            return msgspec.json.decode(change.value, type=IdList).ids
    return [change.key.partition(":")[2] for change in wanted if change.collection == collection.name]
