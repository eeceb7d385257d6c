"""What vLLM changed itself: slower kernels, graphs left out, settings that it replaced."""

from __future__ import annotations

import pytest
from log_texts import incidents, kinds

from crossover.logs import read_log


def test_kernels_that_were_compiled_are_named() -> None:
    line = (
        "(EngineCore pid=7) WARNING 05-16 11:10:19 [jit_monitor.py:103] {} JIT compilation during inference: {}. This"
    )
    (found,) = incidents(line.format("Triton kernel", "_zero_kv"), line.format("CuTeDSL", "FlashForward"))
    assert (found["kind"], found["count"]) == ("jit_compile", 2)
    assert found["message"] == "JIT compilation during inference: _zero_kv, FlashForward"


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("model_runner.py:180] Using FP8 KV cache but no scaling factors provided. Defaulting to scaling factors of "
         "1.0. This may lead to less accurate results!", "fp8_kv_scale_default"),
        ("[kv_cache.py:86] Using KV cache scaling factor 1.0 for fp8_e4m3. This may cause accuracy issues.",
         "fp8_kv_scale_default"),
        ("[kv_cache.py:125] Using Q scale 1.0 and prob scale 1.0 with fp8 attention. This may cause accuracy issues.",
         "fp8_q_scale_default"),
        ("[fused_moe.py:668] Using default MoE config. Performance might be sub-optimal! Config file not found at "
         "/x.json", "fallback_kernel"),
        ("[marlin_utils_fp8.py:48] Your GPU does not have native support for FP8 computation but FP8 quantization is "
         "being used.", "fallback_kernel"),
        ("[vllm.py:900] Truncating max_cudagraph_capture_size to 96", "graph_sizes_capped"),
        ("[compilation.py:1] No valid cudagraph capture sizes remain after capping to Mamba cache blocks (3).",
         "graph_sizes_capped"),
        ("[vllm.py:800] KV connector X requires PIECEWISE CUDA graph mode. Overriding cudagraph_mode from FULL to "
         "PIECEWISE.", "graph_mode_changed"),
        ("config.py:400] CUDA graph is not supported on BitAndBytes 8bit yet, fallback to the eager mode.",
         "graph_mode_changed"),
        ("[kernel_warmup.py:99] No FlashInfer autotune cache entries found.Falling back to default tactics.",
         "autotune_disabled"),
        ("[vllm.py:700] Turning off hybrid kv cache manager because `--kv-transfer-config` is set.", "config_adjusted"),
    ],
)  # fmt: skip
def test_fallbacks_and_changes(text: str, kind: str) -> None:
    assert kinds(f"WARNING 05-16 11:10:19 {text}") == [kind]


def test_an_autotuner_that_runs_out_of_memory_goes_on() -> None:
    line = "2026-07-06 23:18:2{}, - WARNING - autotuner.py:1315 - flashinfer.jit: [Autotuner]: OOM detected, "
    line += "falling back to default tactic"
    lines = [line.format(f"{second},723") for second in (3, 5, 6)]
    found = read_log(["(EngineCore pid=7) INFO 07-06 23:18:20 [core.py:1] x", *lines]).to_dict()["incidents"]
    assert [(one["kind"], one["count"]) for one in found] == [("oom_retry", 3)]


@pytest.mark.parametrize(
    ("text", "mode"),
    [
        ("CUDAGraphMode.FULL_AND_PIECEWISE is not supported with TritonMLABackend backend (support: NEVER); setting "
         "cudagraph_mode=PIECEWISE because attention is compiled piecewise", "PIECEWISE"),
        ("KV connector X requires it. Overriding cudagraph_mode from FULL to PIECEWISE.", "PIECEWISE"),
        ("Cudagraph mode FULL requires piecewise capture, but the model provides none. Overriding to NONE.", "NONE"),
        ("Pooling models do not support full cudagraphs. Overriding cudagraph_mode to PIECEWISE.", "PIECEWISE"),
    ],
)  # fmt: skip
def test_the_graph_mode_that_is_used_is_the_effective_one(text: str, mode: str) -> None:
    report = read_log([f"WARNING 07-21 04:58:26 [vllm.py:1409] {text}"], "vllm").to_dict()
    assert report["effective_config"]["graph_mode"] == mode
    assert [found["kind"] for found in report["incidents"]] == ["graph_mode_changed"]


@pytest.mark.parametrize(
    ("text", "kind", "severity"),
    [
        ("Layer 'model.layers.3' is not supported by AWQMoeMarlin. Falling back to Moe WNA16 kernels.",
         "fallback_kernel", "warning"),
        ("NVFP4 linear falling back to the slow and unoptimized emulation backend as no optimized backend is available",
         "fallback_kernel", "warning"),
        ("Detected that the model can run with gptq_marlin, however you specified quantization=gptq explicitly, so "
         "forcing gptq. Use quantization=gptq_marlin for faster inference", "fallback_kernel", "warning"),
        ("Cannot use FA version 3 on Blackwell platform defaulting to FA version 2.", "fallback_kernel", "note"),
        ("MLA is enabled; forcing chunked prefill and prefix caching to be disabled.", "config_adjusted", "note"),
        ("The 'pplx' all2all backend has been removed. Falling back to 'allgather_reducescatter'.",
         "config_adjusted", "note"),
        ("Hybrid KV cache manager is disabled for this hybrid model, This means we do not", "config_adjusted", "note"),
    ],
)  # fmt: skip
def test_slower_kernels_and_changed_settings(text: str, kind: str, severity: str) -> None:
    (found,) = read_log([f"(Worker_TP0 pid=7) WARNING 07-06 10:46:10 [x.py:1] {text}"]).incidents
    assert (found.kind, found.severity) == (kind, severity)


def test_graphs_that_another_setting_forbids() -> None:
    head = "WARNING 07-06 10:46:10 [x.py:1] "
    for text, mode in [
        (
            "Data Parallel: Forcing enforce eager to be True since DP is currently not supported with CUDA Graphs.",
            "NONE",
        ),
        ("Sequence parallelism is incompatible with piecewise cudagraph. Setting cudagraph_mode to FULL.", "FULL"),
    ]:
        report = read_log([head + text])
        assert [found.kind for found in report.incidents] == ["graph_mode_changed"]
        assert report.effective_config["graph_mode"] == mode
