"""What the throughput lines show together: requests that the KV cache keeps waiting, prefill that starves decoding.

May import the records and the incident kinds of `crossover.logs`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice

from crossover.logs.incidents import CATALOGUE, Kind
from crossover.logs.model import Incident, Interval

_FULL = 0.85  # above this share of the KV cache a scheduler admits little, as running requests grow into the rest
_STARVED_TOK_S = 1.0  # a request; no engine decodes so slowly that is not kept from it
_SAMPLES = 2  # at least: one sample may be an odd moment
_LOOKED_AT = 100_000  # rows: eleven days of ten seconds


def findings(intervals: Iterable[Interval]) -> Iterator[Incident]:
    """Yields one incident a kind of finding, over all engines.

    Args:
        intervals: in the order of the log; the first hundred thousand are looked at.
    """
    busy = [row for row in islice(intervals, _LOOKED_AT) if row.running]
    held_back = [row for row in busy if _held_back(row)]
    yield from _finding(held_back, len(busy), Kind.CONCURRENCY_CAPPED, _held_back_message)
    starved = [row for row in _crowded(busy) if _starved(row)]
    yield from _finding(starved, len(busy), Kind.DECODE_STARVED, _starved_message)


def _crowded(busy: list[Interval]) -> Iterator[Interval]:
    """Samples of several requests after one of several: one alone, and the first ones, prefill their own prompts."""
    before: dict[int | None, int] = {}
    for row in busy:
        running = row.running or 0
        if running > 1 and before.get(row.engine_id, 0) > 1:
            yield row
        before[row.engine_id] = running


def _finding(
    found: list[Interval], busy: int, kind: Kind, message: Callable[[list[Interval], int], str]
) -> Iterator[Incident]:
    if len(found) >= _SAMPLES:
        first, last = found[0], found[-1]
        entry = CATALOGUE[kind]
        yield Incident(
            first.t,
            kind.value,
            entry.severity.value,
            len(found),
            message(found, busy),
            entry.advice,
            first.t_outer,
            last.t,
        )


def _held_back(row: Interval) -> bool:
    return bool(row.waiting) and row.kv_usage is not None and row.kv_usage >= _FULL


def _held_back_message(found: list[Interval], busy: int) -> str:
    running = [row.running or 0 for row in found]
    waiting = max(row.waiting or 0 for row in found)
    run = f"{min(running)} to {max(running)}" if min(running) < max(running) else f"{running[0]}"
    return (
        f"in {len(found)} of {busy} samples requests wait while the KV cache is full ({_FULL:.0%} or more): "
        f"{run} run, up to {waiting} wait; the cache sets the concurrency, not the client"
    )


def _starved(row: Interval) -> bool:
    if not row.prefill_tok_s or row.decode_tok_s is None or not row.running:
        return False
    return row.decode_tok_s / row.running < _STARVED_TOK_S


def _starved_message(found: list[Interval], busy: int) -> str:
    slowest = min((row.decode_tok_s or 0.0) / (row.running or 1) for row in found)
    fastest = max(row.prefill_tok_s or 0.0 for row in found)
    return (
        f"in {len(found)} of {busy} samples a running request decodes less than {_STARVED_TOK_S:g} token a second "
        f"(down to {slowest:.2f}) beside prefill of up to {fastest:g} tokens a second"
    )
