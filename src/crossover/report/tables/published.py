"""The measured cells beside published figures: one row a figure, with their ratio."""

from __future__ import annotations

from crossover.report.context import Context
from crossover.report.formatting import interval, number, tokens
from crossover.report.published import beside
from crossover.report.quantities import QUANTITIES
from crossover.report.tables.model import Column, Datum, Table


def build(context: Context) -> Table | None:
    """Returns the figures that both sides have, or nothing where the sheet names no published figures."""
    found = beside(context.sheet)
    if not found:
        return None
    columns = (
        Column("published_cell", "Published cell"),
        Column("variant", "Measured variant"),
        Column("context_tokens", "Context", "tokens", numeric=True),
        Column("quantity", "Quantity"),
        Column("published", "Published", numeric=True, interval=True),
        Column("measured", "Measured", numeric=True, interval=True),
        Column("ratio", "Measured / published", numeric=True),
        Column("published_verdict", "Published figure's audit"),
    )
    rows = []
    for one in found:
        quantity = QUANTITIES[one.quantity]
        reading = one.reading
        measured = Datum(
            number(reading.value),
            reading.value,
            interval(reading.low, reading.high),
            href=context.href(one.cell),
            low=reading.low,
            high=reading.high,
        )
        if reading.withheld:
            note = context.notes.number(reading.withheld)
            measured = Datum("withheld", note=note, tone="warn")
        label = quantity.label if one.statistic in ("value", "mean") else f"{quantity.label} {one.statistic}"
        rows.append(
            [
                Datum(one.group),
                Datum(one.cell.variant),
                Datum(tokens(one.cell.input_tokens), one.cell.input_tokens),
                Datum(f"{label}, {quantity.unit}"),
                Datum(
                    number(one.published),
                    one.published,
                    interval(one.low, one.high),
                    low=one.low,
                    high=one.high,
                ),
                measured,
                Datum(number(one.ratio), one.ratio, tone=_tone(one.ratio)),
                _finding(context, one.verdict, one.why),
            ]
        )
    source = str(context.sheet.published.get("source") or "published figures")
    lead = f"Source: {source}. A published figure that its own audit rejects is no target."
    return Table("published", "Beside the published figures", lead, columns, rows, shown=120)


def _finding(context: Context, verdict: str, why: str) -> Datum:
    if not verdict:
        return Datum("no finding", tone="quiet")
    return Datum(verdict, note=context.notes.number(f"Published figure {verdict}: {why}"), tone="warn")


def _tone(ratio: float | None) -> str:
    return "" if ratio is None else "good" if 0.9 <= ratio <= 1.1 else "warn"
