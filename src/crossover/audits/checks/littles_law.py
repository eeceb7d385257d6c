"""Little's law: requests in flight = request rate x latency."""

from __future__ import annotations

from collections.abc import Iterator

from crossover.audits.evidence import Evidence
from crossover.audits.finding import Finding, not_applicable, passed
from crossover.audits.printed import Interval, plain
from crossover.audits.table import Cell, Table
from crossover.metrics.gaps import in_flight
from crossover.metrics.series import mean_in_flight

IDENTITY = "requests x mean latency / wall time = mean requests in flight <= concurrency; latency <= wall time"
TOLERANCE = "1 % beyond rounding; 5 % where the latency is put together from TTFT and TPOT; 25 % from TPOT alone"
REASON = "requests that overlap more than they were allowed to have a wrong latency, count or wall time"
_TOLERANCE = 0.01
_COMPOSED_TOLERANCE = 0.05
_REPORTED_TOLERANCE = 0.02
# A mean over requests of different lengths is not the mean over their tokens.
_UNWEIGHTED_TOLERANCE = 0.25


def check_cell(evidence: Evidence) -> Iterator[Finding]:
    """Judges whether as many requests ran as were offered, on the client's side and on the engine's."""
    wanted = evidence.workload.get("concurrency")
    observations = evidence.observations
    if not wanted or not observations.duration_s > 0:
        yield not_applicable("concurrency", "the load is an open loop, or nothing came back")
        return
    wanted = min(int(wanted), len(observations.all_sent_s))
    most = int(in_flight(observations)[1].max())
    mean = mean_in_flight(observations)
    if most > wanted:
        why = f"{most} requests were in flight at once where {wanted} were allowed"
        yield Finding("impossible", "concurrency", why, most, wanted, "check the recorder's load")
    elif most < wanted and not observations.failed:
        why = f"never more than {most} requests were in flight where {wanted} were asked for"
        yield Finding("inconsistent", "concurrency", why, most, wanted, "give the load more requests")
    else:
        yield passed("concurrency", f"{mean:.4g} requests in flight on average, {most} at most", most, wanted)
    yield from _engine(evidence, wanted)


def _engine(evidence: Evidence, wanted: int) -> Iterator[Finding]:
    capped = (evidence.engine or {}).get("capped_running")
    if capped is not None and capped < wanted:
        yield Finding(
            "inconsistent",
            "running",
            f"the engine decoded {capped:g} requests at most while others waited, of {wanted} offered",
            capped,
            wanted,
            "read this cell as one at the engine's own concurrency; enlarge the KV pool or the request limit",
        )


def check_table(table: Table) -> Iterator[Finding]:
    """Judges cells that state requests, wall time and a latency."""
    for cell in table.cells:
        yield from _cell(cell)


def _cell(cell: Cell) -> Iterator[Finding]:
    total, requests, concurrency = cell.interval("total"), cell.requests, cell.concurrency
    latency, path, tolerance = _latency(cell)
    rate = cell.interval("request_rate")
    if latency is not None and rate is not None and (total is None or requests is None):
        yield from _of_rate(cell, rate, latency, path, tolerance)
        return
    if latency is None:
        yield from _of_tokens(cell)
    if total is None or requests is None or latency is None or total.low <= 0:
        return
    figure = cell.get("latency")
    if figure is not None and latency.low > total.high * (1 + _TOLERANCE):
        yield Finding(
            "impossible",
            path,
            f"a mean latency of {latency.middle:g} s in a run of {total.middle:g} s",
            plain(figure.printed),
            figure.in_own_unit(total.middle),
            "check the units and the wall time",
        )
        return
    in_flight = Interval.exactly(requests) * latency / total
    mean = f"{in_flight.middle:.4g} requests in flight"
    words = f"{requests:g} x {latency.middle:.4g} s / {total.middle:g} s = {mean}"
    if concurrency is not None and in_flight.low > concurrency * (1 + tolerance):
        reported = plain(figure.printed) if figure is not None else None
        limit = concurrency * total.middle / requests
        bound = figure.in_own_unit(limit) if figure is not None else limit
        yield Finding(
            "impossible",
            path,
            f"{words}, and {concurrency:g} were allowed",
            reported,
            bound,
            "check requests, concurrency and wall time",
        )
    elif concurrency is not None:
        yield passed(path, f"{words}, of {concurrency:g} allowed")
    yield from _reported(cell, in_flight, words)


def _of_rate(cell: Cell, rate: Interval, latency: Interval, path: str, tolerance: float) -> Iterator[Finding]:
    """Request rate x latency where no wall time or no number of requests is given."""
    in_flight, concurrency = rate * latency, cell.concurrency
    words = f"{rate.middle:g} requests/s x {latency.middle:.4g} s = {in_flight.middle:.4g} requests in flight"
    if concurrency is not None and in_flight.low > concurrency * (1 + tolerance):
        advice = "check the request rate, the latency and the concurrency"
        yield Finding("impossible", path, f"{words}, and {concurrency:g} were allowed", None, None, advice)
    elif concurrency is not None:
        yield passed(path, f"{words}, of {concurrency:g} allowed")
    yield from _reported(cell, in_flight, words)


def _of_tokens(cell: Cell) -> Iterator[Finding]:
    """Output throughput x mean TPOT = requests that decode at once, where no length of the output is given."""
    figure, tpot, concurrency = cell.get("output_rate"), cell.interval("tpot"), cell.concurrency
    if figure is None or tpot is None or concurrency is None:
        return
    decoding = figure.interval * tpot
    words = f"{figure.interval.middle:g} tok/s x {tpot.middle:.4g} s = {decoding.middle:.4g} requests that decode"
    if decoding.low > concurrency * (1 + _UNWEIGHTED_TOLERANCE):
        most = figure.in_own_unit(concurrency / tpot.middle)
        why = f"{words}, and {concurrency:g} were allowed"
        advice = "check the throughput, the TPOT (per token or per chunk) and the concurrency"
        yield Finding("not closed", figure.path, why, plain(figure.printed), most, advice)
    else:
        yield passed(figure.path, f"{words}, of {concurrency:g} allowed", plain(figure.printed))


def _latency(cell: Cell) -> tuple[Interval | None, str, float]:
    """The mean latency, put together from TTFT and TPOT where the table has none."""
    figure = cell.get("latency")
    if figure is not None:
        return figure.interval, figure.path, _TOLERANCE
    ttft, tpot, tokens = cell.get("ttft"), cell.get("tpot"), cell.output_tokens
    if ttft is None or tpot is None or tokens is None:
        return None, cell.path, _TOLERANCE
    return ttft.interval + tpot.interval * (tokens - Interval.exactly(1)), tpot.path, _COMPOSED_TOLERANCE


def _reported(cell: Cell, in_flight: Interval, words: str) -> Iterator[Finding]:
    figure = cell.get("concurrency")
    if figure is None or float(figure.printed).is_integer():
        return
    if not figure.interval.agrees(in_flight, _REPORTED_TOLERANCE):
        yield Finding(
            "not closed",
            figure.path,
            words,
            plain(figure.printed),
            round(in_flight.middle, 2),
            "check requests, latency and wall time",
        )
    else:
        yield passed(figure.path, words, plain(figure.printed))
