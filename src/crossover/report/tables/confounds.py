"""The confound ledger: in what the effective configurations of two variants differ."""

from __future__ import annotations

from crossover.report.context import Context
from crossover.report.tables.model import Column, Datum, Table

STATUS = {"differs": "differs", "unknown": "stated by one side only"}


def build(context: Context) -> Table | None:
    """Returns the differing items of every two variants that were compared."""
    rows = [
        [
            Datum(str(item.get("item")).replace("_", " "), str(item.get("item"))),
            Datum(f"{ledger.first} / {ledger.second}"),
            Datum(_text(item.get("first"))),
            Datum(_text(item.get("second"))),
            _status(str(item.get("status")), bool(item.get("under_test"))),
            Datum(str(item.get("impact")), tone="quiet" if item.get("impact") == "not isolated" else ""),
        ]
        for ledger in context.analysis.confounds
        for item in ledger.items
    ]
    if not rows:
        return None
    columns = (
        Column("item", "Setting"),
        Column("comparison", "Comparison"),
        Column("first", "First"),
        Column("second", "Second"),
        Column("status", "Status"),
        Column("impact", "Measured effect"),
    )
    lead = (
        "Every difference between the effective configurations, as the engines' own logs and endpoints state them. "
        "The effect is that of the retest item that changes the setting alone; nobody's judgement stands in for it."
    )
    return Table("confounds", "Confound ledger", lead, columns, rows, shown=80)


def _status(status: str, under_test: bool) -> Datum:
    if under_test:
        return Datum("under test", status)
    return Datum(STATUS.get(status, status), status, tone="warn" if status == "differs" else "")


def _text(value: object) -> str:
    if value is None:
        return "not stated"
    return "yes" if value is True else "no" if value is False else str(value)
