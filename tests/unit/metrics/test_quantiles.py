"""The distributions agree with scipy.stats, which computes them by other routines."""

import pytest
from scipy import stats

from crossover.metrics import quantiles


@pytest.mark.parametrize("freedom", [1, 2, 9, 200])
def test_t(freedom) -> None:
    assert quantiles.t_quantile(0.975, freedom) == pytest.approx(stats.t.ppf(0.975, freedom))
    assert quantiles.noncentral_t_survival(1.7, freedom, 2.5) == pytest.approx(stats.nct.sf(1.7, freedom, 2.5))


@pytest.mark.parametrize("count", [1, 10, 29, 300])
@pytest.mark.parametrize("share", [0.1, 0.5, 0.99])
def test_binomial(count, share) -> None:
    for probability in (0.025, 0.5, 0.95, 0.975):
        assert quantiles.binomial_quantile(probability, count, share) == stats.binom.ppf(probability, count, share)
    for most in (-1, 0, count // 2, count):
        assert quantiles.binomial_cdf(most, count, share) == pytest.approx(stats.binom.cdf(most, count, share))


@pytest.mark.parametrize(("successes", "count"), [(0, 10), (3, 10), (10, 10), (250, 300)])
def test_the_interval_of_a_share(successes, count) -> None:
    expected = stats.binomtest(successes, count).proportion_ci(method="exact")
    assert quantiles.exact_share_interval(successes, count) == pytest.approx((expected.low, expected.high))
