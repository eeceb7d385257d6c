"""Incidents of SGLang: kind, count over lines and ranks, severity; lines stand as the engine prints them."""

# ruff: noqa: E501 (lines stand as the engine prints them)

from __future__ import annotations

import pytest

from crossover.logs import read_log
from crossover.logs.model import Incident


def incidents_of(*lines: str) -> list[Incident]:
    return list(read_log(lines, "sglang").incidents)


AT = "[2026-09-13 16:06:07 TP0] "
ONE_EACH = {
    "retraction": "KV cache pool is full. Retract requests. #retracted_reqs: 1, #new_token_ratio: 0.0980 -> 0.3487",
    "context_exceeds_pool": "Input length (160062 tokens) exceeds the maximum allowed length (59862 tokens). Use a "
    "shorter input or enable --allow-auto-truncate.",
    "warmup_failed": "Initialization failed. warmup error: Traceback (most recent call last):",
    "health_check_failed": "Health check failed. Server couldn't get a response from detokenizer for last 20 seconds.",
    "kv_too_small": "RuntimeError: Not enough memory. Please try to increase --mem-fraction-static.",
    "gpu_occupied": "The memory capacity is unbalanced. Some GPUs may be occupied by other processes. min=1.0",
    "concurrency_capped": "max_running_requests was reduced from the requested 48 to 39 (per dp worker) due to the "
    "available KV cache capacity.",
    "graph_sizes_capped": "Post-capture KV sizing: decode CUDA graph max_bs=32 < max_running_requests=64; reserving "
    "activation headroom",
    "fp8_kv_scale_default": "Using FP8 KV cache but no scaling factors provided. Defaulting to scaling factors of 1.0.",
    "slow_tokenizer": "Using a slow tokenizer. This might cause a significant slowdown.",
    "autotune_disabled": "FlashInfer extend autotune skipped: not enough free memory for a 4096-token dummy forward.",
    "quantization_mismatch": "DeepGemm is enabled but the scale_fmt of checkpoint is not ue8m0.",
    "allreduce_fallback": "Custom allreduce is disabled because this process group spans across nodes.",
    "fallback_kernel": "KDA cutedsl prefill needs SM100; falling back to Triton extend.",
    "nccl_timeout": "[Rank 3] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=12, OpType=ALLREDUCE)",
    "port_in_use": "ERROR:    [Errno 98] error while attempting to bind on address ('0.0.0.0', 30000): address already "
    "in use",
    "out_of_memory": "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has 1.10 GiB free.",
}


@pytest.mark.parametrize("kind", ONE_EACH)
def test_each_kind_from_one_line(kind: str) -> None:
    found = {incident.kind: incident for incident in incidents_of(AT + ONE_EACH[kind])}
    assert kind in found
    assert found[kind].count == 1
    assert found[kind].t == "2026-09-13T16:06:07"
    assert found[kind].advice


@pytest.mark.parametrize(
    "line",
    [
        "Received sigquit from a child proces. It usually means the child failed.",
        "SIGQUIT received. signum=3, frame=None. It usually means one child failed.",
        "Rank 0 scheduler is dead. Please check if there are relevant logs.",
        "Subprocess scheduler_0 (pid=77) crashed with exit code 1. Triggering SIGQUIT for cleanup...",
        "Child process unexpectedly failed with an exit code 131. pid=77",
    ],
)
def test_death_in_every_wording(line: str) -> None:
    assert [item.kind for item in incidents_of(AT + line)] == ["engine_died"]


def test_page_size_that_the_backend_wants() -> None:
    report = read_log(
        [
            "server_args=ServerArgs(model_path='/m', page_size=1)",
            AT + "TensorRT-LLM MHA only supports page_size of 16, 32 or 64, changing page_size from 1 to 64.",
        ]
    )
    assert report.effective_config["block_size"] == 64
    assert [(item.kind, item.severity) for item in report.incidents] == [("config_adjusted", "note")]


def test_retraction_counts_requests_and_once_for_all_ranks() -> None:
    """Two lines with 3 and 2 requests, each told by two tensor ranks: 5 requests, not 4 lines or 10."""
    text = "[2026-09-13 16:06:0{} TP{}] KV cache pool is full. Retract requests. #retracted_reqs: {}"
    lines = [text.format(second, rank, count) for second, count in ((1, 3), (5, 2)) for rank in (0, 1)]
    (incident,) = incidents_of(*lines)
    assert (incident.kind, incident.count) == ("retraction", 5)


