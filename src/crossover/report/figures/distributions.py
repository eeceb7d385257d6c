"""How TTFT and TPOT are distributed over the requests of each cell."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from crossover.report.context import Context
from crossover.report.figures.model import LABEL_LETTERS, MAX_PANELS, Figure, Panel, room_for
from crossover.report.figures.style import SURFACE, look
from crossover.report.formatting import cut, number, slug, tokens
from crossover.report.labels import workload_label
from crossover.report.quantities import QUANTITIES, Quantity
from crossover.report.sheet import Cell

if TYPE_CHECKING:
    from matplotlib.axes import Axes

DRAWN = {"ttft_s": "ttft", "tpot_s": "tpot"}
MAX_ROWS = 12
STATISTICS = ("min", "p50", "p90", "max", "mean")


def build(context: Context) -> list[Figure]:
    """Returns the two figures, each where any cell has the metric."""
    figures = []
    for key, name in DRAWN.items():
        quantity = QUANTITIES[key]
        frame = pd.DataFrame([row for cell in context.sheet.good if (row := _row(cell, quantity))])
        if frame.empty:
            continue
        groups = list(frame.groupby("workload", sort=False))
        panels = [_panel(context, name, quantity, str(label), part) for label, part in groups[:MAX_PANELS]]
        lead = "The band reaches from the quickest request to the slowest; bar: median, mark: mean."
        title = f"{quantity.label} over the requests of each cell"
        figures.append(Figure(name, title, lead, frame, panels, max(0, len(groups) - MAX_PANELS)))
    return figures


def _row(cell: Cell, quantity: Quantity) -> dict[str, object]:
    values = {statistic: cell.reading(quantity, statistic).value for statistic in STATISTICS}
    if values["mean"] is None:
        return {}
    return {
        "cell": cell.id,
        "variant": cell.variant,
        "workload": workload_label(cell.workload),
        "context_tokens": cell.input_tokens,
        "repeat": cell.repeat,
        **values,
        "run_key": cell.run_key,
    }


def _panel(context: Context, name: str, quantity: Quantity, label: str, part: pd.DataFrame) -> Panel:
    variants = context.sheet.order
    rows = part.sort_values(["context_tokens", "repeat"], kind="stable").to_dict("records")[:MAX_ROWS]

    labels = [
        f"{cut(str(row['variant']), LABEL_LETTERS - 6)} {tokens(row['context_tokens'])}" for row in reversed(rows)
    ]

    def draw(axes: Axes) -> None:
        for position, row in enumerate(reversed(rows)):
            variant = str(row["variant"])
            style = look(variants.index(variant) if variant in variants else 0)
            if pd.notna(row["min"]) and pd.notna(row["max"]):
                axes.hlines(position, row["min"], row["max"], color=style["color"], linewidth=5, alpha=0.35)
            if pd.notna(row["p50"]):
                axes.vlines(row["p50"], position - 0.28, position + 0.28, color=style["color"], linewidth=2)
            axes.plot(
                row["mean"],
                position,
                marker=style["marker"],
                color=style["color"],
                markeredgecolor=SURFACE,
                linestyle="",
            )
        axes.set_yticks(range(len(labels)), labels)
        axes.set_ylim(-0.6, len(labels) - 0.4)
        axes.set_xlim(left=0)
        axes.set_xlabel(quantity.heading)
        axes.grid(axis="y", visible=False)

    told = "; ".join(
        f"{row['variant']} at {tokens(row['context_tokens'])}: mean {number(row['mean'])}, "
        f"{number(row['min'])} to {number(row['max'])}"
        for row in rows
    )
    size = (4.6, 0.95 + 0.3 * len(rows))
    return Panel(f"{name}-{slug(label)}", label, f"{quantity.heading}. {told}.", draw, size, room_for(labels))
