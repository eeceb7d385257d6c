"""What a figure is before it is drawn: panels with a description in words, and the data behind them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

# More panels than this would bury the reader; the others are in the CSV.
MAX_PANELS = 6
# And more lines than this in one panel cannot be told apart.
MAX_SERIES = 12


@dataclass(frozen=True)
class Panel:
    """One drawing: `description` says in words what it shows; `size_in` is width and height, and
    `left_in` and `bottom_in` what the labels of the axes take, all in inches."""

    name: str
    title: str
    description: str
    draw: Callable[[Axes], None]
    size_in: tuple[float, float] = (4.6, 3.1)
    left_in: float = 0.62
    bottom_in: float = 0.48


# Longer names are cut where they label a row or a line.
LABEL_LETTERS = 24


def room_for(labels: Sequence[str]) -> float:
    """Returns the inches that the longest of some tick labels takes, at nine points."""
    return 0.22 + 0.075 * min(LABEL_LETTERS, max((len(label) for label in labels), default=0))


@dataclass(frozen=True)
class Figure:
    """A figure of the page: panels side by side, one CSV; `notes` are footnotes on what is not drawn."""

    name: str
    title: str
    lead: str
    frame: pd.DataFrame
    panels: Sequence[Panel]
    left_out: int = 0
    notes: Sequence[str] = field(default_factory=tuple)
    legend: Sequence[str] = field(default_factory=tuple)
