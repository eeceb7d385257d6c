"""E2E = TTFT + TPOT (n - 1), and every column implies the same number of tokens."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from crossover.audits.evidence import Evidence
from crossover.audits.finding import Finding, not_applicable, passed
from crossover.audits.identities import (
    MOST_TOKENS_A_CHUNK,
    Decode,
    blamed_ttft,
    decode_of,
    itl_is_possible,
    other_definition,
    tpot_is_expected,
)
from crossover.audits.printed import Interval, plain
from crossover.audits.table import Cell, Figure, Table, interval_of
from crossover.metrics.definitions.tpot import per_request

IDENTITY = "E2E = TTFT + TPOT (n - 1); tokens implied by each column agree; rates x wall time = tokens"
TOLERANCE = "2 % beyond rounding where all requests have one length, else 25 % for the mean TPOT; throughput 5 %"
REASON = "a client that misses tokens, or counts them twice, cannot keep all of its columns consistent"
_THROUGHPUT_TOLERANCE = 0.05
_COUNT_TOLERANCE = 0.02
_CELL_TOLERANCE = 0.005
# A mean of speeds lies above the speed of the means, by a quarter where the requests differ much.
_SPEED_TOLERANCE = 0.35


def check_cell(evidence: Evidence) -> Iterator[Finding]:
    """Judges E2E = TTFT + TPOT (n - 1) over the requests for which all three are defined."""
    observations = evidence.observations
    own = per_request(observations)
    defined = ~np.isnan(own)
    means = [evidence.mean(name) for name in ("e2e_s", "ttft_s", "tpot_s")]
    if not defined.all() or not len(own) or any(mean is None for mean in means):
        yield not_applicable("e2e_s", "TPOT is not defined for every successful request")
        return
    e2e, ttft, tpot = (float(mean) for mean in means if mean is not None)
    tokens = observations.completion_tokens - 1
    # The mean of a product is not the product of the means where the lengths differ.
    spread = float(np.mean(own * tokens) - own.mean() * tokens.mean())
    expected = ttft + tpot * float(tokens.mean()) + spread
    words = f"TTFT + TPOT (n - 1) = {expected:.4g} s at n = {tokens.mean() + 1:.4g}"
    if abs(expected - e2e) > _CELL_TOLERANCE * e2e:
        yield Finding("not closed", "e2e_s", words, e2e, expected, "recompute from the recording", ("tpot_s",))
    else:
        yield passed("e2e_s", words, e2e, expected)


def check_table(table: Table) -> Iterator[Finding]:
    """Judges TPOT, ITL, TTFT and the rates of each cell."""
    for cell in table.cells:
        decode = decode_of(cell)
        if decode is not None:
            yield from _latencies(cell, decode, _tokens_a_chunk(table, cell))
        yield from _rates(cell)
        yield from _rates_of_each_other(cell)
        yield from _speed(cell)


def _latencies(cell: Cell, decode: Decode, most_tokens_a_chunk: float) -> Iterator[Finding]:
    # A zero was never measured: that is the completeness audit's.
    tpot, itl, ttft = (
        figure if figure and figure.printed > 0 else None for figure in map(cell.get, ("tpot", "itl", "ttft"))
    )
    tpot_closes = tpot is None or tpot_is_expected(cell, tpot, decode)
    implied = blamed_ttft(cell, decode)
    if tpot is not None and ttft is not None and not tpot_closes and implied is not None:
        yield _ttft(ttft, implied)
        return
    if tpot is not None:
        if tpot_closes:
            yield passed(tpot.path, _closes(tpot, decode), plain(tpot.printed))
        elif other_definition(cell, tpot) is None:
            yield _not_closed(cell, tpot, decode, decode.latency, "latency / TPOT")
    if itl is not None:
        if itl_is_possible(itl, decode, most_tokens_a_chunk):
            yield passed(itl.path, _chunks(itl, decode), plain(itl.printed))
        elif other_definition(cell, itl) is None:
            yield _not_closed(cell, itl, decode, decode.latency - decode.ttft, "(latency - TTFT) / ITL")


def _closes(figure: Figure, decode: Decode) -> str:
    own = figure.in_own_unit(decode.expected.middle)
    return f"(latency - TTFT) / (n - 1) = {own:g} at n = {decode.tokens.middle:g}"


def _chunks(figure: Figure, decode: Decode) -> str:
    ratio = figure.interval.middle / decode.expected.middle
    if ratio > 1.02:
        return f"{_closes(figure, decode)}: a gap between chunks of {ratio:.3g} tokens"
    return f"{_closes(figure, decode)}: the same as TPOT, since all tokens count"


def _not_closed(cell: Cell, figure: Figure, decode: Decode, span: Interval, formula: str) -> Finding:
    requests = cell.requests or 1
    implied = requests * span.middle / figure.interval.middle
    truth = requests * decode.tokens.middle
    return Finding(
        "not closed",
        figure.path,
        f"implied output tokens over {requests:g} requests: {implied:.0f} ({formula}); it should be "
        f"{truth:.0f}: the client did not count the tokens that were sent",
        plain(figure.printed),
        figure.in_own_unit(decode.expected.middle),
        "take n from usage; compute (latency - TTFT) / (n - 1) for each request",
    )


def _ttft(figure: Figure, implied: Interval) -> Finding:
    return Finding(
        "not closed",
        figure.path,
        f"latency - TPOT (n - 1) = {implied.middle:.4g} s, and TPOT agrees with ITL; the reported TTFT is "
        f"{figure.interval.middle:.4g} s: it stops at another delta than the first output",
        plain(figure.printed),
        figure.in_own_unit(implied.middle),
        "stop the TTFT clock at the first event with non-empty output of any kind, reasoning included",
    )


def _tokens_a_chunk(table: Table, cell: Cell) -> float:
    """The most tokens that a chunk of this cell can carry, from the accepted length in the engine's log."""
    log = table.section("engine_log").get(cell.name)
    accepted = interval_of(log.get("accept_len")) if isinstance(log, dict) else None
    return MOST_TOKENS_A_CHUNK if accepted is None else max(1.5 * accepted.high, 1.02)


