"""Start-up and memory in the wording of every generation; sums and differences are worked out in the comments."""

# ruff: noqa: E501 (lines stand as the engine prints them)

from __future__ import annotations

from crossover.logs import EngineReport, read_log


def report_of(text: str) -> EngineReport:
    return read_log(text.strip("\n").split("\n"), "sglang")


def test_generation_without_durations_gives_differences_of_stamps() -> None:
    """0.4.1: begin 11:22:07, end 11:22:19 on TP1 = 12 s; TP0 took 11 s. 78.58 - 63.42 = 15.16 GiB."""
    report = report_of("""
[2025-01-09 11:22:07 TP1] Load weight begin. avail mem=78.58 GB
[2025-01-09 11:22:07 TP0] Load weight begin. avail mem=78.50 GB
[2025-01-09 11:22:18 TP0] Load weight end. type=Qwen2ForCausalLM, dtype=torch.bfloat16, avail mem=63.34 GB
[2025-01-09 11:22:19 TP1] Load weight end. type=Qwen2ForCausalLM, dtype=torch.bfloat16, avail mem=63.42 GB
[2025-01-09 11:22:19 TP1] KV Cache is allocated. K size: 26.61 GB, V size: 26.61 GB.
[2025-01-09 11:22:19 TP0] KV Cache is allocated. K size: 26.60 GB, V size: 26.60 GB.
[2025-01-09 11:22:19 TP0] Memory pool end. avail mem=9.02 GB
[2025-01-09 11:22:20 TP0] Capture cuda graph begin. This can take up to several minutes.
[2025-01-09 11:22:26 TP0] Capture cuda graph end. Time elapsed: 6.31 s
[2025-01-09 11:22:26 TP1] Capture cuda graph end. Time elapsed: 6.30 s
[2025-01-09 11:22:27 TP0] max_total_num_tokens=996456, max_prefill_tokens=16384, max_running_requests=4097, context_len=32768
[2025-01-09 11:22:27 TP1] max_total_num_tokens=996400, max_prefill_tokens=16384, max_running_requests=4097, context_len=32768
""")
    start = report.startup
    assert (start.weights_load_s, start.model_load_s, start.model_load_gib) == (12.0, 12.0, 15.16)
    assert (start.kv_cache_tokens, start.kv_cache_gib) == (996400, 53.2)  # the smaller rank binds
    assert [(pool.name, pool.tokens, pool.gib) for pool in report.pools] == [("target", 996400, 53.2)]
    assert (start.graph_capture_s, start.graph_capture_gib, start.graph_sizes) == (6.31, None, None)
    assert (start.max_running_requests, start.chunked_prefill_tokens) == (4097, None)
    assert report.unparsed == 0


def test_midnight_between_begin_and_end_without_dates() -> None:
    report = report_of("""
[23:59:50 TP0] Load weight begin. avail mem=78.58 GB
[00:00:20 TP0] Load weight end. type=LlamaForCausalLM, dtype=torch.bfloat16, avail mem=63.42 GB
""")
    assert report.startup.weights_load_s == 30.0


def test_ranks_without_their_tags_are_no_draft_models() -> None:
    line = "KV Cache is allocated. #tokens: 387968, K size: 5.92 GB, V size: 5.92 GB"
    report = read_log([line] * 8, "sglang")
    assert [(pool.name, pool.gib) for pool in report.pools] == [("target", 11.84)]


def test_capture_phases_of_the_2026_wording() -> None:
    """Decode 4.10, prefill 20.40, three draft steps of 1 s: 27.50 s on TP0, which is longer than TP1's 27.40."""
    lines = []
    for rank, extra in (("TP0", 0.1), ("TP1", 0.0)):
        lines += [
            f"[2026-09-01 10:00:00 {rank}] Capture target verify CUDA graph begin. backend=full, "
            "num_tokens_per_req=4, bs=[1, 2, 4], avail mem=30.00 GB",
            f"[2026-09-01 10:00:04 {rank}] Capture target verify CUDA graph end. elapsed={4.0 + extra:.2f} s, "
            "mem usage=0.50 GB, avail mem=29.50 GB.",
            f"[2026-09-01 10:00:25 {rank}] Capture target prefill CUDA graph begin. backend=tc_piecewise, "
            "num_tokens=[64, 128, 256, 512], avail mem=29.50 GB",
            f"[2026-09-01 10:00:25 {rank}] Capture target prefill CUDA graph end. elapsed=20.40 s, "
            "mem usage=1.50 GB, avail mem=28.00 GB.",
            *(
                f"[2026-09-01 10:00:28 {rank}] Capture draft extend CUDA graph end. step={step}, elapsed=1.00 s, "
                "mem usage=0.05 GB, avail mem=27.85 GB."
                for step in range(3)
            ),
        ]
    start = read_log(lines).startup
    assert (start.graph_capture_s, start.graph_capture_gib) == (27.5, 2.15)
    assert (start.graph_sizes, start.graph_count) == ((1, 2, 4), 3)


