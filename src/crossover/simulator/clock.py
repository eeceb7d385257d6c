"""The simulated clock: the wall clock at the start plus the real time since then, times the scale."""

from __future__ import annotations

import time
from datetime import datetime


class Clock:
    """Maps real to simulated time. All `sim` times are seconds since the start of the simulated engine."""

    def __init__(self, scale: float) -> None:
        self.scale = scale
        self._origin = time.monotonic()
        self.epoch_s = time.time()

    def now(self) -> float:
        """Returns the simulated seconds since the start."""
        return (time.monotonic() - self._origin) * self.scale

    def real_until(self, sim_s: float) -> float:
        """Returns the real seconds from now until a simulated time (negative when it has passed)."""
        return self._origin + sim_s / self.scale - time.monotonic()

    def stamp(self, sim_s: float) -> datetime:
        """Returns the simulated wall clock, local time as the engines print it."""
        return datetime.fromtimestamp(self.epoch_s + sim_s)

    def unix(self, sim_s: float) -> int:
        """Returns the simulated wall clock in whole seconds since 1970."""
        return int(self.epoch_s + sim_s)
