"""Tables with a metric a row and a statistic a column, as aiperf and genai-perf print and export them.

Knows no tool's meanings: it turns console and CSV into the shape of those tools' JSON, a mapping of metric to
`{"unit", "avg", "p99", ...}`.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from crossover.grids import grids
from crossover.peers.console import number

_NAME = re.compile(r"^(.*?)\s*(?:\(([^()]*)\))?$")
_HEADS = frozenset({"metric", "statistic"})
Metrics = dict[str, dict[str, Any]]


def from_console(text: str, title: str) -> list[Metrics]:
    """Returns the metrics of each table whose title holds a word, such as `AIPerf`."""
    return [
        _metrics(grid.header[1:], grid.rows)
        for grid in grids(text)
        if title in grid.title and grid.header[0].lower() in _HEADS
    ]


def from_csv(text: str) -> Metrics | None:
    """Returns the metrics of a CSV export, which has parts with heads of their own; None for any other text."""
    found: Metrics = {}
    statistics: Sequence[str] = ()
    for row in csv.reader(io.StringIO(text.strip())):
        if not row or not row[0].strip():
            continue
        if row[0].lower() in _HEADS:
            statistics = ["avg" if name == "Value" else name for name in row[1:]]
        elif statistics:
            found.update(_metrics(statistics, [row]))
        else:
            return None
    return found or None


def csv_statistics(text: str) -> list[str]:
    """Returns the statistics that the head of a CSV export names; empty for any other text."""
    head = text.lstrip().partition("\n")[0].strip().split(",")
    return head[1:] if head[0].lower() in _HEADS else []


def _metrics(statistics: Sequence[str], rows: Iterable[Sequence[str]]) -> Metrics:
    found: Metrics = {}
    for row in rows:
        match = _NAME.match(row[0].strip())
        if match is None:
            continue
        name = re.sub(r"[^a-z0-9]+", "_", match.group(1).lower()).strip("_")
        values = {key: number(value) for key, value in zip(statistics, row[1:], strict=False)}
        found[name] = {
            "unit": match.group(2) or "",
            **{key: value for key, value in values.items() if value is not None},
        }
    return found


def value(metrics: Mapping[str, Any], name: str) -> Any:
    """Returns the mean of a metric, which is the figure itself where it has no distribution."""
    found = metrics.get(name)
    return found.get("avg") if isinstance(found, Mapping) else None
