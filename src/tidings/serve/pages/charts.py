"""Small charts as inline SVG, drawn on the server; every one has its numbers as a table for screen readers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from tidings.model.views import Point

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
_WIDTH, _HEIGHT = 120, 28
_TICKS = 5


@dataclass(frozen=True, slots=True)
class Bar:
    """One bar of a stacked chart: a label, and how much of each part."""

    label: str
    parts: Mapping[str, int]

    @property
    def total(self) -> int:
        """How high it is."""
        return sum(self.parts.values())


def slices(points: Sequence[Point], since_ms: int, until_ms: int, buckets: int) -> list[float]:
    """Sum the values that fall into each slice of a span of time."""
    values = [0.0] * buckets
    span = max(1, until_ms - since_ms)
    for point in points:
        if since_ms <= point.at <= until_ms:
            values[min(buckets - 1, (point.at - since_ms) * buckets // span)] += point.value
    return values


def levels(points: Sequence[Point], since_ms: int, until_ms: int, buckets: int) -> list[float]:
    """Return the highest value of each slice; a level stays until it is measured again."""
    found: list[float | None] = [None] * buckets
    span = max(1, until_ms - since_ms)
    for point in points:
        if since_ms <= point.at <= until_ms:
            place = min(buckets - 1, (point.at - since_ms) * buckets // span)
            found[place] = max(point.value, found[place] or 0.0)
    filled: list[float] = []
    for value in found:
        filled.append(value if value is not None else (filled[-1] if filled else 0.0))
    return filled


def sparkline(values: Sequence[float], what: str) -> Markup:
    """Draw how a series went, as bars small enough to stand in a row."""
    peak = max(values, default=0)
    label = f"{what}: {values[-1]:,.0f} lately, {peak:,.0f} at most" if peak else f"{what}: nothing yet"
    step = _WIDTH / max(1, len(values))
    bars = Markup("").join(
        Markup('<rect x="{:.2f}" y="{:.2f}" width="{:.2f}" height="{:.2f}"/>').format(
            index * step, _HEIGHT - 1 - size, step * 0.72, size
        )
        for index, value in enumerate(values)
        if (size := max(1.5, value / peak * (_HEIGHT - 1)) if value > 0 else 0)
    )
    return Markup(
        '<svg class="spark" viewBox="0 0 {w} {h}" preserveAspectRatio="none" role="img" aria-label="{label}">'
        '<title>{label}</title><path class="base" d="M0 {base}H{w}"/>{bars}</svg>'
    ).format(w=_WIDTH, h=_HEIGHT, label=label, base=_HEIGHT - 0.5, bars=bars)


def line_chart(values: Sequence[float], labels: Sequence[str], what: str, tone: str = "accent") -> Markup:
    """Draw one series over time, with its peak named."""
    peak = max(values, default=0)
    if not peak:
        return Markup('<p class="quiet">Nothing in this time.</p>')
    line, area = _curve(values, peak)
    plot = Markup('<path class="area {}" d="{}"/><path class="line {}" d="{}"/>').format(tone, area, tone, line)
    return _figure(plot, "0 0 600 100", f"{peak:,.0f}", labels, what, {what: values})


def step_chart(
    series: Sequence[tuple[int, int]], labels: Sequence[str], ticks: Sequence[str], what: str, *, is_rank: bool = False
) -> Markup:
    """Draw numbers noted when they changed, each standing until the next; a rank's first place is at the top."""
    values = [value for _, value in series]
    peak, low = (min(values), max(values)) if is_rank else (max(values), min(values))
    span, first = max(1, series[-1][0] - series[0][0]), series[0][0]
    places = [((at - first) / span * 600, 8 + (peak - value) / ((peak - low) or 1) * 88) for at, value in series]
    line = f"M0 {places[0][1]:.1f}" + "".join(f"H{x:.1f}V{y:.1f}" for x, y in places[1:])
    plot = Markup('<path class="line accent" d="{}"/>').format(line)
    return _figure(plot, "0 0 600 100", f"{peak:,}", labels, what, {what: values}, ticks)


