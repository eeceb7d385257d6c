"""The dumps of real servers: log, information endpoints and metrics give one configuration.

The expected values were read from the dumps by eye; the place of each is its source.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from crossover.configuration import effective_configuration
from crossover.engines import get_engine
from crossover.engines.information import information_in
from crossover.logs import read_log

CASES = Path(__file__).parents[2] / "cases"
STATES = "/server_info internal_states"


def merged(engine: str, folder: str, log: Path, info: dict[str, str], requested: dict) -> dict:
    place = CASES / "configuration" / folder
    answers = {path: json.loads((place / file).read_text()) for path, file in info.items()}
    answers["/metrics"] = information_in((place / "metrics.txt").read_text(), get_engine(engine).info_metrics)
    found = effective_configuration(engine, read_log(log, engine=engine).to_dict(), answers, requested)
    return {setting.name: setting for setting in found.settings}


@pytest.fixture(scope="module")
def vllm() -> dict:
    """Started with --max-model-len 4096 --enforce-eager, a reasoning parser and n-gram speculation; the rest of what
    is asked here was not, so that it must be told as changed."""
    requested = {
        "arguments": {
            "max_model_len": 4096,
            "enforce-eager": True,
            "reasoning-parser": "deepseek_r1",
            "speculative-config": {
                "method": "ngram",
                "num_speculative_tokens": 3,
                "prompt_lookup_max": 4,
                "model": "x",
            },
            "api-key": "canary",
            "max-num-seqs": 256,
            "compilation-config": {"cudagraph_mode": "FULL"},
            "kv-cache-dtype": "fp8",
            "no-such-flag": 1,
        },
        "environment": {"VLLM_CPU_KVCACHE_SPACE": 1, "VLLM_LOG_STATS_INTERVAL": 10, "HF_HUB_OFFLINE": 1},
    }
    log = CASES / "configuration" / "vllm-0.32.0" / "engine.log"
    return merged("vllm", "vllm-0.32.0", log, {"/server_info": "server_info.json"}, requested)


@pytest.fixture(scope="module")
def sglang() -> dict:
    requested = {
        "arguments": {
            "tp": 1,
            "attention-backend": "triton",
            "decode-attention-backend": "torch_native",
            "context-length": 4096,
            "disable-overlap-schedule": True,
            "disable-radix-cache": True,
            "enable-metrics": True,
            "log-level": "debug",
        }
    }
    log = CASES / "real-sglang-0.5.23-plain" / "input.txt"
    return merged("sglang", "sglang-0.5.23", log, {"/get_server_info": "get_server_info.json"}, requested)


@pytest.mark.parametrize(
    ("name", "value", "source"),
    [
        ("tensor_parallel", 1, "log"),
        ("decode_context_parallel", 1, "log"),
        ("expert_parallel", False, "/server_info"),
        ("all2all_backend", "allgather_reducescatter", "/server_info"),
        ("disable_custom_all_reduce", True, "log"),
        ("kv_cache_dtype", "auto", "/metrics"),
        ("block_size", 128, "/metrics"),
        ("memory_fraction", 0.92, "/metrics"),
        ("kv_cache_tokens", 2097152, "/metrics"),
        ("kv_cache_blocks", 16384, "/metrics"),
        ("kv_cache_memory_bytes", 1073741824, "/metrics"),
        ("max_concurrency", 512.0, "/metrics"),
        ("prefix_caching", True, "/metrics"),
        ("mamba_ssm_dtype", "float32", "/metrics"),
        ("max_model_len", 4096, "log"),
        ("max_running_requests", 128, "/server_info"),
        ("max_batched_tokens", 2048, "/server_info"),
        ("async_scheduling", False, "/server_info"),
        ("speculative_method", "ngram", "log"),
        ("speculative_tokens", 3, "log"),
        ("reasoning_parser", "deepseek_r1", "log"),
        ("graph_mode", "NONE", "log"),
        ("moe_backend", "auto", "log"),
        ("version", "0.32.0", "log"),
    ],
)
def test_vllm(vllm, name, value, source) -> None:
    assert (vllm[name].value, vllm[name].source) == (value, source)


@pytest.mark.parametrize(
    ("name", "value", "source"),
    [
        ("tensor_parallel", 1, STATES),
        ("decode_context_parallel", 1, STATES),
        ("dcp_comm_backend", "ag_rs", STATES),
        ("attention_backend", "torch_native", STATES),
        ("all2all_backend", "none", STATES),
        ("disable_custom_all_reduce", False, STATES),
        ("symmetric_memory", False, STATES),
        # The arguments say `auto`; only the log tells what came of it.
        ("kv_cache_dtype", "bfloat16", "log"),
        ("block_size", 1, STATES),
        ("max_model_len", 4096, STATES),
        # The argument is null; the scheduler's state has what it worked out.
        ("max_running_requests", 4096, STATES),
        ("kv_cache_tokens", 40000, STATES),
        ("max_total_tokens", 40000, STATES),
        ("chunked_prefill_tokens", 4096, STATES),
        ("memory_fraction", 0.719, STATES),
        ("prefix_cache_implementation", "UnifiedRadixCache", "log"),
        ("version", "0.5.23", "/server_info"),
    ],
)
def test_sglang(sglang, name, value, source) -> None:
    assert (sglang[name].value, sglang[name].source) == (value, source)


def test_every_source_of_a_value_is_kept(vllm, sglang) -> None:
    assert vllm["max_model_len"].stated == (("log", 4096), ("/server_info", 4096))
    assert sglang["max_model_len"].stated == ((STATES, 4096), ("/metrics", 4096), ("log", 4096), ("/server_info", 4096))


def test_the_sources_of_a_healthy_server_agree(vllm, sglang) -> None:
    assert [name for name, one in {**vllm, **sglang}.items() if one.disagree] == []


def test_a_server_without_development_endpoints_has_its_log_and_its_metrics() -> None:
    """The log says 2,097,152 tokens and 512.00x, the labels 16384 blocks of 128 tokens: the same."""
    log = CASES / "real-vllm-0.32.0-plain" / "input.txt"
    found = merged("vllm", "vllm-0.32.0-plain", log, {}, {"arguments": {"max-model-len": 4096, "block-size": 16}})
    assert found["kv_cache_tokens"].stated == (("/metrics", 2097152), ("log", 2097152))
    assert found["max_concurrency"].stated == (("/metrics", 512.0), ("log", 512.0))
    assert found["kv_cache_blocks"].value * found["block_size"].value == 2097152
    assert (found["block_size"].verdict, found["block_size"].value) == ("changed", 128)
    assert found["max_model_len"].verdict == "as asked"
    assert [name for name, one in found.items() if one.disagree] == []


def verdicts(found: dict) -> dict[str, str]:
    return {f"{one.flag}: {name}": one.verdict for name, one in found.items() if one.verdict}


def test_what_was_asked_of_vllm_is_judged(vllm) -> None:
    assert verdicts(vllm) == {
        "max_model_len: max_model_len": "as asked",
        "enforce-eager: enforce_eager": "as asked",
        "reasoning-parser: reasoning_parser": "as asked",
        "speculative-config.method: speculative_method": "as asked",
        "speculative-config.num_speculative_tokens: speculative_tokens": "as asked",
        "speculative-config.prompt_lookup_max: speculative_config.prompt_lookup_max": "as asked",
        "max-num-seqs: max_running_requests": "changed",
        "compilation-config.cudagraph_mode: graph_mode": "changed",
        # It says `auto` everywhere: nothing tells which type that is.
        "kv-cache-dtype: kv_cache_dtype": "not stated",
        "no-such-flag: no_such_flag": "not stated",
        "VLLM_CPU_KVCACHE_SPACE: VLLM_CPU_KVCACHE_SPACE": "as asked",
        "VLLM_LOG_STATS_INTERVAL: VLLM_LOG_STATS_INTERVAL": "changed",
    }
    changed = vllm["VLLM_LOG_STATS_INTERVAL"]
    assert (changed.requested, changed.value, changed.source) == (10, 1.0, "/server_info vllm_env")


def test_what_was_asked_of_sglang_is_judged(sglang) -> None:
    assert verdicts(sglang) == {
        "tp: tensor_parallel": "as asked",
        "attention-backend: attention_backend": "changed",
        "attention-backend: prefill_attention_backend": "changed",
        "decode-attention-backend: decode_attention_backend": "as asked",
        "context-length: max_model_len": "as asked",
        "disable-overlap-schedule: overlap_schedule": "as asked",
        "disable-radix-cache: prefix_caching": "changed",
        "enable-metrics: enable_metrics": "as asked",
        "log-level: log_level": "changed",
    }
    assert (sglang["prefix_caching"].requested, sglang["prefix_caching"].value) == (False, True)


def test_no_key_is_compared(vllm) -> None:
    assert "canary" not in str(vllm)
