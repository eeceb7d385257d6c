"""Turns a sample or a value into its entry in metrics.json."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from crossover.metrics import percentiles
from crossover.metrics.definition import Definition, FloatArray, Sample, Value
from crossover.metrics.quantiles import t_quantile

PERCENTILES = (50.0, 90.0, 99.0)


def statistics_of(wanted: Sequence[float]) -> tuple[str, ...]:
    """Returns the names of the statistics of a distribution, such as `p50` and `p99.9`."""
    return ("mean", "min", "max", *(f"p{percent:g}" for percent in wanted))


def summarise_sample(definition: Definition, sample: Sample, wanted: Sequence[float] = PERCENTILES) -> dict[str, Any]:
    """Returns unit, n, mean, min, max, percentiles, `ci95` and `withheld` of a sample.

    A statistic that the sample does not support is None, and `withheld` names the reason.

    Args:
        wanted: the percentiles, in percent.
    """
    statistics = statistics_of(wanted)
    values = sample.values
    entry: dict[str, Any] = {"unit": definition.unit, "n": len(values)}
    if not len(values):
        reason = sample.missing or "no request has this value"
        return entry | dict.fromkeys(statistics) | {"ci95": {}, "withheld": dict.fromkeys(statistics, reason)}
    entry |= {"mean": float(values.mean()), "min": float(values.min()), "max": float(values.max())}
    withheld: dict[str, str] = {}
    intervals: dict[str, list[float]] = {}
    _keep(intervals, "mean", _mean_interval(sample))
    ordered = np.sort(values)
    for percent in wanted:
        name, fraction = f"p{percent:g}", percent / 100
        floor = percentiles.needed(fraction)
        if len(values) < floor:
            entry[name] = None
            withheld[name] = f"{len(values)} samples cannot bound {name.upper()}; {floor} are needed"
            continue
        entry[name] = percentiles.percentile_of_ordered(ordered, fraction)
        _keep(intervals, name, _percentile_interval(sample, fraction, ordered))
    return entry | {"ci95": intervals, "withheld": withheld}


def percentiles_in(entry: Mapping[str, Any]) -> dict[str, float]:
    """Returns the percentiles that a metric's entry holds, by name, as fractions; none for a single figure."""
    names = (name for name in entry if name.startswith("p") and name[1:].replace(".", "", 1).isdigit())
    return {name: float(name[1:]) / 100 for name in names}


def summarise_value(definition: Definition, value: Value) -> dict[str, Any]:
    """Returns unit, value, `withheld` and the details of a single figure."""
    return {"unit": definition.unit, "value": value.value, "withheld": value.withheld, **value.details}


def mean_interval(values: FloatArray, confidence: float = percentiles.CONFIDENCE) -> tuple[float, float] | None:
    """Returns the t-interval of the mean of independent values, or None below two of them."""
    if len(values) < 2:
        return None
    half = t_quantile(0.5 + confidence / 2, len(values) - 1) * float(values.std(ddof=1)) / math.sqrt(len(values))
    mean = float(values.mean())
    return mean - half, mean + half


def _mean_interval(sample: Sample) -> tuple[float, float] | None:
    if sample.blocks is None:
        return mean_interval(sample.values)
    return percentiles.block_mean_interval(sample.values, sample.blocks)


def _percentile_interval(sample: Sample, fraction: float, ordered: FloatArray) -> tuple[float, float] | None:
    if sample.blocks is None:
        return percentiles.interval(sample.values, fraction)
    return percentiles.block_interval(sample.values, sample.blocks, fraction, ordered=ordered)


def _keep(intervals: dict[str, list[float]], name: str, bounds: tuple[float, float] | None) -> None:
    if bounds is not None and all(np.isfinite(bounds)):
        intervals[name] = [float(bounds[0]), float(bounds[1])]
