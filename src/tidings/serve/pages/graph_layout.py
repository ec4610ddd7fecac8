"""Where the boxes of a workflow's picture stand: the spine, the branches below it, and the rest aside."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from itertools import pairwise

from tidings.model.workflow import ANY, Transition, Workflow, leaves, name_of

HEIGHT, SMALL, LINE = 52, 6.0, 13
_ROW, _GAP, _BRANCH, _ASIDE = 150, 46, 70, 108
"""From row to row of the spine, from box to box, from branch to branch, and down to what lies aside."""
_ROW_WIDTH_MAX = 1_100


def spine_of(workflow: Workflow) -> list[str]:
    """Return the longest way an item goes without a person, from the start."""
    moves = [t for t in workflow.transitions if t.trigger != "manual" and t.target not in workflow.failures]

    @cache
    def longest(state: str, seen: frozenset[str]) -> tuple[str, ...]:
        ways = [t.target for t in moves if leaves(t, state) and t.target not in seen]
        return (state, *max((longest(target, seen | {target}) for target in ways), key=len, default=()))

    return list(longest(workflow.start, frozenset({workflow.start})))


def pairs_of(workflow: Workflow) -> dict[tuple[str, str], list[Transition]]:
    """Gather the moves between each two states: one arrow stands for all of them."""
    pairs: dict[tuple[str, str], list[Transition]] = {}
    for transition in workflow.transitions:
        for state in () if is_wide(transition) else transition.sources:
            pairs.setdefault((state, transition.target), []).append(transition)
    return pairs


def is_wide(transition: Transition) -> bool:
    """Tell whether a move starts in so many states that one arrow without a beginning stands for all."""
    return ANY in transition.sources or len(transition.sources) > 2


@dataclass(slots=True)
class Box:
    """The box of a state."""

    state: str
    width: float
    part: str = "aside"
    """spine, branch or aside"""
    row: int = 0
    place: int = 0
    """Its number on the spine."""
    x: float = 0
    y: float = 0

    @property
    def right(self) -> float:
        """Return where it ends."""
        return self.x + self.width

    @property
    def bottom(self) -> float:
        """Return where it ends below."""
        return self.y + HEIGHT

    @property
    def center(self) -> float:
        """Return its middle from left to right."""
        return self.x + self.width / 2

    @property
    def half(self) -> float:
        """Return its middle from top to bottom."""
        return self.y + HEIGHT / 2


def words_on(moves: list[Transition]) -> list[tuple[str, str]]:
    """Return what stands on an arrow: each move's name and criterion, with their style."""
    lines: list[tuple[str, str]] = []
    for move in moves:
        lines.append((move.name, "name"))
        if move.criterion is not None:
            lines.append((f"if {name_of(move.criterion)}", "criterion"))
    return lines


def _extent(moves: list[Transition]) -> float:
    return max((len(text) for text, _ in words_on(moves)), default=0) * SMALL


class Layout:
    """Finds a place for every box."""

    def __init__(
        self, workflow: Workflow, boxes: dict[str, Box], pairs: dict[tuple[str, str], list[Transition]]
    ) -> None:
        self._workflow, self._boxes, self._pairs = workflow, boxes, pairs
        self._width = 0.0

    def place(self) -> tuple[float, float]:
        """Place everything; return the width and height of the picture."""
        bottom = self._place_branches(self._place_spine())
        bottom = self._place_aside(bottom)
        return self._width, bottom + 22

    def _put(self, box: Box, part: str, x: float, y: float) -> None:
        box.part, box.x, box.y = part, x, y
        self._width = max(self._width, box.right)

    def _place_spine(self) -> float:
        spine = spine_of(self._workflow)
        hops = list(pairwise(spine))
        over = max((len(words_on(self._pairs.get(hop, []))) for hop in hops), default=0) * LINE + 12
        top = over + (34 if self._has_skips(spine) else 0)
        x, row = 0.0, 0
        for place, state in enumerate(spine):
            box = self._boxes[state]
            gap = max(_GAP, _extent(self._pairs.get(hops[place - 1], [])) - 72) if place else 0.0
            if place and x + gap + box.width > _ROW_WIDTH_MAX:
                x, row, gap = 0.0, row + 1, 0.0
            self._put(box, "spine", x + gap, top + row * _ROW)
            box.row, box.place = row, place
            x = box.right
        lines = [len(words_on(moves)) for pair, moves in self._pairs.items() if self._is_back(pair, spine)]
        return top + row * _ROW + HEIGHT + (34 + max(lines) * LINE if lines else 0)

    def _has_skips(self, spine: list[str]) -> bool:
        places = {state: place for place, state in enumerate(spine)}
        return any(s in places and t in places and places[t] > places[s] + 1 for s, t in self._pairs)

    def _is_back(self, pair: tuple[str, str], spine: list[str]) -> bool:
        source, target = pair
        return source in spine and target in spine and spine.index(target) <= spine.index(source)

    def _place_branches(self, y: float) -> float:
        """Hang every other automatic way below the state it leaves, the rightmost first, so that no trunks cross."""
        waiting = [pair for pair, moves in self._pairs.items() if any(m.trigger == "automatic" for m in moves)]
        y += _BRANCH - HEIGHT
        for source, target in sorted(waiting, key=lambda pair: -self._boxes[pair[0]].x):
            box, parent = self._boxes[target], self._boxes[source]
            if box.part != "aside" or parent.part == "aside":
                continue
            self._put(box, "branch", parent.center + 34 + _extent(self._pairs[source, target]), y)
            y += _BRANCH
        return y - (_BRANCH - HEIGHT)

    def _place_aside(self, y: float) -> float:
        """Set the rest below, each under where one goes from there, with room for what comes from anywhere."""
        rest = [box for box in self._boxes.values() if box.part == "aside"]
        x = 0.0
        for box in rest:
            homes = [self._boxes[t].x for s, t in self._pairs if s == box.state and self._boxes[t].part == "spine"]
            self._put(box, "aside", max(x, min(homes, default=0.0)), y + _ASIDE - HEIGHT)
            wide = [
                len(t.name) * SMALL + 100 for t in self._workflow.transitions if t.target == box.state and is_wide(t)
            ]
            x = box.right + 40 + max(wide, default=0.0)
            self._width = max(self._width, x - 40)
        return y + _ASIDE if rest else y
