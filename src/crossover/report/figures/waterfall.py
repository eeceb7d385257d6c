"""The decode ratio of two cells, multiplied together from its factors."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from crossover.report.analysis import Factors
from crossover.report.context import Context
from crossover.report.figures.model import MAX_PANELS, Figure, Panel, room_for
from crossover.report.figures.style import INK, MUTED, SERIES
from crossover.report.formatting import number, slug

if TYPE_CHECKING:
    from matplotlib.axes import Axes

STEPS = (("running", "running requests"), ("acceptance", "acceptance length"), ("step", "step time"))


def build(context: Context) -> list[Figure]:
    """Returns the waterfall of each pair whose factors are known."""
    found = [one for one in context.analysis.factors if None not in (one.decode, one.acceptance, one.step, one.running)]
    if not found:
        return []
    frame = pd.DataFrame(
        [{"pair": one.label, "decode": one.decode, **{name: getattr(one, name) for name, _ in STEPS}} for one in found]
    )
    panels = [_panel(one) for one in found[:MAX_PANELS]]
    lead = (
        "Decode ratio = running x acceptance length / step time. Bars start where the one above ends; "
        "to the right a factor speaks for the first named, to the left against it. The axis is logarithmic."
    )
    return [
        Figure(
            "attribution",
            "Where the decode difference comes from",
            lead,
            frame,
            panels,
            max(0, len(found) - MAX_PANELS),
        )
    ]


def _panel(one: Factors) -> Panel:
    def draw(axes: Axes) -> None:
        import math

        at = 0.0
        rows = [*((label, getattr(one, name)) for name, label in STEPS), ("decode ratio", one.decode)]
        for position, (label, factor) in enumerate(rows):
            width = math.log2(factor)
            total = label == "decode ratio"
            start = 0.0 if total else at
            colour = MUTED if total else SERIES[0] if width >= 0 else SERIES[1]
            axes.barh(position, width, left=start, color=colour, height=0.6, alpha=0.85)
            edge = max(start, start + width)
            axes.annotate(
                f"x {number(factor)}",
                (edge, position),
                xytext=(4, 0),
                textcoords="offset points",
                va="center",
                fontsize=9,
                color=INK,
                weight="bold" if total else "normal",
            )
            at = start + width
        axes.axvline(0, color=INK, linewidth=0.9)
        axes.set_yticks(range(len(rows)), [label for label, _ in rows])
        axes.invert_yaxis()
        axes.grid(axis="y", visible=False)
        axes.margins(x=0.22)
        axes.xaxis.set_major_formatter(lambda value, _: f"{2**value:.3g}")
        axes.set_xlabel("ratio")

    factors = ", ".join(f"{label} x {number(getattr(one, name))}" for name, label in STEPS)
    told = f"Decode ratio {number(one.decode)}: {factors}. {one.sentence}"
    return Panel(
        f"attribution-{slug(one.label)}",
        one.label,
        told,
        draw,
        (4.6, 2.3),
        room_for([label for _, label in STEPS]),
    )
