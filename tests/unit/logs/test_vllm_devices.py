"""vLLM on other devices than a GPU, and loaders that are not the default one: real lines, shortened."""

from __future__ import annotations

import pytest

from crossover.logs import read_log

GAUDI = (
    "INFO 09-24 17:31:39 habana_model_runner.py:640] Loading model weights took in total 15.05 GiB of device memory "
    "(15.05 GiB/94.62 GiB used) and 1.056 GiB of host memory (8.188 GiB/108.2 GiB used)",
    "INFO 09-24 17:31:40 habana_worker.py:153] Model profiling run took 355 MiB of device memory (15.4 GiB/94.62 GiB "
    "used) and 131.4 MiB of host memory (8.316 GiB/108.2 GiB used)",
    "INFO 09-24 17:31:40 habana_worker.py:177] Free device memory: 79.22 GiB, 71.3 GiB usable "
    "(gpu_memory_utilization=0.9), 7.13 GiB reserved for HPUGraphs (VLLM_GRAPH_RESERVED_MEM=0.1), 64.17 GiB reserved "
    "for KV cache",
    "INFO 09-24 17:31:40 habana_executor.py:85] # HPU blocks: 4107, # CPU blocks: 256",
    "INFO 08-02 17:38:43 hpu_model_runner.py:1161] Warmup finished in 49 secs, allocated 14.19 GiB of device memory",
)


def test_gaudi_has_blocks_of_128_tokens_and_states_its_memory_in_its_own_words() -> None:
    """64.17 GiB at 128 KiB a token (8B, bfloat16) are 525,680 tokens: 4107 x 128 = 525,696. 355 / 1024 = 0.3467."""
    report = read_log(GAUDI)
    startup = report.startup
    assert startup.kv_cache_tokens == 525696
    assert (startup.model_load_gib, startup.kv_cache_gib, startup.kernel_warmup_s) == (15.05, 64.17, 49.0)
    found = {item.item: item.gib for item in report.memory}
    assert (found["visible"], found["weights"], found["activation"], found["kv_cache"], found["cuda_graph"]) == (
        94.62, 15.05, 0.3467, 64.17, 14.19,
    )  # fmt: skip
    assert report.effective_config["memory_fraction"] == 0.9
    assert report.unparsed == 0


def test_gaudi_keeps_a_block_of_the_cache_for_itself() -> None:
    line = (
        "INFO 08-13 10:00:00 hpu_worker.py:300] Free device memory: 79.22 GiB, 71.3 GiB usable (gpu_memory_utilization="
        "0.9), 7.13 GiB reserved for HPUGraphs (VLLM_GRAPH_RESERVED_MEM=0.1), 16 MiB reserved for KV cache dummy block "
        "64.15 GiB reserved for usable KV cache"
    )
    assert read_log([line]).startup.kv_cache_gib == 64.15


def test_an_npu_prints_bytes() -> None:
    """11,423,615,078 / 2**30 = 10.6391 and 65,796,046,848 / 2**30 = 61.2773; the smaller capacity binds."""
    head = "(Worker_DP1_TP{0}_EP1{0} pid=25876{0}) INFO 10-29 15:48:50 [worker_v1.py:234] "
    engine = "(EngineCore_DP1 pid=258089) INFO 10-29 15:48:51 [kv_cache_utils.py:1087] GPU KV cache size: {} tokens"
    report = read_log(
        [
            head.format(5) + "Available memory: 11423615078, total memory: 65796046848",
            head.format(3) + "Available memory: 11417045094, total memory: 65796046848",
            engine.format("222,592"),
            engine.format("237,184"),
        ]
    )
    assert report.startup.kv_cache_gib == pytest.approx(11417045094 / 2**30, abs=1e-4)
    assert report.startup.kv_cache_tokens == 222592
    assert {item.gib for item in report.memory if item.item == "visible"} == {61.2773}


