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
        left = str(item.document.get("not_included") or "")
        cost = "predicted" if told.predicted and told.gpu_hours is not None else ""
        tone = "" if told.measured else "quiet"
        rows.append(
            [
                Datum(f"{item.id}. {item.title}", item.id),
                Datum(str(item.document.get("hypothesis") or "–"), below=left),
                Datum(told.change),
                Datum(";\n".join(told.effects), "; ".join(told.effects), tone=tone),
                Datum(told.decision, below=told.rule, tone=tone),
                Datum(number(told.gpu_hours), told.gpu_hours, cost),
            ]
        )
    done = sum(1 for item in context.sheet.retest if item.applied)
    lead = f"{done} of {plural(len(rows), 'item')} applied. An effect is candidate over baseline, nothing else changed."
    return Table("retest", "Retest plan", lead, columns, rows)
