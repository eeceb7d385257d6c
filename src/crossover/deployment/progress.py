"""Tells a person how far a deployment is: a live line at a terminal, plain lines in a pipe."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TextIO

from crossover.deployment.clock import now

PLAIN_INTERVAL_S = 5.0


@dataclass(frozen=True)
class CellProgress:
    """How far one cell is.

    `tok_s` is a lower bound, since a chunk may carry several tokens and nothing is interpreted under load; it and
    `elapsed_s` are in the time of the engine's clock, `left_s` in that of the wall.
    """

    sent: int
    done: int
    failed: int
    total: int | None
    tok_s: float
    elapsed_s: float
    left_s: float | None

    def line(self) -> str:
        total = f"/{self.total}" if self.total else ""
        failed = f", {self.failed} failed" if self.failed else ""
        left = f", about {duration(self.left_s)} left" if self.left_s is not None else ""
        rate = f"at least {self.tok_s:,.0f} tok/s"
        return f"{self.done}{total} requests done{failed}, {rate}, {duration(self.elapsed_s)}{left}"


def duration(seconds: float) -> str:
    """Returns seconds as people read them: 9 s, 1:05 min, 2:03:00 h."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60}:{whole % 60:02d} min"
    return f"{whole // 3600}:{whole % 3600 // 60:02d}:{whole % 60:02d} h"


class Reporter(Protocol):
    """Where progress goes."""

    def say(self, text: str) -> None:
        """Tells an event, once."""

    def show(self, text: str) -> None:
        """Tells a passing state, which the next one replaces."""

    def close(self) -> None: ...


class PlainReporter:
    """Lines for pipes and logs; passing states at most every few seconds."""

    def __init__(self, stream: TextIO, label: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._stream, self._label, self._clock = stream, label, clock
        self._shown = clock()

    def say(self, text: str) -> None:
        print(f"[{self._label}] {text}", file=self._stream, flush=True)

    def show(self, text: str) -> None:
        if self._clock() - self._shown >= PLAIN_INTERVAL_S:
            self._shown = self._clock()
            self.say(text)

    def close(self) -> None:
        pass


class TerminalReporter:
    """A line that renews itself below the events, for a person at a terminal."""

    def __init__(self, stream: TextIO, label: str) -> None:
        from rich.console import Console
        from rich.status import Status

        self._console = Console(file=stream, highlight=False)
        self._label = label
        self._status: Any = Status("", console=self._console)
        self._status.start()

    def say(self, text: str) -> None:
        from rich.markup import escape

        self._console.print(f"[bold]{escape(self._label)}[/bold] {escape(text)}")

    def show(self, text: str) -> None:
        from rich.markup import escape

        self._status.update(f"{escape(self._label)}: {escape(text)}")

    def close(self) -> None:
        self._status.stop()


class LoggedReporter:
    """Hands everything on, and writes plain lines to a log file besides."""

    def __init__(self, shown: Reporter, log: Path, label: str) -> None:
        log.parent.mkdir(parents=True, exist_ok=True)
        self._shown, self._file = shown, log.open("a")
        self._plain = PlainReporter(self._file, label)

    def say(self, text: str) -> None:
        self._shown.say(text)
        self._plain.say(f"{now()} {text}")

    def show(self, text: str) -> None:
        self._shown.show(text)
        self._plain.show(f"{now()} {text}")

    def close(self) -> None:
        self._shown.close()
        self._file.close()


def reporter(label: str, stream: TextIO | None = None, log: Path | None = None) -> Reporter:
    """Returns the reporter that fits the stream, standard error by default, with a log file if one is given."""
    stream = stream or sys.stderr
    shown = TerminalReporter(stream, label) if stream.isatty() else PlainReporter(stream, label)
    return LoggedReporter(shown, log, label) if log else shown


def cell_progress(progress: Any, total: int | None, clock_scale: float) -> CellProgress:
    """Turns `crossover.client.Progress` into what is shown; the rest is estimated from the requests done."""
    elapsed_s = float(progress.elapsed_s)
    ended = progress.done + progress.failed
    left_s = elapsed_s / ended * (total - ended) if total and ended else None
    rate = progress.tokens_seen_estimate / elapsed_s / clock_scale if elapsed_s else 0.0
    return CellProgress(progress.sent, progress.done, progress.failed, total, rate, elapsed_s * clock_scale, left_s)
