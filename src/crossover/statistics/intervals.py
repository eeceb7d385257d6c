"""The mean over repeats, with its t-interval."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from crossover.metrics import quantiles

CONFIDENCE = 0.95


@dataclass(frozen=True)
class Estimated:
    """A mean over repeats.

    Attributes:
        mean: of the values, in their unit.
        low, high: ends of the 95 % t-interval; None for a single value, which has no interval.
        spread: sample standard deviation; None for a single value.
        n: repeats.
    """

    mean: float
    low: float | None
    high: float | None
    spread: float | None
    n: int


def mean_with_interval(values: Sequence[float], confidence: float = CONFIDENCE) -> Estimated | None:
    """Returns the mean of repeats with its t-interval; None without values."""
    data = np.asarray(values, dtype=float)
    if not data.size:
        return None
    mean = float(data.mean())
    if data.size == 1:
        return Estimated(mean, None, None, None, 1)
    spread = float(data.std(ddof=1))
    half = t_quantile(data.size - 1, confidence) * spread / math.sqrt(data.size)
    return Estimated(mean, mean - half, mean + half, spread, int(data.size))


@lru_cache(maxsize=4096)
def t_quantile(freedom: float, confidence: float = CONFIDENCE) -> float:
    """Returns the two-sided quantile of Student's t."""
    return quantiles.t_quantile(0.5 + confidence / 2, freedom)
