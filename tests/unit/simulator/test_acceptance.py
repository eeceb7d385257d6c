"""The expected mean is the geometric sum 1 + p + ... + p^k, checked against what is drawn."""

from __future__ import annotations

import pytest

from crossover.simulator.acceptance import Acceptance, conditional_rate, cumulative


def test_rate_of_one_draft_token_is_the_mean_less_the_bonus() -> None:
    assert conditional_rate(1.4, 1) == pytest.approx(0.4, abs=1e-9)


def test_rate_for_two_draft_tokens_solves_the_quadratic() -> None:
    # p + p^2 = 0.75 has the root 0.5.
    assert conditional_rate(1.75, 2) == pytest.approx(0.5, abs=1e-9)


@pytest.mark.parametrize(("mean", "rate"), [(1.0, 0.0), (0.5, 0.0), (8.0, 1.0), (9.0, 1.0)])
def test_limits(mean: float, rate: float) -> None:
    assert conditional_rate(mean, 7) == rate


def test_cumulative_is_the_complement_of_the_powers() -> None:
    assert cumulative(1.75, 2) == pytest.approx((0.5, 0.75), abs=1e-9)


@pytest.mark.parametrize("mean", [1.11, 2.39, 5.0])
def test_draws_have_the_mean(mean: float) -> None:
    acceptance = Acceptance(mean, 7, seed=1)
    draws = [acceptance.draw() for _ in range(40_000)]
    assert sum(draws) / len(draws) == pytest.approx(mean, rel=0.02)
    assert min(draws) >= 1
    assert max(draws) <= 8


def test_same_seed_same_draws() -> None:
    one, two, other = (Acceptance(2.4, 7, seed) for seed in (5, 5, 6))
    first = [one.draw() for _ in range(50)]
    assert first == [two.draw() for _ in range(50)]
    assert first != [other.draw() for _ in range(50)]


def test_without_a_draft_model_each_step_yields_one() -> None:
    acceptance = Acceptance(3.0, 0, seed=0)
    assert acceptance.mean == 1.0
    assert [acceptance.draw() for _ in range(5)] == [1] * 5
