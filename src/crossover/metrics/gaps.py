"""What several definitions need from the stream of events: spans, tokens inside them, blocks of time."""

from __future__ import annotations

import itertools

import numpy as np

from crossover.metrics.definition import FloatArray, IntArray
from crossover.metrics.observations import Observations

BLOCKS = 20


def blocks_of(times_s: FloatArray) -> IntArray:
    """Returns the block (of 20 with equally many values) that each time falls into.

    Requests in one batch share each step of the engine, and neighbouring steps resemble each other, so
    gaps are not independent samples. Stretches of time long against a step nearly are.
    """
    ranks = np.empty(len(times_s), dtype=np.int64)
    ranks[np.argsort(times_s, kind="stable")] = np.arange(len(times_s))
    return ranks * BLOCKS // max(len(times_s), 1)


def decoding(observations: Observations) -> tuple[FloatArray, IntArray]:
    """Returns the times at which the number of decoding requests changes, and the number from then on."""
    known = ~np.isnan(observations.first_s)
    # At equal times starts come first, so that a request that follows another without a pause leaves no gap.
    return _steps(observations.first_s[known], observations.last_s[known], ends_first=False)


def in_flight(observations: Observations) -> tuple[FloatArray, IntArray]:
    """Returns the times at which the number of requests between send and last output changes, and it."""
    known = ~np.isnan(observations.all_last_s)
    # A request that is sent as another ends is not in flight with it.
    return _steps(observations.all_sent_s[known], observations.all_last_s[known], ends_first=True)


def full_spans(observations: Observations, wanted: int) -> FloatArray:
    """Returns the spans, shape (spans, 2) in seconds, in which at least `wanted` requests decode."""
    times, counts = decoding(observations)
    if not len(times) or wanted < 1:
        return np.empty((0, 2))
    full = counts >= wanted
    edges = np.diff(np.r_[False, full, False].astype(np.int8))
    starts, ends = np.flatnonzero(edges == 1), np.flatnonzero(edges == -1)
    return np.column_stack([times[starts], times[np.minimum(ends, len(times) - 1)]])


def tokens_within(observations: Observations, spans: FloatArray) -> float:
    """Returns the tokens inside the spans; an event's tokens are spread over the gap before it."""
    edges = spans.ravel()
    return float(cumulative_tokens(observations, edges).reshape(-1, 2) @ np.array([-1.0, 1.0]) @ np.ones(len(spans)))


def cumulative_tokens(observations: Observations, times_s: FloatArray) -> FloatArray:
    """Returns the tokens that all requests had emitted by each time, shape of `times_s`.

    Each request's count is linear between its output events; the tokens of its first output come at once.
    """
    total = np.zeros(len(times_s))
    stream = observations.event_stream
    if not len(stream):
        return total
    edges = np.flatnonzero(np.r_[True, stream[1:] != stream[:-1], True])
    for start, end in itertools.pairwise(edges):
        counts = np.cumsum(observations.tokens[start:end])
        total += np.interp(times_s, observations.event_s[start:end], counts, left=0.0)
    return total


def _steps(starts: FloatArray, ends: FloatArray, *, ends_first: bool) -> tuple[FloatArray, IntArray]:
    times = np.r_[starts, ends]
    changes = np.r_[np.ones(len(starts), dtype=np.int64), -np.ones(len(ends), dtype=np.int64)]
    order = np.lexsort((changes if ends_first else -changes, times))
    return times[order], np.cumsum(changes[order])
