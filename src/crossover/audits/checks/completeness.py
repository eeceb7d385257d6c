"""Requests that did not succeed, and figures that are not there."""

from __future__ import annotations

from collections.abc import Iterator

from crossover.audits.finding import Finding
from crossover.audits.printed import plain
from crossover.audits.table import Cell, Table

IDENTITY = "all requests succeed; a figure that was never stamped is absent, not zero"
TOLERANCE = "none"
REASON = "averages over the requests that happened to succeed describe another load than the one asked for"


def check_table(table: Table) -> Iterator[Finding]:
    """Names failed and incomplete requests, dashes, and zeros that cannot be measured values."""
    for cell in table.cells:
        for quantity in ("failed", "incomplete"):
            figure = cell.get(quantity)
            if figure is not None and figure.printed > 0:
                yield Finding(
                    "incomplete",
                    figure.path,
                    f"{figure.printed:g} requests {_DID[quantity]}: averages are over the rest",
                    plain(figure.printed),
                    0,
                    "repeat the cell, or report these figures with the number beside them",
                )
        yield from _zeros(cell)
        for path in cell.missing:
            yield Finding(
                "missing", path, "printed as absent", None, None, "leave the figure out, or measure it"
            )


_DID = {"failed": "failed", "incomplete": "did not finish"}


def _zeros(cell: Cell) -> Iterator[Finding]:
    for (quantity, _), figure in cell.figures.items():
        if quantity in ("ttft", "ttfot", "tpot", "itl", "icl", "latency", "total") and figure.printed == 0:
            if figure.recognised.statistic in ("min", "std"):
                continue
            yield Finding(
                "missing",
                figure.path,
                "0 means that the clock was never stopped: the client saw no output",
                0,
                None,
                "count every output field, reasoning included; print nothing where nothing was stamped",
            )
