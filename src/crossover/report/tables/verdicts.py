"""Who is ahead where, one row a workload, context and quantity."""

from __future__ import annotations

from crossover.report.analysis import Comparison
from crossover.report.context import Context
from crossover.report.formatting import interval, number, tokens
from crossover.report.labels import workload_label
from crossover.report.quantities import QUANTITIES
from crossover.report.tables.model import Column, Datum, Table


def build(context: Context) -> Table | None:
    """Returns the comparisons of every two variants, or nothing where only one was measured."""
    found = context.analysis.comparisons
    if not found:
        return None
    columns = (
        Column("comparison", "First / second"),
        Column("context_tokens", "Context", "tokens", numeric=True),
        Column("workload", "Workload"),
        Column("quantity", "Quantity"),
        Column("first", "First", numeric=True),
        Column("second", "Second", numeric=True),
        Column("ratio", "First / second", numeric=True, interval=True, meaning="95 % interval beneath"),
        Column("n", "Runs", numeric=True, meaning="repeats of each side that entered"),
        Column("verdict", "Verdict"),
    )
    rows = [_row(context, one) for one in found]
    lead = (
        "Geometric mean of the ratios of paired repeats, with its 95 % interval. An interval that holds 1 shows no "
        "difference; a single run each has no interval, and then nothing is decided."
    )
    return Table("verdicts", "Comparisons", lead, columns, rows, shown=60, folded=True)


def _row(context: Context, one: Comparison) -> list[Datum]:
    quantity = QUANTITIES[one.quantity]
    first, second = one.cells
    ratio = one.ratio
    return [
        Datum(f"{one.first} / {one.second}"),
        Datum(tokens(one.input_tokens), one.input_tokens),
        Datum(workload_label(one.workload)),
        Datum(quantity.heading),
        Datum(number(one.values[0]), one.values[0], href=context.href(first)),
        Datum(number(one.values[1]), one.values[1], href=context.href(second)),
        Datum(number(ratio.ratio), ratio.ratio, interval(ratio.low, ratio.high), low=ratio.low, high=ratio.high),
        Datum(str(ratio.n), ratio.n),
        Datum(one.verdict, tone="" if one.shown else "quiet"),
    ]