def test_draft_steps_without_a_name_are_phases_of_their_own() -> None:
    """0.5.9, multi-layer drafts: three ends of equal wording, 1.00 + 1.10 + 1.20 s."""
    lines = [
        f"[2026-02-01 10:00:0{step}] Capture draft extend cuda graph end. Time elapsed: 1.{step}0 s. "
        "mem usage=0.05 GB. avail mem=27.85 GB."
        for step in range(3)
    ]
    assert read_log(lines, "sglang").startup.graph_capture_s == 3.3


def test_count_of_graphs_from_the_bar_where_no_list_is_printed() -> None:
    bar = "Capturing batches (bs=1 avail_mem=38.07 GB): 100%|█████| 35/35 [00:04<00:00, 10.83it/s]"
    assert read_log([bar], "sglang").startup.graph_count == 35


def test_data_parallel_engines_add_up() -> None:
    """Two engines of 120,000 and 119,000 tokens: the smaller binds, 239,000 in all."""
    report = report_of("""
[2025-06-01 10:00:00] server_args=ServerArgs(model_path='/m', tp_size=2, dp_size=2, enable_dp_attention=True)
[2025-06-01 10:00:10 DP0 TP0] KV Cache is allocated. #tokens: 120000, KV size: 8.00 GB
[2025-06-01 10:00:10 DP1 TP1] KV Cache is allocated. #tokens: 119000, KV size: 7.90 GB
[2025-06-01 10:00:11 DP0 TP0] max_total_num_tokens=118976, chunked_prefill_size=8192, max_prefill_tokens=16384, \
max_running_requests=1024, context_len=65536, available_gpu_mem=5.00 GB
""")
    start = report.startup
    assert (start.kv_cache_tokens, start.kv_cache_tokens_total, start.dp_size) == (119000, 239000, 2)
    assert start.kv_cache_gib == 7.9
    assert report.effective_config["dp_attention"] is True


def test_second_server_in_one_log_counts_alone() -> None:
    """A restart appends to the log: its figures are not added to those of the server before."""
    one = """
[2025-06-01 10:00:00] server_args=ServerArgs(model_path='/m', tp_size=1, context_length=4096)
[2025-06-01 10:00:01] Load weight begin. avail mem=78.00 GB
[2025-06-01 10:00:09] Load weight end. type=A, dtype=torch.bfloat16, avail mem=63.00 GB, mem usage=15.00 GB.
[2025-06-01 10:00:10] KV Cache is allocated. #tokens: 300000, K size: 20.00 GB, V size: 20.00 GB
[2025-06-01 10:00:16] Capture cuda graph end. Time elapsed: 5.50 s. mem usage=1.10 GB. avail mem=20.90 GB.
"""
    report = report_of(one + one.replace("10:00", "11:00").lstrip("\n"))
    start = report.startup
    assert (start.weights_load_s, start.graph_capture_s, start.kv_cache_gib) == (8.0, 5.5, 40.0)
    assert [pool.name for pool in report.pools] == ["target"]


def test_readiness_is_the_engines_own_word() -> None:
    """uvicorn is up before SGLang's warm-up request; a warm-up that fails takes the word back."""
    up = "[2026-01-10 13:23:20] INFO:     Application startup complete."
    ready = "[2026-01-10 13:23:26] The server is fired up and ready to roll!"
    failed = "[2026-01-10 13:23:27] Initialization failed. warmup error: Traceback (most recent call last):"
    assert read_log([up], "sglang").startup.ready_seen is False
    found = read_log([up, ready], "sglang").startup
    assert (found.ready_seen, found.ready) == (True, "2026-01-10T13:23:26")
    assert read_log([up, failed], "sglang").startup.ready_seen is False


