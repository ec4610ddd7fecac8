"""The workflow as a picture: states as boxes from left to right, moves as arrows, drawn from the declaration.

The longest way an item goes by itself is the spine. Other automatic ways hang below it like branches of a tree; states
that only a person or a failure leads to lie aside, below everything.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from itertools import pairwise

from markupsafe import Markup

from tidings.model.workflow import ANY, Transition, Workflow, leaves, name_of

_HEIGHT, _CHAR, _SMALL, _PAD, _LINE = 52, 7.3, 6.0, 12, 13
_ROW, _GAP, _BRANCH, _ASIDE = 150, 46, 70, 108
"""From row to row of the spine, from box to box, from branch to branch, and down to what lies aside."""
_ROW_WIDTH_MAX = 1_100
_ARROW = Markup(
    '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
    '<path class="tip" d="M0 0.5L7.5 4L0 7.5Z"/></marker></defs>'
)


@dataclass(slots=True)
class _Box:
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
        return self.x + self.width

    @property
    def bottom(self) -> float:
        return self.y + _HEIGHT

    @property
    def center(self) -> float:
        return self.x + self.width / 2

    @property
    def half(self) -> float:
        return self.y + _HEIGHT / 2


@dataclass(frozen=True, slots=True)
class _Line:
    """How an arrow runs, and where its words stand: above `y`, or falling from there."""

    path: str
    x: float
    y: float
    anchor: str = "middle"
    falls: bool = False


def draw(
    workflow: Workflow, counts: Mapping[str, int], links: Mapping[str, str], dead: Mapping[str, int] | None = None
) -> Markup:
    """Draw a workflow with how many items, and dead letters, rest in each state; each box leads to those items."""
    dead = dead or {}
    boxes = {state: _Box(state, _width(state, _words_of(counts, dead, state))) for state in workflow.states}
    pairs = _pairs(workflow)
    width, height = _Layout(workflow, boxes, pairs).place()
    shapes = [_arrow(_route(boxes[source], boxes[target]), moves) for (source, target), moves in pairs.items()]
    shapes += [_from_anywhere(boxes[t.target], t) for t in workflow.transitions if _is_wide(t)]
    for box in boxes.values():
        number, lost = counts.get(box.state, 0), dead.get(box.state, 0)
        shapes.append(_draw_box(workflow, box, number, lost, links.get(box.state)))
    label = f"Workflow of {workflow.kind}: {len(workflow.states)} states, {len(workflow.transitions)} transitions"
    return Markup(
        '<div class="scroller" tabindex="0" role="group" aria-label="{label}">'
        '<svg class="graph" width="{w:.0f}" height="{h:.0f}" viewBox="-2 0 {w:.0f} {h:.0f}">{arrow}{shapes}</svg></div>'
    ).format(label=label, w=width + 8, h=height, arrow=_ARROW, shapes=Markup("").join(shapes))


def tone_of(workflow: Workflow, state: str) -> str:
    """Return what a state means: good where items are published or arrive, bad where they fail, ended aside."""
    if state in workflow.failures:
        return "bad"
    if state == spine_of(workflow)[-1]:
        return "good"
    if state in workflow.terminal:
        return "ended"
    return "good" if any(t.publishes and t.target == state for t in workflow.transitions) else "plain"


def spine_of(workflow: Workflow) -> list[str]:
    """Return the longest way an item goes without a person, from the start."""
    moves = [t for t in workflow.transitions if t.trigger != "manual" and t.target not in workflow.failures]

    @cache
    def longest(state: str, seen: frozenset[str]) -> tuple[str, ...]:
        ways = [t.target for t in moves if leaves(t, state) and t.target not in seen]
        return (state, *max((longest(target, seen | {target}) for target in ways), key=len, default=()))

    return list(longest(workflow.start, frozenset({workflow.start})))


def _pairs(workflow: Workflow) -> dict[tuple[str, str], list[Transition]]:
    """Gather the moves between each two states: one arrow stands for all of them."""
    pairs: dict[tuple[str, str], list[Transition]] = {}
    for transition in workflow.transitions:
        for state in () if _is_wide(transition) else transition.sources:
            pairs.setdefault((state, transition.target), []).append(transition)
    return pairs


def _is_wide(transition: Transition) -> bool:
    return ANY in transition.sources or len(transition.sources) > 2


def _words_of(counts: Mapping[str, int], dead: Mapping[str, int], state: str) -> str:
    lost = f" ◆{dead[state]:,}" if dead.get(state) else ""
    return f"{counts.get(state, 0):,}{lost}"


def _width(state: str, words: str) -> float:
    return max(len(state) * _CHAR, len(words) * 11) + 2 * _PAD


def _words(moves: list[Transition]) -> list[tuple[str, str]]:
    """Return what stands on an arrow: each move's name and criterion, with their style."""
    lines: list[tuple[str, str]] = []
    for move in moves:
        lines.append((move.name, "name"))
        if move.criterion is not None:
            lines.append((f"if {name_of(move.criterion)}", "criterion"))
    return lines