def _rates(cell: Cell) -> Iterator[Finding]:
    total, requests, tokens = cell.interval("total"), cell.requests, cell.output_tokens
    if total is None or total.low <= 0 or requests is None:
        return
    count = Interval.exactly(requests)
    if tokens is not None:
        yield from _rate(cell.get("output_rate"), count * tokens / total, _THROUGHPUT_TOLERANCE)
    yield from _rate(cell.get("request_rate"), count / total, _COUNT_TOLERANCE)
    input_total, output_total = cell.get("total_input_tokens"), cell.get("total_output_tokens")
    if input_total is not None and output_total is not None:
        both = input_total.interval + output_total.interval
        yield from _rate(cell.get("total_rate"), both / total, _COUNT_TOLERANCE, above=True)


def _rates_of_each_other(cell: Cell) -> Iterator[Finding]:
    """Where no wall time is given: output throughput = request rate x tokens of a request."""
    requests, tokens, figure = cell.interval("request_rate"), cell.output_tokens, cell.get("output_rate")
    if requests is None or tokens is None or figure is None or cell.get("total") is not None:
        return
    expected = requests * tokens
    words = f"{requests.middle:g} requests/s x {tokens.middle:g} tokens = {expected.middle:.4g} tok/s"
    if figure.interval.agrees(expected, _THROUGHPUT_TOLERANCE):
        yield passed(figure.path, words, plain(figure.printed))
    else:
        bound = figure.in_own_unit(expected.middle)
        yield Finding("not closed", figure.path, words, plain(figure.printed), bound, "take the counts from usage")


def _speed(cell: Cell) -> Iterator[Finding]:
    """The speed that one user sees while tokens come, against the tokens of a request or the throughput."""
    speed, latency, ttft = cell.get("user_rate"), cell.interval("latency"), cell.interval("ttft")
    if speed is None or latency is None or ttft is None or ttft.low >= latency.high or speed.printed <= 0:
        return
    tokens, concurrency, rate = cell.output_tokens, cell.concurrency, cell.interval("output_rate")
    if tokens is not None:
        words = f"{tokens.middle:g} tokens a request"
    elif concurrency and rate is not None:
        tokens = rate * latency / Interval.exactly(concurrency)
        words = f"throughput x latency / {concurrency:g} at once = {tokens.middle:.4g} tokens a request"
    else:
        return
    implied = speed.interval * (latency - ttft) + Interval.exactly(1)
    if implied.agrees(tokens, _SPEED_TOLERANCE):
        yield passed(speed.path, f"speed x (latency - TTFT) = {implied.middle:.4g}, {words}", plain(speed.printed))
        return
    yield Finding(
        "not closed",
        speed.path,
        f"speed x (latency - TTFT) = {implied.middle:.4g} tokens, and {words}: TTFT stops at another delta than the "
        "first output, or the tokens before it are counted after it",
        plain(speed.printed),
        round(max(tokens.middle - 1, 0) / (latency.middle - ttft.middle), 2),
        "stop the TTFT clock at the first event with non-empty output of any kind, reasoning included",
    )


def _rate(figure: Figure | None, expected: Interval, tolerance: float, above: bool = False) -> Iterator[Finding]:
    """A rate below what the counts give lost tokens; one above it is left to the bound audit by default."""
    if figure is None:
        return
    low = figure.interval.high < expected.low * (1 - tolerance)
    high = above and figure.interval.low > expected.high * (1 + tolerance)
    if low or high:
        yield Finding(
            "not closed",
            figure.path,
            f"counts and wall time give {expected.middle:.4g}; reported is {figure.interval.middle:.4g}",
            plain(figure.printed),
            figure.in_own_unit(expected.middle),
            "take the counts from usage",
        )