def test_autotuning_is_kernel_warm_up() -> None:
    report = report_of("""
[2026-07-01 10:00:00 TP0] Running FlashInfer autotune with cache: /var/cache/engine/x.json
[2026-07-01 10:00:01 TP1] Running FlashInfer autotune with cache: /var/cache/engine/x.json
[2026-07-01 10:01:10 TP0] FlashInfer autotune completed.
[2026-07-01 10:01:13 TP1] FlashInfer autotune completed.
""")
    assert report.startup.kernel_warmup_s == 72.0


def test_draft_graphs_without_a_size_are_the_difference_of_what_is_free() -> None:
    """0.4.3: 20.50 - 19.00 = 1.50 GiB for the draft's graphs, 4.19 + 1.50 = 5.69 GiB in all."""
    report = report_of("""
[2025-02-18 03:12:56 TP0] Capture cuda graph begin. This can take up to several minutes. avail mem=28.20 GB
[2025-02-18 03:13:20 TP0] Capture cuda graph end. Time elapsed: 24.03 s. avail mem=24.01 GB. mem usage=4.19 GB.
[2025-02-18 03:13:31 TP0] Capture draft cuda graph begin. This can take up to several minutes. avail mem=20.50 GB
[2025-02-18 03:13:36 TP0] Capture draft cuda graph end. Time elapsed: 5.02 s. avail mem=19.00 GB
""")
    assert (report.startup.graph_capture_s, report.startup.graph_capture_gib) == (29.05, 5.69)


def test_server_that_starts_again_without_printing_its_arguments() -> None:
    """A second load after the server was ready is another server: its pool is no draft's, its time does not add."""
    report = report_of("""
[2025-06-01 10:01:05] Load weight begin. avail mem=78.00 GB
[2025-06-01 10:01:20] Load weight end. type=LlamaForCausalLM, dtype=torch.bfloat16, avail mem=62.90 GB, mem usage=15.10 GB.
[2025-06-01 10:01:21] KV Cache is allocated. #tokens: 300000, K size: 20.00 GB, V size: 20.00 GB
[2025-06-01 10:01:35] The server is fired up and ready to roll!
[2025-06-01 10:19:58] Init torch distributed ends. mem usage=0.50 GB
[2025-06-01 10:20:00] Load weight begin. avail mem=78.00 GB
[2025-06-01 10:20:09] Load weight end. type=LlamaForCausalLM, dtype=torch.bfloat16, avail mem=63.00 GB, mem usage=15.00 GB.
[2025-06-01 10:20:10] KV Cache is allocated. #tokens: 250000, K size: 17.00 GB, V size: 17.00 GB
""")
    assert [(pool.name, pool.tokens, pool.gib) for pool in report.pools] == [("target", 250000, 34.0)]
    assert (report.startup.weights_load_s, report.startup.model_load_gib) == (9.0, 15.0)
    assert {item.item: item.gib for item in report.memory}["non_torch"] == 0.5
    assert not report.startup.ready_seen


def test_same_rank_of_two_services_in_one_log() -> None:
    """Two servers of one composition both have a rank 0: two target pools, of which the smaller binds; no draft."""
    report = report_of("""
prefill-1  | [2025-09-01 10:00:21 TP0] KV Cache is allocated. #tokens: 300000, K size: 20.00 GB, V size: 20.00 GB
decode-1   | [2025-09-01 10:00:22 TP0] KV Cache is allocated. #tokens: 340000, K size: 22.00 GB, V size: 22.00 GB
""")
    assert [(pool.name, pool.tokens, pool.gib) for pool in report.pools] == [("target", 300000, 40.0)]