@pytest.mark.parametrize(
    ("lines", "tokens", "gib"),
    [
        (  # 1170 x 128 / 32768 = 4.57
            [
                "WARNING 05-11 12:04:01 [cpu.py:120] Environment variable VLLM_CPU_KVCACHE_SPACE (GiB) for CPU backend "
                "is not set, using 4 by default.",
                "INFO 05-11 12:04:07 [executor_base.py:112] # cpu blocks: 1170, # CPU blocks: 0",
                "INFO 05-11 12:04:07 [executor_base.py:117] Maximum concurrency for 32768 tokens per request: 4.57x",
            ],
            149760,
            4.0,
        ),
        (["INFO 05-11 12:04:07 [executor_base.py:112] # cpu blocks: 1170, # CPU blocks: 0"], None, None),
        (  # 100 x 32
            [
                "INFO 03-04 11:45:17 [openvino.py:121] OpenVINO CPU optimal block size is 32, overriding currently set "
                "16",
                "WARNING 03-04 11:45:17 [openvino.py:136] Environment variable VLLM_OPENVINO_KVCACHE_SPACE (GB) for "
                "OpenVINO backend is not set, using 4 by default.",
                "INFO 03-04 11:45:19 [executor_base.py:110] # openvino blocks: 100, # CPU blocks: 0",
            ],
            3200,
            4.0,
        ),
        (
            ["INFO 07-01 10:00:00 openvino_executor.py:85] OpenVINO GPU: # device blocks: 100; # swap blocks: 0"],
            1600,
            None,
        ),
        (["INFO 07-01 10:00:00 executor_base.py:110] # neuron blocks: 9, # CPU blocks: 0"], None, None),
        (  # 7000 x 64
            [
                "INFO 06-30 05:57:46 [cuda.py:154] Forcing kv cache block size to 64 for FlashMLA backend.",
                "INFO 06-30 05:58:46 [executor_base.py:112] # cuda blocks: 7000, # CPU blocks: 512",
            ],
            448000,
            None,
        ),
    ],
)
def test_the_size_of_a_block_is_the_device_s_own_or_unknown(
    lines: list[str], tokens: int | None, gib: float | None
) -> None:
    startup = read_log(lines, "vllm").startup
    assert (startup.kv_cache_tokens, startup.kv_cache_gib) == (tokens, gib)


@pytest.mark.parametrize(
    ("lines", "seconds"),
    [
        (["[RunAI Streamer] Overall time to stream 942.3 MiB of all files: 0.18s, 5.0 GiB/s"], 0.18),
        (  # both ranks read at once: the slower one counts
            [
                "(EngineCore_DP0 pid=20129) (Worker_TP1 pid=20137) [2026-02-15 05:16:38] INFO file_streamer.py:66: "
                "[RunAI Streamer] Overall time to stream 34.3 GiB of all files to cpu: 28.52s, 1.2 GiB/s",
                "(EngineCore_DP0 pid=20129) (Worker_TP0 pid=20135) [2026-02-15 05:16:38] INFO file_streamer.py:66: "
                "[RunAI Streamer] Overall time to stream 34.3 GiB of all files to cpu: 28.74s, 1.2 GiB/s",
            ],
            28.74,
        ),
        (  # what the engine says of the whole load is the better figure
            [
                "[RunAI Streamer] Overall time to stream 7.1 GiB of all files to cpu: 11.01s, 664.3 MiB/s",
                "INFO 06-02 11:02:20 [base_loader.py:50] Loading weights took 11.52 seconds",
            ],
            11.52,
        ),
    ],
)
def test_a_streaming_loader_says_how_long_it_took(lines: list[str], seconds: float) -> None:
    assert read_log(lines, "vllm").startup.weights_load_s == seconds


def test_the_first_wording_of_the_compile_time() -> None:
    """14.73 s is the total as printed, and the only graph; the profiling run of 28.21 s has it inside."""
    report = read_log(
        [
            "INFO 12-05 22:39:02 backends.py:55] Compiling a graph for general shape takes 14.73 s",
            "INFO 12-05 22:39:04 monitor.py:13] graph compilation takes 14.73 s in total",
            "INFO 12-05 22:39:05 worker.py:232] Memory profiling took 28.21 seconds",
            "INFO 12-05 22:39:24 llm_engine.py:493] init engine (profile, create kv cache, warmup model) took 40.77 "
            "seconds",
        ]
    )
    assert (report.startup.compile_s, report.startup.engine_init_s) == (14.73, 40.77)
    assert report.effective_config["raw"]["memory_profiling_s"] == 28.21


