"""The cells: the figure that stands for each metric, with interval and sample size, or why it is withheld."""

from __future__ import annotations

from crossover.report.context import Context
from crossover.report.formatting import interval, number, percent, plural, tokens
from crossover.report.labels import load_label
from crossover.report.quantities import QUANTITIES, Quantity
from crossover.report.sheet import Cell, Reading
from crossover.report.tables.model import Column, Datum, Table


def build(context: Context) -> Table | None:
    """Returns one row a cell; a metric that no cell has gets no column."""
    cells = [*context.sheet.cells, *context.sheet.retest_cells]
    if not cells:
        return None
    shown = [quantity for quantity in QUANTITIES.values() if _anywhere(cells, quantity)]
    columns = (
        Column("cell", "Cell"),
        Column("dataset", "Dataset"),
        Column("context_tokens", "Context", "tokens", numeric=True),
        Column("load", "Load", meaning="c10 is ten requests at a time, 2/s two a second"),
        Column("requests", "Requests", "ok / sent"),
        *(
            Column(quantity.key, quantity.label, quantity.unit, True, quantity.meaning, interval=True)
            for quantity in shown
        ),
        Column("audits", "Audits", meaning="findings of the audits of this cell"),
    )
    rows = [_row(context, cell, shown) for cell in cells]
    lead = (
        "The mean of each metric over the requests of the cell, its 95 % interval beneath, and n where it is not "
        "the number of requests. "
        "A figure that failed an audit is withheld; its footnote says why. Each cell links to its entry."
    )
    return Table("cells", "Cells", lead, columns, rows)


def _anywhere(cells: list[Cell], quantity: Quantity) -> bool:
    readings = (cell.reading(quantity) for cell in cells)
    return any(reading.value is not None or reading.withheld for reading in readings)


def _row(context: Context, cell: Cell, shown: list[Quantity]) -> list[Datum]:
    label = cell.variant + (f", repeat {cell.repeat + 1}" if cell.repeat else "")
    done = (cell.metrics.get("requests") or {}).get("ok")
    return [
        Datum(label, cell.id, href=context.href(cell)),
        Datum(cell.dataset),
        Datum(tokens(cell.input_tokens), cell.input_tokens),
        Datum(load_label(cell.concurrency, cell.rate_per_s)),
        _requests(cell),
        *(reading_datum(context, cell.reading(quantity), quantity, done) for quantity in shown),
        _audits(cell),
    ]


def reading_datum(context: Context, reading: Reading, quantity: Quantity, usual_n: int | None = None) -> Datum:
    """Returns a figure as a table shows it: with interval and n beneath, or `withheld` with a footnote."""
    if reading.withheld:
        note = context.notes.number(reading.withheld)
        return Datum("withheld", note=note, tone="warn")
    if reading.value is None:
        return Datum(number(None), tone="quiet")
    write = percent if quantity.unit == "share" else number
    spread = interval(reading.low, reading.high)
    if quantity.unit == "share" and reading.low is not None and reading.high is not None:
        spread = f"{percent(reading.low)} to {percent(reading.high)}"
    size = f"n {reading.n:,}" if reading.n and reading.n != usual_n else ""
    below = "; ".join(part for part in (spread, size) if part)
    return Datum(write(reading.value), reading.value, below, low=reading.low, high=reading.high)


def _requests(cell: Cell) -> Datum:
    if not cell.ok:
        return Datum("failed", tone="bad")
    counts = cell.metrics.get("requests") or {}
    done = int(counts.get("ok") or 0)
    sent = done + int(counts.get("failed") or 0) + int(counts.get("incomplete") or 0)
    return Datum(f"{done:,} / {sent:,}", done, tone="" if done == sent else "warn")


def _audits(cell: Cell) -> Datum:
    if not cell.ok:
        return Datum("not audited", tone="quiet")
    found = [audit for audit in cell.audits if audit.get("verdict") not in QUIET]
    if not found:
        return Datum("passed" if cell.audits else "none ran", tone="good" if cell.audits else "quiet")
    kinds = ", ".join(dict.fromkeys(str(audit.get("verdict")) for audit in found))
    return Datum(plural(len(found), "finding"), kinds, tone="warn", href="#audits")


QUIET = ("passed", "not applicable", "rounding")
