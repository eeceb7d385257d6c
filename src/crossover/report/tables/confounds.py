"""The confound ledger: in what the effective configurations of two variants differ."""

from __future__ import annotations

from crossover.report.context import Context
from crossover.report.tables.model import Column, Datum, Table


def build(context: Context) -> Table | None:
    """Returns the differing items of every two variants that were compared."""
    rows = [
        [
            Datum(str(item.get("item"))),
            Datum(f"{ledger.second} / {ledger.first}"),
            Datum(_text(item.get("first"))),
            Datum(_text(item.get("second"))),
            Datum(_text(item.get("role")), tone="warn" if item.get("confounds") else ""),
            Datum(_text(item.get("impact") or "not isolated"), tone="" if item.get("impact") else "quiet"),
        ]
        for ledger in context.analysis.confounds
        for item in ledger.items
    ]
    if not rows:
        return None
    columns = (
        Column("item", "Item"),
        Column("comparison", "Comparison"),
        Column("first", "First"),
        Column("second", "Second"),
        Column("role", "Role"),
        Column("impact", "Measured effect"),
    )
    lead = (
        "Every difference between the effective configurations, as the engines reported them. "
        "The effect is that of the retest item that isolates the difference; without one the comparison "
        "stays confounded."
    )
    return Table("confounds", "Confound ledger", lead, columns, rows, shown=80)


def _text(value: object) -> str:
    return "not reported" if value is None else "yes" if value is True else "no" if value is False else str(value)
