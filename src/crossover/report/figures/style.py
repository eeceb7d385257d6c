"""Colours, markers and settings of all figures.

Each colour is drawn with one exact value for light paper; on the page it becomes a CSS variable of the same meaning, so
that the same drawing is legible in light and dark. Variants differ by marker and dash too, never by colour alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

INK, MUTED, GRID, STAMP, BAND, SURFACE = "#1f2328", "#59636e", "#d8dee4", "#b42318", "#b08800", "#fefefe"

SERIES = ("#0b6bcb", "#c2500a", "#23845a", "#8a4fc4", "#b3246b", "#6b6f12")
MARKERS = ("o", "s", "^", "D", "v", "P")
DASHES: tuple[Any, ...] = ("-", (0, (5, 2)), (0, (1, 1.5)), (0, (6, 2, 1, 2)))

# Value in the drawing -> CSS variable on the page.
VARIABLES = {
    INK: "--ink", MUTED: "--muted", GRID: "--grid", STAMP: "--stamp", BAND: "--band", SURFACE: "--surface",
    **{colour: f"--series-{index}" for index, colour in enumerate(SERIES)},
}  # fmt: skip

SETTINGS: Any = {
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 9,
    "axes.edgecolor": MUTED,
    "axes.labelcolor": INK,
    "axes.titlecolor": INK,
    "axes.titlesize": 9.5,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.titlepad": 8,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.facecolor": "none",
    "axes.formatter.useoffset": False,
    "axes.unicode_minus": True,
    "figure.facecolor": "none",
    "grid.color": GRID,
    "grid.linewidth": 0.7,
    "text.color": INK,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "lines.linewidth": 1.8,
    "lines.markersize": 5.5,
    "legend.frameon": False,
    "legend.fontsize": 8.5,
}


def look(index: int) -> dict[str, Any]:
    """Returns colour, marker and dash of the variant with this position."""
    return {
        "color": SERIES[index % len(SERIES)],
        "marker": MARKERS[(index // len(SERIES) + index) % len(MARKERS)],
        "linestyle": DASHES[(index + index // len(SERIES)) % len(DASHES)],
    }


def palette(variants: Sequence[str]) -> dict[str, str]:
    """Returns the colour of each variant."""
    return {name: SERIES[index % len(SERIES)] for index, name in enumerate(variants)}
