"""Backends that the engine says it chose, in every wording, under the common names."""

from __future__ import annotations

from typing import Any

import pytest

from crossover.logs import read_log
from crossover.logs.sglang.config import normalise

ALL_ATTENTION = ("attention_backend", "prefill_attention_backend", "decode_attention_backend")


def settings_of(line: str) -> dict[str, Any]:
    config = dict(read_log([f"[2026-07-10 06:00:01 TP0] {line}"], "sglang").effective_config)
    config.pop("raw")
    return config


@pytest.mark.parametrize(
    ("line", "backend"),
    [
        ("MLA optimization is turned on. Use triton backend.", "triton"),
        ("Attention backend not set. Use flashinfer backend by default.", "flashinfer"),
        ("Attention backend not explicitly specified. Use fa3 backend by default.", "fa3"),
        ("Use trtllm_mla as attention backend on sm100 for DeepseekV3ForCausalLM", "trtllm_mla"),
        ("Use triton as default attention backend for EmbeddingGemma2Model", "triton"),
        (
            "Use trtllm_mla as the default prefill and decode attention backend for Kimi-K3 on SM100/SM103.",
            "trtllm_mla",
        ),
        ("Use dsa attention backend for DeepSeek with DSA.", "dsa"),
    ],
)
def test_attention(line: str, backend: str) -> None:
    assert settings_of(line) == dict.fromkeys(ALL_ATTENTION, backend)


@pytest.mark.parametrize(
    ("line", "settings"),
    [
        (
            "Use flashinfer as default prefill attention backend for Moss-VL",
            {"prefill_attention_backend": "flashinfer"},
        ),
        ("Use flashinfer_trtllm as MoE runner backend on sm100 for Glm4Moe", {"moe_backend": "flashinfer_trtllm"}),
        ("Use flashinfer_trtllm as moe runner backend on sm100 for X", {"moe_backend": "flashinfer_trtllm"}),
        ("Setting KV cache dtype to fp8_e4m3 for DeepseekV4ForCausalLM.", {"kv_cache_dtype": "fp8_e4m3"}),
        ("Multimodal attention backend not set. Use fa3.", {}),
    ],
)
def test_other_backends(line: str, settings: dict[str, str]) -> None:
    assert settings_of(line) == settings


def test_flags_that_chose_a_backend_before_it_had_a_name() -> None:
    """0.4: `enable_deepep_moe` is today's `moe_a2a_backend='deepep'`; a name that is given counts more."""
    assert normalise({"enable_deepep_moe": True})["all2all_backend"] == "deepep"
    assert normalise({"enable_flashinfer_mla": True, "attention_backend": None})["attention_backend"] == "flashinfer"
    assert normalise({"enable_flashinfer_mla": True, "attention_backend": "triton"})["attention_backend"] == "triton"
    assert "all2all_backend" not in normalise({"enable_deepep_moe": False})
