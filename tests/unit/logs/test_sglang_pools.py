"""Pools of SGLang in the wording of every generation; sums and differences are worked out in the comments."""

# ruff: noqa: E501 (lines stand as the engine prints them)

from __future__ import annotations

from crossover.logs import EngineReport, read_log


def report_of(text: str) -> EngineReport:
    return read_log(text.strip("\n").split("\n"), "sglang")


def test_draft_model_is_a_second_load_and_a_second_pool() -> None:
    """0.4.6 with EAGLE: loads 9 s + 2 s, captures 5.50 + 3.25 + 1.25 s, 1.10 + 0.20 + 0.10 GiB."""
    report = report_of("""
[2025-06-01 10:00:00] Load weight begin. avail mem=78.00 GB
[2025-06-01 10:00:09] Load weight end. type=LlamaForCausalLM, dtype=torch.bfloat16, avail mem=63.00 GB, mem usage=15.00 GB.
[2025-06-01 10:00:10] KV Cache is allocated. #tokens: 300000, K size: 20.00 GB, V size: 20.00 GB
[2025-06-01 10:00:10] Memory pool end. avail mem=22.50 GB
[2025-06-01 10:00:11] Capture cuda graph begin. This can take up to several minutes. avail mem=22.00 GB
[2025-06-01 10:00:11] Capture cuda graph bs [1, 2, 4, 8]
[2025-06-01 10:00:16] Capture cuda graph end. Time elapsed: 5.50 s. mem usage=1.10 GB. avail mem=20.90 GB.
[2025-06-01 10:00:17] Load weight begin. avail mem=20.90 GB
[2025-06-01 10:00:19] Load weight end. type=LlamaForCausalLMEagle, dtype=torch.bfloat16, avail mem=19.90 GB, mem usage=1.00 GB.
[2025-06-01 10:00:20] KV Cache is allocated. #tokens: 300000, K size: 0.60 GB, V size: 0.60 GB
[2025-06-01 10:00:20] Capture draft cuda graph begin. This can take up to several minutes. avail mem=18.60 GB
[2025-06-01 10:00:23] Capture draft cuda graph end. Time elapsed: 3.25 s. avail mem=18.40 GB. mem usage=0.20 GB.
[2025-06-01 10:00:25] Capture draft extend cuda graph end. Time elapsed: 1.25 s. mem usage=0.10 GB. avail mem=18.30 GB.
""")
    start = report.startup
    assert (start.weights_load_s, start.model_load_gib) == (11.0, 15.0)
    assert (start.graph_capture_s, start.graph_capture_gib) == (10.0, 1.4)
    assert start.graph_sizes == (1, 2, 4, 8)
    assert (start.kv_cache_tokens, start.kv_cache_gib) == (300000, 40.0)
    assert [(pool.name, pool.tokens, pool.gib) for pool in report.pools] == [
        ("target", 300000, 40.0),
        ("draft", 300000, 1.2),
    ]
    # 78.00 visible = 16 weights + 40 KV + 1.2 draft KV + 1.4 graphs + 18.3 left + 1.1 that no line names
    items = {item.item: item.gib for item in report.memory}
    assert items == {
        "visible": 78.0, "weights": 16.0, "kv_cache": 40.0, "draft_kv": 1.2, "cuda_graph": 1.4, "remaining": 18.3,
    }  # fmt: skip


def test_sliding_window_model_has_two_target_pools() -> None:
    """0.5.6 prints the window pool first; the second line is not a draft's."""
    report = report_of("""
[2025-12-01 10:00:00] Use Sliding window memory pool. full_layer_tokens=400000, swa_layer_tokens=320000
[2025-12-01 10:00:00] KV Cache is allocated. #tokens: 320000, K size: 4.00 GB, V size: 4.00 GB
[2025-12-01 10:00:00] KV Cache is allocated. #tokens: 400000, K size: 5.00 GB, V size: 5.00 GB
[2025-12-01 10:00:00] SWAKVPool mem usage: 18.0 GB, swa size: 320000, full size: 400000
[2025-12-01 10:00:01] KV Cache is allocated. #tokens: 400000, K size: 0.25 GB, V size: 0.25 GB
""")
    assert [(pool.name, pool.tokens, pool.gib) for pool in report.pools] == [
        ("target", 400000, 10.0),
        ("draft", 400000, 0.5),
        ("swa", 320000, 8.0),
    ]
    assert report.startup.kv_cache_tokens == 400000


