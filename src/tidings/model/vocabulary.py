"""The names that qualifiers of a query may have, and the values that some of them are limited to."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from tidings.model.publication import DELIVERY, Collection

if TYPE_CHECKING:
    from tidings.model.pipeline import Pipeline

TEXT_NAMES = frozenset({"title", "text"})
THREAD_NAMES = frozenset({"story", "thread"})
VALUE_NAMES = frozenset({"type", "by", "score", "time", "pipeline", "url", "site"})
MOMENTS: Mapping[str, Literal["<", ">="]] = {"before": "<", "until": "<", "after": ">=", "since": ">="}
EVERYWHERE = TEXT_NAMES | THREAD_NAMES | VALUE_NAMES | MOMENTS.keys()
_ALIKE = 0.75
"""Of the letters of two words: `tpye` and `type` share three of four."""
_ALIKE_VALUES = 0.6
_NAME_CHARS_MIN = 3


@dataclass(frozen=True, slots=True, eq=False)
class Vocabulary:
    """What a query may ask about; without attributes only what every document has."""

    attributes: frozenset[str] = frozenset()
    """Names that some pipeline declares."""
    values: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The known values of enumerations."""
    pipeline: str | None = None
    """The only pipeline that is searched, if there is one."""
    absent: frozenset[str] = frozenset()
    """Names that only other pipelines declare."""

    def __contains__(self, name: str) -> bool:
        """Tell whether a qualifier has this name."""
        return name in EVERYWHERE or name in self.attributes

    def nearest(self, name: str) -> str | None:
        """Return the known name that was probably meant."""
        if len(name) < _NAME_CHARS_MIN:
            return None
        return next(iter(difflib.get_close_matches(name, sorted(EVERYWHERE | self.attributes), 1, _ALIKE)), None)

    def doubt(self, name: str, value: str | None) -> str | None:
        """Say why nothing has this name or value (None: any), where that is known."""
        if name in self.absent:
            return f"`{name}:` finds nothing here: {self.pipeline} does not have it"
        known = self.values.get(name, ())
        if value is None or not known or value.lower() in (each.lower() for each in known):
            return None
        near = difflib.get_close_matches(value.lower(), known, 1, _ALIKE_VALUES)
        guess = f"did you mean `{name}:{near[0]}`? " if near else ""
        return f"`{name}:{value}` finds nothing; {guess}known are {', '.join(known)}"


PLAIN = Vocabulary()
"""Only what every document has."""


def vocabulary_of(pipelines: Iterable[Pipeline], within: str | None = None) -> Vocabulary:
    """Return the vocabulary of some pipelines, for a search of them all or within one."""
    declared = list(pipelines)
    searched = [pipeline for pipeline in declared if within in (None, pipeline.name)]
    everywhere, here = _attributes(declared), _attributes(searched)
    values = {name: tuple(dict.fromkeys(known)) for name, known in here.items() if known}
    return Vocabulary(
        attributes=frozenset(everywhere) - EVERYWHERE,
        values={**values, "pipeline": tuple(pipeline.name for pipeline in searched)},
        pipeline=within,
        absent=frozenset(everywhere) - frozenset(here) - EVERYWHERE,
    )


def _attributes(pipelines: Iterable[Pipeline]) -> dict[str, list[str] | None]:
    """Return each name with its known values; None where one collection leaves them open."""
    found: dict[str, list[str] | None] = {}
    collections = [collection for pipeline in pipelines for collection in pipeline.collections]
    for collection in (collection for collection in collections if collection.is_searched):
        for name, values in {"type": (), **_declared(collection)}.items():
            known = found.setdefault(name, [])
            found[name] = [*known, *values] if known is not None and values else None
    return found


def _declared(collection: Collection) -> Mapping[str, tuple[str, ...]]:
    """Return what a collection declares, or else what its filters tell of its documents."""
    if collection.attributes:
        return collection.attributes
    return {each.name: each.values for each in collection.filters if each.comparison in ("is", "has")}


def no_field(name: str, pipeline: str, vocabulary: Vocabulary) -> str:
    """Say that a pipeline has no such field, where `name:value` must not be taken for text."""
    known = ", ".join(sorted((EVERYWHERE | vocabulary.attributes) - vocabulary.absent))
    return f'{pipeline} has no field `{name}:`; it has {known}. Text with a colon can stand in "quotes"'


def unknown_value(name: str, value: str | None, known: Iterable[str]) -> str | None:
    """Say that nothing has this value, and which was probably meant; None where it is known, or none is given."""
    names = list(dict.fromkeys(known))
    if not value or value in names:
        return None
    near = difflib.get_close_matches(value[:100], names, 1, _ALIKE_VALUES)
    guess = f"did you mean {near[0]}? " if near else ""
    return f"no {name} is called {value[:100]}; {guess}known are {', '.join(names) or 'none'}"


def unknown_item_values(
    pipelines: Mapping[str, Pipeline], pipeline: str | None = None, kind: str | None = None, state: str | None = None
) -> list[str]:
    """Say which of the values that items are asked by no pipeline here declares.

    Items of a pipeline that was turned off are still remembered, so this is asked only where nothing was found.
    """
    chosen = [each for name, each in pipelines.items() if pipeline not in pipelines or name == pipeline]
    workflows = [
        workflow for each in chosen for workflow in each.workflows.values() if kind in (None, "", workflow.kind)
    ]
    doubts = (
        unknown_value("pipeline", pipeline, pipelines),
        unknown_value("kind", kind, (name for each in chosen for name in (*each.workflows, DELIVERY))),
        unknown_value("state", state, (each for workflow in workflows for each in workflow.states))
        if workflows
        else None,
    )
    return [doubt for doubt in doubts if doubt is not None]
