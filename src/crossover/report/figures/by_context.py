"""End-to-end time, stable decode throughput and acceptance length against the context, a line a variant."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from crossover.report.analysis import Crossing, about
from crossover.report.context import Context
from crossover.report.figures.model import LABEL_LETTERS, MAX_PANELS, MAX_SERIES, Figure, Panel
from crossover.report.figures.style import BAND, INK, from_zero, look, looks
from crossover.report.formatting import cut, number, slug, tokens
from crossover.report.labels import cell_label, workload_label
from crossover.report.quantities import QUANTITIES, Quantity

if TYPE_CHECKING:
    from matplotlib.axes import Axes

CURVE_POINTS = 16

DRAWN = {
    "e2e_s": ("end-to-end", "End-to-end time against context"),
    "stable_decode_tok_s": ("stable-decode", "Stable decode throughput against context"),
    "acceptance_length": ("acceptance", "Acceptance length against context"),
}


def build(context: Context) -> list[Figure]:
    """Returns one figure a quantity that any cell has."""
    figures = []
    for key, (name, title) in DRAWN.items():
        quantity = QUANTITIES[key]
        frame, absent = _frame(context, quantity)
        if frame.empty:
            continue
        groups = list(frame.groupby("workload", sort=False))
        panels = [_panel(context, name, quantity, str(label), part) for label, part in groups[:MAX_PANELS]]
        lead = f"{quantity.meaning[0].upper()}{quantity.meaning[1:]}."
        if key != "acceptance_length":
            lead += (
                " Where the order of two variants flips, the crossover is marked, with its interval where repeats give"
                " one. Between measured contexts the curves are interpolated as the crossover is, in the logarithm."
            )
        figures.append(Figure(name, title, lead, frame, panels, max(0, len(groups) - MAX_PANELS), absent))
    return figures


def _frame(context: Context, quantity: Quantity) -> tuple[pd.DataFrame, list[str]]:
    rows = []
    absent = [f"{cell_label(cell)}: failed, {cell.reason}" for cell in context.sheet.failed]
    for cell in context.sheet.good:
        reading = cell.reading(quantity)
        if reading.withheld:
            absent.append(f"{cell_label(cell)}: withheld, {reading.withheld}")
        elif reading.value is not None and cell.input_tokens is not None:
            rows.append(
                {
                    "cell": cell.id,
                    "variant": cell.variant,
                    "workload": workload_label(cell.workload),
                    "context_tokens": cell.input_tokens,
                    "repeat": cell.repeat,
                    quantity.key: reading.value,
                    "low": reading.low,
                    "high": reading.high,
                    "run_key": cell.run_key,
                }
            )
    return pd.DataFrame(rows), absent


def _panel(context: Context, name: str, quantity: Quantity, label: str, part: pd.DataFrame) -> Panel:
    variants = context.sheet.order
    present = [variant for variant in variants if variant in set(part["variant"])][:MAX_SERIES]
    crossings = [
        one
        for one in context.analysis.crossings
        if one.quantity == quantity.key and workload_label(one.workload) == label and one.context is not None
    ]

    def draw(axes: Axes) -> None:
        _draw_lines(axes, quantity, part, present, variants)
        _mark(axes, crossings)

    told = "; ".join(_told(quantity, part[part["variant"] == variant], variant) for variant in present)
    marks = " ".join(one.sentence for one in crossings)
    return Panel(f"{name}-{slug(label)}", label, f"{quantity.heading} against context. {told}. {marks}".strip(), draw)


def _draw_lines(
    axes: Axes, quantity: Quantity, part: pd.DataFrame, present: Sequence[str], variants: Sequence[str]
) -> None:
    import seaborn as sns

    contexts = sorted(set(part["context_tokens"]))
    ticks = contexts if len(contexts) <= 6 else contexts[:: -(-len(contexts) // 6)]
    axes.set_xticks(ticks, [tokens(context) for context in ticks])
    looked = looks(variants, present) | {"markers": False}
    sns.lineplot(
        curves(part[part["variant"].isin(present)], quantity.key),
        x="context_tokens", y=quantity.key, ax=axes, errorbar=None, estimator=None, legend=False, **looked,
    )  # fmt: skip
    for variant in present:
        mine = part[part["variant"] == variant]
        style = look(variants.index(variant))
        axes.plot([], [], label=cut(variant, LABEL_LETTERS), **style)
        axes.plot(mine["context_tokens"], mine[quantity.key], **(style | {"linestyle": ""}))
        spread = mine.dropna(subset=["low", "high"])
        if not spread.empty:
            axes.vlines(spread["context_tokens"], spread["low"], spread["high"], color=style["color"], linewidth=1.2)
    axes.set_xlabel("context, tokens")
    axes.set_ylabel(quantity.heading)
    from_zero(axes)
    axes.margins(x=0.08)
    if len(present) > 1:
        axes.legend(loc="best", ncols=1 if len(present) < 4 else 2)


def curves(part: pd.DataFrame, key: str) -> pd.DataFrame:
    """Returns each variant's curve through its geometric means, linear in the logarithm between measured contexts.

    That is how the crossover is interpolated, so that two curves cross exactly where it is marked.
    """
    rows = []
    positive = part[part[key] > 0]
    logs = positive.assign(log=np.log(positive[key])).groupby(["variant", "context_tokens"], sort=True)["log"].mean()
    for variant in dict.fromkeys(logs.index.get_level_values("variant")):
        mine = logs[variant]
        contexts = mine.index.to_numpy(dtype=float)
        grid = np.unique(np.concatenate([np.linspace(a, b, CURVE_POINTS) for a, b in pairwise(contexts)] or [contexts]))
        values = np.exp(np.interp(grid, contexts, mine.to_numpy()))
        rows.append(pd.DataFrame({"variant": variant, "context_tokens": grid, key: values}))
    return pd.concat(rows, ignore_index=True) if rows else part


def _mark(axes: Axes, crossings: Sequence[Crossing]) -> None:
    for one in crossings[:3]:
        if one.context is None:
            continue
        low, high = one.estimate.low, one.estimate.high
        if low is not None and high is not None:
            axes.axvspan(low, high, color=BAND, alpha=0.18, linewidth=0)
        axes.axvline(one.context, color=BAND, linewidth=1.3, linestyle=(0, (2, 2)))
        label = f"crossover {about(one.context)}"
        axes.annotate(
            label,
            (one.context, 0.03),
            xycoords=("data", "axes fraction"),
            xytext=(4, 0),
            textcoords="offset points",
            fontsize=8.5,
            color=INK,
        )


def _told(quantity: Quantity, mine: pd.DataFrame, variant: str) -> str:
    means = mine.groupby("context_tokens")[quantity.key].mean()
    points = ", ".join(f"{number(float(value))} at {tokens(int(at))}" for at, value in means.items())  # type: ignore[call-overload]
    return f"{variant}: {points}"
