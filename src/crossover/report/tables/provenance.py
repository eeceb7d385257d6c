"""Which store entries each cell's numbers come from."""

from __future__ import annotations

from pathlib import PurePath

from crossover.report.context import Context
from crossover.report.formatting import short_key
from crossover.report.labels import cell_label, entry_href
from crossover.report.tables.model import Column, Datum, Table


def build(context: Context) -> Table | None:
    """Returns one row a cell with the keys of its run, engine report and metrics."""
    owner = {cell: deployment for deployment in context.sheet.deployments for cell in deployment.cells}
    rows = []
    for cell in [*context.sheet.cells, *context.sheet.retest_cells]:
        deployment = owner.get(cell.id)
        keys = [
            cell.run_key,
            deployment.key if deployment else None,
            _key(cell.paths.get("engine_report")),
            _key(cell.paths.get("metrics")),
        ]
        rows.append(
            [Datum(cell_label(cell), cell.id, href=context.href(cell))]
            + [Datum(short_key(key), key or "", href=entry_href(key)) for key in keys]
        )
    if not rows:
        return None
    columns = (
        Column("cell", "Cell"),
        Column("run", "Run"),
        Column("deployment", "Deployment"),
        Column("engine_report", "Engine report"),
        Column("metrics", "Metrics"),
    )
    lead = "The first twelve digits of each key. An entry lies in the store under its kind and its whole key."
    return Table("provenance", "Provenance", lead, columns, rows, folded=True)


def _key(path: str | None) -> str | None:
    return PurePath(path).parent.name if path else None
