"""A published engine log against itself: means inside their ranges, times that add up."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from crossover.audits.finding import Finding, passed
from crossover.audits.printed import Interval, plain
from crossover.audits.table import Table, interval_of, number

IDENTITY = "a mean lies in its range; container to ready is the difference of the two times"
TOLERANCE = "rounding of the printed figures"
REASON = "a mean outside its range belongs to other samples than the range"
_CLOCK = re.compile(r"(?:.*[T ])?(\d{1,2}):(\d{2}):(\d{2}(?:\.\d+)?)\Z")


def check_table(table: Table) -> Iterator[Finding]:
    """Judges the sections `engine_log` and `cold_start`."""
    for cell, log in table.section("engine_log").items():
        if isinstance(log, Mapping):
            yield from _ranges(f"engine_log.{cell}", log)
    for variant, times in table.section("cold_start").items():
        if isinstance(times, Mapping):
            yield from _cold_start(f"cold_start.{variant}", times)


def _ranges(path: str, log: Mapping[str, Any]) -> Iterator[Finding]:
    for name, value in log.items():
        spread = interval_of(log.get(f"{name}_range"))
        mean = interval_of(value) if number(value) is not None else None
        if spread is None or mean is None:
            continue
        if mean.agrees(spread):
            yield passed(f"{path}.{name}", "inside its range", plain(value))
        else:
            yield Finding(
                "inconsistent",
                f"{path}.{name}",
                f"a mean of {value:g} outside its range of {spread.low:g} to {spread.high:g}",
                plain(value),
                None,
                "take mean and range from the same samples",
            )


def _cold_start(path: str, times: Mapping[str, Any]) -> Iterator[Finding]:
    start, end = _seconds(times.get("container_created")), _seconds(times.get("ready"))
    stated = interval_of(times.get("container_to_ready_min"))
    if start is None or end is None or stated is None:
        return
    minutes = ((end - start) % 86_400) / 60
    # The times are printed to the second.
    computed = Interval(minutes - 1 / 60, minutes + 1 / 60)
    if stated.agrees(computed):
        yield passed(f"{path}.container_to_ready_min", f"{minutes:.2f} min between the two times")
    else:
        yield Finding(
            "inconsistent",
            f"{path}.container_to_ready_min",
            f"the two times are {minutes:.2f} min apart",
            plain(times["container_to_ready_min"]),
            round(minutes, 2),
            "take the difference of the two times",
        )


def _seconds(value: Any) -> float | None:
    found = _CLOCK.match(str(value)) if value is not None else None
    return int(found[1]) * 3600 + int(found[2]) * 60 + float(found[3]) if found else None