def _extent(moves: list[Transition]) -> float:
    return max((len(text) for text, _ in _words(moves)), default=0) * _SMALL


class _Layout:
    """Finds a place for every box."""

    def __init__(
        self, workflow: Workflow, boxes: dict[str, _Box], pairs: dict[tuple[str, str], list[Transition]]
    ) -> None:
        self._workflow, self._boxes, self._pairs = workflow, boxes, pairs
        self._width = 0.0

    def place(self) -> tuple[float, float]:
        """Place everything; return the width and height of the picture."""
        bottom = self._place_branches(self._place_spine())
        bottom = self._place_aside(bottom)
        return self._width, bottom + 22

    def _put(self, box: _Box, part: str, x: float, y: float) -> None:
        box.part, box.x, box.y = part, x, y
        self._width = max(self._width, box.right)

    def _place_spine(self) -> float:
        spine = spine_of(self._workflow)
        hops = list(pairwise(spine))
        over = max((len(_words(self._pairs.get(hop, []))) for hop in hops), default=0) * _LINE + 12
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
        lines = [len(_words(moves)) for pair, moves in self._pairs.items() if self._is_back(pair, spine)]
        return top + row * _ROW + _HEIGHT + (34 + max(lines) * _LINE if lines else 0)

    def _has_skips(self, spine: list[str]) -> bool:
        places = {state: place for place, state in enumerate(spine)}
        return any(s in places and t in places and places[t] > places[s] + 1 for s, t in self._pairs)

    def _is_back(self, pair: tuple[str, str], spine: list[str]) -> bool:
        source, target = pair
        return source in spine and target in spine and spine.index(target) <= spine.index(source)

    def _place_branches(self, y: float) -> float:
        """Hang every other automatic way below the state it leaves, the rightmost first, so that no trunks cross."""
        waiting = [pair for pair, moves in self._pairs.items() if any(m.trigger == "automatic" for m in moves)]
        y += _BRANCH - _HEIGHT
        for source, target in sorted(waiting, key=lambda pair: -self._boxes[pair[0]].x):
            box, parent = self._boxes[target], self._boxes[source]
            if box.part != "aside" or parent.part == "aside":
                continue
            self._put(box, "branch", parent.center + 34 + _extent(self._pairs[source, target]), y)
            y += _BRANCH
        return y - (_BRANCH - _HEIGHT)

    def _place_aside(self, y: float) -> float:
        """Set the rest below, each under where one goes from there, with room for what comes from anywhere."""
        rest = [box for box in self._boxes.values() if box.part == "aside"]
        x = 0.0
        for box in rest:
            homes = [self._boxes[t].x for s, t in self._pairs if s == box.state and self._boxes[t].part == "spine"]
            self._put(box, "aside", max(x, min(homes, default=0.0)), y + _ASIDE - _HEIGHT)
            wide = [
                len(t.name) * _SMALL + 100 for t in self._workflow.transitions if t.target == box.state and _is_wide(t)
            ]
            x = box.right + 40 + max(wide, default=0.0)
            self._width = max(self._width, x - 40)
        return y + _ASIDE if rest else y


def _route(source: _Box, target: _Box) -> _Line:
    if source is target:
        path = _bow(source.center - 14, source.center + 14, source.bottom, 26)
        return _Line(path, source.center, source.bottom + 38, falls=True)
    if target.part == "branch":
        return _hang(source, target)
    if "aside" in (source.part, target.part) or source.part == "branch":
        return _climb(source, target)
    if source.row != target.row:
        return _turn(source, target)
    if target.place == source.place + 1:
        path = f"M{source.right:.0f} {source.half:.0f}H{target.x - 3:.0f}"
        return _Line(path, (source.right + target.x) / 2, source.y - 8)
    middle = (source.center + target.center) / 2
    if target.x > source.x:
        return _Line(_bow(source.center, target.center, source.y, -34), middle, source.y - 38)
    return _Line(_bow(source.center, target.center, source.bottom, 26), middle, source.bottom + 38, falls=True)


def _bow(x1: float, x2: float, y: float, lift: float) -> str:
    """Curve from one place on a line to another, above it (negative lift) or below."""
    top = y + lift * 1.33
    return f"M{x1:.0f} {y:.0f}C{x1:.0f} {top:.0f} {x2:.0f} {top:.0f} {x2:.0f} {y + (3 if lift > 0 else -3):.0f}"


