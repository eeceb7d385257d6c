"""Metrics with and without the requests that overlapped something foreign to the measurement."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

from crossover.report.context import Context
from crossover.report.formatting import number
from crossover.report.labels import cell_label
from crossover.report.quantities import QUANTITIES
from crossover.report.tables.model import Column, Datum, Table


def build(context: Context) -> Table | None:
    """Returns one row a contaminated cell and metric, or nothing where no request was tagged."""
    rows = []
    for cell in [*context.sheet.good, *(one for one in context.sheet.retest_cells if one.ok)]:
        told = cell.metrics.get("contamination")
        requests = told.get("requests") if isinstance(told, Mapping) else None
        if not isinstance(told, Mapping) or not isinstance(requests, list) or not requests:
            continue
        kinds = Counter(str(kind) for request in requests for kind in request.get("kinds") or ())
        tags = ", ".join(f"{kind.replace('_', ' ')} ({count})" for kind, count in sorted(kinds.items()))
        clean = replace(cell, metrics={**cell.metrics, "metrics": told.get("metrics_without") or {}})
        for quantity in QUANTITIES.values():
            if quantity.source[0] != "metrics":
                continue
            everything, without = cell.reading(quantity), clean.reading(quantity)
            if everything.value is None or without.value is None:
                continue
            ratio = without.value / everything.value if everything.value else None
            rows.append(
                [
                    Datum(cell_label(cell), cell.id, href=context.href(cell)),
                    Datum(tags),
                    Datum(str(len(requests)), len(requests)),
                    Datum(quantity.heading),
                    Datum(number(everything.value), everything.value),
                    Datum(number(without.value), without.value),
                    Datum(number(ratio), ratio),
                ]
            )
    if not rows:
        return None
    columns = (
        Column("cell", "Cell"),
        Column("kinds", "Overlapped"),
        Column("requests_tagged", "Requests", numeric=True),
        Column("metric", "Metric"),
        Column("with_all", "With all requests", numeric=True),
        Column("without_tagged", "Without the tagged", numeric=True),
        Column("ratio", "Without / with", numeric=True),
    )
    lead = "Requests that overlapped compilation, retries, preemption or a foreign request; tagged, not dropped."
    return Table("contamination", "Contamination", lead, columns, rows, shown=80)
