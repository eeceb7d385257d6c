"""Reads the timeline of a deployment: how long the GPUs were held, and for what."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from crossover.report.sheet import Deployment


@dataclass(frozen=True)
class Shares:
    """Seconds that a deployment held its GPUs, by purpose, in declared time (wall time x clock scale)."""

    total_s: float
    startup_s: float
    warmup_s: float
    measure_s: float
    other_s: float


def shares(deployment: Deployment) -> Shares | None:
    """Returns the split of a deployment's time, or None where its timeline lacks the start or the end."""
    line = deployment.timeline
    launched, stopped = seconds(line.get("launched")), seconds(line.get("stopped"))
    if launched is None or stopped is None or stopped <= launched:
        return None
    ready = seconds(line.get("ready"))
    startup = (ready if ready is not None else stopped) - launched
    warmup = _span(line.get("warmup_start"), line.get("warmup_end"))
    cells = line.get("cells")
    rows = [row for row in cells if isinstance(row, Mapping)] if isinstance(cells, list) else []
    measure = sum(_span(row.get("start"), row.get("end")) for row in rows)
    total = stopped - launched
    parts = (total, startup, warmup, measure, max(0.0, total - startup - warmup - measure))
    return Shares(*(part * deployment.clock_scale for part in parts))


def cell_seconds(deployment: Deployment) -> dict[str, float]:
    """Returns how long each cell of a deployment was measured, in declared seconds."""
    cells = deployment.timeline.get("cells")
    rows = [row for row in cells if isinstance(row, Mapping)] if isinstance(cells, list) else []
    return {str(row.get("id")): _span(row.get("start"), row.get("end")) * deployment.clock_scale for row in rows}


def seconds(stamp: Any) -> float | None:
    """Returns an RFC 3339 stamp (nanoseconds allowed) as seconds since the epoch, or None."""
    if not isinstance(stamp, str):
        return None
    head, dot, tail = stamp.replace("Z", "+00:00").partition(".")
    if dot:
        # fromisoformat takes at most microseconds.
        digits = tail[: len(tail) - len(tail.lstrip("0123456789"))]
        stamp = f"{head}.{digits[:6].ljust(6, '0')}{tail[len(digits) :]}"
    else:
        stamp = head
    try:
        return datetime.fromisoformat(stamp).timestamp()
    except ValueError:
        return None


def _span(start: Any, end: Any) -> float:
    first, last = seconds(start), seconds(end)
    return max(0.0, last - first) if first is not None and last is not None else 0.0
