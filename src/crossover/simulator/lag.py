"""How far the real process runs behind the simulated clock, counted and said."""

from __future__ import annotations

from collections.abc import Callable

from crossover.simulator.clock import Clock
from crossover.simulator.log_base import Note
from crossover.simulator.server_info import Counters

_LATE_REAL_S = 0.002  # a step delivered later than this counts as late
_REPORT_EVERY_S = 60.0  # simulated


class LagMeter:
    """Measures when steps are delivered against when they were due.

    Args:
        say: writes a note with the simulated time.
    """

    def __init__(self, clock: Clock, counters: Counters, say: Callable[[Note, float], None]) -> None:
        self._clock, self._counters, self._say = clock, counters, say
        self._steps = self._late = 0
        self._worst_s = 0.0
        self._reported_s = 0.0

    def measure(self, due_s: float) -> None:
        """Notes a step that was due at the simulated time `due_s` and is delivered now."""
        lag_s = -self._clock.real_until(due_s)
        counters, late = self._counters, lag_s > _LATE_REAL_S
        self._steps += 1
        self._late += late
        self._worst_s = max(self._worst_s, lag_s)
        counters.steps += 1
        counters.late_steps += late
        counters.lag_max_s = max(counters.lag_max_s, lag_s)
        if due_s - self._reported_s >= _REPORT_EVERY_S:
            self._reported_s = due_s
            self.report()

    def report(self) -> None:
        """Says what was late since the last report, if anything was."""
        if self._late:
            text = (
                f"SIMULATED: {self._late} of {self._steps} steps were delivered late, at most "
                f"{self._worst_s * 1000:.1f} ms of "
                f"real time ({self._worst_s * self._clock.scale:.2f} s simulated)"
            )
            self._say(Note(text, "api", "WARNING", "sim.py:1"), self._clock.now())
        self._steps = self._late = 0
        self._worst_s = 0.0
