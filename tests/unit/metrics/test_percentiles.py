"""Percentiles, sample floors, and the coverage of the intervals by simulation."""

import numpy as np
import pytest
from scipy import stats

from crossover.metrics import percentiles
from crossover.metrics.summary import mean_interval


@pytest.mark.parametrize(
    ("values", "fraction", "expected"),
    [
        # numpy's linear method by hand: position (n - 1) p; 0.98 x 2 = 1.98 -> 20 + 0.98 x 10.
        ([10, 20, 30], 0.99, 29.8),
        (range(1, 11), 0.90, 9.1),  # position 8.1 -> 9 + 0.1
        (range(1, 101), 0.99, 99.01),  # position 98.01 -> 99 + 0.01
    ],
)
def test_percentile_is_linear(values, fraction, expected):
    assert percentiles.percentile(np.array(values, dtype=float), fraction) == pytest.approx(expected)


@pytest.mark.parametrize(("fraction", "expected"), [(0.5, 5), (0.9, 29), (0.95, 59), (0.99, 299)])
def test_needed_is_the_smallest_n_with_fraction_to_the_n_at_most_5_percent(fraction, expected):
    assert percentiles.needed(fraction) == expected
    assert fraction**expected <= 0.05 < fraction ** (expected - 1)


def test_no_interval_below_the_floor():
    assert percentiles.interval(np.arange(28.0), 0.9) is None
    assert percentiles.interval(np.arange(29.0), 0.9) is not None


def test_bounds_of_the_median_of_ten_lie_between_the_ranks_of_the_binomial():
    # Bin(10, 1/2): P(X_2 < q < X_9) = 97.85 %, P(X_3 < q < X_8) = 89.06 %; 95 % lies between.
    low, high = percentiles.interval(np.arange(1.0, 11.0), 0.5)
    assert 2 < low < 3
    assert 8 < high < 9
    assert low + high == pytest.approx(11)  # symmetric about 5.5


@pytest.mark.parametrize(
    ("count", "fraction"), [(10, 0.5), (40, 0.5), (29, 0.9), (40, 0.9), (100, 0.9), (400, 0.99), (1000, 0.99)]
)
@pytest.mark.parametrize("distribution", [stats.norm(), stats.expon(), stats.lognorm(1.0)], ids=["n", "e", "ln"])
def test_percentile_intervals_cover_93_to_97_percent(count, fraction, distribution):
    rng = np.random.default_rng(count)
    truth = distribution.ppf(fraction)
    samples = distribution.rvs(size=(2000, count), random_state=rng)
    bounds = percentiles.intervals(samples, fraction)
    covered = np.mean((bounds[:, 0] <= truth) & (truth <= bounds[:, 1]))
    assert 0.93 <= covered <= 0.97


def test_vectorised_intervals_equal_single_ones():
    samples = np.random.default_rng(1).normal(size=(20, 50))
    rows = percentiles.intervals(samples, 0.9)
    assert [percentiles.interval(row, 0.9) for row in samples] == [pytest.approx(tuple(row)) for row in rows]


def test_mean_interval_covers():
    rng = np.random.default_rng(5)
    samples = rng.normal(3.0, 2.0, size=(2000, 10))
    bounds = np.array([mean_interval(row) for row in samples])
    assert 0.93 <= np.mean((bounds[:, 0] <= 3) & (bounds[:, 1] >= 3)) <= 0.97


@pytest.mark.parametrize("count", [1, 2, 3, 10, 1001])
def test_a_percentile_is_numpys_to_the_last_digit(count):
    values = np.random.default_rng(count).lognormal(size=count)
    fractions = [0.0, 0.1, 0.25, 0.5, 0.9, 0.95, 0.99, 0.999, 1.0]
    assert [percentiles.percentile(values, fraction) for fraction in fractions] == np.quantile(
        values, fractions
    ).tolist()


def test_blocks_that_no_value_falls_into_do_not_count():
    values, blocks = np.arange(30.0), np.repeat([0, 3, 7], 10)
    # The same three blocks under other numbers.
    expected = percentiles.block_interval(values, np.repeat([0, 1, 2], 10), 0.5)
    assert percentiles.block_interval(values, blocks, 0.5) == expected
    assert percentiles.block_mean_interval(values, np.repeat([0, 5], 15)) is None


def test_block_intervals_cover_where_independent_ones_do_not():
    # Steps are shared by ten requests: each of 200 steps gives ten equal gaps, and neighbouring steps
    # resemble each other; pooled, 2,000 gaps look like ten times the evidence there is.
    rng = np.random.default_rng(7)
    covered_mean, covered_median = [], []
    for _ in range(400):
        noise = rng.normal(size=260)
        steps = np.convolve(noise, np.ones(5) / np.sqrt(5), mode="valid")[:240]
        gaps = np.repeat(steps, 10)
        blocks = np.arange(len(gaps)) * 20 // len(gaps)
        low, high = percentiles.block_mean_interval(gaps, blocks)
        covered_mean.append(low <= 0 <= high)
        low, high = percentiles.block_interval(gaps, blocks, 0.5)
        covered_median.append(low <= 0 <= high)
    assert np.mean(covered_mean) > 0.90
    assert np.mean(covered_median) > 0.90
