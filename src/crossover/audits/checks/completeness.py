"""Requests that did not succeed, and figures that are not there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from crossover.audits.evidence import Evidence
from crossover.audits.finding import Finding, passed
from crossover.audits.printed import plain
from crossover.audits.table import Cell, Table

IDENTITY = "all requests succeed; a figure that was never stamped is absent, not zero"
TOLERANCE = "none"
REASON = "averages over the requests that happened to succeed describe another load than the one asked for"


def check_cell(evidence: Evidence) -> Iterator[Finding]:
    """Names the requests that did not succeed, with the recorder's reasons."""
    observations = evidence.observations
    lost = observations.failed + observations.incomplete
    if not lost:
        yield passed("requests", f"all {observations.ok} requests succeeded")
        return
    reasons = [f"{f.get('count')} x {f.get('finding')}" for f in evidence.findings if _is_outcome(f)]
    yield Finding(
        "incomplete",
        "requests",
        f"{observations.failed} failed and {observations.incomplete} did not finish, of {lost + observations.ok}"
        + (f": {', '.join(reasons)}" if reasons else "")
        + "; averages are over the rest",
        lost,
        0,
        "repeat the cell, or read its figures with this number beside them",
    )


def _is_outcome(finding: Mapping[str, Any]) -> bool:
    return str(finding.get("why", "")).startswith(("failed: ", "incomplete: "))


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
        yield from _lost(cell)
        yield from _zeros(cell)
        for path in cell.missing:
            yield Finding(
                "missing",
                path,
                "printed as absent, or as a zero that no clock can give",
                None,
                None,
                "leave the figure out, or measure it",
            )


def _lost(cell: Cell) -> Iterator[Finding]:
    """Requests that were made and are in no count of the output."""
    made, done = cell.get("made_requests"), cell.get("requests")
    asked = float(made.printed) if made is not None else cell.workload.get("requests")
    if asked is None or done is None:
        return
    told = sum(float(figure.printed) for name in ("failed", "incomplete") if (figure := cell.get(name)) is not None)
    silent = asked - float(done.printed) - told
    if silent > 0:
        yield Finding(
            "incomplete",
            done.path,
            f"{done.printed:g} of {asked:g} requests succeeded, {silent:g} are in no count: averages are over the rest",
            plain(done.printed),
            plain(asked),
            "repeat the run, or report these figures with the number beside them",
        )


_DID = {"failed": "failed", "incomplete": "did not finish"}


def _zeros(cell: Cell) -> Iterator[Finding]:
    for (quantity, statistic), figure in cell.figures.items():
        if quantity not in _TIMES or figure.printed != 0 or statistic in ("min", "std"):
            continue
        if quantity in _GAPS and statistic != "mean" and _was_stamped(cell, quantity):
            continue
        mean = cell.get(quantity)
        if statistic != "mean" and mean is not None and mean.printed == 0:
            # The finding on the mean says it for all statistics.
            continue
        single = quantity in (*_GAPS, "tpot") and cell.output_tokens is not None and cell.output_tokens.high <= 1
        yield Finding(
            "missing",
            figure.path,
            "0 stands for nothing measured: one token a request has no gap and no time per output token"
            if single
            else "0 means that the clock was never stopped: the client saw no output",
            0,
            None,
            "print nothing where nothing is defined"
            if single
            else "count every output field, reasoning included; print nothing where nothing was stamped",
        )


_GAPS = ("itl", "icl")
_TIMES = ("ttft", "ttfot", "tpot", "latency", "total", *_GAPS)


def _was_stamped(cell: Cell, quantity: str) -> bool:
    """Two events of one read have no gap between them, so a percentile of gaps may be 0 where others are not."""
    return any(own == quantity and figure.printed > 0 for (own, _), figure in cell.figures.items())
