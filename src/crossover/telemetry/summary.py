"""What the machine did in the window of one cell: mean and maximum of each figure, energy, and what held the GPUs
back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

# Intervals shorter than this, between a sample on demand and the next, are too coarse for a maximum: CPU time comes in
# steps of 10 ms.
SHORTEST_S = 0.2
# Energy is not extrapolated over more than a tenth of the window.
WANTED_COVERAGE = 0.9

THROTTLE_REASONS: Mapping[str, int] = {
    "power_cap": 0x4,
    "hardware_slowdown": 0x8,
    "sync_boost": 0x10,
    "software_thermal": 0x20,
    "hardware_thermal": 0x40,
    "power_brake": 0x80,
    "board_limit": 0x200,
    "reliability": 0x400,
}
"""Bits of NVML's clocks event reasons. An idle GPU and clocks set by an administrator are no throttling."""

_GAUGES = ("power_w", "memory_gib", "utilisation", "sm_clock_mhz", "memory_clock_mhz", "temperature_c")
_ADVICE = {
    "power_cap": "the GPUs were at their power limit, which is usual under full load; compare variants at one limit",
    "hardware_slowdown": "look for heat and power supply trouble before these figures are compared with others",
}
_HEAT = "the GPUs were too hot; look at cooling and air flow, and repeat the cell"


@dataclass(frozen=True)
class Window:
    """The samples that overlap a window.

    Attributes:
        samples: a row a sample, in order of time.
        length_s: length of the window.
        step_s: time before each sample, since the one before it.
        weight_s: how much of that time lies in the window.
    """

    samples: pd.DataFrame
    length_s: float
    step_s: np.ndarray
    weight_s: np.ndarray

    @property
    def covered_s(self) -> float:
        """How much of the window lies between two samples."""
        return float(self.weight_s.sum())

    def gauge(self, column: str) -> np.ndarray:
        """Returns a column's values; a sample stands for the time since the one before it. NaN where absent."""
        if column not in self.samples:
            return np.full(len(self.samples), np.nan)
        return pd.to_numeric(self.samples[column]).to_numpy(dtype=float)

    def rate(self, column: str) -> np.ndarray:
        """Returns how fast a running total grew before each sample, per second; NaN where it was begun anew."""
        total = self.gauge(column)
        with np.errstate(divide="ignore", invalid="ignore"):
            grown = np.where(self.step_s > 0, np.diff(total, prepend=np.nan) / self.step_s, np.nan)
        return np.where(grown < 0, np.nan, grown)

    def mean(self, values: np.ndarray) -> float | None:
        """Returns the mean of values over the window, each weighted with its time; None where there are none."""
        known = ~np.isnan(values) & (self.weight_s > 0)
        return float(np.average(values[known], weights=self.weight_s[known])) if known.any() else None

    def known_s(self, values: np.ndarray) -> float:
        """Returns how much of the window values are known for."""
        return float(self.weight_s[~np.isnan(values)].sum())

    def spread(self, values: np.ndarray) -> dict[str, float] | None:
        """Returns mean, min and max of values over the window, None where there are none."""
        mean = self.mean(values)
        if mean is None:
            return None
        # An interval that lies mostly outside the window would bring in somebody else's maximum.
        inside = (self.weight_s >= self.step_s / 2) & (self.step_s >= SHORTEST_S) & ~np.isnan(values)
        extremes = values[inside] if inside.any() else np.array([mean])
        return {"mean": mean, "min": float(extremes.min()), "max": float(extremes.max())}

    def share(self, holds: np.ndarray) -> float:
        """Returns the share of the covered time in which something held."""
        return float(self.weight_s[holds].sum() / self.covered_s) if self.covered_s > 0 else 0.0


