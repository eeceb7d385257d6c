"""The ledger on configurations whose differences are plain."""

import pytest

from crossover.confounds import canonical_arguments, canonical_name, ledger, same_value


def test_a_comparison_of_one_factor_is_controlled():
    found = ledger(
        {"tensor_parallel": 8, "decode_context_parallel": 1, "kv_cache_dtype": "fp8"},
        {"tensor_parallel": 8, "decode_context_parallel": 8, "kv_cache_dtype": "fp8_e4m3"},
        under_test=["dcp-size"],
    )
    assert found.verdict == "controlled"
    assert [item.item for item in found.items if item.status == "differs"] == ["decode_context_parallel"]


def test_anything_else_that_differs_confounds_it():
    found = ledger(
        {"decode_context_parallel": 1, "memory_fraction": 0.95},
        {"decode_context_parallel": 8, "memory_fraction": 0.85},
        under_test=["decode_context_parallel"],
        effects={"memory_fraction": "output throughput +0.4 % (-0.2 to 1.0)"},
    )
    assert found.verdict == "confounded"
    assert found.confounders == ("memory_fraction",)
    by_name = {item.item: item for item in found.items}
    assert by_name["memory_fraction"].impact.startswith("output throughput")
    assert by_name["decode_context_parallel"].impact == "not isolated"
    assert "memory_fraction" in found.sentence("a", "b")
    assert "confounded" in found.sentence("a", "b")


def test_what_one_side_does_not_state_is_unknown_not_different():
    found = ledger({"tensor_parallel": 8, "moe_backend": "triton"}, {"tensor_parallel": 8})
    assert found.verdict == "undetermined"
    assert found.unknown == ("moe_backend",)


def test_nothing_known_is_not_controlled():
    assert ledger({}, {}).verdict == "undetermined"


def test_names_and_places_are_no_difference():
    assert ledger({"tp": 1, "port": 1, "raw": {"a": 1}}, {"tp": 1, "port": 2, "raw": {}}).verdict == "controlled"


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        ("fp8", "fp8_e4m3", True),
        ("auto", "triton", True),
        (0.85, "0.85", True),
        (True, "true", True),
        (32, 64, False),
        ("bf16", "bfloat16", True),
        ("triton", "TRITON", True),
        ("fp8", "bf16", False),
        ("None", "FULL", True),
        # A mode that is called NONE is no open setting: the graphs are off.
        ("NONE", "FULL", False),
    ],
)
def test_spellings_of_a_value(first, second, same):
    assert same_value(first, second) is same


def test_flags_have_common_names():
    assert canonical_name("--gpu-memory-utilization") == canonical_name("mem_fraction_static") == "memory_fraction"
    # vLLM's budget of a step and SGLang's chunk limit the same thing.
    assert canonical_name("max_batched_tokens") == canonical_name("chunked-prefill-size") == "chunked_prefill_tokens"
    assert canonical_name("some-own-flag") == "some_own_flag"
    flags = canonical_arguments({"tp-size": 8, "speculative-config": {"method": "dspark", "num_speculative_tokens": 7}})
    assert flags["tensor_parallel"] == ("tp-size", 8)
    assert flags["speculative_tokens"] == ("speculative-config.num_speculative_tokens", 7)
