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


class LogFollower(threading.Thread):
    """Follows a stream of stamped log bytes until it ends.

    The container's runtime keeps the log meanwhile, so nothing waits for this thread: if our process is
    killed, the engine goes on writing. A runtime whose stamps are coarser than a nanosecond (Podman: a
    second) has them replaced by the time at which the line arrived here.

    Args:
        connect: opens the stream; called in this thread, since it may wait for the first line.
        path: the file, added to.
        secrets: name to value; a value is replaced by its name.
    """

    def __init__(self, connect: Callable[[], Iterable[bytes]], path: Path, secrets: Mapping[str, str]) -> None:
        super().__init__(name=f"log of {path.parent.name}", daemon=True)
        self._connect, self._path = connect, path
        self._secrets = names_of(secrets)

    def run(self) -> None:
        rest = b""
        with self._path.open("ab") as file:
            for chunk in self._chunks():
                *lines, rest = (rest + chunk).split(b"\n")
                self._write(file, lines)
            self._write(file, [rest] if rest else [])

    def _chunks(self) -> Iterable[bytes]:
        try:
            yield from self._connect()
        except Exception:  # the connection ends in many ways when a container is removed under it
            return

    def _write(self, file: BinaryIO, lines: Iterable[bytes]) -> None:
        for line in lines:
            file.write(with_names(_stamped(line), self._secrets) + b"\n")
        file.flush()


def _stamped(line: bytes) -> bytes:
    if _FINE_STAMP.match(line):
        return line
    second, nanosecond = divmod(time.time_ns(), 1_000_000_000)
    own = f"{datetime.fromtimestamp(second, UTC):%Y-%m-%dT%H:%M:%S}.{nanosecond:09d}Z ".encode()
    return own + _ANY_STAMP.sub(b"", line, count=1)
