"""Progress bars that a log keeps: each is drawn many times, and its last drawing tells how long it took."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

STATE = r" *\| *(?P<done>\d{1,7})/(?P<total>\d{1,7}) \[(?P<clock>[\d:]{4,11})[<\]]"
"""How far a bar is and since when, as it stands behind the bar itself."""

BAR = r"[^|\n]{0,80}\|[^|\n]{0,400}" + STATE
"""What follows the label of a bar."""

WEIGHTS, COMPILING, DEEP_GEMM = "weights", "compiling", "deep_gemm"
CAPTURING, CAPTURING_PREFILL = "capturing", "capturing prefill"


@dataclass(slots=True)
class Bars:
    """The bars with one label, one after the other."""

    number: int = 0
    last: tuple[int, int] = (0, 0)
    seconds: dict[int, float] = field(default_factory=dict)

    def drawn(self, done: int, total: int, seconds: float) -> None:
        """Takes one drawing; a bar that stands lower than the one before, or has another end, is the next one."""
        if done < self.last[0] or (total != self.last[1] and self.last[1]):
            self.number += 1
        self.last = (done, total)
        if done == total > 0:
            self.seconds[self.number] = max(seconds, self.seconds.get(self.number, 0.0))


def clock_s(clock: str) -> float:
    """Returns the seconds of a bar's clock, `MM:SS` or `H:MM:SS`."""
    total = 0.0
    for part in clock.split(":"):
        total = total * 60 + int(part or 0)
    return total


def note(bars: dict[str, Bars], label: str, match: re.Match[str]) -> None:
    """Adds a drawing that `STATE` matched."""
    known = bars.setdefault(label, Bars())
    known.drawn(int(match["done"]), int(match["total"]), clock_s(match["clock"]))