def test_labelled_pools_and_sizing_after_the_capture() -> None:
    """0.5.23: the first line reserves addresses only; what is backed is said after the capture."""
    report = report_of("""
[2026-11-01 10:00:00] Full KV Cache VA upper bound. dtype: torch.bfloat16, #tokens: 990000, K size: 99.00 GB, V size: 99.00 GB
[2026-11-01 10:00:20] Capture target decode CUDA graph end. bs=[1, 2], elapsed=4.00 s, mem usage=1.00 GB, avail mem=70.00 GB.
[2026-11-01 10:00:24] Post-capture KV sizing: KV cache allocated. dtype: torch.bfloat16, #tokens: 500000, KV size: 60.00 GB, avail mem=9.50 GB
[2026-11-01 10:00:24] Post-capture KV sizing: draft KV cache allocated. dtype: torch.bfloat16, #tokens: 500000, KV size: 1.50 GB
""")
    assert [(pool.name, pool.tokens, pool.gib) for pool in report.pools] == [
        ("target", 500000, 60.0),
        ("draft", 500000, 1.5),
    ]
    assert report.effective_config["kv_cache_dtype"] == "bfloat16"


def test_pool_checker_is_no_limit() -> None:
    line = "Warning: available_size=90, max_total_num_tokens=100"
    assert read_log([line], "sglang").startup.kv_cache_tokens is None


def test_pool_below_the_context_is_reported_when_it_starts() -> None:
    line = (
        "[2026-07-01 10:00:00 TP{}] max_total_num_tokens=59862, chunked_prefill_size=4096, "
        "max_prefill_tokens=16384, max_running_requests=64, context_len=163840, available_gpu_mem=3.00 GB"
    )
    (incident,) = read_log([line.format(0), line.format(1)], "sglang").incidents
    assert (incident.kind, incident.count) == ("context_exceeds_pool", 1)
    assert "59862" in incident.message
    assert "163840" in incident.message


def test_pool_without_a_line_of_its_own_is_what_went_between_weights_and_pool() -> None:
    """0.3: 61.19 - 9.76 = 51.43 GiB, the table of requests included; no size of the pool alone is stated."""
    report = report_of("""
[2024-11-29 10:20:36 TP0] Load weight begin. avail mem=78.49 GB
[2024-11-29 10:21:15 TP0] Load weight end. type=LlamaForCausalLM, dtype=torch.bfloat16, avail mem=61.19 GB
[2024-11-29 10:21:16 TP0] Memory pool end. avail mem=9.76 GB
[2024-11-29 10:21:33 TP0] max_total_num_tokens=1312882, max_prefill_tokens=16384, max_running_requests=4097, context_len=131072
""")
    items = {item.item: item.gib for item in report.memory}
    assert items == {"visible": 78.49, "weights": 17.3, "kv_cache": 51.43, "remaining": 9.76}
    assert report.startup.kv_cache_gib is None
    assert report.startup.kv_cache_tokens == 1312882


def test_data_type_is_that_of_the_target_pool() -> None:
    """The draft's pool is reserved and backed after the target's, and may have another type."""
    report = report_of("""
[2026-11-01 06:03:40 TP0] Using KV cache dtype: torch.float8_e4m3fn
[2026-11-01 06:03:41 TP0] KV Cache VA upper bound. dtype: torch.float8_e4m3fn, #tokens: 1200000, KV size: 160.10 GB
[2026-11-01 06:03:57 TP0] Using KV cache dtype: torch.bfloat16
[2026-11-01 06:03:58 TP0] KV Cache VA upper bound. dtype: torch.bfloat16, #tokens: 9600000, KV size: 22.10 GB
[2026-11-01 06:04:27 TP0] Post-capture KV sizing: KV cache allocated. dtype: torch.float8_e4m3fn, #tokens: 916672, KV size: 122.30 GB, avail mem=17.60 GB
[2026-11-01 06:04:27 TP0] Post-capture KV sizing: draft KV cache allocated. dtype: torch.bfloat16, #tokens: 7333376, KV size: 16.90 GB
""")
    assert report.effective_config["kv_cache_dtype"] == "fp8_e4m3"
    assert [(pool.name, pool.tokens, pool.gib) for pool in report.pools] == [
        ("target", 916672, 122.3),
        ("draft", 7333376, 16.9),
    ]
    assert {item.item: item.gib for item in report.memory}["remaining"] == 17.6


