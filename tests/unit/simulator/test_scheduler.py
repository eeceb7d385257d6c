"""Steps worked out by hand from the calibration: a chunk of 32,768 tokens takes 1.459 s, and 0.1076 s more for each
before it.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from crossover.simulator.scheduler import Scheduler, Sequence, Step
from crossover.simulator.settings import Settings
from crossover.simulator.timing import settings_of


def warm(settings: Settings, **changes: Any) -> Scheduler:
    return Scheduler(dataclasses.replace(settings, jit=(), oom_retries=0, **changes))


def drain(scheduler: Scheduler, steps: int = 100_000) -> list[Step]:
    now, done = 0.0, []
    while not scheduler.idle and len(done) < steps:
        step = scheduler.step(now)
        assert step is not None
        done.append(step)
        now = step.end_s
    return done


@pytest.fixture
def vllm(published: dict[str, dict[str, Any]]) -> Settings:
    return settings_of("vllm", published["vllm"])


@pytest.fixture
def sglang(published: dict[str, dict[str, Any]]) -> Settings:
    return settings_of("sglang", published["sglang"])


@pytest.mark.parametrize("dialect", ["vllm", "sglang"])
def test_one_prompt_takes_the_chunks_one_after_the_other(dialect: str, published: dict[str, dict[str, Any]]) -> None:
    scheduler = warm(settings_of(dialect, published[dialect]))
    scheduler.add(Sequence(0, 64_000, 1, False), 0.0)
    steps = drain(scheduler)
    assert [step.duration_s for step in steps] == pytest.approx([1.459, 31_232 / 32_768 * (1.459 + 0.1076)])
    assert steps[-1].outputs == [(steps[-1].outputs[0][0], 1, True)]


def test_the_published_decay_of_the_prefill_rate(sglang: Settings) -> None:
    scheduler = warm(sglang)
    scheduler.add(Sequence(0, 196_608, 1, False), 0.0)
    rates = [step.prefill[0][1] / step.duration_s for step in drain(scheduler)]
    # Published: the six chunks of one 200K request.
    assert rates == pytest.approx([22265, 21064, 19628, 18475, 17243, 16408], rel=0.015)


def test_sglang_does_not_decode_while_prompts_wait(sglang: Settings) -> None:
    scheduler = warm(sglang)
    for number in range(3):
        scheduler.add(Sequence(number, 32_768, 50, False), 0.0)
    kinds = [step.kind for step in drain(scheduler)]
    assert kinds[:3] == ["prefill"] * 3
    assert set(kinds[3:]) == {"decode"}


def test_vllm_decodes_beside_prefill(vllm: Settings) -> None:
    scheduler = warm(vllm)
    for number in range(3):
        scheduler.add(Sequence(number, 32_768, 50, False), 0.0)
    steps = drain(scheduler)
    assert steps[0].kind == "prefill"
    assert [step.kind for step in steps[1:3]] == ["mixed", "mixed"]
    # The first request decodes with eight tokens (seven drafted), so the second gets the rest of the budget.
    assert steps[1].prefill[0][1] == 32_768 - 8


def test_long_prefill_threshold_shares_the_budget(vllm: Settings) -> None:
    scheduler = warm(vllm, chunk_limit_tokens=4096)
    for number in range(10):
        scheduler.add(Sequence(number, 64_000, 10, False), 0.0)
    step = scheduler.step(0.0)
    assert step is not None
    assert [new for _, new, _ in step.prefill] == [4096] * 8  # 32,768 / 4,096
    assert len(scheduler.waiting) == 2


def test_the_running_limit_makes_the_rest_wait(vllm: Settings) -> None:
    scheduler = warm(vllm, max_running=2)
    for number in range(5):
        scheduler.add(Sequence(number, 1000, 20, False), 0.0)
    steps = drain(scheduler)
    assert max(len(step.outputs) for step in steps) == 2


def test_decode_step_time(vllm: Settings) -> None:
    scheduler = warm(vllm)
    for number in range(10):
        scheduler.add(Sequence(number, 64_000, 3000, False), 0.0)
    steps = [step for step in drain(scheduler) if step.kind == "decode" and step.decoding == 10]
    # 29.3 + 10 x 0.86 ms, and 0.015 ms a thousand of the 10 x 64,000 tokens and of what has been generated.
    generated = sum(tokens for step in steps[:1] for _, tokens, _ in step.outputs)
    assert steps[0].duration_s == pytest.approx(0.0379 + 0.0096, abs=0.0003)
    assert steps[-1].duration_s > steps[0].duration_s
    assert generated >= 10


def test_every_request_gets_what_it_asked_for(vllm: Settings) -> None:
    scheduler = warm(vllm)
    wanted = {number: 7 + 13 * number for number in range(20)}
    for number, output in wanted.items():
        scheduler.add(Sequence(number, 500 + 1000 * number, output, False), 0.0)
    got = dict.fromkeys(wanted, 0.0)
    finished = []
    for step in drain(scheduler):
        for sequence, tokens, done in step.outputs:
            got[sequence.number] += tokens
            finished += [sequence.number] if done else []
    assert got == wanted
    assert sorted(finished) == sorted(wanted)


@pytest.mark.parametrize("dialect", ["vllm", "sglang"])
def test_a_full_pool_preempts_and_still_serves_all(dialect: str, published: dict[str, dict[str, Any]]) -> None:
    settings = settings_of(dialect, published[dialect])
    memory = dataclasses.replace(settings.memory, kv_tokens=10_000, kv_capacity_tokens=10_000)
    scheduler = warm(settings, memory=memory, acceptance_random=((0, 1.0),))
    for number in range(4):
        scheduler.add(Sequence(number, 2000, 1500 if dialect == "vllm" else 2500, False), 0.0)
    got = dict.fromkeys(range(4), 0.0)
    for step in drain(scheduler):
        assert scheduler.held_tokens() <= 10_000 + 64
        for sequence, tokens, _ in step.outputs:
            got[sequence.number] += tokens
    assert set(got.values()) == {1500 if dialect == "vllm" else 2500}
    assert scheduler.preemptions > 0


def test_kernels_are_compiled_once_and_a_warm_up_spares_the_measurement(sglang: Settings) -> None:
    cold = Scheduler(sglang)
    cold.add(Sequence(0, 64_000, 1, False), 0.0)
    first = sum(step.duration_s for step in drain(cold))
    cold.add(Sequence(1, 64_000, 1, False), 0.0)
    second = sum(step.duration_s for step in drain(cold))
    assert first - second == pytest.approx(27.0)
    short = Scheduler(sglang)
    short.add(Sequence(0, 1000, 8, False), 0.0)  # a warm-up too short to cover the shapes
    drain(short)
    assert len(short.cold) == len(sglang.jit)


def test_oom_retries_once_at_the_first_full_step(vllm: Settings) -> None:
    scheduler = Scheduler(dataclasses.replace(vllm, jit=()))
    for number in range(2):
        scheduler.add(Sequence(number, 32_768, 4, False), 0.0)
    steps = drain(scheduler)
    assert [step.oom_retries for step in steps if step.oom_retries] == [32]
    assert steps[0].duration_s == pytest.approx(1.459 + 2.0)


def test_cancelled_requests_leave_the_batch(vllm: Settings) -> None:
    scheduler = warm(vllm)
    one, two = Sequence(0, 100, 50, False), Sequence(1, 100, 50, False)
    scheduler.add(one, 0.0)
    scheduler.add(two, 0.0)
    scheduler.step(0.0)
    scheduler.cancel(one)
    assert scheduler.running == [two]
    assert {sequence.number for step in drain(scheduler) for sequence, _, _ in step.outputs} == {1}


def test_a_seed_gives_the_same_steps(vllm: Settings) -> None:
    def total(seed: int) -> float:
        scheduler = Scheduler(vllm, seed)
        for number in range(3):
            scheduler.add(Sequence(number, 5000, 200, False), 0.0)
        return drain(scheduler)[-1].end_s

    assert total(1) == total(1)
    assert total(1) != total(2)
