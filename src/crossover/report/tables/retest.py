"""The retest plan: what each item asked, what came out, what it decides and what it cost."""

from __future__ import annotations

from crossover.report.context import Context
from crossover.report.formatting import number, plural
from crossover.report.retest import outcome
from crossover.report.tables.model import Column, Datum, Table


def build(context: Context) -> Table | None:
    """Returns one row an item, measured or not."""
    if not context.sheet.retest:
        return None
    columns = (
        Column("item", "Item"),
        Column("hypothesis", "Hypothesis"),
        Column("change", "Change"),
        Column("effect", "Isolated effect"),
        Column("decision", "Decision by its rule"),
        Column("gpu_hours", "GPU hours", numeric=True),
    )
    rows = []
    for item in context.sheet.retest:
        told = outcome(context.sheet, item)
        rows.append(
            [
                Datum(f"{item.id}. {item.title}", item.id),
                Datum(str(item.document.get("hypothesis") or "–")),
                Datum(told.change),
                Datum(told.effect, tone="" if told.measured else "quiet"),
                Datum(told.decision, below=told.rule, tone="" if told.measured else "quiet"),
                Datum(
                    number(told.gpu_hours),
                    told.gpu_hours,
                    "predicted" if told.predicted and told.gpu_hours is not None else "",
                ),
            ]
        )
    done = sum(1 for item in context.sheet.retest if item.cells)
    lead = f"{done} of {plural(len(rows), 'item')} measured. An effect is against the base cells alone."
    return Table("retest", "Retest plan", lead, columns, rows)
