"""What container runtimes put around lines: Docker's JSON, and entries that they cut at 16 KiB.

A line that lists hundreds of arguments is longer than that. Docker then writes records whose text has no newline at
its end, a Kubernetes runtime (CRI) marks all pieces but the last with `P` instead of `F`.
"""

from __future__ import annotations

import json
import re
from typing import Any

_PIECE = 8000
"""Shorter records without a newline are whole: some collectors take it off."""

_CRI = re.compile(r"\d{4}-\d\d-\d\dT\S{8,24} (stdout|stderr) ([PF]) ")
_CRI_MARKS = (" stdout P ", " stderr P ")


def unwrap_docker(block: str) -> str:
    """Returns the block with each JSON record of Docker as its line, the time in front; pieces are put together."""
    lines: list[str] = []
    opened: dict[str, int] = {}
    for line in block.split("\n"):
        entry = _record(line)
        if entry is None:
            lines.append(line)
            continue
        log, stream = str(entry["log"]), str(entry.get("stream"))
        piece = len(log) >= _PIECE and not log.endswith("\n")
        text = (log if piece else log.rstrip()).replace("\n", " ")
        place = opened.pop(stream, None)
        if place is None:
            place = len(lines)
            lines.append(f"{entry.get('time', '')} {text}")
        else:
            lines[place] += text
        if piece:
            opened[stream] = place
    return "\n".join(lines)


def _record(line: str) -> dict[str, Any] | None:
    if not line.startswith('{"log":'):
        return None
    try:
        entry = json.loads(line)
    except ValueError:
        return None
    return entry if isinstance(entry, dict) and "log" in entry else None


def join_pieces(block: str) -> str:
    """Returns the block with the pieces that a Kubernetes runtime marked put together, each under its first prefix."""
    if not any(mark in block for mark in _CRI_MARKS):
        return block
    lines: list[str] = []
    opened: dict[str, int] = {}
    for line in block.split("\n"):
        match = _CRI.match(line)
        place = opened.pop(match[1], None) if match else None
        if match is None or place is None:
            place = len(lines)
            lines.append(line)
        else:
            lines[place] += line[match.end() :]
        if match is not None and match[2] == "P":
            opened[match[1]] = place
    return "\n".join(lines)
