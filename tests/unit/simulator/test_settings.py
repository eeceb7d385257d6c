"""Expected memory: the published split, and hand calculations from the calibration's figures."""

from __future__ import annotations

from typing import Any

import pytest

from crossover.simulator.settings import Settings
from crossover.simulator.shape import integer
from crossover.simulator.timing import settings_of


def with_arguments(published: dict[str, Any], **changes: Any) -> Settings:
    dialect = "vllm" if "tensor-parallel-size" in published else "sglang"
    arguments = {**published, **{name.replace("_", "-"): value for name, value in changes.items()}}
    return settings_of(dialect, {name: value for name, value in arguments.items() if value is not None})


def test_vllm_memory_is_the_published_one(published: dict[str, dict[str, Any]]) -> None:
    settings = with_arguments(published["vllm"])
    # 0.95 x 267.69 - 197.72 - 12.82 GiB; published are 43.76 GiB, 2,687,776 tokens and 32 retries.
    assert settings.memory.kv_gib == pytest.approx(43.76, abs=0.02)
    assert settings.memory.kv_tokens == pytest.approx(2_687_776, rel=0.001)
    assert settings.oom_retries == 32
    assert settings.refusal is None
    assert settings.start_s() == pytest.approx(636, abs=1)


@pytest.mark.parametrize("change", [{"gpu_memory_utilization": 0.92}, {"kv_cache_memory": 41317885440}])
def test_a_smaller_pool_needs_no_retries(published: dict[str, dict[str, Any]], change: dict[str, Any]) -> None:
    settings = with_arguments(published["vllm"], **change)
    assert settings.oom_retries == 0
    # 0.92: 3 % of 267.69 GiB less than 43.77; pinned: 41317885440 / 2^30.
    assert settings.memory.kv_gib == pytest.approx(35.73 if "gpu_memory_utilization" in change else 38.48, abs=0.02)


def test_sglang_memory_is_the_published_one(published: dict[str, dict[str, Any]]) -> None:
    memory = with_arguments(published["sglang"]).memory
    assert memory.kv_tokens == pytest.approx(916_672, rel=0.0005)
    assert memory.draft_kv_tokens == 8 * memory.kv_tokens
    assert (memory.kv_gib, memory.draft_kv_gib, memory.mamba_gib) == pytest.approx((11.80, 8.74, 10.93), abs=0.02)
    assert memory.mamba_slots == 39
    # Published: 17.08 GiB remain.
    left = memory.visible_gib - memory.non_torch_gib - memory.weights_gib - memory.kv_gib - memory.draft_kv_gib
    assert left - memory.mamba_gib - memory.graph_gib == pytest.approx(17.08, abs=0.05)


def test_sglang_without_dcp_has_a_larger_pool_and_a_steeper_step(published: dict[str, dict[str, Any]]) -> None:
    base, alone = with_arguments(published["sglang"]), with_arguments(published["sglang"], dcp_size=1)
    # 20.54 GiB / (0.0128727 + 0.0011918 GiB a thousand tokens) = 1,460,500 tokens on each rank, not times eight.
    assert alone.memory.kv_tokens == pytest.approx(1_460_500, rel=0.001)
    assert alone.memory.kv_capacity_tokens == alone.memory.kv_tokens
    assert alone.cost.kv_s_per_token == pytest.approx(8 * base.cost.kv_s_per_token)
    assert base.cost.decode_base_s - alone.cost.decode_base_s == pytest.approx(0.003)


def test_sglang_running_limit_follows_the_states(published: dict[str, dict[str, Any]]) -> None:
    assert with_arguments(published["sglang"], mamba_full_memory_ratio=1.2).max_running > 39
    assert with_arguments(published["sglang"], mamba_ssm_dtype="bfloat16").max_running == 48  # the default limit
    assert with_arguments(published["sglang"], max_running_requests=16).max_running == 16


def test_switches_change_the_step(published: dict[str, dict[str, Any]]) -> None:
    base = with_arguments(published["sglang"]).cost.decode_base_s
    custom = with_arguments(published["sglang"], disable_custom_all_reduce=None).cost.decode_base_s
    assert base - custom == pytest.approx(0.002)
    tuned = with_arguments(published["vllm"], enable_flashinfer_autotune=True)
    assert tuned.cost.prefill_base_s == pytest.approx(0.97 * 1.459)
    assert tuned.start_s() == pytest.approx(636 + 45, abs=1)
    plain = with_arguments(published["vllm"], speculative_config=None)
    assert plain.draft_tokens == 0
    assert plain.acceptance_mean(64_000, natural=True) == 1.0
    wide = with_arguments(published["vllm"], kv_cache_dtype="auto")
    assert wide.cost.kv_s_per_token == pytest.approx(2 * with_arguments(published["vllm"]).cost.kv_s_per_token)


@pytest.mark.parametrize(
    ("dialect", "change", "said"),
    [
        ("vllm", {"max_model_len": 3_000_000}, "To serve at least one request with the model's max seq len (3000000)"),
        ("vllm", {"gpu_memory_utilization": 0.7}, "No available memory for the cache blocks"),
        ("vllm", {"tensor_parallel_size": 4}, "CUDA out of memory"),
        ("sglang", {"mem_fraction_static": 0.7}, "Not enough memory. Please try to increase --mem-fraction-static"),
    ],
)
def test_what_the_engine_refuses(
    published: dict[str, dict[str, Any]], dialect: str, change: dict[str, Any], said: str
) -> None:
    assert said in (with_arguments(published[dialect], **change).refusal or "")


def test_what_is_not_modelled_is_listed(published: dict[str, dict[str, Any]]) -> None:
    settings = with_arguments(published["vllm"])
    assert settings.not_modelled == (
        "--trust-remote-code",
        "--load-format",
        "--enable-auto-tool-choice",
        "--tool-call-parser",
    )


def test_acceptance_by_context_and_text(published: dict[str, dict[str, Any]]) -> None:
    settings = with_arguments(published["vllm"])
    assert settings.acceptance_mean(64_000, natural=False) == pytest.approx(2.39)
    assert settings.acceptance_mean(132_000, natural=False) == pytest.approx((2.39 + 1.11) / 2)  # half way to 200K
    assert settings.acceptance_mean(64_000, natural=True) > 2.39


@pytest.mark.parametrize(
    ("text", "value"), [("4096", 4096), ("1_000", 1000), ("128k", 128_000), ("1M", 2**20), (None, None)]
)
def test_integers_as_the_engines_read_them(text: str | None, value: int | None) -> None:
    assert integer(text) == value
