"""The identities between published latencies, shared by the audits that judge them from different sides.

For one request with n output tokens: E2E = TTFT + TPOT (n - 1). Means obey it too where all requests have
the same n; where they do not, the mean TPOT weighs requests differently and gets a wider tolerance.
"""

from __future__ import annotations

from dataclasses import dataclass

from crossover.audits.printed import Interval
from crossover.audits.table import Cell, Figure

FIXED_TOLERANCE = 0.02
VARIED_TOLERANCE = 0.25
SAME_FIGURE = 0.002
# Means of ratios over requests of different lengths, against ratios of means.
NEARLY_SAME = 0.05
_ONE = Interval.exactly(1)

# Chunks carry several tokens, so a gap between chunks may be this many times the time of a token
# where nothing is known of speculation: seven drafted tokens and the bonus one.
MOST_TOKENS_A_CHUNK = 8.0


@dataclass(frozen=True)
class Decode:
    """What latency, TTFT and the number of tokens say of the time a token takes.

    Attributes:
        expected: (latency - TTFT) / (n - 1), seconds.
        with_ttft: latency / n, seconds: what a TPOT column that includes TTFT shows.
        tolerance: relative distance up to which a TPOT is the expected one.
    """

    latency: Interval
    ttft: Interval
    tokens: Interval
    expected: Interval
    with_ttft: Interval
    tolerance: float


def decode_of(cell: Cell) -> Decode | None:
    """Returns the expected time per token of a cell, or None where latency, TTFT or tokens are not there."""
    latency, ttft, tokens = cell.interval("latency"), cell.interval("ttft"), cell.output_tokens
    if latency is None or ttft is None or tokens is None or tokens.low <= 1 or ttft.low >= latency.high:
        return None
    if ttft.low <= 0:
        return None
    return Decode(
        latency,
        ttft,
        tokens,
        expected=(latency - ttft) / (tokens - _ONE),
        with_ttft=latency / tokens,
        tolerance=FIXED_TOLERANCE if cell.fixed_length else VARIED_TOLERANCE,
    )


def other_definition(cell: Cell, figure: Figure) -> tuple[str, Interval] | None:
    """Returns the definition that a TPOT or ITL column equals instead of its own, and that one's value.

    None where the column is what it says, or equals none that is known.
    """
    decode = decode_of(cell)
    if decode is not None and figure.interval.agrees(decode.expected, decode.tolerance):
        return None
    for name, value in _definitions(cell, decode):
        if figure.interval.agrees(value, SAME_FIGURE):
            return name, value
    events = cell.interval("events")
    if decode is not None and events is not None and events.low > 0:
        value = (decode.latency - decode.ttft) / events
        if figure.interval.agrees(value, NEARLY_SAME):
            return "(latency - TTFT) / events, each of which carries several tokens", value
    return None


def _definitions(cell: Cell, decode: Decode | None) -> list[tuple[str, Interval]]:
    found = []
    latency, tokens, rate = cell.interval("latency"), cell.output_tokens, cell.interval("output_rate")
    if latency is not None and tokens is not None and tokens.low > 1:
        found.append(("latency / n, which includes TTFT", latency / tokens))
        found.append(("latency / (n - 1), which includes TTFT", latency / (tokens - _ONE)))
    if decode is not None:
        found.append(("(latency - TTFT) / n", (decode.latency - decode.ttft) / decode.tokens))
    # With one request at a time the inverse of the throughput is a time per token, TTFT included.
    if rate is not None and rate.low > 0:
        found.append(("1 / output throughput, which is shared by all requests", _ONE / rate))
    return found


def tpot_is_expected(cell: Cell, figure: Figure, decode: Decode) -> bool:
    """Whether a TPOT column closes the identity."""
    return figure.interval.agrees(decode.expected, decode.tolerance)


def itl_is_possible(figure: Figure, decode: Decode, most_tokens_a_chunk: float) -> bool:
    """Whether an ITL column can be the mean gap between tokens, or between chunks of several tokens.

    The mean gap between tokens is sum(E2E - TTFT) / sum(n - 1) for any mix of lengths, so the tolerance is
    the narrow one; a gap between chunks is longer by the tokens that a chunk carries.
    """
    if figure.interval.agrees(decode.expected, FIXED_TOLERANCE):
        return True
    ratio = figure.interval / decode.expected
    return ratio.high >= 1 and ratio.low <= most_tokens_a_chunk


def blamed_ttft(cell: Cell, decode: Decode) -> Interval | None:
    """Returns the TTFT that TPOT and ITL agree on, where they agree with each other and not with the table's.

    TPOT and ITL come from different stamps, so where both give the same time per token, and the TTFT that
    this leaves lies nearer to the median than the published mean does, TTFT is the odd one out.
    """
    tpot, itl, median = cell.interval("tpot"), cell.interval("itl"), cell.interval("ttft", "p50")
    if tpot is None or itl is None or not tpot.agrees(itl, 0.01):
        return None
    implied = decode.latency - tpot * (decode.tokens - _ONE)
    if implied.high <= 0 or implied.low >= decode.latency.high or median is None:
        return None
    nearer = abs(implied.middle - median.middle) < abs(decode.ttft.middle - median.middle)
    return implied if nearer else None
