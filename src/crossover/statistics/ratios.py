"""The ratio of two variants with its interval, and how many repeats it takes to show a difference.

Ratios are worked with as logarithms: a factor of 2 and one of 1/2 are then equally far from 1. Repeats that
ran next to each other (interleaved order) are paired, which takes out what drifts between them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from crossover.errors import InputError
from crossover.metrics.quantiles import noncentral_t_survival
from crossover.statistics.intervals import CONFIDENCE, t_quantile

MOST_REPEATS = 1000


@dataclass(frozen=True)
class Ratio:
    """First variant over second.

    Attributes:
        ratio: geometric mean of the pairs' ratios, or of first over that of second.
        low, high: ends of the 95 % interval; None with a single repeat.
        n: pairs, or the smaller number of repeats.
        log_error: standard error of the logarithm; None with a single repeat.
        freedom: degrees of freedom of the interval.
        paired: whether repeats were paired.
    """

    ratio: float
    low: float | None
    high: float | None
    n: int
    log_error: float | None
    freedom: float
    paired: bool

    @property
    def verdict(self) -> str:
        """`higher`, `lower`, `no difference shown`, or `not repeated` where there is no interval."""
        if self.low is None or self.high is None:
            return "not repeated"
        if self.low > 1:
            return "higher"
        return "lower" if self.high < 1 else "no difference shown"

    def sentence(self, first: str, second: str, what: str, better: str = "higher") -> str:
        """Returns one plain sentence.

        Args:
            first, second: names of the variants.
            what: the metric, such as `output throughput`.
            better: `higher` or `lower`: which ratio is good for the first.
        """
        if self.low is None or self.high is None:
            return f"{what}: {first} / {second} = {self.ratio:.3f} in one run each: no interval, no verdict."
        interval = f"{self.ratio:.3f} (95 % interval {self.low:.3f} to {self.high:.3f}, n = {self.n})"
        if self.verdict == "no difference shown":
            return f"{what}: no difference shown between {first} and {second}: ratio {interval}."
        ahead = first if self.verdict == better else second
        return f"{what}: {ahead} is better: {first} / {second} = {interval}."


def paired_ratio(first: Sequence[float], second: Sequence[float], confidence: float = CONFIDENCE) -> Ratio:
    """Returns the ratio over pairs of repeats.

    Args:
        first, second: values of one metric by repeat, both in the same order; all positive.
        confidence: of the interval.

    Raises:
        InputError: the numbers of repeats differ, there are none, or a value is not positive.
    """
    if len(first) != len(second):
        raise InputError(f"{len(first)} and {len(second)} repeats cannot be paired", remedy="use unpaired_ratio")
    logs = _logs(first) - _logs(second)
    mean, count = float(logs.mean()), len(logs)
    if count == 1:
        return Ratio(math.exp(mean), None, None, 1, None, 0, paired=True)
    error = float(logs.std(ddof=1)) / math.sqrt(count)
    return _ratio(mean, error, count - 1, count, confidence, paired=True)


def unpaired_ratio(first: Sequence[float], second: Sequence[float], confidence: float = CONFIDENCE) -> Ratio:
    """Returns the ratio of two sets of repeats that did not run side by side (Welch's interval)."""
    a, b = _logs(first), _logs(second)
    mean, count = float(a.mean() - b.mean()), min(len(a), len(b))
    if count == 1:
        return Ratio(math.exp(mean), None, None, 1, None, 0, paired=False)
    parts = [float(logs.var(ddof=1)) / len(logs) for logs in (a, b)]
    error = math.sqrt(sum(parts))
    weights = sum(part**2 / (len(logs) - 1) for part, logs in zip(parts, (a, b), strict=True))
    freedom = sum(parts) ** 2 / weights if weights > 0 else len(a) + len(b) - 2
    return _ratio(mean, error, freedom, count, confidence, paired=False)


def needed_repeats(log_spread: float, percent: float, confidence: float = CONFIDENCE, power: float = 0.8) -> int | None:
    """Returns the pairs of repeats needed to show a difference of `percent`.

    Args:
        log_spread: standard deviation of the logarithm of the pairs' ratios, as seen so far.
        percent: the difference that matters, above 0.
        confidence: of the interval that must exclude 1.
        power: probability with which it then does.

    Returns:
        The smallest number of pairs, at least 2; None above 1,000.
    """
    effect = math.log1p(percent / 100)
    if effect <= 0:
        raise InputError(f"a difference of {percent} % is not above 0", remedy="give a positive percentage")
    if log_spread <= 0:
        return 2
    for count in range(2, MOST_REPEATS + 1):
        shift = effect / log_spread * math.sqrt(count)
        # Probability that |t| exceeds its quantile when the truth is `effect`: noncentral t.
        reached = noncentral_t_survival(t_quantile(count - 1, confidence), count - 1, shift)
        if reached >= power:
            return count
    return None


def _ratio(mean: float, error: float, freedom: float, count: int, confidence: float, *, paired: bool) -> Ratio:
    half = t_quantile(freedom, confidence) * error
    return Ratio(math.exp(mean), math.exp(mean - half), math.exp(mean + half), count, error, freedom, paired)


def _logs(values: Sequence[float]) -> np.ndarray:
    data = np.asarray(values, dtype=float)
    if not data.size:
        raise InputError("there are no repeats to compare", remedy="measure at least one")
    if not (data > 0).all():
        raise InputError("a ratio needs positive values", remedy="leave failed and withheld repeats out")
    return np.asarray(np.log(data))