def window_of(samples: pd.DataFrame, start: str, end: str) -> Window:
    """Returns the samples of a window with their weights.

    Args:
        samples: a row a sample, with `t_ns`.
        start: begin of the window, RFC 3339.
        end: its end.
    """
    low, high = pd.Timestamp(start).value, pd.Timestamp(end).value
    times = samples["t_ns"].to_numpy(dtype=np.int64) if len(samples) else np.array([], dtype=np.int64)
    before = np.concatenate([times[:1], times[:-1]])
    weight = np.clip(np.minimum(times, high) - np.maximum(before, low), 0, None) / 1e9
    return Window(samples, (high - low) / 1e9, (times - before) / 1e9, weight)


def summarise(header: Mapping[str, Any], samples: pd.DataFrame, start: str, end: str) -> dict[str, Any]:
    """Returns the `telemetry` of cell.json.

    Args:
        header: what the sampling process said first: interval, processors, GPUs.
        samples: a row a sample.
        start: begin of the cell's window, RFC 3339.
        end: its end.

    Returns:
        `samples`, `interval_s`, `window_s`, `covered_s`; `client`, `server` (None where it is not on this machine) and
        `machine` with `cpu_cores` (CPU seconds a second) and `memory_gib`, each {mean, min, max} or None; `gpus`, one
        each with its figures; `power_w` and `energy_j` of the GPUs that the server uses, None where power is not
        known; `incidents`; `missing`, a sentence for each thing that could not be had.
    """
    window = window_of(samples, start, end)
    missing = [] if header.get("no_gpus") is None else [f"no GPU figures: {header['no_gpus']}"]
    if window.covered_s == 0:
        missing.append("no sample lies in the window")
    gpus = [_gpu(window, described) for described in header.get("gpus") or ()]
    used = _used(gpus, missing)
    local = bool(header.get("server_is_local"))
    return {
        "samples": int((window.weight_s > 0).sum()),
        "interval_s": header.get("interval_s"),
        "window_s": window.length_s,
        "covered_s": window.covered_s,
        "client": _side(window, "client"),
        "server": _side(window, "server") | {"processes": window.spread(window.gauge("server_processes"))}
        if local
        else None,
        "machine": _side(window, "machine") | {"cpu_count": header.get("cpu_count")},
        "gpus": gpus,
        "power_w": _total_power(window, used),
        "energy_j": _energy(window, used, missing),
        "incidents": _incidents(used),
        "missing": missing,
    }


def per_output_token(telemetry: Mapping[str, Any] | None, output_tokens: int | None) -> dict[str, Any] | None:
    """Returns a cell's telemetry with the energy for each output token, in joules.

    Args:
        telemetry: what `summarise` gave.
        output_tokens: completion tokens of the cell's successful requests.
    """
    if telemetry is None:
        return None
    energy_j = telemetry.get("energy_j")
    each = None if energy_j is None or not output_tokens else energy_j / output_tokens
    return {**telemetry, "energy_j_per_output_token": each}


def _side(window: Window, name: str) -> dict[str, Any]:
    return {
        "cpu_cores": window.spread(window.rate(f"{name}_cpu_s")),
        "memory_gib": window.spread(window.gauge(f"{name}_memory_gib")),
    }


def _gpu(window: Window, described: Mapping[str, Any]) -> dict[str, Any]:
    prefix = f"gpu{described['index']}"
    held, others = window.gauge(f"{prefix}_server"), window.gauge(f"{prefix}_others")
    inside = window.weight_s > 0
    told = window.gauge(f"{prefix}_throttle")
    bits = np.nan_to_num(told).astype(np.int64)
    throttled = {name: window.share((bits & bit) > 0) for name, bit in THROTTLE_REASONS.items()}
    return {
        **described,
        "server": None if np.isnan(held[inside]).all() else bool(np.nanmax(held[inside]) > 0),
        "others": None if np.isnan(others[inside]).all() else int(np.nanmax(others[inside])),
        **{name: window.spread(window.gauge(f"{prefix}_{name}")) for name in _GAUGES},
        "throttled": None
        if np.isnan(told[inside]).all()
        else {name: share for name, share in throttled.items() if share > 0},
    }


