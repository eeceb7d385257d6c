"""Cuts the part of a growing engine log that belongs to one cell."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path


def size(log: Path) -> int:
    """Returns the bytes written so far; 0 before the first line."""
    try:
        return log.stat().st_size
    except FileNotFoundError:
        return 0


def copy_parts(log: Path, parts: Sequence[tuple[int, int]], target: Path) -> None:
    """Writes byte ranges of a log, one after the other, each cut back or on to whole lines.

    Args:
        parts: (start, end) offsets in bytes.
    """
    with log.open("rb") as source, target.open("wb") as sink:
        for start, end in parts:
            source.seek(start)
            data = source.read(max(0, end - start))
            if start and data:
                source.seek(start - 1)
                if source.read(1) != b"\n":  # the range starts inside a line, which the part before holds
                    data = data[data.find(b"\n") + 1 :] if b"\n" in data else b""
            sink.write(data if data.endswith(b"\n") or not data else data + b"\n")
