"""Factors, prefill fits and phases on figures that can be worked out by hand."""

import math

import pytest

from crossover.attribution import (
    DecodeState,
    Estimate,
    attribute_pair,
    compare,
    explain_latency,
    fit_prefill,
    largest_factor,
    phases_of_cell,
)


def state(running, accepted, rate):
    return DecodeState(Estimate.exactly(running), Estimate.exactly(accepted), Estimate.exactly(rate))


def test_factors_multiply_to_the_ratio():
    # 10 x 2 / 400 = 50 ms against 10 x 1 / 250 = 40 ms: 400 / 250 = 1.6 = 2 (acceptance) x 0.8 (step time).
    found = compare(state(10, 2, 400), state(10, 1, 250))
    assert found.decode_ratio.value == pytest.approx(1.6)
    assert found.of_which_accept_len.value == pytest.approx(2.0)
    assert found.of_which_step_time.value == pytest.approx(0.8)
    assert math.prod(factor.value for factor in found.factors.values()) == pytest.approx(1.6)
    assert sum(found.shares.values()) == pytest.approx(1.0)
    sentence = largest_factor(found, "a", "b")
    assert sentence.startswith("a decodes 1.60 times as fast as b; the largest factor is accepted length (2.00)")
    assert "step time (0.80) is against it" in sentence
    # From the other side it is the same statement.
    assert largest_factor(compare(state(10, 1, 250), state(10, 2, 400)), "b", "a") == sentence


def test_equal_cells_have_no_factor():
    assert "same rate" in largest_factor(compare(state(10, 1, 250), state(10, 1, 250)), "a", "b")


def test_intervals_come_from_the_ranges():
    one = DecodeState(Estimate.exactly(10), Estimate.of_range(2.27, 2.51), Estimate(501, 439, 537))
    assert one.step_time_s.value == pytest.approx(10 * 2.39 / 501)
    assert one.step_time_s.low == pytest.approx(10 * 2.27 / 501)
    assert one.step_time_s.high == pytest.approx(10 * 2.51 / 501)


def test_prefill_of_the_published_chunks():
    # Six chunks of 32,768 tokens behind 0 to 5 others: by hand 1.459 + 0.1076 k seconds, every rate within 13 ms.
    rates = [22265, 21064, 19628, 18475, 17243, 16408]
    chunks = [{"context_tokens": 32768 * k, "new_tokens": 32768, "tok_s": rate} for k, rate in enumerate(rates)]
    model = fit_prefill(chunks)
    assert model.per_token_s * 32768 == pytest.approx(1.459, abs=0.005)
    assert model.per_token_and_context_s * 32768**2 == pytest.approx(0.1076, abs=0.002)
    assert model.residual_s < 0.013
    # 200,000 tokens: six whole chunks 6 x 1.459 + 15 x 0.1076 = 10.37 s, and 3,392 tokens behind six at
    # (1.459 + 6 x 0.1076) / 32768 a token: 0.218 s.
    assert model.prompt_s(200_000) == pytest.approx(10.59, abs=0.05)
    assert fit_prefill(chunks[:1]) is None


def cell(ttft, e2e, prompt=64_000, rates=None, decode=400.0, accepted=None):
    return {
        "workload": {"concurrency": 10},
        "requests": {"ok": 10},
        "tokens": {"prompt": prompt * 10},
        "metrics": {"ttft_s": {"mean": ttft}, "e2e_s": {"mean": e2e}, "stable_decode_tok_s": {"value": decode}},
        "engine": {"prefill_tok_s": rates, "acceptance_length": accepted},
    }


def test_phases_add_up():
    # Own prefill 64,000 / 20,000 = 3.2 s; queue 35 - 3.2; decode 84 - 35.
    found = phases_of_cell(cell(35.0, 84.0, rates={"max": 20_000.0}))
    assert found.to_dict() == pytest.approx({"queue_s": 31.8, "prefill_s": 3.2, "decode_s": 49.0, "e2e_s": 84.0})
    assert phases_of_cell(cell(None, 84.0)) is None


def test_without_prefill_rates_queue_and_prefill_are_one():
    first, second = phases_of_cell(cell(35.0, 84.0, rates={"max": 20_000.0})), phases_of_cell(cell(40.0, 90.0))
    found = explain_latency(first, second)
    assert found["prefill_s"] is None
    assert found["queue_s"] == pytest.approx(5.0)
    assert found["decode_s"] == pytest.approx(1.0)
    assert found["total_s"] == pytest.approx(6.0)


def test_waterfall_leads_from_one_cell_to_the_other():
    accepted = {"mean": 2.0, "min": 1.9, "max": 2.1}
    found = attribute_pair(
        cell(35.0, 84.0, decode=400.0, accepted=accepted), cell(40.0, 110.0, decode=250.0), ("a", "b")
    )
    fall = found["waterfall"]
    assert fall["start_s"] + sum(step["seconds"] for step in fall["steps"]) == pytest.approx(fall["end_s"])
    # Decode grew from 49 to 70 s; acceptance 2, step 0.8: ln 2 / ln 1.6 of 21 s and the rest against it.
    parts = {step["step"]: step["seconds"] for step in fall["steps"]}
    assert parts["decode: accepted length"] == pytest.approx(21 * math.log(2) / math.log(1.6))
    assert parts["decode: step time"] == pytest.approx(21 * math.log(0.8) / math.log(1.6))
    assert found["sentence"].startswith("a decodes 1.60 times")


def test_cells_without_figures_are_not_explained():
    found = attribute_pair({}, {})
    assert found["decode"] is None
    assert found["waterfall"] is None
    assert found["sentence"] is None
