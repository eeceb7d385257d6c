"""When each request is due: closed loop, and open loop with Poisson or equal gaps, with a ramp."""

from __future__ import annotations

import heapq
from typing import Protocol

import numpy as np
import numpy.typing as npt

from crossover.client.settings import Load

_NS = 1_000_000_000


class Schedule(Protocol):
    """Due times in nanoseconds after the clock's start."""

    def next_due_ns(self) -> int | None:
        """Returns when the next request is due; None where none is waiting for its time."""

    def take(self) -> int:
        """Removes the next due time and returns it."""

    def on_end(self, now_ns: int) -> None:
        """Tells the schedule that a request ended."""

    def due_within(self, now_ns: int, span_ns: int) -> int:
        """Returns about how many requests will start in the coming span, for connecting ahead."""


def make_schedule(load: Load, prompts: int) -> Schedule:
    """Returns the schedule of a load.

    Args:
        prompts: the number of requests where the load names neither a number nor a duration.
    """
    limit = load.requests if load.requests is not None else (None if load.duration_s else prompts)
    if load.concurrency is not None:
        return ClosedLoop(load.concurrency, limit, load.duration_s, load.ramp_s)
    return OpenLoop(arrival_times_ns(load, limit))


class ClosedLoop:
    """A request starts when another ends, so that `concurrency` are always under way."""

    def __init__(self, concurrency: int, limit: int | None, duration_s: float | None, ramp_s: float) -> None:
        self._left = limit
        self._deadline_ns = None if duration_s is None else int(duration_s * _NS)
        self._width = concurrency
        self._due: list[int] = []
        for slot in range(concurrency if limit is None else min(concurrency, limit)):
            self._add(int(slot * ramp_s / concurrency * _NS))

    def _add(self, due_ns: int) -> None:
        if self._left == 0 or (self._deadline_ns is not None and due_ns > self._deadline_ns):
            return
        if self._left is not None:
            self._left -= 1
        heapq.heappush(self._due, due_ns)

    def next_due_ns(self) -> int | None:
        """See Schedule."""
        return self._due[0] if self._due else None

    def take(self) -> int:
        """See Schedule."""
        return heapq.heappop(self._due)

    def on_end(self, now_ns: int) -> None:
        """See Schedule."""
        self._add(now_ns)

    def due_within(self, now_ns: int, span_ns: int) -> int:
        """See Schedule: those that wait for the ramp, and a few for requests about to end."""
        waiting = sum(1 for due in self._due if due <= now_ns + span_ns)
        expiring = self._deadline_ns is not None and now_ns > self._deadline_ns
        left = 0 if expiring else (self._width if self._left is None else self._left)
        return waiting + min(left, self._width, 32)


class OpenLoop:
    """Requests start at given times."""

    def __init__(self, due_ns: npt.NDArray[np.int64]) -> None:
        self._due = due_ns
        self._next = 0

    def next_due_ns(self) -> int | None:
        """See Schedule."""
        return int(self._due[self._next]) if self._next < len(self._due) else None

    def take(self) -> int:
        """See Schedule."""
        self._next += 1
        return int(self._due[self._next - 1])

    def on_end(self, now_ns: int) -> None:
        """See Schedule: the end of a request changes nothing here."""

    def due_within(self, now_ns: int, span_ns: int) -> int:
        """See Schedule."""
        return int(np.searchsorted(self._due, now_ns + span_ns, side="right")) - self._next


def arrival_times_ns(load: Load, limit: int | None) -> npt.NDArray[np.int64]:
    """Returns the times at which an open loop sends, in nanoseconds after its start.

    A unit-rate process is drawn (gaps of 1, or exponential gaps of mean 1) and its time is changed by the
    inverse of the expected number of arrivals: rate x t after the ramp, rate x t^2 / (2 ramp) during it.
    """
    assert load.rate_per_s is not None
    rate, ramp = load.rate_per_s, load.ramp_s
    expected = rate * (load.duration_s or 0)
    count = limit if limit is not None else int(expected + 10 * np.sqrt(expected) + 10)
    if load.arrivals == "fixed":
        units = np.arange(count, dtype=np.float64)
    else:
        gaps = np.random.default_rng(load.seed).exponential(1.0, count)
        units = np.cumsum(gaps) - gaps[0]
    in_ramp = units < rate * ramp / 2
    times = np.where(in_ramp, np.sqrt(2 * units * ramp / rate), units / rate + ramp / 2)
    if load.duration_s is not None:
        times = times[times <= load.duration_s]
    return (times * _NS).astype(np.int64)
