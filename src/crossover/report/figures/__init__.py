"""The figures: one module each, with `build(context) -> list[Figure]`, found by the registry `BUILDERS`.

They may import the sheet, the formatting and the analysis of `crossover.report`; drawing is by seaborn and
matplotlib, turned into SVG by `svg`.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable

from crossover.report.context import Context
from crossover.report.figures.model import Figure

# In the order of the page.
NAMES = ("by_context", "distributions", "waterfall", "prefill", "running", "cold_start")

BUILDERS: dict[str, Callable[[Context], list[Figure]]] = {
    name: importlib.import_module(f"{__name__}.{name}").build for name in NAMES
}
