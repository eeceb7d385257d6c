"""Running requests over time, a step line a variant."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import pandas as pd

from crossover.report.context import Context
from crossover.report.figures.model import LABEL_LETTERS, MAX_PANELS, MAX_SERIES, Figure, Panel
from crossover.report.figures.style import from_zero, look
from crossover.report.formatting import cut, number, slug, tokens
from crossover.report.labels import workload_label
from crossover.report.sheet import Cell

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MAX_POINTS = 240


def build(context: Context) -> list[Figure]:
    """Returns the figure where any cell has a series of running requests."""
    groups: dict[str, list[tuple[Cell, list[float], list[float]]]] = {}
    for cell in context.sheet.good:
        series = cell.metrics.get("series")
        times, running = (series.get("t_s"), series.get("running")) if isinstance(series, Mapping) else (None, None)
        if cell.repeat or not isinstance(times, list) or not isinstance(running, list) or not times:
            continue
        step = max(1, len(times) // MAX_POINTS)
        label = f"{workload_label(cell.workload)}, {tokens(cell.input_tokens)}"
        groups.setdefault(label, []).append((cell, times[::step], running[::step]))
    if not groups:
        return []
    frame = pd.DataFrame(
        [
            {"cell": cell.id, "variant": cell.variant, "t_s": t, "running": count}
            for lines in groups.values()
            for cell, times, running in lines
            for t, count in zip(times, running, strict=False)
        ]
    )
    panels = [_panel(context, label, lines) for label, lines in list(groups.items())[:MAX_PANELS]]
    lead = "Mean requests in flight, from send to last output, as the client saw them; zero is the first send."
    return [Figure("running", "Running requests over time", lead, frame, panels, max(0, len(groups) - MAX_PANELS))]


def _panel(context: Context, label: str, lines: list[tuple[Cell, list[float], list[float]]]) -> Panel:
    variants = context.sheet.order

    def draw(axes: Axes) -> None:
        for cell, times, running in lines[:MAX_SERIES]:
            style = look(variants.index(cell.variant) if cell.variant in variants else 0)
            axes.step(
                times,
                running,
                where="post",
                label=cut(cell.variant, LABEL_LETTERS),
                color=style["color"],
                linestyle=style["linestyle"],
            )
        axes.set_xlabel("time since first send, s")
        axes.set_ylabel("running requests")
        from_zero(axes)
        axes.set_xlim(left=0)
        axes.legend(loc="lower center")

    told = "; ".join(
        f"{cell.variant}: at most {number(_most(running))}, ends after {number(times[-1])} s"
        for cell, times, running in lines
    )
    return Panel(f"running-{slug(label)}", label, f"Running requests over time. {told}.", draw, (4.6, 2.6))


def _most(running: list[float]) -> float | None:
    return max((count for count in running if count is not None), default=None)
