"""Percentiles with intervals from order statistics, and the number of samples that a percentile needs.

Method: linear interpolation between order statistics (the default of NumPy, and what the engines' own
clients print). Intervals: the number of values below the true quantile is binomial, whatever the
distribution; between two ranks the bound is interpolated (Nyblom 1992, "Note on interpolated order
statistics"), since whole ranks alone would cover too much at small sizes.
"""

from __future__ import annotations

import math

import numpy as np

from crossover.metrics.definition import FloatArray, IntArray
from crossover.metrics.quantiles import binomial_cdf, binomial_quantile, t_quantile

CONFIDENCE = 0.95
Bounds = tuple[float, float]


def percentile(values: FloatArray, fraction: float) -> float:
    """Returns the percentile of `values` (n,), `fraction` in 0..1, by linear interpolation."""
    return percentile_of_ordered(np.sort(values), fraction)


def percentile_of_ordered(ordered: FloatArray, fraction: float) -> float:
    """Returns the percentile of values in ascending order: to the last digit what numpy.quantile does, without a pass
    over all of them.
    """
    place = (len(ordered) - 1) * fraction
    rank = min(max(int(place), 0), len(ordered) - 1)
    below, above = float(ordered[rank]), float(ordered[min(rank + 1, len(ordered) - 1)])
    share, step = place - rank, above - below
    return below + step * share if share < 0.5 else above - step * (1 - share)


def needed(fraction: float, confidence: float = CONFIDENCE) -> int:
    """Returns the smallest sample whose largest value bounds the percentile from above (one-sided).

    The largest of n lies above the quantile with probability 1 - fraction^n: 5 for P50, 29 for P90,
    59 for P95, 299 for P99.
    """
    return math.ceil(math.log(1 - confidence) / math.log(fraction))


def interval(values: FloatArray, fraction: float, confidence: float = CONFIDENCE) -> Bounds | None:
    """Returns the two-sided interval of a percentile, or None where the sample cannot give one.

    The two tails are equal where both are within reach; otherwise the end that is out of reach is the
    extreme value, and the other tail takes what is left.
    """
    bounds = intervals(values[np.newaxis, :], fraction, confidence)
    return None if bounds is None else (float(bounds[0, 0]), float(bounds[0, 1]))


def intervals(samples: FloatArray, fraction: float, confidence: float = CONFIDENCE) -> FloatArray | None:
    """Returns the intervals, shape (samples, 2), of samples of one size, shape (samples, n)."""
    count = samples.shape[1]
    above, below = float(fraction**count), float((1 - fraction) ** count)
    spare = 1 - confidence
    if above + below > spare:
        return None
    upper_tail, lower_tail = max(spare / 2, above), max(spare / 2, below)
    if above > spare / 2:
        lower_tail = spare - upper_tail
    elif below > spare / 2:
        upper_tail = spare - lower_tail
    ordered = np.sort(samples, axis=1)
    upper = _bound(ordered, fraction, 1 - upper_tail)
    lower = -_bound(-ordered[:, ::-1], 1 - fraction, 1 - lower_tail)
    return np.column_stack([lower, upper])


def _bound(ordered: FloatArray, fraction: float, confidence: float) -> FloatArray:
    """Returns one-sided upper bounds of a quantile, a row each, that hold with `confidence`."""
    count = ordered.shape[1]
    # The highest rank whose one-sided confidence does not exceed what is asked for.
    rank = binomial_quantile(confidence, count, fraction)
    while rank > 0 and _covered(rank, count, fraction) > confidence:
        rank -= 1
    if rank >= count or rank < 1:
        return np.asarray(ordered[:, min(max(rank, 1), count) - 1])
    reached, following = _covered(rank, count, fraction), _covered(rank + 1, count, fraction)
    odds = rank * (1 - fraction) * (following - confidence)
    odds /= (count - rank) * fraction * max(confidence - reached, 1e-300)
    share = 1 / (1 + odds)
    return np.asarray((1 - share) * ordered[:, rank - 1] + share * ordered[:, rank])


def _covered(rank: int, count: int, fraction: float) -> float:
    """Probability that the value of this rank (from 1) is at or above the quantile."""
    return binomial_cdf(rank - 1, count, fraction)


def block_interval(
    values: FloatArray,
    blocks: IntArray,
    fraction: float,
    confidence: float = CONFIDENCE,
    *,
    ordered: FloatArray | None = None,
) -> Bounds | None:
    """Returns the interval of a percentile of values that depend on one another within blocks.

    The share of values at or below the estimate varies from block to block; its t-interval over blocks,
    carried back to the values, is the interval of the quantile (Woodruff 1952).

    Args:
        blocks: the block of each value, a small number from 0 on.
        ordered: the values in ascending order, where they are there already.
    """
    sizes = np.bincount(blocks)
    used = sizes > 0
    if int(used.sum()) < 3:
        return None
    ordered = np.sort(values) if ordered is None else ordered
    estimate = percentile_of_ordered(ordered, fraction)
    below = np.bincount(blocks, weights=values <= estimate)
    half = _ratio_half_width(below[used], sizes[used].astype(np.float64), confidence)
    low, high = max(fraction - half, 0.0), min(fraction + half, 1.0)
    return percentile_of_ordered(ordered, low), percentile_of_ordered(ordered, high)


def block_mean_interval(values: FloatArray, blocks: IntArray, confidence: float = CONFIDENCE) -> Bounds | None:
    """Returns the interval of the mean of values that depend on one another within blocks."""
    sizes = np.bincount(blocks)
    used = sizes > 0
    if int(used.sum()) < 3:
        return None
    sums = np.bincount(blocks, weights=values)
    half = _ratio_half_width(sums[used], sizes[used].astype(np.float64), confidence)
    mean = float(values.mean())
    return mean - half, mean + half


def _ratio_half_width(sums: np.ndarray, sizes: np.ndarray, confidence: float) -> float:
    """Half width of the t-interval of sum(sums)/sum(sizes), with the linearised variance over blocks."""
    count = len(sizes)
    residuals = sums - sums.sum() / sizes.sum() * sizes
    error = math.sqrt(count / (count - 1) * float(residuals @ residuals)) / float(sizes.sum())
    return t_quantile(0.5 + confidence / 2, count - 1) * error