def test_line_about_reading_alone_tells_weights_from_model() -> None:
    """0.5.9: 1.21 s of 1.25 s were reading, and 0.40 of 0.55 s for the draft: 1.61 and 1.80 s."""
    report = report_of("""
[2026-02-01 00:05:02 TP0] Load weight begin. avail mem=15.24 GB
[2026-02-01 00:05:03 TP0] Loading weights took 1.21 seconds
[2026-02-01 00:05:03 TP0] Load weight end. elapsed=1.25 s, type=GraniteMoeHybridForCausalLM, dtype=torch.bfloat16, avail mem=9.26 GB, mem usage=5.98 GB.
[2026-02-01 00:05:04 TP0] Load weight begin. avail mem=9.20 GB
[2026-02-01 00:05:04 TP0] Loading weights took 0.40 seconds
[2026-02-01 00:05:04 TP0] Load weight end. elapsed=0.55 s, type=LlamaForCausalLMEagle, dtype=torch.bfloat16, avail mem=8.26 GB, mem usage=0.94 GB.
""")
    assert (report.startup.weights_load_s, report.startup.model_load_s) == (1.61, 1.8)


def test_capture_that_freed_memory_is_no_size() -> None:
    """0.58 - 0.01 = 0.57 GiB together; a capture that alone gives back is withheld."""
    lines = """
[2026-09-11 23:46:44 TP0] Capture target verify CUDA graph end. elapsed=13.48 s, mem usage={} GB, avail mem=7.62 GB.
[2026-09-11 23:46:49 TP0] Capture draft verify CUDA graph end. elapsed=4.26 s, mem usage=-0.01 GB, avail mem=7.68 GB.
"""
    both = report_of(lines.format("0.58"))
    assert (both.startup.graph_capture_gib, both.startup.graph_capture_s) == (0.57, 17.74)
    freed = report_of(lines.format("-0.02"))
    assert (freed.startup.graph_capture_gib, freed.startup.graph_capture_s) == (None, 17.74)
    assert [item.item for item in freed.memory] == ["remaining"]


def test_engine_s_own_timings_stand_in_for_lines_that_are_missing() -> None:
    """13.48 + 4.26 = 17.74 s of capture; phases that were not captured are no phases."""
    report = report_of("""
[2026-09-11 23:46:50] Engine startup timings (s): load_weight=616.34, kv_cache_allocation=6.68, scheduler_e2e=761.30, cuda_graph={prefill=0.00, decode=0.00, target_verify=13.48, draft_decode=4.26}, tokenizer_e2e=766.76
""")
    start = report.startup
    assert (start.weights_load_s, start.graph_capture_s, start.engine_init_s) == (616.34, 17.74, 761.3)
    nothing = report_of("""
[2026-11-29 20:56:47] Engine startup timings (s): load_weight=0.02, kv_cache_allocation=0.61, scheduler_e2e=2.01, cuda_graph={prefill=0.00, decode=0.00}, tokenizer_e2e=23.43
""")
    assert nothing.startup.graph_capture_s is None


def test_limits_that_somebody_laid_out_by_hand() -> None:
    report = report_of("""
[TP0]    max_total_num_tokens=1557504, chunked_prefill_size=1024,
         max_prefill_tokens=16384, max_running_requests=8,
         context_len=8192, available_gpu_mem=3.39 GB
The server is fired up and ready to roll!
""")
    start = report.startup
    assert (start.kv_cache_tokens, start.chunked_prefill_tokens, start.max_running_requests) == (1557504, 1024, 8)
    assert (start.context_length, start.ready_seen) == (8192, True)
    assert {item.item: item.gib for item in report.memory} == {"remaining": 3.39}


def test_lines_that_somebody_broke_after_a_comma() -> None:
    """Figures go on below the comma; the sizes of both pools stand in one line, and their own lines are missing."""
    report = report_of("""
Load weight end. elapsed=2415.46 s, type=Gemma4ForConditionalGeneration,
avail mem=97.30 GB, mem usage=15.56 GB.
SWAKVPool mem usage: 79.94 GB, swa size: 798276, full size: 997846
Capture target decode CUDA graph end. elapsed=22.18 s, mem usage=1.91 GB,
avail mem=14.18 GB.
Engine startup timings (s): load_weight=2415.46, scheduler_e2e=2456.47,
tokenizer_e2e=2461.44
""")
    assert [(pool.name, pool.tokens, pool.gib) for pool in report.pools] == [
        ("target", 997846, None),
        ("swa", 798276, None),
    ]
    items = {item.item: item.gib for item in report.memory}
    assert items == {"weights": 15.56, "kv_cache": 79.94, "cuda_graph": 1.91, "remaining": 14.18}
    assert (report.startup.model_load_s, report.startup.engine_init_s) == (2415.46, 2456.47)
    assert report.unparsed == 0


