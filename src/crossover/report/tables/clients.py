"""Other clients of the same cells: their figures beside ours, what they mean by them, and what the audits say."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from crossover.report.context import Context
from crossover.report.formatting import ABSENT, number
from crossover.report.labels import cell_label
from crossover.report.quantities import QUANTITIES, Quantity
from crossover.report.sheet import Cell
from crossover.report.tables.audits import SEVERITY
from crossover.report.tables.cells import reading_datum
from crossover.report.tables.model import Column, Datum, Table

# The statistic of a client's column that a quantity's own figure stands beside.
SHOWN = ("mean", "value")


def build(context: Context) -> Table | None:
    """Returns one row a figure that both have, and one a client that failed; nothing where nobody else measured."""
    rows = [
        row
        for cell in [*context.sheet.cells, *context.sheet.retest_cells]
        for name, told in cell.clients.items()
        if cell.ok
        for row in _rows(context, cell, name, told)
    ]
    if not rows:
        return None
    columns = (
        Column("cell", "Cell"),
        Column("client", "Client"),
        Column("metric", "Metric"),
        Column("theirs", "Its figure", numeric=True),
        Column("ours", "Ours", numeric=True, interval=True),
        Column("ratio", "Its / ours", numeric=True),
        Column("definition", "Its definition"),
        Column("verdict", "Audit of its figure"),
    )
    lead = (
        "Other load-test clients measured the same cells after our recorder, on the same server under the same load. "
        "Two figures may differ because the definitions do, or because it was another run."
    )
    if context.sheet.simulated:
        lead += " On a simulated engine a client's own delay counts as many times as simulated time runs faster."
    return Table("clients", "Beside other clients", lead, columns, rows)


def _rows(context: Context, cell: Cell, name: str, told: Mapping[str, Any]) -> Iterator[list[Datum]]:
    label = Datum(cell_label(cell), cell.id, href=context.href(cell))
    version = told.get("version")
    client = Datum(f"{name} {version}" if version else name, name)
    if told.get("status") != "ok":
        reason = str(told.get("reason") or "no reason was recorded")
        nothing = [Datum(ABSENT, tone="quiet") for _ in range(4)]
        yield [label, client, *nothing, Datum(reason), Datum("failed", tone="warn")]
        return
    shown = {figure.get("metric"): figure for figure in told.get("figures") or () if figure.get("statistic") in SHOWN}
    for key, quantity in QUANTITIES.items():
        if key in shown:
            yield [label, client, *_figure(context, cell, name, shown[key], quantity)]


def _figure(context: Context, cell: Cell, name: str, figure: Mapping[str, Any], quantity: Quantity) -> list[Datum]:
    theirs = float(figure["value"]) * quantity.scale
    reading = cell.reading(quantity)
    ratio = theirs / reading.value if reading.value else None
    differs = "" if figure.get("same_as_ours") else "not ours: "
    return [
        Datum(quantity.heading, quantity.key),
        Datum(number(theirs), theirs, str(figure.get("column") or "")),
        reading_datum(context, reading, quantity),
        Datum(number(ratio), ratio),
        Datum(f"{differs}{figure.get('definition')}", tone="warn" if differs else ""),
        _verdict(context, cell, name, figure.get("audited_as")),
    ]


def _verdict(context: Context, cell: Cell, client: str, figure: Any) -> Datum:
    """Returns the worst that an audit said of a figure, or of the client as a whole."""
    subjects = {f"client.{client}", f"client.{client}.{figure}"}
    found = [audit for audit in cell.audits if audit.get("subject") in subjects]
    ranked = sorted(found, key=lambda audit: _severity(str(audit.get("verdict"))))
    if not ranked:
        return Datum("no finding", tone="quiet")
    verdict, why = str(ranked[0].get("verdict")), str(ranked[0].get("why"))
    if verdict in ("passed", "not applicable"):
        return Datum(
            "passed" if verdict == "passed" else "n/a", verdict, tone="good" if verdict == "passed" else "quiet"
        )
    return Datum(verdict, note=context.notes.number(f"{client} {verdict}: {why}"), tone="warn")


def _severity(verdict: str) -> int:
    return SEVERITY.index(verdict) if verdict in SEVERITY else 0
