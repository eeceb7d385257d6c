"""When a recording is rejected."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from handmade import START_NS, delta, event

from crossover.client import FitnessLimits
from crossover.client.fitness import fitness_of
from crossover.client.spool import SENDS_NAME

MS = 1_000_000


def with_sends(folder: Path, late_ms: float, took_ms: float) -> Path:
    """One request, sent so late after it was due, and over so long after its send."""
    sent = START_NS + round(late_ms * MS)
    row = {"scheduled_ns": START_NS, "sent_ns": sent, "end_ns": sent + round(took_ms * MS)}
    pq.write_table(pa.Table.from_pylist([row]), folder / SENDS_NAME)
    return folder


@pytest.mark.parametrize(
    ("load", "late_ms", "took_ms", "verdict"),
    [
        ({"rate_per_s": 1.0}, 240, 60_000, "ok"),
        ({"rate_per_s": 1.0}, 260, 60_000, "rejected"),
        # A closed loop may be late by a tenth of a request.
        ({"concurrency": 8}, 260, 2_000, "rejected"),
        ({"concurrency": 8}, 260, 4_000, "ok"),
    ],
)
def test_send_lag(
    recording: Callable[..., Path], load: dict[str, Any], late_ms: float, took_ms: float, verdict: str
) -> None:
    folder = with_sends(recording([(100, event(delta(content="a")))]), late_ms, took_ms)
    found = fitness_of(folder, {"clock": "kernel", "load": load}, 0, FitnessLimits())
    assert found["send_lag_s"]["p99"] == pytest.approx(late_ms / 1e3)
    assert found["verdict"] == verdict


def test_a_clock_that_was_set(recording: Callable[..., Path]) -> None:
    folder = recording([(100, event(delta(content="a")))])
    about = {"clock": "kernel", "observed": {"clock_step_ns": 2 * MS}}
    found = fitness_of(folder, about, 0, FitnessLimits())
    assert found["reasons"] == ["the wall clock was set by 0.002 s while the load ran"]
