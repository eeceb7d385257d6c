"""Copies a container's log into a file as it grows, each line behind its time, secrets taken out."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO

from crossover.redaction import names_of, with_names

_FINE_STAMP = re.compile(rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z ")
_ANY_STAMP = re.compile(rb"\d{4}-\d\d-\d\dT\S+ ")
_AGAIN_S = 0.5


class LogFollower(threading.Thread):
    """Follows a stream of stamped log bytes until the log is over; a stream that ends before (a daemon that is started
    again, a connection that is cut) is taken up behind the lines that came.

    The container's runtime keeps the log meanwhile, so nothing waits for this thread: if our process is
    killed, the engine goes on writing. A runtime whose stamps are coarser than a nanosecond (Podman: a
    second) has them replaced by the time at which the line arrived here.

    Args:
        connect: opens the stream of the lines from a Unix time on, or of all; called in this thread, since it may wait
            for the first line.
        path: the file, added to.
        secrets: name to value; a value is replaced by its name.
        is_over: whether nothing more is to come once the stream has ended.

    Attributes:
        lost_bytes: of the log, which could not be written.
    """

    def __init__(
        self,
        connect: Callable[[int | None], Iterable[bytes]],
        path: Path,
        secrets: Mapping[str, str],
        is_over: Callable[[], bool],
    ) -> None:
        super().__init__(name=f"log of {path.parent.name}", daemon=True)
        self._connect, self._path, self._is_over = connect, path, is_over
        self._secrets = names_of(secrets)
        self._seen = _Seen()
        self.lost_bytes = 0

    def run(self) -> None:
        with self._path.open("ab", buffering=0) as file:
            self._copy(file)
            while not self._is_over():
                time.sleep(_AGAIN_S)
                self._copy(file)

    def _copy(self, file: BinaryIO) -> None:
        rest = b""
        self._seen.begin()
        for chunk in self._chunks():
            *lines, rest = (rest + chunk).split(b"\n")
            self._write(file, lines)
        # A line that was cut comes whole with the next stream, or never.
        if rest and self._is_over():
            self._write(file, [rest])

    def _chunks(self) -> Iterable[bytes]:
        try:
            yield from self._connect(self._seen.second())
        except Exception:  # the connection ends in many ways when a container is removed under it
            return

    def _write(self, file: BinaryIO, lines: Iterable[bytes]) -> None:
        text = b"".join(with_names(_stamped(line), self._secrets) + b"\n" for line in lines if self._seen.is_new(line))
        try:
            written = file.write(text) or 0
        except OSError:  # a full disk must not end the following
            written = 0
        self.lost_bytes += len(text) - written


class _Seen:
    """Which lines came already: those up to a stamp, and how many of that very stamp."""

    def __init__(self) -> None:
        self._stamp, self._count = b"", 0
        self._before, self._to_skip = b"", 0

    def begin(self) -> None:
        """Takes note that a stream begins, whose first lines may have come before."""
        self._before, self._to_skip = self._stamp, self._count

    def second(self) -> int | None:
        """Returns the Unix time from which on lines are wanted, None for all."""
        try:
            return int(datetime.fromisoformat(self._stamp.decode()).timestamp())
        except ValueError:
            return None

    def is_new(self, line: bytes) -> bool:
        match = _ANY_STAMP.match(line)
        stamp = match[0].strip() if match else self._stamp
        if stamp < self._before:
            return False
        if stamp == self._before and self._to_skip:
            self._to_skip -= 1
            return False
        if stamp == self._stamp:
            self._count += 1
        else:
            self._stamp, self._count = stamp, 1
        return True


def _stamped(line: bytes) -> bytes:
    if _FINE_STAMP.match(line):
        return line
    second, nanosecond = divmod(time.time_ns(), 1_000_000_000)
    own = f"{datetime.fromtimestamp(second, UTC):%Y-%m-%dT%H:%M:%S}.{nanosecond:09d}Z ".encode()
    return own + _ANY_STAMP.sub(b"", line, count=1)
