"""The tables: one module each, with `build(context) -> Table | None`, found by the registry `BUILDERS`.

They may import the sheet, the formatting and the analysis of `crossover.report`; none knows HTML, Markdown
or CSV.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable

from crossover.report.context import Context
from crossover.report.tables.model import Table

# In the order of the page. The key is the module, and the name of the table's CSV file.
NAMES = (
    "verdicts",
    "cells",
    "statistics",
    "published",
    "clients",
    "audits",
    "findings",
    "configuration",
    "confounds",
    "attribution",
    "latency",
    "contamination",
    "retest",
    "gpu_time",
    "predicted",
    "machine",
    "incidents",
    "diagnoses",
    "failed",
    "variants",
    "provenance",
)

BUILDERS: dict[str, Callable[[Context], Table | None]] = {
    name: importlib.import_module(f"{__name__}.{name}").build for name in NAMES
}