@pytest.mark.parametrize(
    "line",
    [
        "decode out of memory happened, #retracted_reqs: 2, #new_token_ratio: 0.8024 -> 0.9085",
        "Decode out of memory happened. #retracted_reqs: 2, #new_token_ratio: 0.8024 -> 0.9085",
        "KV cache pool is full. Retract requests. #retracted_reqs: 2, #new_tokens_gained: 64, #mamba_num_gained: 2",
    ],
)
def test_retraction_in_every_wording(line: str) -> None:
    assert [(item.kind, item.count) for item in incidents_of(AT + line)] == [("retraction", 2)]


@pytest.mark.parametrize(
    "line",
    [
        "Testing retraction. #retracted_reqs: 1, #new_tokens_gained: 64",
        "server_args=ServerArgs(model_path='/m', retraction_policy='length')",
        "Using fallback token IDs for yes/no (9693/2152)",
        "Port 30000 is already in use, trying port 30001",
    ],
)
def test_what_only_sounds_alike_is_no_incident(line: str) -> None:
    assert incidents_of(AT + line) == []


def test_request_beyond_the_context_is_no_fault_of_the_pool() -> None:
    limits = (
        "[2026-07-01 10:00:00 TP0] max_total_num_tokens=900000, chunked_prefill_size=4096, max_prefill_tokens=16384, "
        "max_running_requests=64, context_len=32768, available_gpu_mem=3.00 GB"
    )
    line = AT + "Input length (40000 tokens) exceeds the maximum allowed length (32762 tokens)."
    assert [item.kind for item in incidents_of(limits, line)] == ["request_too_long"]


def test_crash_names_the_cause_below_it_once_for_all_ranks() -> None:
    """SGLang prints the cause below the announcement, and every rank does so."""
    lines = ["[2026-03-03 03:53:36] Received sigquit from a child process. It usually means the child failed."]
    for rank in (3, 0):
        lines += [
            f"[2026-03-03 03:53:36 TP{rank}] Scheduler hit an exception: Traceback (most recent call last):",
            '  File "/opt/sglang/srt/managers/scheduler.py", line 3130, in run_scheduler_process',
            "    scheduler = Scheduler(",
            "ValueError: Unsupported head size 96",
        ]
    found = {item.kind: item for item in incidents_of(*lines)}
    assert found["scheduler_exception"].count == 1
    assert found["engine_died"].count == 1
    assert "Unsupported head size 96" in found["scheduler_exception"].message
    assert "Unsupported head size 96" in found["engine_died"].message


def test_compiling_late_is_worse_than_compiling_early() -> None:
    early = "[2026-03-03 03:50:00 TP0] Entering DeepGEMM JIT Pre-Compile session. And it may takes a long time"
    ready = "[2026-03-03 03:53:36] The server is fired up and ready to roll!"
    late = "[2026-03-03 03:55:00 TP0] DeepGEMM JIT Compiling for <gemm_fp8> M=64, N=1536, K=7168. Please wait."
    found = incidents_of(early, ready, late)
    assert [(item.kind, item.severity) for item in found] == [("jit_compile", "note"), ("jit_compile", "warning")]


def test_all_reduce_on_nccl_is_no_other_kernel_and_hides_none() -> None:
    """The diagnosis of the verify kernel stands beside it, since no line of that kind came before."""
    found = incidents_of(
        "[2026-11-30 00:22:14 TP0] Custom allreduce is disabled, and symmetric memory with multicast is unavailable: "
        "falling back to NCCL all-reduce.",
        "[2026-11-30 00:22:14 TP0] Linear attention kernel backend: decode=triton, prefill=triton; "
        "linear_attn_verify_backend=nv_cutedsl. KDA kernel dispatcher: decode=TritonKDAKernel, "
        "verify=TritonKDAKernel, extend=TritonKDAKernel",
    )
    messages = {item.kind: item.message for item in found}
    assert set(messages) == {"allreduce_fallback", "fallback_kernel"}
    assert "verifies drafts" in messages["fallback_kernel"]


def test_request_that_was_shortened_is_told_apart_from_one_that_was_refused() -> None:
    """With automatic truncation the request runs, with fewer tokens than planned."""
    found = incidents_of(
        AT
        + "The input (140000 tokens) is longer than the model's context length (131072 tokens). Truncating the input.",
        AT + "The input (140000 tokens) is longer than the model's context length (131072 tokens).",
        AT
        + "Requested token count exceeds the model's maximum context length of 131072 tokens. You requested a total.",
    )
    assert [(item.kind, item.count) for item in found] == [("request_too_long", 1), ("request_too_long", 2)]
    assert "shortened" in found[0].advice
    assert "shortened" not in found[1].advice


def test_shortened_to_the_pool_is_the_pool_s_fault() -> None:
    limits = (
        "[2026-07-01 10:00:00 TP0] max_total_num_tokens=59868, chunked_prefill_size=4096, max_prefill_tokens=16384, "
        "max_running_requests=64, context_len=163840, available_gpu_mem=3.00 GB"
    )
    line = (
        AT + "Request length is longer than the KV cache pool size or the max context length. Truncated. "
        "len(req.origin_input_ids)=160062, max_req_input_len=59862."
    )
    assert [item.kind for item in incidents_of(limits, line)] == ["context_exceeds_pool", "context_exceeds_pool"]


