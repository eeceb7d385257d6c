"""Who is faster where, one row a workload and context."""

from __future__ import annotations

from crossover.report.analysis import Comparison
from crossover.report.context import Context, workload_label
from crossover.report.formatting import interval, number, tokens
from crossover.report.quantities import QUANTITIES
from crossover.report.tables.model import Column, Datum, Table

SHOWN = ("e2e_s", "stable_decode_tok_s", "ttft_s", "tpot_s")


def build(context: Context) -> Table | None:
    """Returns the comparisons of every two variants, or nothing where only one was measured."""
    found = [one for one in context.analysis.comparisons if one.ratio is not None]
    if not found:
        return None
    columns = (
        Column("comparison", "Comparison"),
        Column("context_tokens", "Context", "tokens", numeric=True),
        Column("workload", "Workload"),
        Column("quantity", "Quantity"),
        Column("first", "First", numeric=True),
        Column("second", "Second", numeric=True),
        Column("ratio", "Second / first", numeric=True, interval=True, meaning="95 % interval beneath"),
        Column("pairs", "Pairs", numeric=True, meaning="repeats that could be paired"),
        Column("verdict", "Verdict"),
    )
    rows = [_row(context, one) for one in found if one.quantity in SHOWN]
    lead = "Ratios of the second variant to the first, with 95 % intervals where repeats allow one."
    return Table("verdicts", "Comparisons", lead, columns, rows, shown=60)


def _row(context: Context, one: Comparison) -> list[Datum]:
    quantity = QUANTITIES[one.quantity]
    first, second = one.cells
    return [
        Datum(f"{one.second} / {one.first}"),
        Datum(tokens(one.input_tokens), one.input_tokens),
        Datum(workload_label(one.workload)),
        Datum(quantity.heading),
        Datum(number(one.first_value), one.first_value, href=context.href(first)),
        Datum(number(one.second_value), one.second_value, href=context.href(second)),
        Datum(number(one.ratio), one.ratio, interval(one.low, one.high), low=one.low, high=one.high),
        Datum(str(one.pairs), one.pairs),
        Datum(one.why or (f"{one.faster} better" if one.faster else "no difference shown")),
    ]