def test_ring_buffers_belong_to_the_states() -> None:
    """0.33 + 18.02 GB of states, 0.125 + 0.250 + 0.005 = 0.38 GB of rings: 18.73 GiB."""
    report = report_of("""
[2026-07-01 15:19:55 TP0] Mamba Cache is allocated. max_mamba_cache_size: 500, conv_state size: 0.33GB, ssm_state size: 18.02GB
[2026-07-01 15:19:55 TP0] GDN ReplaySSM ring buffers allocated (L=16): d=0.125GB, k=0.250GB, g=0.005GB
""")
    assert [(pool.name, pool.tokens, pool.gib) for pool in report.pools] == [("mamba", 500, 18.73)]


def test_pool_that_all_kinds_of_layers_share() -> None:
    """The unified pool has one size; tokens come from the limits."""
    report = report_of("""
[2026-09-01 10:00:00 TP0] Load weight end. elapsed=9.00 s, type=Qwen3NextForCausalLM, avail mem=120.00 GB, mem usage=19.00 GB.
[2026-09-01 10:00:01 TP0] [unified-memory-pool] UnifiedKVPool allocated: total_bytes=70.25 GB (=75430363136 B), 2 sub-pool(s)
[2026-09-01 10:00:01 TP0] [unified-memory-pool]   total_bytes=75430363136, max_total_num_tokens=2400000, max_mamba_cache_size=300, max_num_reqs=75, speculative_num_draft_tokens=None
[2026-09-01 10:00:02 TP0] Memory pool end. avail mem=48.90 GB
""")
    assert {item.item: item.gib for item in report.memory}["kv_cache"] == 70.25
    assert report.startup.kv_cache_tokens == 2400000


def test_pool_sizes_that_are_printed_again_after_a_limit() -> None:
    """The second line is what is allocated. The draft was loaded before the pool: 14.74 - 9.90 = 4.84 GiB."""
    report = report_of("""
[2026-09-11 23:34:13 TP0 EP0] Load weight begin. avail mem=111.47 GB
[2026-09-11 23:43:15 TP0 EP0] Load weight end. elapsed=541.76 s, type=DeepseekV4ForCausalLM, quant=fp8, avail mem=17.47 GB, mem usage=94.00 GB.
[2026-09-11 23:44:38 TP0 EP0] Load weight begin. avail mem=17.54 GB
[2026-09-11 23:45:53 TP0 EP0] Load weight end. elapsed=74.58 s, type=DeepseekV4ForCausalLMDSpark, quant=fp8, avail mem=14.74 GB, mem usage=2.80 GB.
[2026-09-11 23:46:11 TP0 EP0] DSV4 pool sizes: full=5491200, swa=13312, c4=1372800, c128=42900, c4_state=1664, c128_state=0
[2026-09-11 23:46:11 TP0 EP0] DSV4 pool sizes: full=2999808, swa=13312, c4=749952, c128=23436, c4_state=1664, c128_state=0
[2026-09-11 23:46:13 TP0 EP0] Memory pool end. avail mem=9.90 GB
[2026-09-11 23:46:14 TP0 EP0] Memory pool end. avail mem=9.90 GB
""")
    assert [(pool.name, pool.tokens) for pool in report.pools] == [("target", 2999808), ("swa", 13312)]
    assert report.startup.kv_cache_tokens == 2999808
    items = {item.item: item.gib for item in report.memory}
    assert (items["kv_cache"], items["weights"]) == (4.84, 96.8)


