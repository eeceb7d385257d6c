"""Decode ratios taken apart into running requests, acceptance length and step time."""

from __future__ import annotations

from crossover.report.analysis import Factors
from crossover.report.context import Context
from crossover.report.formatting import interval, number
from crossover.report.tables.model import Column, Datum, Table

FACTORS = ("decode", "running", "acceptance", "step")


def build(context: Context) -> Table | None:
    """Returns one row a pair of cells, or nothing where no engine log gave the factors."""
    found = context.analysis.factors
    if not found:
        return None
    columns = (
        Column("pair", "Pair"),
        Column("decode_ratio", "Decode ratio", numeric=True, interval=True),
        Column("running_factor", "of which running", numeric=True, interval=True),
        Column("acceptance_factor", "of which acceptance", numeric=True, interval=True),
        Column(
            "step_factor",
            "of which step time",
            numeric=True,
            interval=True,
            meaning="above 1: the step is quicker",
        ),
        Column("reading", "Largest factor"),
    )
    rows = [
        [
            Datum(one.label, href=context.href(one.cells[1])),
            *(_factor(one, name) for name in FACTORS),
            Datum(one.sentence),
        ]
        for one in found
    ]
    lead = "Aggregate decode throughput = running requests x acceptance length / step time."
    return Table("attribution", "Where the decode difference comes from", lead, columns, rows, shown=60)


def _factor(one: Factors, name: str) -> Datum:
    value: float | None = getattr(one, name)
    low, high = one.intervals.get(name) or (None, None)
    return Datum(number(value), value, interval(low, high), low=low, high=high)
