"""How well the recorder did its own work, and whether a recording may be used."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow.parquet as pq

from crossover.client.arrow import to_ints
from crossover.client.spool import READS_NAME, SENDS_NAME


@dataclass(frozen=True)
class FitnessLimits:
    """Above any of these a recording is rejected; real seconds of this machine, whatever the clock scale.

    Args:
        lag_p99_s: between the kernel's receive stamp and the read.
        send_lag_p99_s: between a request's due time and its first byte.
        send_lag_share: in a closed loop, that lag may reach this share of a typical request's duration.
        clock_step_s: by which the wall clock, which the kernel stamps use, was set while the load ran.
        unstamped_share: of reads without a kernel stamp, where kernel stamps are used.
    """

    lag_p99_s: float = 0.1
    send_lag_p99_s: float = 0.25
    send_lag_share: float = 0.1
    clock_step_s: float = 0.001
    unstamped_share: float = 0.001


def spread(values_ns: npt.NDArray[np.int64]) -> dict[str, float] | None:
    """Returns p50, p99 and max in seconds; None for no values."""
    if not len(values_ns):
        return None
    p50, p99 = np.percentile(values_ns, [50, 99])
    return {"p50": float(p50) / 1e9, "p99": float(p99) / 1e9, "max": float(values_ns.max()) / 1e9}


def fitness_of(
    recording_dir: Path, about: Mapping[str, Any], coalesced_reads: int | None, limits: FitnessLimits
) -> dict[str, Any]:
    """Returns the fitness figures with their verdict (`ok` or `rejected`, with reasons).

    Args:
        recording_dir: holds reads.parquet and sends.parquet.
        about: the content of recording.json; its clock is `kernel`, or `user` where the bytes are encrypted and only
            the time after decryption is known.
        coalesced_reads: reads that completed more than one output event, which then share a stamp; None before the
            recording is interpreted.
        limits: beyond which the verdict is `rejected`.
    """
    table = pq.ParquetFile(recording_dir / READS_NAME).read(columns=["t_kernel_ns", "t_user_ns"])
    kernel_ns, user_ns = (to_ints(column) for column in table.columns)
    sends = pq.ParquetFile(recording_dir / SENDS_NAME).read(columns=["scheduled_ns", "sent_ns", "end_ns"])
    due, sent, end = (to_ints(column) for column in sends.columns)
    was_sent = (due >= 0) & (sent >= 0)
    whole = was_sent & (end >= 0)
    stamped = kernel_ns >= 0
    kernel = about["clock"] == "kernel"
    observed = about.get("observed") or {}
    figures: dict[str, Any] = {
        "clock": about["clock"],
        "lag_s": spread(user_ns[stamped] - kernel_ns[stamped]) if kernel else None,
        "send_lag_s": spread(sent[was_sent] - due[was_sent]),
        "coalesced_reads": coalesced_reads,
        "reads": len(kernel_ns),
        "unstamped_reads": int((~stamped).sum()) if kernel else None,
        "clock_step_s": observed.get("clock_step_ns", 0) / 1e9,
        "cpu_s": observed.get("cpu_s"),
        "limits": asdict(limits),
    }
    closed = bool((about.get("load") or {}).get("concurrency"))
    typical_s = float(np.median(end[whole] - sent[whole])) / 1e9 if closed and whole.any() else 0.0
    reasons = _reasons(figures, limits, typical_s)
    return figures | {"verdict": "rejected" if reasons else "ok", "reasons": reasons}


def _reasons(figures: Mapping[str, Any], limits: FitnessLimits, typical_request_s: float) -> list[str]:
    # In a closed loop a late send shifts no figure, since all count from the send: it only thins out the load.
    send_limit = max(limits.send_lag_p99_s, limits.send_lag_share * typical_request_s)
    reasons = []
    for name, limit in (("lag_s", limits.lag_p99_s), ("send_lag_s", send_limit)):
        found = figures[name]
        if found is not None and found["p99"] > limit:
            reasons.append(f"{name} p99 {found['p99']:.4g} s is above {limit:.4g} s")
    if figures["clock_step_s"] > limits.clock_step_s:
        reasons.append(f"the wall clock was set by {figures['clock_step_s']:.4g} s while the load ran")
    if figures["unstamped_reads"] and figures["unstamped_reads"] > limits.unstamped_share * figures["reads"]:
        reasons.append(f"{figures['unstamped_reads']} of {figures['reads']} reads have no kernel stamp")
    return reasons