def test_draft_pool_that_is_allocated_while_the_target_s_is_reserved() -> None:
    """Only the target is sized after the capture; a draft pool beside it is its own, and no target."""
    report = report_of("""
[2026-09-01 10:00:00 TP0] KV Cache VA upper bound. dtype: torch.bfloat16, #tokens: 900000, K size: 40.00 GB, V size: 40.00 GB
[2026-09-01 10:00:05 TP0] KV Cache is allocated. dtype: torch.bfloat16, #tokens: 900000, K size: 1.00 GB, V size: 1.00 GB
[2026-09-01 10:00:40 TP0] Post-capture KV sizing: full_layer_tokens=700032, swa_layer_tokens=0
[2026-09-01 10:00:40 TP0] Post-capture KV sizing: KV cache allocated. dtype: torch.bfloat16, #tokens: 700032, KV size: 62.25 GB, avail mem=5.00 GB
""")
    pools = [(pool.name, pool.tokens, pool.gib) for pool in report.pools]
    assert pools == [("target", 700032, 62.25), ("draft", 900000, 2.0)]


def test_window_pool_that_is_sized_after_the_capture() -> None:
    """One size is printed for both pools: 62.25 GiB in all, and not what was reserved."""
    report = report_of("""
[2026-09-01 10:00:00 TP0] Use sliding window memory pool. full_layer_tokens=900000, swa_layer_tokens=720000
[2026-09-01 10:00:00 TP0] KV Cache VA upper bound. dtype: torch.bfloat16, #tokens: 720000, K size: 30.00 GB, V size: 30.00 GB
[2026-09-01 10:00:00 TP0] KV Cache VA upper bound. dtype: torch.bfloat16, #tokens: 900000, K size: 40.00 GB, V size: 40.00 GB
[2026-09-01 10:00:00 TP0] SWAKVPool VA upper bound: 140.00 GB, swa size: 720000, full size: 900000
[2026-09-01 10:00:40 TP0] Post-capture KV sizing: full_layer_tokens=700032, swa_layer_tokens=560128
[2026-09-01 10:00:40 TP0] Post-capture KV sizing: KV cache allocated. dtype: torch.bfloat16, #tokens: 700032, KV size: 62.25 GB, avail mem=5.00 GB
""")
    pools = [(pool.name, pool.tokens, pool.gib) for pool in report.pools]
    assert pools == [("target", 700032, 62.25), ("swa", 560128, None)]
    assert {item.item: item.gib for item in report.memory} == {"kv_cache": 62.25, "remaining": 5.0}


def test_pool_that_was_never_backed_is_no_pool() -> None:
    """The log ends during the capture: what is reserved is no capacity."""
    report = report_of("""
[2026-09-01 10:00:00 TP0] KV Cache VA upper bound. dtype: torch.bfloat16, #tokens: 900000, K size: 40.00 GB, V size: 40.00 GB
""")
    assert list(report.pools) == []
    assert report.startup.kv_cache_tokens is None


def test_cache_in_host_memory() -> None:
    """120 GiB for keys and values and 20 GiB for states on TP6 are 140 GiB, more than TP5's 120."""
    config = read_log(
        [
            "[2026-07-18 03:03:06 ATTN_CP5 TP5] Allocating 120.00 GB host memory for hierarchical KV cache.",
            "[2026-07-18 03:03:06 ATTN_CP6 TP6] Allocating 120.00 GB host memory for hierarchical KV cache.",
            "[2026-07-18 03:03:07 ATTN_CP6 TP6] Allocating 20.00 GB host memory for hierarchical Mamba cache (layout=page_first).",
        ],
        "sglang",
    ).effective_config
    assert config["hierarchical_cache_gib"] == 140.0


def test_tokens_with_separators() -> None:
    report = report_of("[2026-09-10] KV Cache is allocated. #tokens: 123,456, K size: 2.12 GB, V size: 2.12 GB")
    assert [(pool.tokens, pool.gib) for pool in report.pools] == [(123456, 4.24)]