def _hang(source: _Box, target: _Box) -> _Line:
    """Go down from a state, then right into a branch."""
    if source.part == "branch":
        far = max(source.right, target.right) + 24
        path = f"M{source.right:.0f} {source.half:.0f}H{far:.0f}V{target.half:.0f}H{target.right + 3:.0f}"
        return _Line(path, far + 6, (source.half + target.half) / 2 + 4, "start")
    path = f"M{source.center:.0f} {source.bottom:.0f}V{target.half - 8:.0f}q0 8 8 8H{target.x - 3:.0f}"
    return _Line(path, (source.center + target.x) / 2 + 4, target.half - 6)


def _climb(source: _Box, target: _Box) -> _Line:
    """Go up (or down) between the spine and what lies below."""
    sign = -1 if source.y > target.y else 1
    start, end = (source.y, target.bottom + 3) if sign < 0 else (source.bottom, target.y - 3)
    x1, x2 = source.x + min(18, source.width / 2), target.x + min(18, target.width / 2)
    bend = start + sign * min(46.0, abs(end - start) / 2)
    path = f"M{x1:.0f} {start:.0f}V{end:.0f}"
    if abs(x1 - x2) >= 2:
        path = f"M{x1:.0f} {start:.0f}C{x1:.0f} {bend:.0f} {x2:.0f} {start:.0f} {x2:.0f} {bend:.0f}V{end:.0f}"
    return _Line(path, x2 + 8, source.y - 12 if sign < 0 else target.y - 12, "start")


def _turn(source: _Box, target: _Box) -> _Line:
    """Leave a row at its end and come back at the beginning of another."""
    lane = target.y - 40
    out = f"M{source.right:.0f} {source.half:.0f}h12q8 0 8 8V{lane - 8:.0f}q0 8 -8 8"
    path = f"{out}H{target.center + 8:.0f}q-8 0 -8 8V{target.y - 3:.0f}"
    return _Line(path, (source.right + target.center) / 2, lane - 6)


def _arrow(line: _Line, moves: list[Transition]) -> Markup:
    words = _words(moves)
    top = line.y if line.falls else line.y - _LINE * (len(words) - 1)
    texts = Markup("").join(
        Markup('<text class="{}" x="{:.0f}" y="{:.0f}" text-anchor="{}">{}</text>').format(
            style, line.x, top + _LINE * number, line.anchor, text
        )
        for number, (text, style) in enumerate(words)
    )
    kind = "automatic" if any(move.trigger == "automatic" for move in moves) else moves[0].trigger
    return Markup('<g class="edge {}"><path d="{}" marker-end="url(#tip)"/>{}</g>').format(kind, line.path, texts)


def _from_anywhere(target: _Box, transition: Transition) -> Markup:
    """Draw one arrow, from the right, for a move that starts in many states."""
    words = "any state" if ANY in transition.sources else f"{len(transition.sources)} states"
    start, end = target.right + len(transition.name) * _SMALL + 30, target.right + 3
    return Markup(
        '<g class="edge {kind}"><text class="where" x="{wx:.0f}" y="{ty:.0f}">{words}</text>'
        '<path d="M{start:.0f} {y:.0f}H{end:.0f}" marker-end="url(#tip)"/>'
        '<text x="{tx:.0f}" y="{ly:.0f}" text-anchor="middle">{name}</text></g>'
    ).format(
        kind=transition.trigger, words=words, wx=start + 6, start=start, end=end, y=target.half, ty=target.half + 4,
        tx=(start + end) / 2 + 2, ly=target.half - 7, name=transition.name,
    )  # fmt: skip


def _draw_box(workflow: Workflow, box: _Box, count: int, dead: int, link: str | None) -> Markup:
    tone = tone_of(workflow, box.state)
    lost = Markup('<tspan class="dead"> ◆{:,}</tspan>').format(dead) if dead else ""
    shape = Markup(
        '<rect class="{tone}" x="{x:.0f}" y="{y:.0f}" width="{w:.0f}" height="{h}" rx="6"/>'
        '<text class="state" x="{cx:.0f}" y="{ny:.0f}" text-anchor="middle">{state}</text>'
        '<text class="count" x="{cx:.0f}" y="{vy:.0f}" text-anchor="middle">{count}{lost}</text>'
    ).format(
        tone=tone, x=box.x, y=box.y, w=box.width, h=_HEIGHT, cx=box.center, ny=box.y + 20, vy=box.y + 41,
        state=box.state, count=f"{count:,}", lost=lost,
    )  # fmt: skip
    if link is None:
        return Markup('<g class="box">{}</g>').format(shape)
    label = f"{box.state}: {count:,} items" + (f", {dead:,} of them dead letters" if dead else "")
    return Markup('<a class="box" href="{}" aria-label="{}">{}</a>').format(link, label, shape)
