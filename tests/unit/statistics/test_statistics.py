"""Intervals over repeats: values by hand, coverage by simulation."""

import math

import numpy as np
import pytest

from crossover.errors import InputError
from crossover.statistics import (
    crossover_context,
    mean_with_interval,
    needed_repeats,
    paired_ratio,
    regression,
    unpaired_ratio,
)

TRIALS = 2000


def test_mean_of_three_by_hand():
    # 10, 12, 14: s = 2, t(2) = 4.3027, half width 4.3027 x 2 / sqrt(3) = 4.968
    found = mean_with_interval([10, 12, 14])
    assert (found.mean, found.spread, found.n) == (12, 2, 3)
    assert found.high - found.mean == pytest.approx(4.968, abs=1e-3)


def test_one_repeat_has_no_interval():
    assert mean_with_interval([5.0]).low is None
    ratio = paired_ratio([2.0], [1.0])
    assert ratio.ratio == pytest.approx(2.0)
    assert ratio.verdict == "not repeated"
    assert "no verdict" in ratio.sentence("a", "b", "throughput")


def test_paired_ratio_takes_out_a_common_drift():
    # Pairs 2.0, 2.1 and 2.0 over a drift of 1, 2, 4: logs 0.6931, 0.7419, 0.6931.
    second = [1.0, 2.0, 4.0]
    first = [2.0, 4.2, 8.0]
    ratio = paired_ratio(first, second)
    logs = [math.log(2.0), math.log(2.1), math.log(2.0)]
    mean = sum(logs) / 3
    spread = math.sqrt(sum((x - mean) ** 2 for x in logs) / 2)
    assert ratio.ratio == pytest.approx(math.exp(mean))
    assert ratio.low == pytest.approx(math.exp(mean - 4.302653 * spread / math.sqrt(3)), rel=1e-5)
    assert ratio.verdict == "higher"
    assert unpaired_ratio(first, second).verdict == "no difference shown"


def test_unequal_repeats_are_refused():
    with pytest.raises(InputError, match="paired"):
        paired_ratio([1.0, 2.0], [1.0])
    with pytest.raises(InputError, match="positive"):
        paired_ratio([0.0], [1.0])


@pytest.mark.parametrize(("count", "spread"), [(3, 0.02), (5, 0.1), (10, 0.05)])
def test_paired_ratio_covers_93_to_97_percent(count, spread):
    rng = np.random.default_rng(count)
    truth, covered = 1.3, 0
    for _ in range(TRIALS):
        drift = rng.normal(0, 0.5, count)
        first = np.exp(drift + math.log(truth) + rng.normal(0, spread, count))
        second = np.exp(drift + rng.normal(0, spread, count))
        ratio = paired_ratio(first, second)
        covered += ratio.low <= truth <= ratio.high
    assert 0.93 <= covered / TRIALS <= 0.97


def test_unpaired_ratio_covers_93_to_97_percent():
    rng = np.random.default_rng(2)
    covered = 0
    for _ in range(TRIALS):
        first = np.exp(math.log(1.1) + rng.normal(0, 0.02, 5))
        second = np.exp(rng.normal(0, 0.08, 7))
        ratio = unpaired_ratio(first, second)
        covered += ratio.low <= 1.1 <= ratio.high
    assert 0.93 <= covered / TRIALS <= 0.97


def test_crossing_covers_93_to_97_percent():
    # Truth: ratio exp(0.3) at 64K and exp(-0.2) at 200K, so the crossing lies at 64 + 136 x 0.6 = 145.6 K.
    rng = np.random.default_rng(3)
    covered = 0
    for _ in range(TRIALS):
        ratios = {}
        for context, log in ((64_000, 0.3), (200_000, -0.2)):
            ratios[context] = paired_ratio(np.exp(log + rng.normal(0, 0.05, 5)), np.ones(5))
        found = crossover_context(ratios)
        covered += found.low <= 145_600 <= found.high
    assert 0.93 <= covered / TRIALS <= 0.97


def test_crossing_by_hand():
    ratios = {64_000: paired_ratio([2.0, 2.0, 2.0], [1, 1, 1]), 200_000: paired_ratio([0.5, 0.5, 0.5], [1, 1, 1])}
    found = crossover_context(ratios)
    assert found.context_tokens == pytest.approx(132_000)  # log 2 and -log 2: halfway
    assert found.verdict == "crossover"
    assert (found.leader_below, found.leader_above) == ("first", "second")
    assert found.low == pytest.approx(132_000)


def test_no_crossing_is_said_so():
    ratios = {64_000: paired_ratio([2.0, 2.1, 2.0], [1, 1, 1]), 200_000: paired_ratio([3, 3.1, 3], [1, 1, 1])}
    found = crossover_context(ratios)
    assert found.verdict == "no crossover in range"
    assert found.context_tokens is None


def test_a_crossing_that_repeats_cannot_place_is_not_certain():
    ratios = {64_000: paired_ratio([1.0, 1.4, 0.9], [1, 1, 1]), 200_000: paired_ratio([0.5, 0.52, 0.5], [1, 1, 1])}
    found = crossover_context(ratios)
    assert found.verdict == "crossover not certain"
    assert found.open_low
    assert not found.open_high


def test_crossing_of_single_runs_has_no_interval():
    found = crossover_context({64_000: paired_ratio([2], [1]), 200_000: paired_ratio([0.5], [1])})
    assert found.verdict == "not repeated"
    assert found.low is None
    with pytest.raises(InputError, match="two contexts"):
        crossover_context({1: paired_ratio([2], [1])})


def test_needed_repeats_reach_the_power_that_they_promise():
    # By simulation: with the number given, the interval excludes 1 in about 80 % of the cases.
    spread, percent = 0.03, 5.0
    count = needed_repeats(spread, percent)
    rng = np.random.default_rng(4)
    shown = 0
    for _ in range(TRIALS):
        shown += paired_ratio(np.exp(math.log(1.05) + rng.normal(0, spread, count)), np.ones(count)).low > 1
    assert 0.78 <= shown / TRIALS <= 0.95
    assert needed_repeats(spread, 20.0) <= count <= needed_repeats(spread, 1.0)
    assert needed_repeats(10.0, 0.1) is None
    assert needed_repeats(0.0, 1.0) == 2


@pytest.mark.parametrize(
    ("candidate", "better", "verdict"),
    [
        ([80, 81, 80], "higher", "regressed"),
        ([80, 81, 80], "lower", "improved"),
        ([120, 121, 120], "lower", "regressed"),
        ([100, 101, 100], "higher", "no change beyond the threshold"),
        ([95, 97, 94], "higher", "undecided"),
        ([80], "higher", "not repeated"),
    ],
)
def test_regression_verdicts(candidate, better, verdict):
    baseline = [100, 101, 100] if len(candidate) > 1 else [100]
    assert regression(baseline, candidate, better=better).verdict == verdict
