"""What the engine's own log says of a cell: stable samples, chunks, acceptance."""

import pytest

from crossover.metrics.engine_side import stable_samples, summarise_engine


def test_an_engine_at_rest_shows_no_stable_phase():
    """vLLM's last line of a short cell: a rate over the second in which the last requests ended, none running."""
    interval = {"t": None, "engine_id": 0, "prefill_tok_s": 0.0, "decode_tok_s": 378.5, "running": 0, "waiting": 0}
    rest = {"engine": "vllm", "intervals": [interval], "prefill_batches": [], "decode_batches": [], "speculation": []}
    found = summarise_engine(rest, {"input_tokens": 256, "concurrency": 4})
    assert found is not None
    assert (found["stable_decode_tok_s"], found["stable_running"]) == (None, None)


def test_sglang_samples_with_a_prefill_in_between_are_left_out():
    def decode(t, rate, running=2):
        return {"t": t, "rank": None, "running": running, "decode_tok_s": rate, "accept_len": 2.0, "queued": 0}

    batches = [{"t": "T10:00:03", "new_tokens": 4096, "cached_tokens": 0, "prefill_tok_s": 20000.0},
               {"t": "T10:00:04", "new_tokens": 1904, "cached_tokens": 0, "prefill_tok_s": 18000.0}]  # fmt: skip
    decodes = [
        decode("T10:00:01", 5.0),
        decode("T10:00:02", 100.0),
        decode("T10:00:05", 30.0),
        decode("T10:00:06", 102.0),
    ]
    found = summarise_engine(
        {"engine": "sglang", "decode_batches": decodes, "prefill_batches": batches, "intervals": []},
        {"input_tokens": 6000, "concurrency": 2},
    )
    # The first sample after a pause and the one with a prefill before it do not count.
    # Both are of equally many steps and tokens: 2 / (1/100 + 1/102) tok/s over the time of both.
    assert found["stable_decode_tok_s"] == {"mean": pytest.approx(100.990099), "min": 100.0, "max": 102.0, "n": 2}
    assert [chunk["context_tokens"] for chunk in found["prefill_chunks"]] == [0, 4096]
    assert found["acceptance_length"]["mean"] == 2.0
    assert found["prefix_hit_rate"] == 0.0


def test_a_vllm_sample_slowed_by_a_prompt_counted_in_the_next_is_left_out():
    """The last prompt's prefill takes the fourth sample and ends in the fifth, which counts it: in the fourth the
    others hardly decode, though nothing seems to be prefilled. Another engine's prompt says nothing of this one, and
    a sample as fast as the others (161.0) was not slowed."""

    def sample(prefill, decode, engine=0):
        return {"t": None, "engine_id": engine, "prefill_tok_s": prefill, "decode_tok_s": decode, "running": 2}

    intervals = [sample(0.0, 160.0), sample(0.0, 164.0), sample(20000.0, 0.0, 1), sample(0.0, 162.0), sample(0.0, 5.3),
                 sample(20000.0, 158.1), sample(0.0, 161.0), sample(20000.0, 150.0), sample(0.0, 166.0)]  # fmt: skip
    kept = stable_samples({"engine": "vllm", "intervals": intervals}, 2)
    assert [one["decode_tok_s"] for one in kept] == [160.0, 164.0, 162.0, 161.0, 166.0]
