"""When requests are due."""

from __future__ import annotations

import numpy as np
import pytest

from crossover.client import Load
from crossover.client.schedule import ClosedLoop, arrival_times_ns, make_schedule


def times_s(load: Load, count: int | None) -> np.ndarray:
    return arrival_times_ns(load, count) / 1e9


def test_fixed_arrivals() -> None:
    assert times_s(Load(rate_per_s=4, arrivals="fixed"), 5).tolist() == pytest.approx([0, 0.25, 0.5, 0.75, 1.0])


def test_poisson_arrivals_have_exponential_gaps() -> None:
    times = times_s(Load(rate_per_s=10, seed=3), 20_001)
    gaps = np.diff(times)
    assert times[0] == 0
    # Mean 1/rate within four standard errors (0.1 / sqrt(20000) = 0.0007), and a coefficient of variation of 1.
    assert gaps.mean() == pytest.approx(0.1, abs=0.003)
    assert gaps.std() / gaps.mean() == pytest.approx(1, abs=0.03)


def test_arrivals_are_the_same_for_a_seed_and_differ_between_seeds() -> None:
    first, again, other = (times_s(Load(rate_per_s=10, seed=seed), 50).tolist() for seed in (1, 1, 2))
    assert first == again != other


def test_a_ramp_raises_the_rate_linearly() -> None:
    # 10 a second after a ramp of 4 s: 10 x 4 / 2 = 20 arrivals within the ramp, a quarter of them in its first half.
    times = times_s(Load(rate_per_s=10, arrivals="fixed", ramp_s=4), 40)
    assert (times < 4).sum() == 20
    assert (times < 2).sum() == 5
    assert np.diff(times[20:]).tolist() == pytest.approx([0.1] * 19)


def test_a_duration_ends_an_open_loop() -> None:
    times = times_s(Load(rate_per_s=100, duration_s=2, seed=5), None)
    assert times.max() <= 2
    # 200 expected; four standard deviations of a Poisson count are 57.
    assert abs(len(times) - 200) < 57


def test_a_closed_loop_starts_another_when_one_ends() -> None:
    loop = ClosedLoop(2, 3, None, 0)
    assert [loop.take(), loop.take()] == [0, 0]
    assert loop.next_due_ns() is None
    loop.on_end(700)
    assert loop.next_due_ns() == 700
    loop.take()
    loop.on_end(900)
    assert loop.next_due_ns() is None


def test_each_prompt_is_sent_once_by_default() -> None:
    schedule = make_schedule(Load(concurrency=8), prompts=3)
    assert [schedule.take() for _ in range(3)] == [0, 0, 0]
    assert schedule.next_due_ns() is None