@pytest.mark.parametrize(
    ("line", "kind", "severity"),
    [
        ("Using default MoE kernel config. Performance might be sub-optimal! Config file not found at /x", "fallback_kernel", "note"),
        ("Using default W8A8 Block FP8 kernel config. Performance might be sub-optimal! Config file not found at /x", "fallback_kernel", "note"),
        ("Config file not found at /a/triton_3_4_0/E=8.json. Fallback to triton version 3.1.0 and use MoE kernel config from /b. Performance might be sub-optimal!", "fallback_kernel", "note"),
        ("The current platform does not support Intel AMX, will fallback to torch_native backend.", "fallback_kernel", "warning"),
        ("Qwen9ForCausalLM has no SGLang implementation, falling back to Transformers implementation.", "fallback_kernel", "warning"),
        ("retract_decode: aborted last request 3f2a due to OOM", "context_exceeds_pool", "error"),
        ("LONG GARBAGE COLLECTION DETECTED | Generation 2 | Duration: 4.1234s | # Objects: gen0=1", "stalled", "warning"),
    ],
)  # fmt: skip
def test_what_costs_speed_or_requests(line: str, kind: str, severity: str) -> None:
    assert [(item.kind, item.severity, item.count) for item in incidents_of(AT + line)] == [(kind, severity, 1)]


def test_kernel_that_is_compiled_while_serving() -> None:
    found = incidents_of(
        "[2026-11-01 06:04:30] The server is fired up and ready to roll!",
        "[2026-11-01 06:06:20 TP0] Triton kernel '_fwd' took 3.21 s to compile after serving started. It can stall.",
    )
    assert [(item.kind, item.severity) for item in found] == [("jit_compile", "warning")]


@pytest.mark.parametrize(("device", "found"), [("npu", []), ("cuda", ["allreduce_fallback"])])
def test_only_where_there_is_a_custom_all_reduce_its_absence_is_told(device: str, found: list[str]) -> None:
    """On other devices than GPUs all-reduce never runs on NCCL, and the option only says so."""
    line = f"server_args=ServerArgs(model_path='/m', tp_size=4, device='{device}', disable_custom_all_reduce=True)"
    assert [item.kind for item in read_log([line], "sglang").incidents] == found


def test_missing_generation_config_is_no_missing_model() -> None:
    line = (
        "[2026-08-01 23:37:49] Failed to load generation config for org/model: org/model does not appear to have a file "
        "named generation_config.json. Checkout 'https://huggingface.co/org/model/tree/main' for available files.. "
        "{}"
    )
    assert incidents_of(line.format("Proceeding without generation config.")) == []
    assert [item.kind for item in incidents_of(line.format(""))] == ["model_not_found"]


def test_kernels_that_were_compiled_when_loaded() -> None:
    """Loading takes 0.02 s where the kernel is there already; 24.02 s is compiling."""
    lines = [
        "2025-03-27 21:33:31,890 - INFO - flashinfer.jit: Loading JIT ops: batch_decode_with_kv_cache_dtype_q_bf16",
        "2025-03-27 21:33:31,913 - INFO - flashinfer.jit: Finished loading JIT ops: batch_decode_with_kv_cache_dtype_q_bf16",
    ]
    assert incidents_of(*lines) == []
    late = [
        "[2025-03-27 21:34:00] The server is fired up and ready to roll!",
        "2025-03-27 21:35:31,890 - INFO - flashinfer.jit: Loading JIT ops: sampling",
        "2025-03-27 21:35:55,913 - INFO - flashinfer.jit: Finished loading JIT ops: sampling",
    ]
    assert [(item.kind, item.severity, item.count) for item in incidents_of(*lines, *late)] == [
        ("jit_compile", "warning", 1)
    ]


def test_a_module_that_several_loggers_tell_of_is_built_once() -> None:
    lines = [
        "[aiter] start build [module_rmsnorm_quant] under /sgl-workspace/aiter/aiter/jit/build/module_rmsnorm_quant",
        "[2026-02-26 05:24:10 TP3] start build [module_rmsnorm_quant] under /sgl-workspace/aiter/aiter/jit/build/module_rmsnorm_quant",
        "[2026-02-26 05:24:10 TP5] start build [module_rmsnorm_quant] under /sgl-workspace/aiter/aiter/jit/build/module_rmsnorm_quant",
    ]
    assert [(item.kind, item.count) for item in incidents_of(*lines)] == [("jit_compile", 1)]
