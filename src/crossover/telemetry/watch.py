"""The sampling process as its starter sees it."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from crossover.telemetry.summary import summarise
from crossover.telemetry.table import LINES, read_lines

INTERVAL_S = 1.0
_MARK_TIMEOUT_S = 1.0
_END_TIMEOUT_S = 5.0


class MachineWatch:
    """Samples this machine while a server is up. Whatever goes wrong with it costs figures, never the run."""

    def __init__(
        self, folder: Path, server_pid: int | None, *, with_gpus: bool = True, interval_s: float = INTERVAL_S
    ) -> None:
        """Starts the sampling process, which ends with this one at the latest.

        Args:
            folder: the live folder, for telemetry.jsonl.
            server_pid: the process at the root of the server's, None where it is not on this machine.
            with_gpus: whether the server runs on this machine's GPUs.
            interval_s: time between samples.
        """
        self._path, self._errors = folder / LINES, folder / "telemetry.err"
        words = [str(self._path), str(interval_s), str(os.getpid()), str(server_pid or 0), str(int(with_gpus))]
        with self._errors.open("wb") as errors:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "crossover.telemetry.sampler", *words],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=errors,
                start_new_session=True,  # an interrupt from the terminal is for us, not for it
            )

    def mark(self) -> None:
        """Takes a sample now, so that a window begins or ends at one; waits until it is written, a second at most."""
        before = self._size()
        with contextlib.suppress(OSError):
            assert self._process.stdin is not None
            self._process.stdin.write(b"\n")
            self._process.stdin.flush()
        deadline = time.monotonic() + _MARK_TIMEOUT_S
        while self._size() == before and self._process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.005)

    def summary(self, start: str, end: str) -> dict[str, Any]:
        """Returns what the machine did in a window; see `summarise`.

        Args:
            start: begin of the window, RFC 3339.
            end: its end.
        """
        header, samples = read_lines(self._path)
        found = summarise(header, samples, start, end)
        if self._process.poll() is not None:
            found["missing"].append(f"the sampling process has ended ({self._last_words()})")
        return found

    def close(self) -> None:
        """Takes the last sample and ends the sampling process. May be called again."""
        with contextlib.suppress(OSError):
            assert self._process.stdin is not None
            self._process.stdin.close()
        try:
            self._process.wait(_END_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _size(self) -> int:
        try:
            return self._path.stat().st_size
        except OSError:
            return 0

    def _last_words(self) -> str:
        lines = self._errors.read_text(errors="replace").splitlines()
        return lines[-1] if lines else f"status {self._process.returncode}"