def test_bar_of_the_capture_stands_in_where_no_line_has_a_time() -> None:
    """41 s for twelve sizes; with the engine's own timings those count."""
    bar = "Capturing batches (bs=1 avail_mem=5.37 GB): 100%|██████| 12/12 [00:41<00:00,  3.4s/it]"
    alone = report_of(bar)
    assert (alone.startup.graph_capture_s, alone.startup.graph_count) == (41.0, 12)
    both = report_of(bar + "\nEngine startup timings (s): load_weight=4.08, cuda_graph={decode=42.70}")
    assert both.startup.graph_capture_s == 42.7


def test_model_on_a_mac() -> None:
    report = report_of("""
MLX model loaded in 0.74s
Engine startup timings (s): load_weight=0.00, kv_cache_allocation=0.00, scheduler_e2e=2.88, tokenizer_e2e=8.80
""")
    start = report.startup
    assert (start.weights_load_s, start.model_load_s, start.engine_init_s) == (0.74, 0.74, 2.88)


def test_capacity_of_an_excerpt_that_shows_few_engines_is_no_total() -> None:
    line = (
        "[2026-01-17 10:35:14 DP3 TP12 EP12] KV Cache is allocated. #tokens: 156800, K size: 4.64 GB, V size: 4.64 GB"
    )
    start = read_log([line], "sglang").startup
    assert (start.kv_cache_tokens, start.kv_cache_tokens_total, start.dp_size) == (156800, None, None)


def test_loads_whose_memory_was_left_out() -> None:
    """152.41 s for the target, 49.46 s for the draft: 201.87 s."""
    report = report_of("""
Load weight end. elapsed=152.41 s, type=Qwen4ExpForConditionalGeneration
Load weight begin.
Load weight end. elapsed=49.46 s,  type=Qwen4ExpForCausalLMMTP
""")
    assert (report.startup.weights_load_s, report.startup.model_load_gib, report.unparsed) == (201.87, None, 0)


def test_same_rank_of_two_actors_in_one_log() -> None:
    """Two engines under Ray: each has a pool of its own, the smaller binds, and neither is the other's draft model."""
    lines = []
    for actor, tokens in (("pid=12345, ip=10.0.0.1", 400000), ("pid=22345, ip=10.0.0.2", 400100)):
        head = f"(SGLangEngine {actor}) [2025-12-01 10:00:1"
        lines += [
            f"{head}0 TP0] Load weight end. type=Qwen3ForCausalLM, dtype=torch.bfloat16, avail mem=70.00 GB, mem usage=8.00 GB.",
            f"{head}2 TP0] KV Cache is allocated. #tokens: {tokens}, K size: 25.00 GB, V size: 25.00 GB",
        ]
    report = read_log(lines, "sglang")
    assert [(pool.name, pool.tokens, pool.gib) for pool in report.pools] == [("target", 400000, 50.0)]
    assert [item.gib for item in report.memory if item.item == "weights"] == [8.0, 8.0]


def test_bar_of_prefill_graphs_stands_in_where_no_line_has_their_time() -> None:
    """0.5.5: 27.41 s for the decode graphs as stated, and 2 s for the others by their bar; with a line, the line."""
    text = """
[2026-03-17 07:16:38 TP0] Capture cuda graph end. Time elapsed: 27.41 s. mem usage=0.83 GB. avail mem=10.81 GB.
[2026-03-17 07:16:38 TP0] Capture cuda graph num tokens [4, 8, 12, 16, 20]
Capturing num tokens (num_tokens=4 avail_mem=10.71 GB): 100%|██████| 5/5 [00:02<00:00,  2.21it/s]
"""
    assert report_of(text).startup.graph_capture_s == 29.41
    stated = "[2026-03-17 07:16:41 TP0] Capture piecewise CUDA graph end. Time elapsed: 2.26 s. mem usage=0.10 GB. avail mem=10.71 GB.\n"
    assert report_of(text + stated).startup.graph_capture_s == 29.67
