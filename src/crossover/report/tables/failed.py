"""Cells without figures: why, and how to try them again."""

from __future__ import annotations

from crossover.report.context import Context
from crossover.report.labels import cell_label
from crossover.report.tables.model import Column, Datum, Table


def build(context: Context) -> Table | None:
    """Returns the failed cells, or nothing where all have figures."""
    failed = [*context.sheet.failed, *(cell for cell in context.sheet.retest_cells if not cell.ok)]
    if not failed:
        return None
    columns = (Column("cell", "Cell"), Column("reason", "Reason"), Column("last_log_line", "Last log line"))
    rows = []
    for cell in failed:
        tail = cell.metrics.get("log_tail")
        last = str(tail[-1]) if isinstance(tail, list) and tail else ""
        rows.append([Datum(cell_label(cell), cell.id, href=context.href(cell)), Datum(cell.reason or ""), Datum(last)])
    return Table("failed", "Failed cells", "The next run tries these again; the others are kept.", columns, rows)
