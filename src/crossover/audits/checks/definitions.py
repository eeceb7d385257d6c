"""A column that equals another definition is named as such."""

from __future__ import annotations

from collections.abc import Iterator

from crossover.audits.finding import Finding
from crossover.audits.identities import SAME_FIGURE, decode_of, other_definition
from crossover.audits.printed import plain
from crossover.audits.table import Cell, Figure, Table

IDENTITY = "TTFT, TPOT and ITL are what their names say, and no other definition fits them better"
TOLERANCE = "0.2 % beyond rounding for the other definition, and the own one does not close"
REASON = (
    "tools use one name for different figures: a TPOT that includes TTFT, a TTFT that waits for `content`"
)


def check_table(table: Table) -> Iterator[Finding]:
    """Names the definition that a TPOT, ITL or TTFT column follows instead of its own."""
    for cell in table.cells:
        for quantity in ("tpot", "itl"):
            figure = cell.get(quantity)
            other = other_definition(cell, figure) if figure is not None else None
            if figure is not None and other is not None:
                name, value = other
                yield Finding(
                    "mislabelled",
                    figure.path,
                    f"equals {name} ({figure.in_own_unit(value.middle):g}){_truth(cell, figure)}",
                    plain(figure.printed),
                    _expected(cell, figure),
                    "rename the column, or compute it by its definition",
                )
        yield from _ttft(cell)


def _expected(cell: Cell, figure: Figure) -> float | None:
    decode = decode_of(cell)
    return figure.in_own_unit(decode.expected.middle) if decode else None


def _truth(cell: Cell, figure: Figure) -> str:
    decode = decode_of(cell)
    if decode is None:
        return ""
    text = f"; the true TPOT is (latency - TTFT) / (n - 1) = {figure.in_own_unit(decode.expected.middle):g}"
    itl = cell.get("itl")
    if (
        figure.recognised.quantity == "tpot"
        and itl is not None
        and itl.interval.agrees(decode.expected, 0.005)
    ):
        text += ", which the column called ITL shows"
    return text


def _ttft(cell: Cell) -> Iterator[Finding]:
    ttft, latency, tokens = cell.get("ttft"), cell.get("latency"), cell.output_tokens
    if ttft is None or latency is None or tokens is None or tokens.low <= 2:
        return
    if ttft.interval.agrees(latency.interval, SAME_FIGURE):
        yield Finding(
            "mislabelled",
            ttft.path,
            "equals the latency: the response was read as a whole",
            plain(ttft.printed),
            None,
            "stream the response and stamp its first output",
        )
