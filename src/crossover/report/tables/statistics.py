"""Every statistic of every metric, one row a cell and metric."""

from __future__ import annotations

from crossover.report.context import Context
from crossover.report.formatting import interval, number
from crossover.report.labels import cell_label
from crossover.report.quantities import QUANTITIES, Quantity
from crossover.report.sheet import Cell
from crossover.report.tables.model import Column, Datum, Table

STATISTICS = ("mean", "min", "p50", "p90", "p99", "max")
# Beyond this the page would be a data dump: the CSV has them all.
SHOWN = 120


def build(context: Context) -> Table | None:
    """Returns the distributions of all cells with figures."""
    wanted = [quantity for quantity in QUANTITIES.values() if quantity.source[0] == "metrics" and quantity.scale]
    columns = (
        Column("cell", "Cell"),
        Column("metric", "Metric"),
        Column("n", "n", numeric=True),
        *(Column(name, name.capitalize(), numeric=True, interval=True) for name in STATISTICS),
    )
    rows = [
        _row(context, cell, quantity)
        for cell in [*context.sheet.good, *[c for c in context.sheet.retest_cells if c.ok]]
        for quantity in wanted
        if quantity.statistic == "mean" and cell.reading(quantity) != cell.reading(quantity, "nothing")
    ]
    if not rows:
        return None
    lead = (
        "Percentiles by linear interpolation with order-statistic 95 % intervals. "
        "A percentile that the sample is too small to bound is withheld."
    )
    return Table("statistics", "All statistics", lead, columns, rows, shown=SHOWN, folded=True)


def _row(context: Context, cell: Cell, quantity: Quantity) -> list[Datum]:
    mean = cell.reading(quantity)
    return [
        Datum(cell_label(cell), cell.id, href=context.href(cell)),
        Datum(quantity.heading),
        Datum(number(None) if mean.n is None else f"{mean.n:,}", mean.n),
        *(_datum(context, cell, quantity, name) for name in STATISTICS),
    ]


def _datum(context: Context, cell: Cell, quantity: Quantity, statistic: str) -> Datum:
    reading = cell.reading(quantity, statistic)
    if reading.withheld:
        return Datum("withheld", note=context.notes.number(reading.withheld), tone="warn")
    if reading.value is None:
        return Datum(number(None), tone="quiet")
    return Datum(
        number(reading.value),
        reading.value,
        interval(reading.low, reading.high),
        low=reading.low,
        high=reading.high,
    )
