"""The context at which the order of two variants flips, with an interval.

Between two measured contexts the logarithm of the ratio is taken as linear in the context. The interval holds
every context at which the interpolated ratio may be 1 (Fieller's construction): no normal approximation of
the crossing itself, which has no mean when the lines are nearly parallel.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from crossover.errors import InputError
from crossover.statistics.intervals import CONFIDENCE, t_quantile
from crossover.statistics.ratios import Ratio


@dataclass(frozen=True)
class Crossing:
    """Where two variants are equal.

    Attributes:
        context_tokens: the crossing, None where the order does not flip in the measured range.
        low, high: ends of the interval inside the measured range; None where there are no repeats, or no context
            at which the ratio may be 1.
        open_low, open_high: whether the interval reaches the end of the measured range, so that the true one may
            reach beyond it.
        verdict: `crossover`, `crossover not certain` (the interval reaches an end of the range), `no crossover in
            range`, `no crossover shown` (the ratio may be 1 somewhere, the order does not flip), or `not repeated`.
        leader_below, leader_above: `first` or `second`: whose ratio is ahead on either side; None without crossing.
    """

    context_tokens: float | None
    low: float | None
    high: float | None
    open_low: bool
    open_high: bool
    verdict: str
    leader_below: str | None
    leader_above: str | None


def crossover_context(
    ratios: Mapping[float, Ratio], *, better: str = "higher", confidence: float = CONFIDENCE
) -> Crossing:
    """Finds the crossing of two variants.

    Args:
        ratios: context in tokens -> first over second of one metric; two contexts or more.
        better: whether a `higher` or `lower` figure is the better one.
        confidence: of the interval.

    Raises:
        InputError: fewer than two contexts.
    """
    if len(ratios) < 2:
        raise InputError("a crossover needs two contexts or more", remedy="measure another context")
    contexts = np.array(sorted(ratios), dtype=float)
    logs = np.array([math.log(ratios[context].ratio) for context in contexts])
    crossing = _crossing(contexts, logs)
    ahead = [("first" if (log > 0) == (better == "higher") else "second") for log in (logs[0], logs[-1])]
    leaders = (ahead[0], ahead[1]) if crossing is not None else (None, None)
    if any(ratio.log_error is None for ratio in ratios.values()):
        verdict = "not repeated" if crossing is not None else "no crossover in range"
        return Crossing(crossing, None, None, False, False, verdict, *leaders)
    spans = _possible(contexts, logs, [ratios[context] for context in contexts], confidence)
    if not spans:
        return Crossing(None, None, None, False, False, "no crossover in range", None, None)
    low, high = _around(spans, crossing)
    ends = (math.isclose(low, contexts[0]), math.isclose(high, contexts[-1]))
    certain = "crossover not certain" if any(ends) else "crossover"
    verdict = "no crossover shown" if crossing is None else certain
    return Crossing(crossing, low, high, *ends, verdict, *leaders)


def _crossing(contexts: np.ndarray, logs: np.ndarray) -> float | None:
    """The first context at which the interpolated ratio is 1."""
    for left in range(len(contexts) - 1):
        a, b = logs[left], logs[left + 1]
        if a == 0:
            return float(contexts[left])
        if a * b < 0 or b == 0:
            return float(contexts[left] + (contexts[left + 1] - contexts[left]) * a / (a - b))
    return None


def _possible(
    contexts: np.ndarray, logs: np.ndarray, ratios: list[Ratio], confidence: float
) -> list[tuple[float, float]]:
    """Spans of contexts at which the interval of the interpolated logarithm holds 0, merged where they touch."""
    spans: list[tuple[float, float]] = []
    for left in range(len(contexts) - 1):
        pair = ratios[left : left + 2]
        quantile = t_quantile(_freedom(float(logs[left]), float(logs[left + 1]), pair), confidence)
        errors = [quantile * float(ratio.log_error or 0.0) for ratio in pair]
        for low, high in _segment(float(logs[left]), float(logs[left + 1]), *errors):
            start = contexts[left] + low * (contexts[left + 1] - contexts[left])
            end = contexts[left] + high * (contexts[left + 1] - contexts[left])
            if spans and math.isclose(spans[-1][1], start):
                spans[-1] = (spans[-1][0], float(end))
            else:
                spans.append((float(start), float(end)))
    return spans


def _freedom(a: float, b: float, pair: list[Ratio]) -> float:
    """Degrees of freedom of the interpolated logarithm where it comes nearest to 0 (Welch and Satterthwaite)."""
    weight = a / (a - b) if a * b < 0 else float(abs(b) < abs(a))
    parts = [
        (share * float(ratio.log_error or 0.0)) ** 2 for share, ratio in zip((1 - weight, weight), pair, strict=True)
    ]
    weights = sum(part**2 / ratio.freedom for part, ratio in zip(parts, pair, strict=True))
    return sum(parts) ** 2 / weights if weights > 0 else min(ratio.freedom for ratio in pair)


def _segment(a: float, b: float, error_a: float, error_b: float) -> list[tuple[float, float]]:
    """Where in 0..1 |(1 - w) a + w b| <= sqrt(((1 - w) error_a)^2 + (w error_b)^2): a quadratic in w."""
    slope = b - a
    if error_a == error_b == 0:
        return [(-a / slope, -a / slope)] if slope and 0 <= -a / slope <= 1 else []
    square = slope**2 - error_a**2 - error_b**2
    linear = 2 * a * slope + 2 * error_a**2
    constant = a**2 - error_a**2
    roots = np.roots([square, linear, constant]) if square or linear else np.array([])
    edges = sorted({0.0, 1.0, *(float(r.real) for r in np.atleast_1d(roots) if abs(r.imag) < 1e-12 and 0 < r.real < 1)})
    spans: list[tuple[float, float]] = []
    for low, high in pairwise(edges):
        middle = (low + high) / 2
        if square * middle**2 + linear * middle + constant <= 0:
            spans = [*spans[:-1], (spans[-1][0], high)] if spans and spans[-1][1] == low else [*spans, (low, high)]
    return spans


def _around(spans: list[tuple[float, float]], crossing: float | None) -> tuple[float, float]:
    """The span that holds the crossing; all of them together without one."""
    if crossing is not None:
        for low, high in spans:
            if low <= crossing <= high:
                return low, high
    return spans[0][0], spans[-1][1]
