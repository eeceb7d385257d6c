"""How well the recorder did its own work, and whether a recording may be used."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True)
class FitnessLimits:
    """Above any of these a recording is rejected; real seconds of this machine, whatever the clock scale.

    Args:
        lag_p99_s: between the kernel's receive stamp and the read.
        send_lag_p99_s: between a request's due time and its first byte.
        clock_step_s: by which the wall clock, which the kernel stamps use, was set while the load ran.
        unstamped_share: of reads without a kernel stamp, where kernel stamps are used.
    """

    lag_p99_s: float = 0.1
    send_lag_p99_s: float = 0.25
    clock_step_s: float = 0.001
    unstamped_share: float = 0.001


def spread(values_ns: npt.NDArray[np.int64]) -> dict[str, float] | None:
    """Returns p50, p99 and max in seconds; None for no values."""
    if not len(values_ns):
        return None
    p50, p99 = np.percentile(values_ns, [50, 99])
    return {"p50": float(p50) / 1e9, "p99": float(p99) / 1e9, "max": float(values_ns.max()) / 1e9}


def fitness_of(
    kernel_ns: npt.NDArray[np.int64],
    user_ns: npt.NDArray[np.int64],
    send_lag_ns: npt.NDArray[np.int64],
    *,
    clock: str,
    coalesced_reads: int | None,
    observed: Mapping[str, Any],
    limits: FitnessLimits,
) -> dict[str, Any]:
    """Returns the fitness figures with their verdict (`ok` or `rejected`, with reasons).

    Args:
        kernel_ns: of each read, -1 where the kernel gave no stamp.
        user_ns: of each read.
        send_lag_ns: of each request that was sent.
        clock: `kernel`, or `user` where the bytes are encrypted and only the time after decryption is known.
        coalesced_reads: reads that completed more than one output event; those events share a stamp.
        observed: what the recording loop noted about itself.
    """
    stamped = kernel_ns >= 0
    reads = len(kernel_ns)
    kernel = clock == "kernel"
    figures: dict[str, Any] = {
        "clock": clock,
        "lag_s": spread(user_ns[stamped] - kernel_ns[stamped]) if kernel else None,
        "send_lag_s": spread(send_lag_ns),
        "coalesced_reads": coalesced_reads,
        "reads": reads,
        "unstamped_reads": int(reads - stamped.sum()) if kernel else None,
        "clock_step_s": observed.get("clock_step_ns", 0) / 1e9,
        "cpu_s": observed.get("cpu_s"),
        "limits": asdict(limits),
    }
    reasons = _reasons(figures, limits)
    return figures | {"verdict": "rejected" if reasons else "ok", "reasons": reasons}


def _reasons(figures: Mapping[str, Any], limits: FitnessLimits) -> list[str]:
    reasons = []
    for name, limit in (("lag_s", limits.lag_p99_s), ("send_lag_s", limits.send_lag_p99_s)):
        found = figures[name]
        if found is not None and found["p99"] > limit:
            reasons.append(f"{name} p99 {found['p99']:.4g} s is above {limit:g} s")
    if figures["clock_step_s"] > limits.clock_step_s:
        reasons.append(f"the wall clock was set by {figures['clock_step_s']:.4g} s while the load ran")
    if figures["unstamped_reads"] and figures["unstamped_reads"] > limits.unstamped_share * figures["reads"]:
        reasons.append(f"{figures['unstamped_reads']} of {figures['reads']} reads have no kernel stamp")
    return reasons
