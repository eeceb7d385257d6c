"""vLLM's start on other devices and in other wordings; one server after another in one log."""

from __future__ import annotations

import pytest

from crossover.logs import read_log


def test_a_tpu_compiles_in_parts_that_may_be_alike() -> None:
    """44.09 + 0.07 + 0.07 = 44.23 s."""
    lines = [
        "INFO 03-31 07:48:36 [tpu_model_runner.py:778] Compilation finished in in 44.09 [secs].",
        "INFO 03-31 07:48:36 [tpu_model_runner.py:778] Compilation finished in 0.07 [secs].",
        "INFO 03-31 07:48:36 [tpu_model_runner.py:778] Compilation finished in 0.07 [secs].",
    ]
    report = read_log(lines)
    assert (report.startup.compile_s, report.unparsed) == (44.23, 0)


def test_a_start_that_compiled_in_part_is_cold() -> None:
    head = "(Worker_TP0 pid=1) INFO 07-06 10:46:1{} [backends.py:1] "
    cold = head.format(1) + "Compiling a graph for compile range (1, 8192) takes 6.06 s"
    warm = (
        head.format(2) + "Directly load the compiled graph(s) for compile range (1, 8192) from the cache, took 0.115 s"
    )
    loaded = head.format(3) + "Directly load AOT compilation from path ~/.cache/vllm/x/rank_0_0/model"
    assert read_log([warm, loaded]).effective_config["raw"]["compile_cache"] == "warm"
    assert read_log([loaded]).effective_config["raw"]["compile_cache"] == "warm"
    assert read_log([cold, warm, loaded]).effective_config["raw"]["compile_cache"] == "cold"


def test_the_graphs_of_an_encoder_are_captured_for_themselves() -> None:
    """12 + 3 s and 0.5 + 0.25 GiB of one rank."""
    head = "(Worker_TP0 pid=1) INFO 07-06 10:46:10 [model_runner.py:1] "
    startup = read_log(
        [
            head + "Graph capturing finished in 12 secs, took 0.50 GiB",
            head + "Encoder graph capturing finished in 3 secs, took 0.25 GiB (9 graphs)",
        ]
    ).startup
    assert (startup.graph_capture_s, startup.graph_capture_gib) == (15.0, 0.75)


@pytest.mark.parametrize(
    ("line", "name", "value"),
    [
        ("(EngineCore_DP1 pid=7) INFO 11-24 14:52:35 [cuda.py:424] Using FLASH_ATTN backend.", "attention_backend",
         "FLASH_ATTN"),
        ("INFO 11-24 14:52:35 [fp8.py:1] Using Cutlass BlockScaled GroupedGemm backend for FP8 MoE", "moe_backend",
         "Cutlass BlockScaled GroupedGemm"),
        ("INFO 11-24 14:52:35 [cuda_communicator.py:1] Using ['CUSTOM', 'PYNCCL'] all-reduce backends (in dispatch "
         "order) for group 'tp:0' out of potential backends: ['CUSTOM'].", "all_reduce_backends", ["CUSTOM", "PYNCCL"]),
        ("INFO 11-24 14:52:35 [cache.py:1] Using nvfp4 data type to store kv cache.", "kv_cache_dtype", "nvfp4"),
        ("INFO 12-20 00:49:35 llm_engine.py:237] Initializing an LLM engine (vdev) with config: model='/m', "
         "tensor_parallel_size=2", "tensor_parallel", 2),
    ],
)  # fmt: skip
def test_backends_and_settings(line: str, name: str, value: object) -> None:
    report = read_log([line])
    assert report.effective_config[name] == value
    assert report.version is None


def test_a_server_that_starts_again_forgets_the_first_start() -> None:
    """The first one was killed without a word; its capacity must not bind the second's."""
    start = "(APIServer pid=1) INFO 05-01 10:0{}:00 [api_server.py:9] vLLM API server version 0.30.0"
    size = "(EngineCore pid=2) INFO 05-01 10:0{}:30 [kv_cache_utils.py:9] GPU KV cache size: {} tokens"
    startup = read_log([start.format(0), size.format(0, "1,000"), start.format(5), size.format(5, "2,000")]).startup
    assert startup.kv_cache_tokens == 2000


def test_reading_target_and_draft_adds_up_and_a_reload_does_not() -> None:
    """3 + 0.5 s, then the whole load; what is read later (weights set anew) is none of the start."""
    head = "(EngineCore pid=7) INFO 07-25 13:42:16 [default_loader.py:430] "
    startup = read_log(
        [
            head + "Loading weights took 3.00 seconds",
            head + "Loading drafter model...",
            head + "Loading weights took 0.50 seconds",
            head + "Model loading took 19.75 GiB memory and 6.35 seconds",
            head + "Loading weights took 9.00 seconds",
        ]
    ).startup
    assert (startup.weights_load_s, startup.model_load_s) == (3.5, 6.35)
