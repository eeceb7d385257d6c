"""Cold start: what the time from launch to ready is spent on, a bar a deployment."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import pandas as pd

from crossover.report.context import Context
from crossover.report.figures.model import LABEL_LETTERS, MAX_SERIES, Figure, Panel, room_for
from crossover.report.figures.style import GRID, INK, SERIES
from crossover.report.formatting import cut, duration
from crossover.report.sheet import Document
from crossover.report.timeline import shares

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PHASES = ("weights", "rest of model", "compile", "kernel warm-up", "graph capture", "other until ready")
COLOURS = (*SERIES[:5], GRID)


def build(context: Context) -> list[Figure]:
    """Returns the figure where an engine log told its start-up."""
    rows = {}
    for variant in dict.fromkeys(cell.variant for cell in context.sheet.cells):
        startup = _startup(context, variant)
        total = _total(context, variant)
        if startup or total:
            rows[variant] = phases(startup, total)
    rows = dict(list(rows.items())[:MAX_SERIES])
    if not any(sum(parts.values()) for parts in rows.values()):
        return []
    frame = pd.DataFrame(
        [
            {"variant": name, "phase": phase, "seconds": value}
            for name, parts in rows.items()
            for phase, value in parts.items()
        ]
    )

    def draw(axes: Axes) -> None:
        names = list(rows)
        left = [0.0] * len(names)
        for phase, colour in zip(PHASES, COLOURS, strict=True):
            widths = [rows[name][phase] for name in names]
            axes.barh(range(len(names)), widths, left=left, color=colour, height=0.55, label=phase)
            left = [start + width for start, width in zip(left, widths, strict=True)]
        for position, end in enumerate(left):
            axes.annotate(
                duration(end),
                (end, position),
                xytext=(4, 0),
                textcoords="offset points",
                va="center",
                fontsize=9,
                color=INK,
            )
        axes.set_yticks(range(len(names)), [cut(name, LABEL_LETTERS) for name in names])
        axes.invert_yaxis()
        axes.grid(axis="y", visible=False)
        axes.set_xlabel("seconds since launch")
        axes.margins(x=0.14)
        axes.legend(loc="upper center", bbox_to_anchor=(0.45, -0.5 / (0.09 + 0.42 * len(names))), ncols=3)

    told = "; ".join(
        f"{name}: {', '.join(f'{phase} {duration(value)}' for phase, value in parts.items() if value)}"
        for name, parts in rows.items()
    )
    size = (7.2, 1.45 + 0.42 * len(rows))
    room = room_for(list(rows))
    panel = Panel("cold-start", "Launch to ready", f"Cold start by phase. {told}.", draw, size, room, 1.0)
    lead = "From the engine's own log; what it does not account for stands as other until ready."
    return [Figure("cold-start", "Cold start", lead, frame, [panel])]


def phases(startup: Document, total_s: float | None) -> dict[str, float]:
    """Returns seconds by phase; weights are part of the model load, and the last phase is the rest."""
    value = {name: float(startup[name]) for name in startup if isinstance(startup[name], int | float)}
    weights = value.get("weights_load_s", 0.0)
    parts = {
        "weights": weights,
        "rest of model": max(0.0, value.get("model_load_s", weights) - weights),
        "compile": value.get("compile_s", 0.0),
        "kernel warm-up": value.get("kernel_warmup_s", 0.0),
        "graph capture": value.get("graph_capture_s", 0.0),
    }
    known = sum(parts.values())
    return {**parts, "other until ready": max(0.0, (total_s or known) - known)}


def _startup(context: Context, variant: str) -> Document:
    for cell in context.sheet.cells:
        if cell.variant == variant:
            for told in (cell.engine_report.get("startup"), cell.engine_facts.get("startup")):
                if isinstance(told, Mapping) and told:
                    return told
    return {}


def _total(context: Context, variant: str) -> float | None:
    for deployment in context.sheet.deployments:
        if deployment.variant == variant and (split := shares(deployment)):
            return split.startup_s
    return None