def stacked_bars(bars: Sequence[Bar], parts: Sequence[str], what: str) -> Markup:
    """Draw bars of parts on top of each other; a part's name is its class, so that color keeps its meaning."""
    peak = max((bar.total for bar in bars), default=0)
    if not peak:
        return Markup("")
    drawn = Markup("").join(_stack(index, bar, parts, peak) for index, bar in enumerate(bars))
    columns = {part: [bar.parts.get(part, 0) for bar in bars] for part in parts}
    return _figure(drawn, f"0 0 {len(bars) * 10} 100", f"{peak:,.0f}", [bar.label for bar in bars], what, columns)


def day_bars(values: Sequence[float], labels: Sequence[str], what: str) -> Markup:
    """Draw one bar for each day, with a table behind them."""
    return stacked_bars(
        [Bar(label, {"new": round(value)}) for label, value in zip(labels, values, strict=True)], ("new",), what
    )


def _stack(index: int, bar: Bar, parts: Sequence[str], peak: int) -> Markup:
    label = ", ".join(f"{bar.parts[part]} {part}" for part in parts if bar.parts.get(part))
    shapes = [Markup("<title>{}: {}</title>").format(bar.label, label or "nothing")]
    top = 100.0
    for part in parts:
        size = bar.parts.get(part, 0) / peak * 92
        top -= size
        if size:
            rect = Markup('<rect class="part {}" x="{}" y="{:.2f}" width="7.6" height="{:.2f}"/>')
            shapes.append(rect.format(part, index * 10 + 1.2, top, size))
    return Markup("<g>{}</g>").format(Markup("").join(shapes))


def _curve(values: Sequence[float], peak: float) -> tuple[str, str]:
    step = 600 / max(1, len(values) - 1)
    line = "M" + "L".join(f"{index * step:.1f} {100 - value / peak * 92:.1f}" for index, value in enumerate(values))
    return line, f"{line}V100H0Z"


def _figure(
    plot: Markup,
    box: str,
    peak: str,
    labels: Sequence[str],
    what: str,
    columns: Mapping[str, Sequence[float]],
    ticks: Sequence[str] | None = None,
) -> Markup:
    named = Markup("").join(Markup("<span>{}</span>").format(label) for label in ticks or _spread(labels))
    return Markup(
        '<figure class="chart"><span class="peak">{peak}</span>'
        '<svg viewBox="{box}" preserveAspectRatio="none" role="img" aria-label="{what}">{plot}</svg>'
        '<div class="ticks" aria-hidden="true">{ticks}</div>{table}</figure>'
    ).format(peak=peak, box=box, what=what, plot=plot, ticks=named, table=_table(what, labels, columns))


def _spread(labels: Sequence[str]) -> list[str]:
    """Choose labels at even distances, with the first and the last; narrow screens show every other of the five."""
    last = len(labels) - 1
    places = dict.fromkeys(round(last * tick / (_TICKS - 1)) for tick in range(_TICKS))
    return [labels[place] for place in places]


def _table(what: str, labels: Sequence[str], columns: Mapping[str, Sequence[float]]) -> Markup:
    heads = Markup("").join(Markup('<th scope="col">{}</th>').format(name) for name in columns)
    rows = Markup("").join(
        Markup('<tr><th scope="row">{}</th>{}</tr>').format(
            label, Markup("").join(Markup("<td>{:,.0f}</td>").format(values[index]) for values in columns.values())
        )
        for index, label in enumerate(labels)
    )
    return Markup(
        '<div class="unseen"><table><caption>{}</caption><thead><tr><th scope="col">When</th>{}</tr></thead>'
        "<tbody>{}</tbody></table></div>"
    ).format(what, heads, rows)
