"""Every audit of every cell: a matrix of verdicts; the findings themselves are told beside it."""

from __future__ import annotations

from crossover.report.context import Context
from crossover.report.labels import cell_label
from crossover.report.sheet import Cell
from crossover.report.tables.cells import QUIET
from crossover.report.tables.model import Column, Datum, Table

# The worst verdict first: where one audit found several things in a cell, the matrix shows the worst.
SEVERITY = (
    "impossible",
    "not closed",
    "inconsistent",
    "mislabelled",
    "contradiction",
    "infeasible",
    "overcommitted",
    "contaminated",
    "incomplete",
    "missing",
    "under-sampled",
    "rounding",
    "passed",
    "not applicable",
)


def build(context: Context) -> Table | None:
    """Returns the matrix, with a column for each audit that ran anywhere."""
    cells = [cell for cell in [*context.sheet.cells, *context.sheet.retest_cells] if cell.ok]
    names = list(dict.fromkeys(str(audit.get("audit")) for cell in cells for audit in cell.audits))
    if not names:
        return None
    columns = (Column("cell", "Cell"), *(Column(name, name.replace("_", " ")) for name in names))
    rows = [
        [Datum(cell_label(cell), cell.id, href=context.href(cell)), *(_verdict(cell, name) for name in names)]
        for cell in cells
    ]
    lead = "What each audit said of each cell before its numbers were shown. The findings are told below."
    return Table("audits", "Audits", lead, columns, rows)


def _verdict(cell: Cell, name: str) -> Datum:
    verdicts = [str(audit.get("verdict")) for audit in cell.audits if audit.get("audit") == name]
    if not verdicts:
        return Datum("–", "not run", tone="quiet")
    worst = min(verdicts, key=lambda verdict: SEVERITY.index(verdict) if verdict in SEVERITY else 0)
    tone = {"passed": "good", "not applicable": "quiet", "rounding": ""}.get(worst, "warn")
    return Datum("n/a" if worst == "not applicable" else worst, worst, tone=tone)


def findings(context: Context) -> Table | None:
    """Returns the findings in words, the same finding of several cells once."""
    told: dict[tuple[str, ...], list[Cell]] = {}
    for cell in [*context.sheet.cells, *context.sheet.retest_cells]:
        for audit in cell.audits if cell.ok else ():
            if audit.get("verdict") in QUIET:
                continue
            words = ("audit", "verdict", "subject", "why", "advice")
            told.setdefault(tuple(str(audit.get(word) or "") for word in words), []).append(cell)
    if not told:
        return None
    columns = (
        Column("audit", "Audit"),
        Column("verdict", "Verdict"),
        Column("figure", "Figure"),
        Column("why", "Why"),
        Column("advice", "Advice"),
        Column("cells", "Cells"),
    )
    rows = [
        [
            Datum(audit.replace("_", " "), audit),
            Datum(verdict, tone="warn"),
            Datum(subject),
            Datum(why),
            Datum(advice),
            Datum(
                "; ".join(cell_label(cell) for cell in cells[:4])
                + (f"; {len(cells) - 4} more" if len(cells) > 4 else ""),
                "; ".join(cell.id for cell in cells),
            ),
        ]
        for (audit, verdict, subject, why, advice), cells in told.items()
    ]
    return Table("findings", "Findings of the audits", "", columns, rows, shown=60)
