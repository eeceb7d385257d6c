"""How far a download is, seen from the disk: it works the same for every client, and for what was there before."""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from types import TracebackType

_EVERY_S = 10.0
# The rate shown is that of the last minute.
_SAMPLES = 7


class Progress:
    """While it is entered, says every ten seconds how much of `total_bytes` lies in a folder, how fast it grows, and
    how long the rest will take."""

    def __init__(self, folder: Path, total_bytes: int, say: Callable[[str], None], every_s: float = _EVERY_S) -> None:
        self._folder, self._total, self._say, self._every_s = folder, total_bytes, say, every_s
        self._samples: deque[tuple[float, int]] = deque(maxlen=_SAMPLES)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="download-progress", daemon=True)

    def __enter__(self) -> Progress:
        self._samples.append((time.monotonic(), bytes_in(self._folder)))
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._over.wait(self._every_s):
            self._samples.append((time.monotonic(), bytes_in(self._folder)))
            self._say(self.line())

    def line(self) -> str:
        """Returns such as `12.40 of 594.10 GiB (2 %), 812 MiB/s, 12 min left`."""
        (first_s, first), (last_s, there) = self._samples[0], self._samples[-1]
        rate = (there - first) / (last_s - first_s) if last_s > first_s else 0.0
        if there >= self._total:
            return f"all {gib(self._total)} GiB are there, verifying the last files"
        share = f"{100 * there / self._total:.0f} %"
        left = span((self._total - there) / rate) + " left" if rate > 0 else "nothing came lately"
        return f"{gib(there)} of {gib(self._total)} GiB ({share}), {rate / 2**20:.1f} MiB/s, {left}"


def bytes_in(folder: Path) -> int:
    """Returns the bytes that the files below a folder take, files under way included."""
    total = 0
    for base, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.stat(os.path.join(base, name)).st_size  # noqa: PTH116, PTH118 - often, on many files
            except FileNotFoundError:
                continue  # moved into its place meanwhile
    return total


def gib(size_bytes: int) -> str:
    """Returns a number of bytes in GiB with two decimals."""
    return f"{size_bytes / 2**30:.2f}"


def span(seconds: float) -> str:
    """Returns a time as people say it: `40 s`, `12 min`, `3 h 20 min`."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60} min"
