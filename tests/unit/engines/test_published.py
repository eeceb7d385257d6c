"""The published configurations, argument by argument. The expected words are those of the published commands."""

from __future__ import annotations

import json

from crossover.engines import get_engine

VLLM = {
    "trust-remote-code": True,
    "load-format": "fastsafetensors",
    "moe-backend": "auto",
    "gpu-memory-utilization": 0.95,
    "tensor-parallel-size": 8,
    "max-model-len": 1000000,
    "kv-cache-dtype": "fp8",
    "attention-config": {"mla_prefill_backend": "TRTLLM_RAGGED", "use_prefill_query_quantization": True},
    "max-num-batched-tokens": 32768,
    "enable-prefix-caching": True,
    "enable-auto-tool-choice": True,
    "tool-call-parser": "kimi_k3",
    "reasoning-parser": "kimi_k3",
    "max-num-seqs": 32,
    "speculative-config": {
        "model": "Inferact/Kimi-K3-DSpark",
        "num_speculative_tokens": 7,
        "method": "dspark",
        "attention_backend": "FLASHINFER_MLA",
        "draft_sample_method": "probabilistic",
        "rejection_sample_method": "block",
    },
}
SGLANG = {
    "trust-remote-code": True,
    "tp-size": 8,
    "dcp-size": 8,
    "disable-custom-all-reduce": True,
    "enable-symm-mem": True,
    "mem-fraction-static": 0.85,
    "reasoning-parser": "kimi_k3",
    "tool-call-parser": "kimi_k3",
    "mamba-full-memory-ratio": 0.86,
    "host": "0.0.0.0",
    "port": 30000,
    "speculative-algorithm": "DSPARK",
    "speculative-dspark-block-size": 7,
    "enable-linear-replayssm-spec": True,
    "chunked-prefill-size": 32768,
    "max-prefill-tokens": 32768,
    "context-length": 1000000,
    "kv-cache-dtype": "fp8_e4m3",
}

VLLM_FLAGS = """
--trust-remote-code --load-format fastsafetensors --moe-backend auto --gpu-memory-utilization 0.95
--tensor-parallel-size 8 --max-model-len 1000000 --kv-cache-dtype fp8
--attention-config {"mla_prefill_backend":"TRTLLM_RAGGED","use_prefill_query_quantization":true}
--max-num-batched-tokens 32768 --enable-prefix-caching --enable-auto-tool-choice --tool-call-parser kimi_k3
--reasoning-parser kimi_k3 --max-num-seqs 32 --speculative-config
{"model":"Inferact/Kimi-K3-DSpark","num_speculative_tokens":7,"method":"dspark","attention_backend":"FLASHINFER_MLA","draft_sample_method":"probabilistic","rejection_sample_method":"block"}
"""
SGLANG_FLAGS = """
--trust-remote-code --tp-size 8 --dcp-size 8 --disable-custom-all-reduce --enable-symm-mem
--mem-fraction-static 0.85 --reasoning-parser kimi_k3 --tool-call-parser kimi_k3 --mamba-full-memory-ratio 0.86
--host 0.0.0.0 --port 30000 --speculative-algorithm DSPARK --speculative-dspark-block-size 7
--enable-linear-replayssm-spec --chunked-prefill-size 32768 --max-prefill-tokens 32768 --context-length 1000000
--kv-cache-dtype fp8_e4m3
"""
VLLM_ENVIRONMENT = {
    "VLLM_ENABLE_K3_LATENT_MOE_TAIL_FUSION": 1,
    "VLLM_ALLREDUCE_USE_FLASHINFER": 1,
    "VLLM_ENGINE_READY_TIMEOUT_S": 3600,
    "VLLM_USE_V2_MODEL_RUNNER": 1,
    "VLLM_USE_RUST_FRONTEND": 1,
}


def test_vllm():
    command = get_engine("vllm").command(VLLM, model_path="/weights", host="127.0.0.1", port=8000)
    assert list(command) == ["vllm", "serve", "/weights", *VLLM_FLAGS.split(), "--host", "127.0.0.1", "--port", "8000"]


def test_vllm_with_its_draft_model_on_disk_differs_in_that_path_alone():
    command = get_engine("vllm").command(VLLM, model_path="/weights", host="h", port=1, draft_path="/draft")
    speculative = json.loads(command[command.index("--speculative-config") + 1])
    assert speculative == {**VLLM["speculative-config"], "model": "/draft"}


def test_sglang():
    command = get_engine("sglang").command(SGLANG, model_path="/weights", host="127.0.0.1", port=8000)
    assert list(command) == ["python3", "-m", "sglang.launch_server", "--model-path", "/weights", *SGLANG_FLAGS.split()]


def test_vllm_environment():
    environment = get_engine("vllm").environment(VLLM_ENVIRONMENT)
    assert {name: environment[name] for name in VLLM_ENVIRONMENT} == {
        name: str(value) for name, value in VLLM_ENVIRONMENT.items()
    }
    assert set(environment) - set(VLLM_ENVIRONMENT) == {"VLLM_NO_USAGE_STATS"}
