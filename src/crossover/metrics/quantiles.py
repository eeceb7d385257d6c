"""The few distributions that intervals need, from scipy.special: scipy.stats takes most of a second to import."""

from __future__ import annotations

import math

from scipy import special


def t_quantile(probability: float, freedom: float) -> float:
    """Returns the quantile of Student's t distribution."""
    return float(special.stdtrit(freedom, probability))


def noncentral_t_survival(value: float, freedom: float, shift: float) -> float:
    """Returns the probability that a noncentral t variable exceeds `value`."""
    return 1.0 - float(special.nctdtr(freedom, shift, value))


def binomial_cdf(most: int, count: int, share: float) -> float:
    """Returns the probability of at most so many successes in `count` trials."""
    return float(special.bdtr(most, count, share)) if most >= 0 else 0.0


def binomial_quantile(probability: float, count: int, share: float) -> int:
    """Returns the least number of successes whose cumulative probability reaches `probability`."""
    upper = math.ceil(float(special.bdtrik(probability, count, share)))
    lower = max(upper - 1, 0)
    return lower if binomial_cdf(lower, count, share) >= probability else upper


def exact_share_interval(successes: int, count: int, confidence: float = 0.95) -> tuple[float, float]:
    """Returns the exact interval of a share (Clopper and Pearson, Biometrika 26, 1934)."""
    tail = (1 - confidence) / 2
    low = 0.0 if successes == 0 else float(special.betaincinv(successes, count - successes + 1, tail))
    high = 1.0 if successes == count else float(special.betaincinv(successes + 1, count - successes, 1 - tail))
    return low, high
