"""Compiling, kernel warm-up and progress bars of SGLang's start; sums are worked out in the comments."""

# ruff: noqa: E501 (lines stand as the engine prints them)

from __future__ import annotations

from crossover.logs import EngineReport, read_log


def report_of(text: str) -> EngineReport:
    return read_log(text.strip("\n").split("\n"), "sglang")


def test_graphs_that_are_compiled_one_by_one_add_up_per_rank() -> None:
    """TP0 2.50 + 0.75 = 3.25 s, TP1 2.00 + 0.50 = 2.50 s at the same time: 3.25 s."""
    report = report_of("""
[2025-12-02 07:01:22 TP0] Compiling a graph for dynamic shape takes 2.50 s
[2025-12-02 07:01:22 TP1] Compiling a graph for dynamic shape takes 2.00 s
[2025-12-02 07:01:25 TP0] Compiling a graph for shape 4 takes 0.75 s
[2025-12-02 07:01:25 TP1] Compiling a graph for shape 4 takes 0.50 s
""")
    assert report.startup.compile_s == 3.25


def test_bar_of_compiling_covers_the_graphs_it_compiles() -> None:
    """The bar ran for 1:12 = 72 s and 3.25 s of it are stated: 72 s, not 75.25. Its last drawing comes twice."""
    report = report_of("""
[2025-12-02 07:01:22 TP0] Compiling a graph for dynamic shape takes 3.25 s
Compiling num tokens (num_tokens=8):   0%|          | 0/2 [00:00<?, ?it/s]
Compiling num tokens (num_tokens=4): 100%|██████████| 2/2 [01:12<00:00, 36.20s/it]
Compiling num tokens (num_tokens=4): 100%|██████████| 2/2 [01:12<00:00, 36.20s/it]
Capturing num tokens (num_tokens=4 avail_mem=45.80 GB): 100%|██████████| 2/2 [00:05<00:00,  1.80it/s]
""")
    assert report.startup.compile_s == 72.0


def test_bar_that_never_ended_gives_no_duration() -> None:
    report = report_of("""
[2025-12-02 07:01:22 TP0] Capture piecewise CUDA graph begin. avail mem=46.40 GB
Compiling num tokens (num_tokens=8):  50%|█████     | 1/2 [00:40<00:40, 40.00s/it]
""")
    assert report.startup.compile_s is None


def test_kernels_of_deep_gemm_have_a_bar_each() -> None:
    """12 s + 1:00:03 = 3603 s, and 6 s of autotuning: 3621 s."""
    report = report_of("""
[2026-01-10 13:20:00 TP0] Running FlashInfer autotune...
[2026-01-10 13:20:06 TP0] FlashInfer autotune completed.
[2026-01-10 13:20:07 TP0] Try DeepGEMM JIT Compiling for <GEMM_NT_F8F8BF16> N=4096, K=7168, num_groups=1 with all Ms.
DeepGEMM warmup:   0%|          | 0/64 [00:00<?, ?it/s]
DeepGEMM warmup: 100%|██████████| 64/64 [00:12<00:00,  5.10it/s]
DeepGEMM warmup:   0%|          | 0/64 [00:00<?, ?it/s]
DeepGEMM warmup: 100%|██████████| 64/64 [1:00:03<00:00,  5.10it/s]
""")
    assert report.startup.kernel_warmup_s == 3621.0
    assert report.startup.compile_s is None


def test_printed_duration_of_warmup_by_pipeline_stage() -> None:
    report = report_of("""
[2026-06-01 10:00:00 PP0 TP0] PP-parallel DeepGEMM warmup done in 41.25s (pp_rank=0).
[2026-06-01 10:00:02 PP1 TP0] PP-parallel DeepGEMM warmup done in 43.50s (pp_rank=1).
""")
    assert report.startup.kernel_warmup_s == 43.5


def test_bar_of_the_weights_stands_in_only_where_no_line_has_a_time() -> None:
    """0.2 has no clock: the bar's 22 s. 0.4 has stamps: 40 s between them, whatever the bar says."""
    without = report_of("""
[gpu_id=0] Load weight begin. avail mem=78.58 GB
Loading safetensors checkpoint shards:  51% Completed | 19/37 [00:11<00:10,  1.70it/s]
Loading safetensors checkpoint shards: 100% Completed | 37/37 [00:22<00:00,  1.66it/s]
[gpu_id=0] Load weight end. type=Qwen2ForCausalLM, dtype=torch.bfloat16, avail mem=10.66 GB
""")
    assert (without.startup.weights_load_s, without.startup.model_load_s) == (22.0, None)
    stamped = report_of("""
[2025-01-09 11:22:07 TP0] Load weight begin. avail mem=78.58 GB
Loading safetensors checkpoint shards: 100% Completed | 37/37 [00:22<00:00,  1.66it/s]
[2025-01-09 11:22:47 TP0] Load weight end. type=LlamaForCausalLM, dtype=torch.bfloat16, avail mem=63.42 GB
""")
    assert (stamped.startup.weights_load_s, stamped.startup.model_load_s) == (40.0, 40.0)


def test_bars_that_both_engines_draw_do_not_tell_whose_log_it_is() -> None:
    report = read_log(["Loading safetensors checkpoint shards: 100% Completed | 4/4 [00:02<00:00,  1.66it/s]"])
    assert report.engine is None


def test_weights_that_are_read_beside_the_capture() -> None:
    """Only the 3.75 s after the capture are the weights' own; the line is understood, though it has no memory."""
    report = report_of("""
[2026-08-01 09:00:00] Prepared capture-safe model in 1.20 s
[2026-08-01 09:00:40] Load weight end. Committed real weights after CUDA graph capture in 3.75 s (capture overlap window 30.10 s, startup overlap total 35.05 s)
""")
    assert report.startup.weights_load_s == 3.75
    assert report.startup.model_load_s is None
    assert report.unparsed == 0


def test_target_and_draft_are_tuned_one_after_the_other() -> None:
    """12 s for the target, 2 s for the draft: 14 s."""
    report = report_of("""
[2026-09-11 23:46:18 TP0] Running FlashInfer autotune with cache: ~/.cache/a.json
[2026-09-11 23:46:30 TP0] FlashInfer autotune completed.
[2026-09-11 23:46:45 TP0] Running FlashInfer autotune with cache: ~/.cache/b.json
[2026-09-11 23:46:47 TP0] FlashInfer autotune completed.
""")
    assert report.startup.kernel_warmup_s == 14.0
