"""What the log writers of both dialects share: output, and the vocabulary of start-up scripts."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass

from crossover.simulator.calibration import load_calibration
from crossover.simulator.clock import Clock
from crossover.simulator.settings import Settings

SIMULATED = "SIMULATED engine: no model and no GPU here; all times are simulated"


@dataclass(frozen=True)
class Note:
    """One line to come: who says it (`None`: printed as it is), how grave, from which source line, and what."""

    message: str
    source: str | None = "api"
    level: str = "INFO"
    where: str = ""


@dataclass(frozen=True)
class Phase:
    """A phase of the start-up: the lines at its beginning and at its end."""

    name: str
    seconds: float
    begin: tuple[Note, ...] = ()
    end: tuple[Note, ...] = ()


class Lines:
    """Buffers lines and writes them at once, so that a step costs at most one write."""

    def __init__(self, clock: Clock, write: Callable[[str], object] | None = None) -> None:
        self.clock = clock
        self._write = write or sys.stdout.write
        self._lines: list[str] = []

    def add(self, line: str) -> None:
        self._lines.append(line)

    def flush(self) -> None:
        """Writes what has gathered; a reader that has gone away is not an error."""
        if not self._lines:
            return
        text = "\n".join(self._lines) + "\n"
        self._lines.clear()
        try:
            self._write(text)
            if self._write == sys.stdout.write:
                sys.stdout.flush()
        except BrokenPipeError:
            self._write = len  # nobody listens any more; the engine serves on


def oom_retry_text(settings: Settings, rank: int) -> str:
    """Returns what a worker says of an allocation that failed once."""
    figures = load_calibration()[settings.dialect]["oom_retry"]
    return (
        f"Allocation of {figures['wanted_gib']:.2f} GiB failed with OOM: GPU {rank} has "
        f"{settings.memory.visible_gib:.2f} GiB, of "
        f"which {figures['free_gib']:.2f} GiB is free. Cached blocks are freed for a soft OOM retry."
    )


def progress(label: str, total: int, seconds: float, unit: str = "it/s") -> str:
    """Returns a finished progress bar as tqdm draws it."""
    minutes, rest = divmod(int(seconds), 60)
    rate = total / seconds if seconds else 0.0
    speed = f"{1 / rate:.2f}s/{unit.split('/')[0]}" if 0 < rate < 1 else f"{rate:.2f}{unit}"
    return f"{label}: 100%|{'█' * 10}| {total}/{total} [{minutes:02d}:{rest:02d}<00:00, {speed}]"
