"""Whether a new version is slower than an old one, by more than a threshold that matters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from crossover.errors import InputError
from crossover.statistics.ratios import Ratio, paired_ratio, unpaired_ratio

DEFAULT_THRESHOLD = 0.05


@dataclass(frozen=True)
class Regression:
    """The verdict on one metric of two versions.

    Attributes:
        verdict: `regressed` or `improved` (the whole interval lies beyond the threshold), `no change beyond the
            threshold` (the whole interval lies inside it), `undecided` (the interval reaches across a
            threshold: more repeats), or `not repeated`.
        change: candidate / baseline - 1.
        low, high: ends of its 95 % interval; None without repeats.
        threshold: change that matters, as a share.
        better: `higher` or `lower` figures are good.
    """

    verdict: str
    change: float
    low: float | None
    high: float | None
    threshold: float
    better: str


def regression(
    baseline: Sequence[float],
    candidate: Sequence[float],
    *,
    better: str,
    threshold: float = DEFAULT_THRESHOLD,
    paired: bool = False,
) -> Regression:
    """Judges a candidate version against a baseline.

    Args:
        baseline, candidate: repeats of one metric.
        better: `higher` for rates, `lower` for latencies.
        threshold: change that matters, as a share in 0..1.
        paired: whether the repeats ran side by side in the same order.

    Raises:
        InputError: no repeats, a value that is not positive, or an unknown `better`.
    """
    if better not in ("higher", "lower"):
        raise InputError(f"better is {better!r}", remedy="give higher or lower")
    ratio = (paired_ratio if paired else unpaired_ratio)(candidate, baseline)
    low, high = (None if end is None else end - 1 for end in (ratio.low, ratio.high))
    return Regression(_verdict(ratio, threshold, better), ratio.ratio - 1, low, high, threshold, better)


def _verdict(ratio: Ratio, threshold: float, better: str) -> str:
    if ratio.low is None or ratio.high is None:
        return "not repeated"
    # A loss of 5 % of a rate and a gain of 1/0.95 of a latency are the same change seen from two sides.
    down, up = 1 - threshold, 1 / (1 - threshold)
    if ratio.high < down:
        return "regressed" if better == "higher" else "improved"
    if ratio.low > up:
        return "improved" if better == "higher" else "regressed"
    if ratio.low >= down and ratio.high <= up:
        return "no change beyond the threshold"
    return "undecided"
