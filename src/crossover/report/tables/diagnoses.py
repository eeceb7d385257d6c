"""What several log lines say together: conclusion, advice, and the lines themselves."""

from __future__ import annotations

from collections.abc import Mapping

from crossover.report.context import Context
from crossover.report.sheet import Document
from crossover.report.tables.model import Column, Datum, Table


def build(context: Context) -> Table | None:
    """Returns one row a variant and diagnosis."""
    found: dict[tuple[str, str], Document] = {}
    for cell in [*context.sheet.cells, *context.sheet.retest_cells]:
        told = cell.engine_report.get("diagnoses")
        for one in told if isinstance(told, list) else ():
            if isinstance(one, Mapping):
                found.setdefault((cell.variant, str(one.get("name") or one.get("kind"))), one)
    if not found:
        return None
    columns = (
        Column("variant", "Variant"),
        Column("diagnosis", "Diagnosis"),
        Column("conclusion", "Conclusion"),
        Column("advice", "Advice"),
        Column("evidence", "Evidence"),
    )
    rows = [
        [
            Datum(variant),
            Datum(name.replace("_", " ").replace("-", " "), name),
            Datum(str(one.get("conclusion") or "")),
            Datum(str(one.get("advice") or "")),
            Datum("\n".join(str(line)[:300] for line in one.get("evidence") or ())),
        ]
        for (variant, name), one in found.items()
    ]
    return Table("diagnoses", "Diagnoses from the engine logs", "", columns, rows, shown=60)
