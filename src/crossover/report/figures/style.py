"""Colours, markers and settings of all figures.

Each colour is drawn with one exact value for light paper; on the page it becomes a CSS variable of the same
meaning, so that the same drawing is legible in light and dark. Variants differ by marker and dash too,
never by colour alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes

INK, MUTED, GRID, STAMP, BAND, SURFACE = "#1f2328", "#59636e", "#d8dee4", "#b42318", "#b08800", "#fefefe"

SERIES = ("#0b6bcb", "#c2500a", "#23845a", "#8a4fc4", "#b3246b", "#6b6f12")
MARKERS = ("o", "s", "^", "D", "v", "P")
DASHES: tuple[tuple[float, ...] | str, ...] = ("", (5, 2), (1, 1.5), (6, 2, 1, 2))

# Value in the drawing -> CSS variable on the page.
VARIABLES = {
    INK: "--ink",
    MUTED: "--muted",
    GRID: "--grid",
    STAMP: "--stamp",
    BAND: "--band",
    SURFACE: "--surface",
    **{colour: f"--series-{index}" for index, colour in enumerate(SERIES)},
}

SETTINGS: Any = {
    "svg.fonttype": "none",
    # A name with dollar signs is a name.
    "text.parse_math": False,
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 9,
    "axes.edgecolor": MUTED,
    "axes.labelcolor": INK,
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
    """Returns colour, marker and dash of the variant with this position, as matplotlib takes them."""
    dash = _dash(index)
    return {
        "color": SERIES[index % len(SERIES)],
        "marker": _marker(index),
        "linestyle": (0, dash) if dash else "-",
    }


def looks(variants: Sequence[str], shown: Sequence[str]) -> dict[str, Any]:
    """Returns the same for the `shown` among all `variants`, as a seaborn line plot takes them."""
    index = {name: variants.index(name) if name in variants else 0 for name in shown}
    order = list(shown)
    return {
        "hue": "variant",
        "hue_order": order,
        "palette": {name: SERIES[at % len(SERIES)] for name, at in index.items()},
        "style": "variant",
        "style_order": order,
        "markers": {name: _marker(at) for name, at in index.items()},
        "dashes": {name: _dash(at) for name, at in index.items()},
    }


def from_zero(axes: Axes) -> None:
    """Lets the y axis begin at zero, with room for a whole marker at the top."""
    axes.set_ylim(0, 1.06 * max(axes.get_ylim()[1], axes.dataLim.y1))


def _marker(index: int) -> str:
    return MARKERS[(index // len(SERIES) + index) % len(MARKERS)]


def _dash(index: int) -> tuple[float, ...] | str:
    return DASHES[(index + index // len(SERIES)) % len(DASHES)]
