"""Throughput against wall time, peaks against means."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from crossover.audits.evidence import Evidence
from crossover.audits.finding import Finding, not_applicable, passed
from crossover.audits.printed import Interval, plain
from crossover.audits.table import Cell, Figure, Table

IDENTITY = "output throughput <= tokens / wall time; peak >= mean; percentiles rise"
TOLERANCE = (
    "1 % beyond what rounding of the printed figures allows; a time-limited run without counts: the requests "
    "in flight at its ends"
)
REASON = "a span shorter than the run (counted token events, a steady window) gives any throughput one likes"
_TOLERANCE = 0.01
_ADVICE = "divide all tokens by the time from the first send to the last output"
# A percentile of few values may tie with the next one; only a real reversal counts.
_ORDER = ("min", "p50", "p90", "p95", "p99", "max")


def check_cell(evidence: Evidence) -> Iterator[Finding]:
    """Judges the throughput of a measured cell against its tokens and its wall time."""
    observations, rate = evidence.observations, evidence.mean("output_tok_s")
    if rate is None or not observations.duration_s > 0:
        yield not_applicable("output_tok_s", "there is no throughput")
        return
    tokens = float(np.nansum(observations.completion_tokens))
    most = tokens / observations.duration_s
    words = f"{tokens:.0f} tokens / {observations.duration_s:.4g} s = {most:.4g} tok/s"
    if rate > most * (1 + _TOLERANCE):
        why = f"{words} is the most that wall time allows"
        yield Finding("impossible", "output_tok_s", why, rate, most, _ADVICE, ("output_tok_s",))
    else:
        yield passed("output_tok_s", f"at most {words}", rate, most)


def check_table(table: Table) -> Iterator[Finding]:
    """Judges each cell's throughput, peak and order of percentiles."""
    for cell in table.cells:
        yield from _throughput(cell)
        yield from _peak(cell)
        yield from _order(cell)
        yield from _first_before_last(cell)


def _throughput(cell: Cell) -> Iterator[Finding]:
    for quantity, most, words in _bounds(cell):
        figure = cell.get(quantity)
        if figure is None:
            continue
        limit = most.scaled(1 + _TOLERANCE)
        if figure.interval.low > limit.high:
            factor = figure.interval.middle / most.middle if most.middle > 0 else float("inf")
            yield Finding(
                "impossible",
                figure.path,
                f"{words} = {most.middle:.4g} is the most that wall time allows; reported is {factor:.4g} times that"
                f"{_implied(cell, figure)}",
                plain(figure.printed),
                figure.in_own_unit(most.middle),
                _ADVICE,
            )
        else:
            yield passed(figure.path, f"at most {words} = {most.middle:.4g}", plain(figure.printed))


def _implied(cell: Cell, figure: Figure) -> str:
    """The tokens that a throughput stands for, which may differ from what the other columns stand for."""
    total = cell.interval("total")
    if total is None or figure.recognised.quantity != "output_rate":
        return ""
    return f", {figure.interval.middle * total.middle:.0f} tokens in {total.middle:g} s"


def _bounds(cell: Cell) -> Iterator[tuple[str, Interval, str]]:
    """The most that each rate of a cell can be, and the sum that says so."""
    total, tokens, requests = cell.interval("total"), cell.output_tokens, cell.requests
    if total is not None and total.low > 0 and requests is not None:
        count = Interval.exactly(requests)
        yield "request_rate", count / total, f"{requests:g} / {total.middle:g} s"
        if tokens is not None:
            yield (
                "output_rate",
                count * tokens / total,
                f"{requests:g} x {tokens.middle:g} / {total.middle:g} s",
            )
        return
    yield from _bound_of_timed_run(cell)


def _bound_of_timed_run(cell: Cell) -> Iterator[tuple[str, Interval, str]]:
    """Concurrency x n / latency, plus the requests that a time limit cuts at either end."""
    latency, tokens, concurrency = _latency(cell), cell.output_tokens, cell.concurrency
    if latency is None or tokens is None or concurrency is None or latency.low <= 0:
        return
    length = cell.workload.get("max_seconds")
    slack = 1 + 2 * latency.high / length if length else 1.5
    most = Interval.exactly(concurrency * slack) * tokens / latency
    words = f"{concurrency:g} x {tokens.middle:g} / {latency.middle:g} s, with {slack - 1:.0%} for its ends,"
    yield "output_rate", most, words


def _latency(cell: Cell) -> Interval | None:
    """The mean latency, put together from TTFT and the time per token where the table has none."""
    latency, ttft, tokens = cell.interval("latency"), cell.interval("ttft"), cell.output_tokens
    per_token = cell.interval("tpot") or cell.interval("itl")
    if latency is not None or ttft is None or per_token is None or tokens is None:
        return latency
    return ttft + per_token * (tokens - Interval.exactly(1))


def _peak(cell: Cell) -> Iterator[Finding]:
    mean = cell.get("output_rate")
    for statistic in ("peak", "max"):
        peak = cell.get("output_rate", statistic)
        if peak is None or mean is None or (statistic == "max" and _over_requests(cell)):
            continue
        if peak.interval.high < mean.interval.low:
            yield Finding(
                "impossible",
                peak.path,
                f"a peak of {peak.printed:g} below the mean of {mean.printed:g} tok/s: it counts something "
                "else, such as chunks of several tokens",
                plain(peak.printed),
                plain(mean.printed),
                "drop the peak, or name it chunks per second",
            )
        else:
            yield passed(peak.path, "not below the mean", plain(peak.printed), plain(mean.printed))


def _over_requests(cell: Cell) -> bool:
    """A rate that has percentiles too is one a request, and its largest says nothing on the whole run."""
    return any(quantity == "output_rate" and name[:1] == "p" and name[1:].isdigit() for quantity, name in cell.figures)


def _order(cell: Cell) -> Iterator[Finding]:
    for quantity in sorted({quantity for quantity, _ in cell.figures}):
        known = [figure for name in _ORDER if (figure := cell.get(quantity, name)) is not None]
        yield from (_reversed(a, b) for a, b in pairwise(known) if a.interval.low > b.interval.high)
        mean = cell.get(quantity)
        lowest, highest = cell.get(quantity, "min"), cell.get(quantity, "max")
        if mean is not None and lowest is not None and mean.interval.high < lowest.interval.low:
            yield _reversed(lowest, mean)
        rises = mean is None or highest is None or mean.interval.low <= highest.interval.high
        if mean is not None and highest is not None and not rises and quantity != "output_rate":
            yield _reversed(mean, highest)


def _reversed(lower: Figure, upper: Figure) -> Finding:
    return Finding(
        "impossible",
        upper.path,
        f"{upper.printed:g} is below {lower.path.rsplit('.', 1)[-1]} = {lower.printed:g}",
        plain(upper.printed),
        plain(lower.printed),
        "check which column is which",
    )


def _first_before_last(cell: Cell) -> Iterator[Finding]:
    for first in ("ttft", "ttfot"):
        start, end = cell.get(first), cell.get("latency")
        if start is not None and end is not None and start.interval.low > end.interval.high:
            yield Finding(
                "impossible",
                start.path,
                f"first token after {start.interval.middle:g} s, last one after {end.interval.middle:g} s",
                plain(start.printed),
                start.in_own_unit(end.interval.middle),
                "check the units of both columns",
            )
