"""Figures of a mapping of statistic to number, as many tools' JSON has it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from crossover.peers.reading import amount
from crossover.peers.report import Figure

_NAMES = {"mean": "mean", "avg": "mean", "median": "p50", "std": "std", "stddev": "std", "min": "min", "max": "max"}
_PERCENTILE = re.compile(r"p\d{1,2}(?:\.\d+)?")


def distribution(column: str, meaning: str, statistics: Mapping[str, Any], factor: float = 1.0) -> list[Figure]:
    """Returns a figure for each statistic; zero means that nothing was stamped, so that is missing.

    Args:
        column: name of the figure in the tool.
        meaning: its name in `crossover.peers.meanings`.
        statistics: `{"mean", "median", "p99", ...}`; other keys are left out.
        factor: base units per unit of the numbers.
    """
    found = []
    for key, raw in statistics.items():
        name = _NAMES.get(key) or (key if _PERCENTILE.fullmatch(key) else None)
        if name is not None:
            value = amount(raw)
            found.append(Figure(column, meaning, name, value * factor if value else None))
    return found