def test_less_than_nothing_is_left_for_the_cache() -> None:
    """An NPU of 32 GiB under 27.5 GiB of weights ends without another word; a GPU says it again: one incident."""
    lines = [
        "INFO 05-20 10:00:00 [model_runner_v1.py:2000] Loading model weights took 27.5376 GB",
        "INFO 05-20 10:00:05 [worker_v1.py:230] Available KV cache memory: -0.87 GiB",
    ]
    after = "ERROR 05-20 10:00:05 [core.py:390] ValueError: No available memory for the cache blocks. Try increasing"
    for text in (lines, [*lines, after]):
        (found,) = [one for one in read_log(text).incidents if one.kind == "kv_too_small"]
        assert (found.count, found.severity) == (1, "error")
        assert "0.87 GiB are missing" in found.message


def test_graphs_cannot_take_less_than_nothing() -> None:
    report = read_log(
        ["(EngineCore_DP0 pid=420) INFO 11-28 15:28:13 [gpu_model_runner.py:4244] Graph capturing finished in 4 secs, "
         "took -0.41 GiB"]
    )  # fmt: skip
    assert (report.startup.graph_capture_s, report.startup.graph_capture_gib) == (4.0, None)
    assert "-0.41" in report.effective_config["raw"]["graph_capture_gib_withheld"]


def test_the_length_of_a_draft_model_is_the_one_that_it_got() -> None:
    line = (
        "(EngineCore pid=9) INFO 08-01 17:40:00 [speculative.py:900] Overriding draft model max model len from {} to {}"
    )
    assert read_log([line.format(262144, 65536)], "vllm").effective_config["draft_max_model_len"] == 65536


def test_transfers_between_servers_add_up() -> None:
    """1 x 70 MiB and 4 x 2.25 MiB are 79 MiB, 79 / 1024 = 0.077148 GiB; the throughput is no rate of the server."""
    head = "(APIServer pid=205253) INFO 09-22 13:28:53 [metrics.py:98] KV Transfer metrics: "
    report = read_log(
        [
            f"{head}Num successful transfers=1, Avg xfer time (ms)=9.862, P90 xfer time (ms)=9.862, Avg post time (ms)="
            "5.693, P90 post time (ms)=5.693, Avg MB per transfer=70.0, Throughput (MB/s)=7097.952, Avg number of "
            "descriptors=56.0",
            f"{head}Num successful transfers=4, Avg xfer time (ms)=1.381, P90 xfer time (ms)=2.601, Avg post time (ms)="
            "0.672, P90 post time (ms)=0.801, Avg MB per transfer=2.25, Throughput (MB/s)=1629.549, Avg number of "
            "descriptors=72.0",
        ]
    )
    assert report.effective_config["raw"] == {"kv_transfers": 5, "kv_transferred_gib": 0.077148}
    assert report.unparsed == 0


def test_a_comma_that_0_6_4_left_out_makes_no_long_value() -> None:
    line = (
        "INFO 12-19 19:52:31 llm_engine.py:249] Initializing an LLM engine (v0.6.4.post1) with config: model='/m', "
        "num_scheduler_steps=1, chunked_prefill_enabled=False multi_step_stream_outputs=True, "
        "enable_prefix_caching=False, use_async_output_proc=False"
    )
    config = read_log([line]).effective_config
    assert (config["chunked_prefill"], config["prefix_caching"]) == (False, False)


def test_a_default_that_is_stated_before_the_version_is_no_earlier_server() -> None:
    lines = [
        "INFO 11-20 06:32:31 api_server.py:593] args: Namespace(host=None, model='/m', block_size=16)",
        "WARNING 11-20 06:32:37 _logger.py:72] Environment variable VLLM_CPU_KVCACHE_SPACE (GB) for CPU backend is not "
        "set, using 4 by default.",
        "INFO 11-20 06:32:37 llm_engine.py:249] Initializing an LLM engine (v0.6.4) with config: model='/m', seed=0",
        "INFO 11-20 06:32:45 cpu_executor.py:195] # CPU blocks: 7281",
    ]
    report = read_log(lines)
    assert report.effective_config["block_size"] == 16
    assert (report.startup.kv_cache_gib, report.startup.kv_cache_tokens) == (4.0, 7281 * 16)
