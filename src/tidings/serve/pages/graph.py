"""The workflow as a picture: states as boxes from left to right, moves as arrows, drawn from the declaration.

The longest way an item goes by itself is the spine. Other automatic ways hang below it like branches of a tree; states
that only a person or a failure leads to lie aside, below everything.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from markupsafe import Markup

from tidings.model.workflow import ANY, Transition, Workflow
from tidings.serve.pages.graph_layout import HEIGHT, LINE, SMALL, Box, Layout, is_wide, pairs_of, spine_of, words_on

_CHAR, _PAD = 7.3, 12
_ARROW = Markup(
    '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
    '<path class="tip" d="M0 0.5L7.5 4L0 7.5Z"/></marker></defs>'
)


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
    boxes = {state: Box(state, _width(state, _words_of(counts, dead, state))) for state in workflow.states}
    pairs = pairs_of(workflow)
    width, height = Layout(workflow, boxes, pairs).place()
    shapes = [_arrow(_route(boxes[source], boxes[target]), moves) for (source, target), moves in pairs.items()]
    shapes += [_from_anywhere(boxes[t.target], t) for t in workflow.transitions if is_wide(t)]
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


def _words_of(counts: Mapping[str, int], dead: Mapping[str, int], state: str) -> str:
    lost = f" ◆{dead[state]:,}" if dead.get(state) else ""
    return f"{counts.get(state, 0):,}{lost}"


def _width(state: str, words: str) -> float:
    return max(len(state) * _CHAR, len(words) * 11) + 2 * _PAD


def _route(source: Box, target: Box) -> _Line:
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


def _hang(source: Box, target: Box) -> _Line:
    """Go down from a state, then right into a branch."""
    if source.part == "branch":
        far = max(source.right, target.right) + 24
        path = f"M{source.right:.0f} {source.half:.0f}H{far:.0f}V{target.half:.0f}H{target.right + 3:.0f}"
        return _Line(path, far + 6, (source.half + target.half) / 2 + 4, "start")
    path = f"M{source.center:.0f} {source.bottom:.0f}V{target.half - 8:.0f}q0 8 8 8H{target.x - 3:.0f}"
    return _Line(path, (source.center + target.x) / 2 + 4, target.half - 6)


def _climb(source: Box, target: Box) -> _Line:
    """Go up (or down) between the spine and what lies below."""
    sign = -1 if source.y > target.y else 1
    start, end = (source.y, target.bottom + 3) if sign < 0 else (source.bottom, target.y - 3)
    x1, x2 = source.x + min(18, source.width / 2), target.x + min(18, target.width / 2)
    bend = start + sign * min(46.0, abs(end - start) / 2)
    path = f"M{x1:.0f} {start:.0f}V{end:.0f}"
    if abs(x1 - x2) >= 2:
        path = f"M{x1:.0f} {start:.0f}C{x1:.0f} {bend:.0f} {x2:.0f} {start:.0f} {x2:.0f} {bend:.0f}V{end:.0f}"
    return _Line(path, x2 + 8, source.y - 12 if sign < 0 else target.y - 12, "start")


def _turn(source: Box, target: Box) -> _Line:
    """Leave a row at its end and come back at the beginning of another."""
    lane = target.y - 40
    out = f"M{source.right:.0f} {source.half:.0f}h12q8 0 8 8V{lane - 8:.0f}q0 8 -8 8"
    path = f"{out}H{target.center + 8:.0f}q-8 0 -8 8V{target.y - 3:.0f}"
    return _Line(path, (source.right + target.center) / 2, lane - 6)


def _arrow(line: _Line, moves: list[Transition]) -> Markup:
    words = words_on(moves)
    top = line.y if line.falls else line.y - LINE * (len(words) - 1)
    texts = Markup("").join(
        Markup('<text class="{}" x="{:.0f}" y="{:.0f}" text-anchor="{}">{}</text>').format(
            style, line.x, top + LINE * number, line.anchor, text
        )
        for number, (text, style) in enumerate(words)
    )
    kind = "automatic" if any(move.trigger == "automatic" for move in moves) else moves[0].trigger
    return Markup('<g class="edge {}"><path d="{}" marker-end="url(#tip)"/>{}</g>').format(kind, line.path, texts)


def _from_anywhere(target: Box, transition: Transition) -> Markup:
    """Draw one arrow, from the right, for a move that starts in many states."""
    words = "any state" if ANY in transition.sources else f"{len(transition.sources)} states"
    start, end = target.right + len(transition.name) * SMALL + 30, target.right + 3
    return Markup(
        '<g class="edge {kind}"><text class="where" x="{wx:.0f}" y="{ty:.0f}">{words}</text>'
        '<path d="M{start:.0f} {y:.0f}H{end:.0f}" marker-end="url(#tip)"/>'
        '<text x="{tx:.0f}" y="{ly:.0f}" text-anchor="middle">{name}</text></g>'
    ).format(
        kind=transition.trigger, words=words, wx=start + 6, start=start, end=end, y=target.half, ty=target.half + 4,
        tx=(start + end) / 2 + 2, ly=target.half - 7, name=transition.name,
    )  # fmt: skip


def _draw_box(workflow: Workflow, box: Box, count: int, dead: int, link: str | None) -> Markup:
    tone = tone_of(workflow, box.state)
    lost = Markup('<tspan class="dead"> ◆{:,}</tspan>').format(dead) if dead else ""
    shape = Markup(
        '<rect class="{tone}" x="{x:.0f}" y="{y:.0f}" width="{w:.0f}" height="{h}" rx="6"/>'
        '<text class="state" x="{cx:.0f}" y="{ny:.0f}" text-anchor="middle">{state}</text>'
        '<text class="count" x="{cx:.0f}" y="{vy:.0f}" text-anchor="middle">{count}{lost}</text>'
    ).format(
        tone=tone, x=box.x, y=box.y, w=box.width, h=HEIGHT, cx=box.center, ny=box.y + 20, vy=box.y + 41,
        state=box.state, count=f"{count:,}", lost=lost,
    )  # fmt: skip
    if link is None:
        return Markup('<g class="box">{}</g>').format(shape)
    label = f"{box.state}: {count:,} items" + (f", {dead:,} of them dead letters" if dead else "")
    return Markup('<a class="box" href="{}" aria-label="{}">{}</a>').format(link, label, shape)
