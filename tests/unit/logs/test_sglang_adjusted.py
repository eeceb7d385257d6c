"""What the engine says it changed: the setting that holds, and an incident where it was not asked for."""

# ruff: noqa: E501 (lines stand as the engine prints them)

from __future__ import annotations

import pytest

from crossover.logs import read_log


@pytest.mark.parametrize(
    ("line", "settings"),
    [
        ("Cuda graph is disabled because of using torch native attention backend", {"enforce_eager": True}),
        ("Cuda graph is disabled for prefill server", {"enforce_eager": True}),
        ("Radix cache is disabled because --enable-mis is set.", {"prefix_caching": False}),
        (
            "Mixed chunk, radix cache, and cuda graphs are disabled because of using dual chunk flash attention backend",
            {"mixed_chunk": False, "prefix_caching": False, "enforce_eager": True},
        ),
        ("Disabling radix cache since speculative decoding for NemotronH is not supported", {"prefix_caching": False}),
        ("Automatically disable radix cache for qwen-vl series.", {"prefix_caching": False}),
        ("CUDA Graph is DISABLED.", {"enforce_eager": True}),
        (
            "The overlap scheduler and mixed chunked prefill are disabled because of using ngram speculative decoding.",
            {"overlap_schedule": False, "mixed_chunk": False},
        ),
    ],
)
def test_features_that_are_turned_off(line: str, settings: dict[str, object]) -> None:
    report = read_log([f"[2026-07-10 06:00:01] {line}"], "sglang")
    found = {name: value for name, value in report.effective_config.items() if name != "raw"}
    assert found == settings
    assert list(report.incidents) == []


@pytest.mark.parametrize(
    ("line", "settings"),
    [
        (
            "DP attention is enabled. The chunked prefill size is adjusted to 4096 to avoid MoE kernel issues. ",
            {"chunked_prefill_tokens": 4096},
        ),
        ("Setting max_running_requests to 256 for DeepseekV4ForCausalLM.", {"max_running_requests": 256}),
        ("max_total_tokens=5000000 is larger than the profiled value 2086558. Use the profiled value instead.", {}),
    ],
)
def test_limits_that_the_engine_set(line: str, settings: dict[str, object]) -> None:
    report = read_log([f"[2026-07-10 06:00:01 TP{rank}] {line}" for rank in (0, 1)], "sglang")
    found = {name: value for name, value in report.effective_config.items() if name != "raw"}
    assert found == settings
    assert [(item.kind, item.severity, item.count) for item in report.incidents] == [("config_adjusted", "note", 1)]


def test_pool_below_the_context_is_told_once() -> None:
    """The engine's own warning (0.5.23) and the limits say the same."""
    report = read_log(
        [
            "[2026-11-01 06:04:27 TP0] KV pool holds 59862 tokens, fewer than --context-length 163840. One full-length "
            "request cannot fit, so long requests will be refused or truncated at serving time.",
            "[2026-11-01 06:04:28 TP0] max_total_num_tokens=59862, chunked_prefill_size=4096, max_prefill_tokens=16384, "
            "max_running_requests=32, context_len=163840, available_gpu_mem=7.60 GB",
        ],
        "sglang",
    )
    assert [(item.kind, item.count) for item in report.incidents] == [("context_exceeds_pool", 1)]
