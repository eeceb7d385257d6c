"""Two waterfalls: the decode ratio multiplied together from its factors, the latency added up from its phases."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import pandas as pd

from crossover.report.analysis import Factors
from crossover.report.context import Context
from crossover.report.figures.model import LABEL_LETTERS, MAX_PANELS, Figure, Panel, room_for
from crossover.report.figures.style import INK, MUTED, SERIES
from crossover.report.formatting import cut, number, slug, tokens
from crossover.report.tables.attribution import FACTORS, signed

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Bar = tuple[str, float, float, str, bool]


def build(context: Context) -> list[Figure]:
    """Returns the waterfalls of each pair whose factors or phases are known."""
    return [*_decode(context), *_latency(context)]


def _decode(context: Context) -> list[Figure]:
    found = [one for one in context.analysis.factors if one.decode and len(one.factors) == len(FACTORS)]
    if not found:
        return []
    rows = [
        {"pair": one.label, "factor": name, "ratio": part[0], "low": part[1], "high": part[2]}
        for one in found
        for name, part in [*one.factors.items(), ("decode ratio", one.decode)]
        if part
    ]
    lead = (
        "Decode ratio = running x acceptance length / step time. Each bar starts where the one above ends: to the "
        "right it speaks for the first named, to the left against it. The axis is logarithmic."
    )
    panels = [_decode_panel(one) for one in found[:MAX_PANELS]]
    left = max(0, len(found) - MAX_PANELS)
    return [Figure("attribution", "Where the decode difference comes from", lead, pd.DataFrame(rows), panels, left)]


def _decode_panel(one: Factors) -> Panel:
    bars: list[Bar] = []
    at = 0.0
    for name in FACTORS:
        width = math.log2(one.factors[name][0])
        bars.append((name, at, width, f"× {number(one.factors[name][0])}", False))
        at += width
    total = one.decode[0] if one.decode else 1.0
    bars.append(("decode ratio", 0.0, math.log2(total), f"× {number(total)}", True))

    def draw(axes: Axes) -> None:
        _draw(axes, bars, (SERIES[0], SERIES[1]))
        axes.axvline(0, color=INK, linewidth=0.9)
        edges = [edge for _, start, width, _, _ in bars for edge in (start, start + width)]
        ticks = ratio_ticks(min(edges), max(edges))
        axes.set_xticks([math.log2(tick) for tick in ticks], [f"{tick:g}" for tick in ticks])
        axes.set_xlabel("ratio, first over second")

    told = ", ".join(f"{name} {text}" for name, _, _, text, _ in bars)
    return _panel(f"attribution-{slug(one.label)}", one.label, f"{told}. {one.sentence}", bars, draw)


def _latency(context: Context) -> list[Figure]:
    found = [one for one in context.analysis.factors if one.steps and one.start_s is not None and one.end_s is not None]
    if not found:
        return []
    rows = [
        {"pair": one.label, "step": name, "seconds": seconds}
        for one in found
        for name, seconds in [("from", one.start_s), *one.steps, ("to", one.end_s)]
    ]
    lead = "From the mean end-to-end time of the first cell to that of the second: what each phase adds or takes away."
    panels = [_latency_panel(one) for one in found[:MAX_PANELS]]
    title, left = "Where the end-to-end difference comes from", max(0, len(found) - MAX_PANELS)
    return [Figure("latency", title, lead, pd.DataFrame(rows), panels, left)]


def _latency_panel(one: Factors) -> Panel:
    start, end = one.start_s or 0.0, one.end_s or 0.0
    ends = (one.first, one.second)
    names = [tokens(cell.input_tokens) if one.kind == "contexts" else cell.variant for cell in ends]
    bars: list[Bar] = [(names[0], 0.0, start, f"{number(start)} s", True)]
    at = start
    for name, seconds in one.steps:
        bars.append((name, at, seconds, f"{signed(seconds)} s", False))
        at += seconds
    bars.append((names[-1], 0.0, end, f"{number(end)} s", True))

    def draw(axes: Axes) -> None:
        _draw(axes, bars, (SERIES[1], SERIES[2]))
        axes.set_xlim(left=0)
        axes.set_xlabel("mean end-to-end time, s")

    told = ", ".join(f"{name} {text}" for name, _, _, text, _ in bars)
    return _panel(f"latency-{slug(one.label)}", one.label, f"Mean end-to-end time: {told}.", bars, draw)


def _panel(name: str, title: str, told: str, bars: list[Bar], draw: object) -> Panel:
    labels = [label for label, *_ in bars]
    return Panel(name, title, told, draw, (4.6, 1.0 + 0.32 * len(bars)), room_for(labels))  # type: ignore[arg-type]


def _draw(axes: Axes, bars: list[Bar], colours: tuple[str, str]) -> None:
    for position, (_, start, width, text, total) in enumerate(bars):
        colour = MUTED if total else colours[0] if width >= 0 else colours[1]
        axes.barh(position, width, left=start, color=colour, height=0.6, alpha=0.85)
        axes.annotate(
            text, (max(start, start + width), position), xytext=(4, 0), textcoords="offset points",
            va="center", fontsize=8.5, color=INK, weight="bold" if total else "normal",
        )  # fmt: skip
    axes.set_yticks(range(len(bars)), [cut(label, LABEL_LETTERS) for label, *_ in bars])
    axes.invert_yaxis()
    axes.grid(axis="y", visible=False)
    edges = [edge for _, start, width, _, _ in bars for edge in (start, start + width)]
    span = (max(edges) - min(edges)) or 1.0
    # Room for the figure that stands behind each bar.
    axes.set_xlim(min(edges) - 0.04 * span, max(edges) + 0.24 * span)


def ratio_ticks(low: float, high: float) -> list[float]:
    """Returns about five round ratios between two binary logarithms, 1 among them."""
    round_ones = (
        0.05,
        0.1,
        0.2,
        0.33,
        0.5,
        0.6,
        0.7,
        0.8,
        0.9,
        1,
        1.1,
        1.2,
        1.3,
        1.4,
        1.5,
        1.7,
        2,
        2.5,
        3,
        4,
        5,
        7,
        10,
        20,
    )
    inside = [tick for tick in round_ones if low - 0.02 <= math.log2(tick) <= high + 0.02]
    chosen: list[float] = []
    for tick in sorted(inside, key=lambda tick: (tick != 1, tick not in (0.5, 2, 4), tick)):
        if all(abs(math.log2(tick / other)) >= 0.16 * max(high - low, 0.2) for other in chosen):
            chosen.append(tick)
    return sorted(chosen) or [1.0]