def _used(gpus: list[dict[str, Any]], missing: list[str]) -> list[dict[str, Any]]:
    """Returns the GPUs that the server uses; all of them where the driver does not tell."""
    used = [gpu for gpu in gpus if gpu["server"]]
    if gpus and not used:
        missing.append("the driver does not tell which GPUs the server uses, so power and energy are of all of them")
    divided = ", ".join(str(gpu["index"]) for gpu in used or gpus if gpu.get("mig"))
    if divided:
        missing.append(f"GPU {divided} is divided (MIG); power, energy and clocks are those of the whole GPU")
    return used or gpus


def _total_power(window: Window, used: list[dict[str, Any]]) -> dict[str, float] | None:
    if not used:
        return None
    return window.spread(np.sum([window.gauge(f"gpu{gpu['index']}_power_w") for gpu in used], axis=0))


def _energy(window: Window, used: list[dict[str, Any]], missing: list[str]) -> float | None:
    """Returns the joules of the window: from the GPUs' own energy counters, which miss no peak between samples, else
    from their power."""
    if not used:
        return None
    if window.covered_s < WANTED_COVERAGE * window.length_s:
        missing.append(f"no energy: the samples cover {window.covered_s:.1f} s of {window.length_s:.1f} s")
        return None
    total_w = 0.0
    for gpu in used:
        counted = window.rate(f"gpu{gpu['index']}_energy_j")
        sampled = window.gauge(f"gpu{gpu['index']}_power_w")
        mean_w = window.mean(counted)
        # A counter that stands still while power is drawn is none.
        if not mean_w or window.known_s(counted) < WANTED_COVERAGE * window.length_s:
            mean_w, counted = window.mean(sampled), sampled
        if mean_w is None:
            missing.append("no energy: a GPU tells neither its power nor its energy")
            return None
        if (known_s := window.known_s(counted)) < WANTED_COVERAGE * window.length_s:
            missing.append(f"no energy: GPU {gpu['index']} told it for {known_s:.1f} s of {window.length_s:.1f} s")
            return None
        total_w += mean_w
    return total_w * window.length_s


def _incidents(used: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Returns one incident for each reason that held the clocks of the server's GPUs down, and one for processes that
    shared these GPUs with it."""
    found = _shared(used)
    for reason in THROTTLE_REASONS:
        shares = {gpu["index"]: gpu["throttled"][reason] for gpu in used if reason in (gpu["throttled"] or {})}
        if shares:
            most = max(shares.values())
            which = ", ".join(str(index) for index in sorted(shares))
            words = reason.replace("_", " ")
            found.append(
                {
                    "kind": "gpu_throttled",
                    "reason": reason,
                    # At its power limit a GPU works as it is meant to; everything else is a fault of the machine.
                    "severity": "info" if reason == "power_cap" else "warning",
                    "count": len(shares),
                    "message": f"clocks held down ({words}) on GPU {which}, for up to {100 * most:.1f} % of the cell",
                    "advice": _ADVICE.get(reason, _HEAT if "thermal" in reason else _ADVICE["hardware_slowdown"]),
                }
            )
    return found


def _shared(used: list[dict[str, Any]]) -> list[dict[str, Any]]:
    # Where the server's own processes are not among those that the driver tells, others cannot be told from them.
    shared = {gpu["index"]: gpu["others"] for gpu in used if gpu["server"] and gpu.get("others")}
    if not shared:
        return []
    which = ", ".join(str(index) for index in sorted(shared))
    return [
        {
            "kind": "gpu_shared",
            "reason": "other_processes",
            "severity": "warning",
            "count": len(shared),
            "message": f"up to {max(shared.values())} processes of somebody else were on GPU {which} with the server",
            "advice": "`nvidia-smi` names them; end them, and repeat the cell",
        }
    ]
